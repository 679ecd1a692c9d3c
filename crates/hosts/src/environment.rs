//! Expands the paths of hosts' files with the platform, home directory and environment
//! variables of a user.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// An operating system, as far as paths depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Platform {
    Linux,
    MacOs,
    Windows,
}

impl Platform {
    /// Returns the platform that this program was built for. Other Unix systems count as
    /// Linux.
    pub const fn current() -> Platform {
        match (cfg!(target_os = "macos"), cfg!(windows)) {
            (true, _) => Platform::MacOs,
            (_, true) => Platform::Windows,
            (false, false) => Platform::Linux,
        }
    }

    fn separator(self) -> char {
        if self == Platform::Windows { '\\' } else { '/' }
    }

    fn is_absolute(self, path: &str) -> bool {
        match self {
            Platform::Linux | Platform::MacOs => path.starts_with('/'),
            Platform::Windows => path.starts_with("\\\\") || path.get(1..3) == Some(":\\"),
        }
    }
}

/// The user's platform, home directory and environment variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    pub platform: Platform,
    pub home: String,
    pub variables: BTreeMap<String, String>,
}

impl Environment {
    /// Expands a path template: `~/.cursor/mcp.json`, or
    /// `{XDG_CONFIG_HOME|~/.config}/zed/settings.json` for the first variable that is set,
    /// else the default behind the last `|`.
    pub fn expand(&self, template: &str) -> PathBuf {
        let (base, below) = match template.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            Some((places, below)) => (self.first_of(places), below),
            None => (self.below_home(template), ""),
        };
        PathBuf::from(base + &self.native(below))
    }

    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Joins a directory and a path below it with this platform's separators.
    pub fn join(&self, directory: &str, below: &str) -> PathBuf {
        PathBuf::from(format!("{directory}{}{}", self.platform.separator(), self.native(below)))
    }

    fn first_of(&self, places: &str) -> String {
        let (variables, usual) = places.rsplit_once('|').unwrap_or(("", places));
        let mut set = variables.split('|').filter_map(|name| self.variable(name));
        let named = set.find(|value| self.platform.is_absolute(value));
        let separator = self.platform.separator();
        match named {
            Some(named) => named.trim_end_matches(separator).to_owned(),
            None => self.below_home(usual),
        }
    }

    fn below_home(&self, template: &str) -> String {
        let home = self.home.trim_end_matches(self.platform.separator());
        match template.strip_prefix('~') {
            Some(below) => format!("{home}{}", self.native(below)),
            None => self.native(template),
        }
    }

    fn native(&self, path: &str) -> String {
        path.replace('/', &self.platform.separator().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(platform: Platform, variable: (&str, &str), template: &str, expected: &str) {
        let home = if platform == Platform::Windows { "C:\\Users\\ann" } else { "/home/ann" };
        let variables = [(variable.0.to_owned(), variable.1.to_owned())].into();
        let environment = Environment { platform, home: home.to_owned(), variables };
        assert_eq!(environment.expand(template), PathBuf::from(expected));
    }

    #[test]
    fn a_variable_moves_a_place_when_it_names_one() {
        let zed = "{FLATPAK_XDG_CONFIG_HOME|XDG_CONFIG_HOME|~/.config}/zed/a.json";
        check(Platform::Linux, ("", ""), zed, "/home/ann/.config/zed/a.json");
        check(Platform::Linux, ("XDG_CONFIG_HOME", "/x/"), zed, "/x/zed/a.json");
        check(Platform::Linux, ("XDG_CONFIG_HOME", ""), zed, "/home/ann/.config/zed/a.json");
        check(Platform::Linux, ("XDG_CONFIG_HOME", "here"), zed, "/home/ann/.config/zed/a.json");
        check(Platform::Linux, ("A", "/b"), "~/.cursor/mcp.json", "/home/ann/.cursor/mcp.json");
        let data = "{APPDATA|~/AppData/Roaming}/Zed/a.json";
        check(Platform::Windows, ("APPDATA", "D:\\r"), data, "D:\\r\\Zed\\a.json");
        check(Platform::Windows, ("", ""), data, "C:\\Users\\ann\\AppData\\Roaming\\Zed\\a.json");
    }
}
