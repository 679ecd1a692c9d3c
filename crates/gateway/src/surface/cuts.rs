//! Reports names and descriptions that hosts would silently cut or refuse.

use tool::{Finding, Severity, Tool};

/// The most characters of a description that every host passes on: Claude Code cuts the
/// rest (2026-11).
const MAX_DESCRIPTION: usize = 2_048;

/// Reports what hosts would cut of a tool of the upstream `label` that is listed as
/// `listed_name`.
pub(crate) fn findings(
    label: &str,
    tool: &Tool,
    listed_name: &str,
    is_shortened: bool,
) -> Vec<Finding> {
    let subject = || format!("{label}/{}", tool.name);
    let mut findings = Vec::new();
    if is_shortened {
        let message = format!(
            "hosts refuse names over 64 characters: it is listed as `{listed_name}`; give the upstream \
             a shorter label if that does not say enough"
        );
        findings.push(Finding::new(Severity::Info, "name-shortened", subject(), message));
    }
    let length = tool.description.as_deref().map_or(0, |words| words.chars().count());
    if MAX_DESCRIPTION < length {
        let message = format!(
            "its description has {length} characters, and hosts cut what is over {MAX_DESCRIPTION}: \
             use the surface cash, where nothing is cut, for this upstream"
        );
        findings.push(Finding::new(Severity::Warning, "description-cut", subject(), message));
    }
    findings
}
