//! The greeting of `gatelet serve` on stderr: where it serves, and how clients connect.

use std::path::Path;

use serde_json::json;

use super::serving::{Args, Serving};
use crate::paths::{self, Paths};
use crate::terminal::{DIM, GOOD, HEADING, PLACE, paint, say};

/// Prints the greeting.
pub(super) fn greet(serving: &Serving<'_>) {
    let Serving { args, paths, loaded, gateway, .. } = serving;
    let snapshot = gateway.roster().default_pool().snapshot();
    let n_upstreams = snapshot.upstreams().len();
    let source = match &loaded.file {
        Some(file) => format!("{n_upstreams} upstreams from {}", file.display()),
        None => "built-in tools; `gatelet add` adds a server, `gatelet install` puts gatelet into \
                 your hosts"
            .to_owned(),
    };
    let url = format!("{}/mcp", loaded.config.serve.url());
    let words = stdio_arguments(args, paths, loaded.file.as_deref());
    let callers = if loaded.config.auth.required { Callers::Known } else { Callers::Any };
    say(&greeting(&url, &source, &program(), &words, callers));
}

/// The arguments with which a client reaches this gatelet over stdio, in any directory. Another
/// surface than that of the configuration needs a gatelet of its own.
fn stdio_arguments(args: &Args, paths: &Paths, file: Option<&Path>) -> Vec<String> {
    // The user's own configuration is found from everywhere.
    let common = paths::candidates().pop();
    let file = file.filter(|file| paths.config.is_some() || Some(*file) != common.as_deref());
    let named = [("--config", file), ("--state", paths.state.as_deref())];
    let named = named.into_iter().filter_map(|(flag, path)| Some((flag, absolute(path?))));
    let surface = args.surface.map(|surface| ("--surface", surface.name().to_owned()));
    let flags = named.chain(surface).flat_map(|(flag, value)| [flag.to_owned(), value]);
    let verb: &[&str] = if args.surface.is_some() { &["serve", "--stdio"] } else { &["connect"] };
    verb.iter().map(|&word| word.to_owned()).chain(flags).collect()
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn program() -> String {
    std::env::current_exe().map_or_else(|_| "gatelet".to_owned(), |path| path.display().to_string())
}

/// Who may connect over HTTP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Callers {
    Any,
    /// Only callers with a key or a token.
    Known,
}

/// Renders the greeting. Every line can be copied as it is.
fn greeting(url: &str, source: &str, program: &str, words: &[String], callers: Callers) -> String {
    let desktop = json!({"mcpServers": {"gatelet": {"command": program, "args": words}}});
    let cursor = json!({"mcpServers": {"gatelet": {"url": url}}});
    let code = json!({"name": "gatelet", "type": "http", "url": url});
    let ways = [
        ("Claude Code", format!("claude mcp add --transport http gatelet {url}")),
        ("Claude Desktop", format!("in claude_desktop_config.json: {desktop}")),
        ("Cursor", format!("in ~/.cursor/mcp.json: {cursor}")),
        ("VS Code", format!("code --add-mcp '{code}'")),
    ];
    let mut text = format!(
        "{} {} at {}\n{}\n\n{}\n",
        paint(HEADING, "gatelet"),
        paint(GOOD, "serves"),
        paint(PLACE, url),
        paint(DIM, source),
        paint(HEADING, "Connect"),
    );
    for (client, way) in ways {
        text += &format!("  {client:<15} {way}\n");
    }
    if callers == Callers::Known {
        let hint = "Over HTTP every caller shows a key: `gatelet key create NAME` prints one, for the \
                    header `Authorization: Bearer KEY`.";
        text += &format!("  {}\n", paint(DIM, hint));
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;
    use crate::commands::Command;

    #[test]
    fn the_greeting_says_how_four_clients_connect() {
        let words = ["connect".to_owned()];
        let text = greeting(
            "http://127.0.0.1:4747/mcp",
            "built-in tools",
            "/bin/gatelet",
            &words,
            Callers::Any,
        );
        assert!(!text.contains("gatelet key create"));
        for client in ["Claude Code", "Claude Desktop", "Cursor", "VS Code"] {
            assert!(text.contains(client), "{client}");
        }
        assert!(text.contains("claude mcp add --transport http gatelet http://127.0.0.1:4747/mcp"));
        assert!(text.contains(r#""command":"/bin/gatelet""#));
        assert!(text.contains(r#""args":["connect"]"#));
        let guarded = greeting("http://127.0.0.1:4747/mcp", "", "gatelet", &words, Callers::Known);
        assert!(guarded.contains("gatelet key create"), "{guarded}");
    }

    #[test]
    fn a_copied_line_serves_the_same_from_everywhere() {
        let read = |words: &[&str]| {
            let cli = Cli::parse_from([&["gatelet", "serve"], words].concat());
            let Command::Serve(args) = cli.command else { panic!("serve") };
            let file = cli.paths.config.clone().unwrap_or("gatelet.toml".into());
            super::stdio_arguments(&args, &cli.paths, Some(&file)).join(" ")
        };
        assert_eq!(
            read(&["--config", "/c.toml", "--state", "/s", "--surface", "direct"]),
            "serve --stdio --config /c.toml --state /s --surface direct"
        );
        assert_eq!(
            read(&["--config", "/c.toml", "--state", "/s"]),
            "connect --config /c.toml --state /s",
            "the servers run once"
        );
        let here = std::path::absolute("gatelet.toml").unwrap();
        assert!(read(&["--state", "/s"]).contains(&format!("--config {}", here.display())));
    }
}
