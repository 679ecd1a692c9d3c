//! Presets: what well-known programs and servers need.

use std::path::{Path, PathBuf};

use crate::policy::{Network, Policy};

/// A server that we know.
struct Known {
    /// The name of its package, in npm or PyPI.
    package: &'static str,
    /// What its arguments are that lead to files.
    paths: Paths,
    network: Network,
    /// What it reads below the home directory.
    home: &'static [&'static str],
}

/// What the paths among a server's arguments are for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Paths {
    No,
    Write,
}

/// Every server that we know.
const KNOWN: &[Known] = &[
    Known {
        package: "@modelcontextprotocol/server-filesystem",
        paths: Paths::Write,
        network: Network::None,
        home: &[],
    },
    Known {
        package: "@modelcontextprotocol/server-memory",
        paths: Paths::No,
        network: Network::None,
        home: &[],
    },
    Known {
        package: "@modelcontextprotocol/server-sequential-thinking",
        paths: Paths::No,
        network: Network::None,
        home: &[],
    },
    Known {
        package: "@modelcontextprotocol/server-everything",
        paths: Paths::No,
        network: Network::None,
        home: &[],
    },
    Known {
        package: "mcp-server-git",
        paths: Paths::Write,
        network: Network::None,
        home: &[".gitconfig", ".config/git"],
    },
    Known { package: "mcp-server-time", paths: Paths::No, network: Network::None, home: &[] },
    Known { package: "mcp-server-fetch", paths: Paths::No, network: Network::All, home: &[] },
    Known { package: "mcp-server-sqlite", paths: Paths::Write, network: Network::None, home: &[] },
];

/// How a server is run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub command: &'a str,
    pub args: &'a [String],
    /// The directory in which it starts.
    pub directory: Option<&'a Path>,
    pub home: Option<&'a Path>,
}

/// What a server needs that is run like this, if we know it. `exists` says
/// whether a path is there.
pub fn find(run: Run<'_>, exists: impl Fn(&Path) -> bool) -> Option<Policy> {
    let Run { command, args, directory, home } = run;
    let known = KNOWN.iter().find_map(|known| {
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
        Paths::No => {}
        Paths::Write => policy.write.extend(found),
    }
    // The file of the package itself, where it is run without a runner.
    let script = Path::new(&args[at]);
    if let Some(package) = script.is_absolute().then(|| modules(script)).flatten() {
        policy.read.push(package);
    }
    Some(policy)
}

/// The names of what we know, for a message.
pub fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.package)
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

/// The directory with all packages beside a script.
fn modules(script: &Path) -> Option<PathBuf> {
    let found =
        script.ancestors().find(|path| path.file_name().is_some_and(|name| name == "node_modules"));
    found.map(Path::to_owned)
}

/// What a package runner uses below the home directory.
struct Runner {
    /// Where it keeps what it runs.
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

/// The directories in which a package runner keeps what it runs. It cannot make
/// them itself once it is confined.
pub fn runner_directories(command: &str, home: &Path) -> Vec<PathBuf> {
    let directories = runner(command).map_or(&[][..], |runner| runner.write);
    directories.iter().map(|below| home.join(below)).collect()
}

/// The directories of a program itself, links followed: beside it, and above its
/// `bin` unless that is somebody's home or above one.
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
            // Only the program, then.
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
