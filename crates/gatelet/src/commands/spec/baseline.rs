//! The baseline: a file of findings that are not reported, for adopting the rules step by
//! step. It has no line numbers, so it survives edits of the document.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use tool::Severity;
use toolspec::Finding;

use super::report::Report;
use crate::exit::CliError;

/// How often each finding is to be ignored.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Baseline(BTreeMap<String, usize>);

impl Baseline {
    pub(super) fn new(reports: &[Report]) -> Baseline {
        let mut known = Baseline::default();
        for report in reports {
            for finding in &report.findings {
                *known.0.entry(key(&report.path, finding)).or_default() += 1;
            }
        }
        known
    }

    pub(super) fn len(&self) -> usize {
        self.0.values().sum()
    }

    pub(super) fn load(file: &Path) -> anyhow::Result<Baseline> {
        let text = super::subject::read(file)?;
        serde_json::from_str(&text).map_err(|error| {
            CliError::Usage(format!("`{}` is no baseline: {error}", file.display())).into()
        })
    }

    pub(super) fn save(&self, file: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(file, text).with_context(|| format!("cannot write `{}`", file.display()))
    }

    /// Removes the findings of the baseline from a report, each as often as it is there.
    pub(super) fn hide(&self, report: &mut Report) {
        let mut left = self.0.clone();
        let path = report.path.clone();
        report.findings.retain(|finding| match left.get_mut(&key(&path, finding)) {
            Some(count) if 0 < *count => {
                *count -= 1;
                false
            }
            Some(_) | None => true,
        });
    }
}

/// The key of a finding, whatever way its path is written. Infos contain counts, which change
/// with every edit, so their messages are left out.
fn key(path: &str, finding: &Finding) -> String {
    let path = normalized(path);
    match finding.severity {
        Severity::Info => format!("{path}: {}", finding.code),
        Severity::Error | Severity::Warning => {
            format!("{path}: {} {}", finding.code, finding.message)
        }
    }
}

/// The path relative to the working directory, without `.`.
fn normalized(path: &str) -> String {
    let path = Path::new(path);
    let here = std::env::current_dir().unwrap_or_default();
    let path = path.strip_prefix(&here).unwrap_or(path);
    let parts = path.components().filter(|part| !matches!(part, Component::CurDir));
    parts.collect::<PathBuf>().to_string_lossy().into_owned()
}
