//! Brings a document to the canonical form, line by line, without touching
//! prose. What a machine cannot know stays as it is.

use crate::finding::{Edit, Finding};
use crate::lint::{Comparison, lint};

/// How often the rules look again at what they repaired. Repairs only make
/// documents more canonical, so they settle; the bound is for the unexpected.
const MOST_PASSES: usize = 8;

/// Repairs what can be repaired. Returns the text and what is left to do.
///
/// A pass that leaves the same things to repair has repaired nothing (its text
/// went where nobody reads it, behind an open comment say) and is taken back,
/// so repairing a repaired text changes nothing.
pub fn fix(text: &str) -> (String, Vec<Finding>) {
    let mut text = text.to_owned();
    let mut findings = lint(&text, &Comparison::default()).1;
    for _ in 0..MOST_PASSES {
        // Behind an open fence nobody knows what is text.
        if findings.iter().any(|finding| finding.code == "E01") {
            break;
        }
        let edits: Vec<Edit> = findings.iter().filter_map(|finding| finding.fix.clone()).collect();
        let next = apply(&text, edits);
        let left = lint(&next, &Comparison::default()).1;
        if next == text || repairable(&left) == repairable(&findings) {
            break;
        }
        (text, findings) = (next, left);
    }
    (text, findings)
}

/// Returns what has a repair, by its code, in order.
fn repairable(findings: &[Finding]) -> Vec<&str> {
    findings.iter().filter(|finding| finding.fix.is_some()).map(|finding| finding.code).collect()
}

/// Applies edits from the last line to the first; of two that touch the same
/// line, the first given.
fn apply(text: &str, edits: Vec<Edit>) -> String {
    let crlf = text.contains("\r\n");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut taken: Vec<(usize, usize)> = Vec::new();
    let mut chosen: Vec<Edit> = Vec::new();
    for edit in edits {
        let clash = taken
            .iter()
            .any(|&(from, to)| edit.from < to.max(from + 1) && from < edit.to.max(edit.from + 1));
        if !clash {
            taken.push((edit.from, edit.to));
            chosen.push(edit);
        }
    }
    chosen.sort_by_key(|edit| std::cmp::Reverse(edit.from));
    for edit in chosen {
        let from = edit.from.saturating_sub(1).min(lines.len());
        let to = edit.to.saturating_sub(1).clamp(from, lines.len());
        lines.splice(from..to, edit.text.split('\n').map(str::to_owned));
    }
    let joined = lines.join(if crlf { "\r\n" } else { "\n" });
    if text.ends_with('\n') {
        format!("{joined}{}", if crlf { "\r\n" } else { "\n" })
    } else {
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_becomes_canonical_and_keeps_its_prose() {
        let variant = "# Things - MCP Tool Specification\n\n**Version**: v2.0.0 | **Last Updated**: May 2026\n\n\
                       ## Tools\n\n### `thing_get`\n\nGets a thing.\n\n**Parameters**:\n\n\
                       | Parameter | Type | Default | Description |\n|---|---|---|---|\n\
                       | `id` | `str` | — | Which one. |\n| `deep` | `bool` | `False` | All of it. |\n\n\
                       **Returns**: The thing.\n";
        let (fixed, _) = fix(variant);
        let expected = "# Things - MCP Tool Specification\n\n**Version**: v2.0.0 | **Last Updated**: May 2026\n\n\
                        ## Tools\n\n### Tool: `thing_get`\n\n**Version**: 2.0.0\n\nGets a thing.\n\n\
                        #### 2. Invocation Name\n\n`thing_get`\n\n\n#### 3. Input Schema (Parameters)\n\n\n\
                        | Parameter Name | Type | Required | Description | Example Value |\n\
                        | :--- | :--- | :--- | :--- | :--- |\n\
                        | `id` | `string` | Yes | Which one. |  |\n\
                        | `deep` | `boolean` | No | All of it. (default: `false`) |  |\n\n\n\
                        #### 4. Output Schema (Return Value)\n\nThe thing.\n";
        assert_eq!(fixed, expected);
        assert_eq!(fix(&fixed).0, fixed);
    }

    #[test]
    fn line_ends_and_damaged_tables_stay() {
        let text = "# T\r\n\r\n## Tool: `a_b`\r\n\r\n### Parameters\r\n\r\n| Parameter | Type |\r\n|---|---|\r\n| `x | `str` |\r\n";
        let (fixed, _) = fix(text);
        assert!(
            fixed.contains("| `x | `str` |\r\n")
                && fixed.contains("### 3. Input Schema (Parameters)\r\n"),
            "{fixed}"
        );
        assert!(!fixed.replace("\r\n", "").contains('\n'));
    }
}
