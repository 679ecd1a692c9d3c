//! The list of commands in `gatelet --help`, in groups.

use std::fmt::Write;

use clap::Subcommand;

use crate::commands::Command;
use crate::terminal::{self, HEADING, paint};

/// Every command, by what it is for.
const GROUPS: &[(&str, &[&str])] = &[
    ("Into your hosts", &["install", "uninstall", "undo", "doctor"]),
    (
        "Servers",
        &[
            "add",
            "remove",
            "enable",
            "disable",
            "update",
            "search",
            "upstreams",
            "login",
            "logout",
            "secret",
        ],
    ),
    ("Tools", &["help", "call", "skill", "run", "recipe", "tools"]),
    (
        "The gate",
        &["serve", "connect", "up", "down", "status", "logs", "restart", "top", "console"],
    ),
    ("Configuration", &["init", "import", "config"]),
    ("Who may do what", &["trust", "approvals", "key"]),
    ("Figures", &["tokens", "stats", "bench", "selection", "habits", "eval"]),
    (
        "Documents and CaSH servers",
        &["spec", "manifest", "mount", "unmount", "mounts", "conform", "content"],
    ),
    ("The shell", &["completions", "man"]),
];

/// The template of `gatelet --help`.
pub(super) fn help_template() -> String {
    let groups = groups_within(usize::from(terminal::width()).min(100));
    let options = paint(HEADING, "Options:");
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\n{options}\n{{options}}{{after-help}}"
    )
}

fn groups_within(columns: usize) -> String {
    let all = Command::augment_subcommands(clap::Command::new("gatelet"));
    let longest = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max();
    let indent = longest.unwrap_or_default() + 4;
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{}", paint(HEADING, format!("{title}:")));
        for name in *names {
            let about = all.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let lines = terminal::wrapped(&about, columns.saturating_sub(indent));
            let lines = lines.replace('\n', &format!("\n{}", " ".repeat(indent)));
            let name = format!("  {name:width$}", width = indent - 2);
            let _ = writeln!(text, "{}{lines}", paint(HEADING, name));
        }
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let all = Command::augment_subcommands(clap::Command::new("gatelet"));
        let mut known: Vec<&str> = all
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        known.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn the_list_keeps_to_the_width_of_the_terminal() {
        let text = anstream::adapter::strip_str(&groups_within(60)).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        let line = text.lines().find(|line| line.trim_start().starts_with("undo ")).unwrap();
        assert!(line.contains("Take back"), "{line}");
    }
}
