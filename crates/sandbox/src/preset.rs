//! Presets: the sandbox policies of well-known MCP servers and package runners.

use std::path::{Path, PathBuf};

use crate::policy::{Network, Policy};

/// What a well-known server needs.
struct KnownServer {
    /// The name of its package, in npm or PyPI.
    package: &'static str,
    /// What it does with the paths among its arguments.
    paths: PathArguments,
    network: Network,
    /// The paths below the home directory that it reads.
    home: &'static [&'static str],
}

/// What a server does with the paths among its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathArguments {
    None,
    Writable,
}

/// All servers that have a preset.
const KNOWN_SERVERS: &[KnownServer] = &[
    KnownServer {
        package: "@modelcontextprotocol/server-filesystem",
        paths: PathArguments::Writable,
        network: Network::None,
        home: &[],
    },
    KnownServer {
        package: "@modelcontextprotocol/server-memory",
        paths: PathArguments::None,
        network: Network::None,
        home: &[],
    },
    KnownServer {
        package: "@modelcontextprotocol/server-sequential-thinking",
        paths: PathArguments::None,
        network: Network::None,
        home: &[],
    },
    KnownServer {
        package: "@modelcontextprotocol/server-everything",
        paths: PathArguments::None,
        network: Network::None,
        home: &[],
    },
    KnownServer {
        package: "mcp-server-git",
        paths: PathArguments::Writable,
        network: Network::None,
        home: &[".gitconfig", ".config/git"],
    },
    KnownServer {
        package: "mcp-server-time",
        paths: PathArguments::None,
        network: Network::None,
        home: &[],
    },
    KnownServer {
        package: "mcp-server-fetch",
        paths: PathArguments::None,
        network: Network::All,
        home: &[],
    },
    KnownServer {
        package: "mcp-server-sqlite",
        paths: PathArguments::Writable,
        network: Network::None,
        home: &[],
    },
];

/// How a server is started.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub command: &'a str,
    pub args: &'a [String],
    /// Its working directory.
    pub directory: Option<&'a Path>,
    pub home: Option<&'a Path>,
}

/// Returns the policy of a server that is started like this, if it has a preset.
/// `exists` says whether a path exists.
pub fn find(run: Run<'_>, exists: impl Fn(&Path) -> bool) -> Option<Policy> {
    let Run { command, args, directory, home } = run;
    let known = KNOWN_SERVERS.iter().find_map(|known| {
        let at = args.iter().position(|word| is_package(word, known.package))?;
        Some((known, at))
    });
    let (known, at) = known?;
    let mut policy = Policy { network: known.network, ..Policy::default() };
    let runner = runner(command);
    let below_home = |below: &&str| home.map(|home| home.join(below)).filter(|path| exists(path));
    if let Some(runner) = runner {
        // The runner may have to fetch the package.
        policy.network = Network::All;
        policy.write.extend(runner.write.iter().filter_map(below_home));
        policy.read.extend(runner.read.iter().filter_map(below_home));
    }
    policy.read.extend(known.home.iter().filter_map(below_home));
    let place = |word: &String| match directory {
        Some(directory) => directory.join(word),
        None => PathBuf::from(word),
    };
    let words = args[at + 1..].iter().filter(|word| !word.starts_with('-')).map(place);
    let found: Vec<PathBuf> = words.filter(|path| path.is_absolute() && exists(path)).collect();
    match known.paths {
        PathArguments::None => {}
        PathArguments::Writable => policy.write.extend(found),
    }
    // The package itself, if it is started by its file and not by a runner.
    let script = Path::new(&args[at]);
    if let Some(package) = script.is_absolute().then(|| node_modules(script)).flatten() {
        policy.read.push(package);
    }
    Some(policy)
}

/// Returns the names of the packages that have a preset.
pub fn names() -> impl Iterator<Item = &'static str> {
    KNOWN_SERVERS.iter().map(|known| known.package)
}

/// Returns whether a word names a package: as it is, with a version, as a module,
/// or by its file.
fn is_package(word: &str, package: &str) -> bool {
    let rest = word.strip_prefix(package);
    let by_name =
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('@') || rest.starts_with("=="));
    by_name
        || word == package.replace('-', "_")
        || word.contains(&format!("/node_modules/{package}/"))
}

/// Returns the `node_modules` directory that a script is in.
fn node_modules(script: &Path) -> Option<PathBuf> {
    let found =
        script.ancestors().find(|path| path.file_name().is_some_and(|name| name == "node_modules"));
    found.map(Path::to_owned)
}

/// The paths that a package runner uses below the home directory.
struct Runner {
    /// Its caches.
    write: &'static [&'static str],
    /// Its settings.
    read: &'static [&'static str],
}

fn runner(command: &str) -> Option<Runner> {
    match Path::new(command).file_name()?.to_str()? {
        "npx" => Some(Runner { write: &[".npm"], read: &[".npmrc"] }),
        "uvx" | "uv" => Some(Runner {
            write: &[".cache/uv", ".local/share/uv"],
            read: &[".config/uv", ".netrc"],
        }),
        _ => None,
    }
}

/// Returns the cache directories of a package runner. They must exist before it is
/// confined, because it cannot create them then.
pub fn runner_directories(command: &str, home: &Path) -> Vec<PathBuf> {
    let directories = runner(command).map_or(&[][..], |runner| runner.write);
    directories.iter().map(|below| home.join(below)).collect()
}

/// Returns the installation directories of a program and of what it links to: its own
/// directory, or the one above its `bin`. A home directory or one above it is too much;
/// then it is the program alone.
pub fn own_directories(program: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let real = std::fs::canonicalize(program).ok();
    let mut found = Vec::new();
    for path in [Some(program.to_owned()), real].into_iter().flatten() {
        let Some(beside) = path.parent().filter(|beside| beside.is_absolute()) else { continue };
        let above =
            beside.parent().filter(|_| beside.file_name().is_some_and(|name| name == "bin"));
        let is_wide = |path: &&Path| {
            path.parent().is_none() || home.is_some_and(|home| home.starts_with(path))
        };
        let own = above.filter(|above| !is_wide(above)).unwrap_or(beside);
        if is_wide(&own) {
            found.push(path.clone());
        } else {
            found.push(own.to_owned());
        }
    }
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_known_server_gets_its_paths_and_nothing_else() {
        let args = words(&[
            "/n/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js",
            "/data",
            "/gone",
        ]);
        let run = |command, args| Run {
            command,
            args,
            directory: Some(Path::new("/work")),
            home: Some(Path::new("/home/ann")),
        };
        let policy = find(run("node", &args), |path| path != Path::new("/gone")).unwrap();
        assert_eq!((policy.write, policy.network), (vec![PathBuf::from("/data")], Network::None));
        assert_eq!(policy.read, [PathBuf::from("/n/node_modules")]);
        let args = words(&["-y", "@modelcontextprotocol/server-memory@1.0"]);
        let policy = find(run("npx", &args), |_| true).unwrap();
        assert_eq!(policy.network, Network::All, "it may have to be fetched");
        assert!(policy.write.contains(&PathBuf::from("/home/ann/.npm")));
        let args = words(&["-m", "mcp_server_git", "--repository", "."]);
        let policy = find(run("python3", &args), |path| !path.ends_with("--repository")).unwrap();
        assert_eq!(policy.write, [PathBuf::from("/work/.")], "relative to where it starts");
        assert!(policy.read.contains(&PathBuf::from("/home/ann/.gitconfig")));
        for other in [
            "@modelcontextprotocol/server-memory-evil",
            "x",
            "evil/@modelcontextprotocol/server-memory",
        ] {
            let args = words(&[other]);
            assert_eq!(
                find(Run { command: "npx", args: &args, directory: None, home: None }, |_| true),
                None,
                "{other}"
            );
        }
    }

    #[test]
    fn a_program_in_the_home_directory_does_not_open_the_home() {
        let home = Some(Path::new("/home/ann"));
        assert_eq!(
            own_directories(Path::new("/home/ann/bin/x"), home),
            [PathBuf::from("/home/ann/bin")]
        );
        assert_eq!(own_directories(Path::new("/home/ann/x"), home), [PathBuf::from("/home/ann/x")]);
        assert_eq!(own_directories(Path::new("/home/bin/x"), home), [PathBuf::from("/home/bin")]);
        assert_eq!(own_directories(Path::new("/bin/nothing"), home), [PathBuf::from("/bin")]);
        assert_eq!(own_directories(Path::new("/opt/n/bin/x"), home), [PathBuf::from("/opt/n")]);
    }
}
