//! Which processes there are: found by a mark in their environment.

use std::path::PathBuf;
use std::process::Command;

/// A mark that a gatelet is started with, and that its children inherit.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Mark {
        let unique = tempfile::Builder::new().prefix("").tempfile().unwrap();
        let name = unique.path().file_name().unwrap().to_str().unwrap();
        Mark(format!("XDG_GATELET_IT_MARK={name}-{}", std::process::id()))
    }

    pub(crate) fn put_on(&self, command: &mut Command) {
        let (name, value) = self.0.split_once('=').unwrap();
        command.env(name, value);
    }

    /// The ids of all processes with this mark.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        ids.filter(|id| self.is_on(*id)).collect()
    }

    fn is_on(&self, id: u32) -> bool {
        let environment = std::fs::read(PathBuf::from(format!("/proc/{id}/environ")));
        let has = |environment: Vec<u8>| {
            environment.split(|byte| *byte == 0).any(|entry| entry == self.0.as_bytes())
        };
        environment.is_ok_and(has)
    }
}

/// Sends a signal to one process.
pub(crate) fn signal(id: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &id.to_string()]).status().unwrap();
    assert!(sent.success(), "cannot signal {id}");
}
