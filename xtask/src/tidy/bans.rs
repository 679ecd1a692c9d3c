//! What clippy forbids: its file nearest to a crate is the only one it reads, so what
//! holds for every crate is repeated, and compared here.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::run::root;

const NAME: &str = "clippy.toml";

/// Methods that no crate calls without saying why.
const EVERYWHERE: &[&str] =
    &["std::env::var", "std::env::var_os", "std::process::exit", "std::time::SystemTime::now"];

/// How the file of a crate of values begins: it does without whatever others do without.
const OF_VALUES: &str = "# A crate of values";

/// Crates whose tasks run beside their callers. Others do not call `tokio::spawn`.
const RUNTIMES: &[&str] =
    &["content", "gatelet", "mcp", "replay", "roster", "script", "store", "testkit", "web"];

/// What the files of crates leave out.
pub(super) fn problems() -> Result<Vec<String>> {
    let read = |path: &Path| fs::read_to_string(path.join(NAME));
    let shared = read(&root()).context(NAME)?;
    let mut problems = Vec::new();
    for entry in fs::read_dir(root().join("crates"))? {
        let entry = entry?;
        if let Ok(own) = read(&entry.path()) {
            problems.extend(judge(&entry.file_name().to_string_lossy(), &own, &shared));
        }
    }
    problems.sort();
    Ok(problems)
}

/// What the file of one crate leaves out, beside the one that is for all others.
fn judge(name: &str, own: &str, shared: &str) -> Vec<String> {
    let banned: Vec<&str> = paths(own).collect();
    let mut wanted = EVERYWHERE.to_vec();
    if own.starts_with(OF_VALUES) {
        wanted.extend(paths(shared));
    }
    if !RUNTIMES.contains(&name) {
        wanted.push("tokio::spawn");
    }
    wanted.sort_unstable();
    wanted.dedup();
    let missing = wanted.into_iter().filter(|path| !banned.contains(path));
    missing.map(|path| format!("crates/{name}/{NAME} does not ban `{path}`")).collect()
}

fn paths(text: &str) -> impl Iterator<Item = &str> {
    text.split("path = \"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bans(first: &str, more: &[&str]) -> String {
        let all = EVERYWHERE.iter().chain(more).map(|path| format!("  {{ path = \"{path}\" }},\n"));
        format!("{first}\n{}", all.collect::<String>())
    }

    #[test]
    fn a_file_of_its_own_repeats_what_holds_for_every_crate() {
        let shared = bans("# All.", &["std::fs::read", "tokio::spawn"]);
        assert_eq!(judge("mcp", &bans("# Talks to pipes.", &[]), &shared), Vec::<String>::new());
        let found = judge("mcp", "# Talks to pipes.\n", &shared);
        assert_eq!(found[0], "crates/mcp/clippy.toml does not ban `std::env::var`");
        assert_eq!(found.len(), EVERYWHERE.len());
    }

    #[test]
    fn a_crate_of_values_does_without_what_any_crate_does_without() {
        let shared = bans("# All.", &["std::fs::read", "tokio::spawn"]);
        let found = judge("tool", &bans(OF_VALUES, &["tokio::spawn"]), &shared);
        assert_eq!(found, ["crates/tool/clippy.toml does not ban `std::fs::read`"]);
    }

    #[test]
    fn only_what_runs_beside_its_callers_may_spawn() {
        let own = bans("# Reads files.", &[]);
        let found = judge("hosts", &own, "");
        assert_eq!(found, ["crates/hosts/clippy.toml does not ban `tokio::spawn`"]);
        assert_eq!(judge("store", &own, ""), Vec::<String>::new());
    }
}
