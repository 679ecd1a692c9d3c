//! Findings that are known and not reported: for adopting the rules step by
//! step. Lines are left out, so that a baseline survives edits above.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use tool::Severity;
use toolspec::Finding;

use super::report::Report;
use crate::exit::CliError;

/// How often each finding is known.
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

    /// Takes known findings out of a report; each is known only so often.
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

/// The same however the path is typed. What is only good to know counts things,
/// so its words change with every edit.
fn key(path: &str, finding: &Finding) -> String {
    let path = plain(path);
    match finding.severity {
        Severity::Info => format!("{path}: {}", finding.code),
        Severity::Error | Severity::Warning => {
            format!("{path}: {} {}", finding.code, finding.message)
        }
    }
}

/// The path from here, without detours.
fn plain(path: &str) -> String {
    let path = Path::new(path);
    let here = std::env::current_dir().unwrap_or_default();
    let path = path.strip_prefix(&here).unwrap_or(path);
    let parts = path.components().filter(|part| !matches!(part, Component::CurDir));
    parts.collect::<PathBuf>().to_string_lossy().into_owned()
}
