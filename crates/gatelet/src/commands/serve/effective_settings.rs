//! Works out which settings are in force in a gatelet that runs, and where they come from.

use std::collections::HashSet;
use std::path::Path;

use config::{Applies, Config, Setting};
use console::{SettingRow, SettingSource};
use document::Format;
use document::tree::Node;

/// The configurations that settings in force come from.
pub(super) struct EffectiveConfig<'a> {
    /// What this process was started with: the file of that time, and the flags.
    pub(super) started: &'a Config,
    /// The file of that time alone.
    pub(super) file_at_start: Option<&'a Config>,
    /// What was last taken up from the file.
    pub(super) applied: &'a Config,
    /// The file as it is now, if it is valid.
    pub(super) now: Option<&'a Config>,
    /// The keys that the file sets now, and those that it set at the start.
    pub(super) written: &'a HashSet<String>,
    pub(super) written_at_start: &'a HashSet<String>,
}

/// Returns every setting with the value in force, and its source.
pub(super) fn rows(config: &EffectiveConfig<'_>) -> Vec<SettingRow> {
    let started = config.started.settings();
    let applied = config.applied.settings();
    let at_start = config.file_at_start.map(Config::settings);
    let now = config.now.map(Config::settings);
    let value = |settings: &Option<Vec<Setting>>, at: usize| {
        settings.as_ref().map(|settings| settings[at].value.clone())
    };
    let row = |(at, (started, applied)): (usize, (Setting, Setting))| {
        let needs_restart = started.applies == Applies::AfterRestart;
        let in_force = if needs_restart { started } else { applied };
        let (at_start, now) = (value(&at_start, at), value(&now, at));
        let is_flag = needs_restart && at_start.is_some_and(|file| file != in_force.value);
        let written = if needs_restart { config.written_at_start } else { config.written };
        let source = match written.contains(in_force.key) {
            _ if is_flag => SettingSource::CommandLine,
            true => SettingSource::File,
            false => SettingSource::Default,
        };
        // What a flag says is not overruled by the file, whatever that says by now.
        let next = now.filter(|next| needs_restart && !is_flag && *next != in_force.value);
        SettingRow {
            key: in_force.key.to_owned(),
            value: in_force.value,
            source,
            after_restart: next,
            needs_restart,
        }
    };
    started.into_iter().zip(applied).enumerate().map(row).collect()
}

/// The keys that a file sets, as dotted paths, those of tables included.
pub(super) fn written_keys(file: &Path, text: &str) -> HashSet<String> {
    let format = match file.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Format::Json,
        Some("yaml" | "yml") => Format::Yaml,
        Some(_) | None => Format::Toml,
    };
    let mut keys = HashSet::new();
    if let Ok(root) = document::parse(text, format) {
        collect_keys(&root, "", &mut keys);
    }
    keys
}

fn collect_keys(node: &Node, path: &str, keys: &mut HashSet<String>) {
    for member in node.members() {
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{}", member.key);
        collect_keys(&member.node, &path, keys);
        keys.insert(path);
    }
}

#[cfg(test)]
mod tests {
    use config::{ProcessEnvironment, SourceFile};

    use super::*;

    fn parsed(text: &str) -> Config {
        let source = SourceFile { name: "gatelet.toml".to_owned(), text: text.to_owned() };
        config::parse(source, Path::new("/etc"), &ProcessEnvironment).unwrap().0
    }

    fn row(rows: &[SettingRow], key: &str) -> (String, SettingSource, Option<String>) {
        let row = rows.iter().find(|row| row.key == key).unwrap().clone();
        (row.value, row.source, row.after_restart)
    }

    #[test]
    fn what_is_in_force_is_told_with_its_source_and_what_waits_for_a_restart() {
        let before = "[serve]\nopen = true\n[gate]\nlimit = 7\n";
        let now = "[console]\npayloads = true\n[gate]\nlimit = 9\n";
        let at_start = parsed(before);
        let mut started = at_start.clone();
        started.serve.listen = "127.0.0.1:9".parse().unwrap();
        let rows = rows(&EffectiveConfig {
            started: &started,
            file_at_start: Some(&at_start),
            applied: &parsed(now),
            now: Some(&parsed(now)),
            written: &written_keys(Path::new("gatelet.toml"), now),
            written_at_start: &written_keys(Path::new("gatelet.toml"), before),
        });
        let text = str::to_owned;
        let flag = (text("127.0.0.1:9"), SettingSource::CommandLine, None);
        assert_eq!(row(&rows, "serve.listen"), flag);
        // What applies at once is in force already; the rest waits.
        assert_eq!(row(&rows, "gate.limit"), (text("9"), SettingSource::File, None));
        let waits = (text("false"), SettingSource::Default, Some(text("true")));
        assert_eq!(row(&rows, "console.payloads"), waits);
        let gone = (text("true"), SettingSource::File, Some(text("false")));
        assert_eq!(row(&rows, "serve.open"), gone);
        let untouched = (text("false"), SettingSource::Default, None);
        assert_eq!(row(&rows, "learning.enabled"), untouched);
    }

    #[test]
    fn a_file_that_is_wrong_now_says_nothing_of_what_comes_next() {
        let config = parsed("");
        let rows = rows(&EffectiveConfig {
            started: &config,
            file_at_start: None,
            applied: &config,
            now: None,
            written: &written_keys(Path::new("gatelet.toml"), "[serve\nlisten"),
            written_at_start: &HashSet::new(),
        });
        let is_quiet =
            |row: &SettingRow| row.after_restart.is_none() && row.source == SettingSource::Default;
        assert!(rows.iter().all(is_quiet), "{rows:?}");
    }
}
