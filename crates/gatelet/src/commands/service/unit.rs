//! Renders the file of a service for systemd or launchd.

use std::path::{Path, PathBuf};

/// A service that runs `gatelet serve`.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) name: String,
    pub(super) program: PathBuf,
    pub(super) config: Option<PathBuf>,
    pub(super) state: Option<PathBuf>,
    /// The `PATH` in which programs of upstreams are found.
    pub(super) path: String,
}

/// The text by which gatelet recognizes its own files.
const MARK: &str = "Written by `gatelet up`";

/// Whether gatelet wrote a file.
pub(super) fn is_ours(text: &str) -> bool {
    text.contains(MARK)
}

/// The `PATH` that a file of ours gives to the service.
pub(super) fn search_path(text: &str) -> Option<String> {
    let line = |line: &str| {
        let quoted = line.strip_prefix("Environment=\"PATH=")?.strip_suffix('"')?;
        Some(unquoted(quoted))
    };
    let agent = || {
        let (_, rest) = text.split_once("<key>PATH</key>")?;
        let (path, _) = rest.split_once("<string>")?.1.split_once("</string>")?;
        Some(path.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    };
    is_ours(text).then(|| text.lines().find_map(line).or_else(agent))?
}

impl Unit {
    fn command_line(&self) -> Vec<String> {
        let text = |path: &Path| path.display().to_string();
        let mut words = vec![text(&self.program), "serve".to_owned()];
        for (flag, path) in [("--config", &self.config), ("--state", &self.state)] {
            words.extend(path.iter().flat_map(|path| [flag.to_owned(), text(path)]));
        }
        words
    }

    /// A systemd user unit.
    pub(super) fn systemd(&self) -> String {
        let command =
            self.command_line().iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let path = quoted(&format!("PATH={}", self.path)).replace("$$", "$");
        format!(
            "# {MARK}; `gatelet down` takes it away.\n\
             [Unit]\nDescription=gatelet, one gate to all MCP servers\n\n\
             [Service]\nExecStart={command}\nEnvironment={path}\nRestart=on-failure\nRestartSec=2\n\
             # It ends its servers by itself.\nKillMode=mixed\nTimeoutStopSec=20\n\n\
             [Install]\nWantedBy=default.target\n"
        )
    }

    /// A launchd agent.
    pub(super) fn launchd(&self) -> String {
        let word = |word: &String| format!("    <string>{}</string>\n", escaped(word));
        let words: String = self.command_line().iter().map(word).collect();
        let (name, path) = (escaped(&self.name), escaped(&self.path));
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
             <!-- {MARK}; `gatelet down` takes it away. -->\n\
             <plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>{name}</string>\n\
             \x20 <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n\
             \x20 <key>EnvironmentVariables</key>\n  <dict>\n    <key>PATH</key>\n    <string>{path}</string>\n  </dict>\n\
             \x20 <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n\
             \x20 <key>ProcessType</key>\n  <string>Background</string>\n</dict>\n</plist>\n"
        )
    }
}

/// Quotes a word for systemd: specifiers, variables and escapes mean themselves, and a line
/// end cannot begin another setting.
fn quoted(word: &str) -> String {
    let mut text = String::from("\"");
    for letter in word.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '%' => text.push_str("%%"),
            '$' => text.push_str("$$"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

/// What [`quoted`] made of a word, and of a value, in which `$` means itself.
fn unquoted(text: &str) -> String {
    let (mut word, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => word.extend(letters.next().map(|escaped| match escaped {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                other => other,
            })),
            '%' => word.extend(letters.next()),
            other => word.push(other),
        }
    }
    word
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unit() -> Unit {
        Unit {
            name: "gatelet".to_owned(),
            program: "/opt/my tools/gatelet".into(),
            config: Some("/home/ann/100%/$x \"y\" <&>.toml".into()),
            state: None,
            path: "/usr/bin:/home/ann/$HOME/bin".to_owned(),
        }
    }

    #[test]
    fn a_unit_is_written_as_systemd_reads_it() {
        assert_eq!(unit().systemd(), include_str!("cases/gatelet.service"));
    }

    #[test]
    fn an_agent_is_written_as_launchd_reads_it() {
        assert_eq!(unit().launchd(), include_str!("cases/gatelet.plist"));
        assert!(is_ours(&unit().launchd()) && is_ours(&unit().systemd()) && !is_ours("[Unit]\n"));
    }

    #[test]
    fn the_path_of_a_service_is_read_back_from_its_file() {
        for path in ["/usr/bin:/home/ann/$HOME/bin", "/a \"b\"/%x:/c\\d", "/a&b:/<c>"] {
            let unit = Unit { path: path.to_owned(), ..unit() };
            assert_eq!(search_path(&unit.systemd()).as_deref(), Some(path));
            assert_eq!(search_path(&unit.launchd()).as_deref(), Some(path));
        }
        assert_eq!(search_path("Environment=\"PATH=/x\""), None, "somebody else's");
    }

    proptest! {
        #[test]
        fn no_path_adds_a_line_or_leaves_its_quotes(path in ".{0,40}") {
            let text = quoted(&path);
            prop_assert_eq!(text.lines().count(), 1);
            let inner = &text[1..text.len() - 1];
            let bare = inner.replace("\\\\", "").replace("\\\"", "");
            prop_assert!(!bare.contains('"'));
        }
    }
}
