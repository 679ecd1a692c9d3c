//! Finds paths in the command of a server that mean another file in another working directory.

use std::path::Path;

use config::RawUpstream;

/// The first path in the command or its arguments that is relative to the working directory, or
/// the name of a variable that holds one; values of variables may be secret.
pub(super) fn relative_path(raw: &RawUpstream) -> Option<String> {
    let command = raw.command.iter().filter(|word| word.contains(['/', '\\']) && !is_rooted(word));
    let value = |word: &String| word.split_once('=').map_or(&**word, |(_, value)| value).to_owned();
    let args = raw.args.iter().map(value).filter(|word| is_relative(word));
    let env = raw.env.iter().filter(|(_, value)| is_relative(value)).map(|(name, _)| name.clone());
    command.cloned().chain(args).chain(env).next()
}

/// Whether a path is absolute on any system: the file that it stands in may have been
/// written on another one.
pub(super) fn is_rooted(path: &str) -> bool {
    let has_drive = path.as_bytes().get(1) == Some(&b':');
    path.starts_with(['/', '\\', '~', '$']) || has_drive
}

/// Files that servers are started from or with. Other words with a dot or a slash in them are
/// more often names of packages, images and repositories.
const FILES: &[&str] = &[
    "py", "js", "mjs", "cjs", "ts", "mts", "rb", "php", "sh", "jar", "wasm", "exe", "json",
    "jsonc", "yaml", "yml", "toml", "env", "db", "sqlite", "sqlite3", "csv", "sql",
];

fn is_relative(word: &str) -> bool {
    if matches!(word, "." | "..")
        || ["./", "../", ".\\", "..\\"].iter().any(|s| word.starts_with(s))
    {
        return true;
    }
    let ending = Path::new(word).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_file = FILES.iter().any(|known| ending.eq_ignore_ascii_case(known));
    let is_other = word.starts_with(['-', '@']) || word.contains("://") || word.contains(' ');
    is_file && !is_rooted(word) && !is_other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: &[&str], expected: Option<&str>) {
        let mut words = words.iter().map(|word| (*word).to_owned());
        let raw =
            RawUpstream { command: words.next(), args: words.collect(), ..Default::default() };
        assert_eq!(relative_path(&raw).as_deref(), expected, "{raw:?}");
    }

    #[test]
    fn a_path_without_a_root_is_found_and_a_name_is_not() {
        check(&["./server"], Some("./server"));
        check(&["bin/server"], Some("bin/server"));
        check(&["node", "build/index.js"], Some("build/index.js"));
        check(&["npx", "-y", "@modelcontextprotocol/server-filesystem", "."], Some("."));
        check(&["x", "--db=../data.sqlite"], Some("../data.sqlite"));
        check(&["npx", "-y", "@scope/server.js@1.2.3"], None);
        check(&["docker", "run", "-i", "ghcr.io/github/github-mcp-server:v1.0"], None);
        check(&["uvx", "mcp-server-git", "--repository", "/src/app"], None);
        check(&["python3", "~/servers/clock.py"], None);
        check(&["C:\\tools\\server.exe", "C:\\data\\x.db"], None);
        check(&["npx", "mcp-remote", "https://example.org/x.json"], None);
        check(&["python3", "-c", "import x; print('./a.py')"], None);
    }
}
