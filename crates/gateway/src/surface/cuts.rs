//! What hosts cut off or refuse of definitions, told to the operator before a
//! host does it silently.

use tool::{Finding, Severity, Tool};

/// Characters of a description that every host passes on: Claude Code cuts the
/// rest (2026-11).
const DESCRIPTION: usize = 2_048;

/// What hosts would cut of a tool that is listed under this name.
pub(crate) fn findings(label: &str, tool: &Tool, listed: &str, shortened: bool) -> Vec<Finding> {
    let subject = || format!("{label}/{}", tool.name);
    let mut findings = Vec::new();
    if shortened {
        let message = format!(
            "hosts refuse names over 64 characters: it is listed as `{listed}`; give the upstream \
             a shorter label if that does not say enough"
        );
        findings.push(Finding::new(Severity::Info, "name-shortened", subject(), message));
    }
    let length = tool.description.as_deref().map_or(0, |words| words.chars().count());
    if DESCRIPTION < length {
        let message = format!(
            "its description has {length} characters, and hosts cut what is over {DESCRIPTION}: \
             use the surface cash, where nothing is cut, for this upstream"
        );
        findings.push(Finding::new(Severity::Warning, "description-cut", subject(), message));
    }
    findings
}
