//! What the tests share: the program, a pipe to talk MCP to it, and the tools
//! that `cargo xtask test` installs.

mod fake;
mod http;
mod marks;
mod pipe;
mod shell;
mod terminal;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) use fake::{Fake, SECRET, program};
pub(crate) use http::{Answer, Served, Site};
pub(crate) use marks::{Mark, signal};
pub(crate) use pipe::Pipe;
pub(crate) use shell::{Ended, shell, shell_with};
pub(crate) use terminal::at_terminal;
pub(crate) use testkit::needs::tool;

/// No single answer takes longer, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(200);

/// A place of its own for one gatelet: a home, a state and a configuration.
pub(crate) struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Home {
        Home { directory: tempfile::tempdir().unwrap() }
    }

    /// A home with this configuration.
    pub(crate) fn with(config: &str) -> Home {
        let home = Home::new();
        home.write("gatelet.toml", config);
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// The program, at home here and nowhere else.
    pub(crate) fn gatelet(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatelet"));
        self.settle(&mut command);
        command
    }

    /// Makes a program live here, and every gatelet that it starts.
    pub(crate) fn settle(&self, command: &mut Command) {
        command.current_dir(self.path());
        for gone in ["GATELET_CONFIG", "GATELET_LOG", "XDG_CONFIG_HOME", "RUST_BACKTRACE"] {
            command.env_remove(gone);
        }
        command.env("HOME", self.path()).env("GATELET_STATE", self.path().join("state"));
    }

    /// Writes a program that can be run.
    pub(crate) fn executable(&self, name: &str, text: &str) {
        self.write(name, text);
        std::fs::set_permissions(self.path().join(name), Permissions::from_mode(0o755)).unwrap();
    }

    /// The program, which finds what is in the `bin` of this home before all others.
    pub(crate) fn gatelet_with_bin(&self) -> Command {
        let mut command = self.gatelet();
        put_in_front(&self.path().join("bin"), &mut command);
        command
    }
}

/// Lets a command find the programs of a directory before all others.
pub(crate) fn put_in_front(directory: &Path, command: &mut Command) {
    #[expect(clippy::disallowed_methods, reason = "a test puts its own programs in front")]
    let usual = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{usual}", directory.display()));
}

/// `node`, new enough for everything.
pub(crate) fn node() -> PathBuf {
    tool("node/bin/node")
}

/// The entry point of one of the official servers on npm.
pub(crate) fn npm_server(name: &str) -> PathBuf {
    tool(&format!("npm/node_modules/@modelcontextprotocol/{name}/dist/index.js"))
}

/// An `[[upstream]]` that runs a program.
pub(crate) fn upstream(label: &str, command: &Path, args: &[&str]) -> String {
    let args = json!(args);
    // A dozen interpreters that start at once on a busy machine take a while.
    let patience = "start_timeout = \"3m\"";
    format!("[[upstream]]\nlabel = {label:?}\ncommand = {command:?}\nargs = {args}\n{patience}\n\n")
}

/// An `[[upstream]]` that runs an official server on npm.
pub(crate) fn npm_upstream(label: &str, server: &str, args: &[&str]) -> String {
    let script = npm_server(server);
    let mut words = vec![script.to_str().unwrap()];
    words.extend(args);
    upstream(label, &node(), &words)
}

/// The text of a tool result.
#[track_caller]
pub(crate) fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap_or_else(|| panic!("no content: {result}"));
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// Waits until something is so; the only way to wait for a process.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + PATIENCE;
    while !is_so() {
        assert!(std::time::Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
