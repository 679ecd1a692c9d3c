//! A machine that is only a list of files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hosts::{Environment, Machine, Platform, Reach};

#[derive(Default)]
pub(crate) struct MadeUp {
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
    pub(crate) programs: Vec<&'static str>,
}

impl Machine for MadeUp {
    fn read(&self, path: &Path) -> std::io::Result<Option<Vec<u8>>> {
        Ok(self.files.get(path).cloned())
    }

    fn exists(&self, path: &Path) -> bool {
        let path = path.to_str().unwrap();
        self.files
            .keys()
            .filter_map(|file| file.to_str()?.strip_prefix(path))
            .any(|rest| rest.is_empty() || rest.starts_with(['/', '\\']))
    }

    fn names_in(&self, directory: &Path) -> Vec<String> {
        let directory = directory.to_str().unwrap();
        let below = self.files.keys().filter_map(|file| file.to_str()?.strip_prefix(directory));
        let names =
            below.filter_map(|rest| rest.strip_prefix(['/', '\\'])?.split(['/', '\\']).next());
        names.map(str::to_owned).collect::<BTreeSet<String>>().into_iter().collect()
    }

    fn has_program(&self, name: &str) -> bool {
        self.programs.contains(&name)
    }

    fn protection(&self, _: &Path) -> Option<&'static str> {
        None
    }
}

pub(crate) fn environment(platform: Platform) -> Environment {
    let home = match platform {
        Platform::Linux => "/home/ann",
        Platform::MacOs => "/Users/ann",
        Platform::Windows => "C:\\Users\\ann",
    };
    Environment { platform, home: home.to_owned(), variables: BTreeMap::new() }
}

/// How `gatelet install` lets hosts on Linux start it.
pub(crate) fn program() -> Reach {
    program_on(Platform::Linux)
}

/// How `gatelet install` lets hosts start it.
pub(crate) fn program_on(platform: Platform) -> Reach {
    let (command, file) = match platform {
        Platform::Linux => ("/usr/local/bin/gatelet", "/home/ann/.config/gatelet/gatelet.toml"),
        Platform::MacOs => ("/opt/homebrew/bin/gatelet", "/Users/ann/.config/gatelet/gatelet.toml"),
        // Each backslash before a letter is an escape, if nobody escapes it.
        Platform::Windows => (
            r"C:\Users\ann\AppData\Local\new tools\gatelet.exe",
            r"C:\Users\ann\AppData\Roaming\gatelet\gatelet.toml",
        ),
    };
    let args = ["connect", "--config", file];
    Reach::Program { command: command.to_owned(), args: args.map(str::to_owned).to_vec() }
}

pub(crate) fn address() -> Reach {
    Reach::Http {
        url: "http://127.0.0.1:4747/mcp".to_owned(),
        headers: BTreeMap::new(),
        key_variable: None,
    }
}

/// Whether an entry leads to the gate of these tests.
pub(crate) fn is_ours(reach: &Reach) -> bool {
    match reach {
        Reach::Program { command, .. } => {
            let name = command.rsplit(['/', '\\']).next();
            matches!(name, Some("gatelet" | "gatelet.exe"))
        }
        Reach::Http { url, .. } => url.contains(":4747/"),
    }
}
