//! Repairs a tool specification: applies the edits that its findings suggest, without
//! changing prose.

use crate::finding::{Edit, Finding};
use crate::lint::{LintContext, lint};

/// How many passes of lint and repair are made. Few are needed: every repair brings the
/// document closer to the canonical form, so there is less to repair after it.
const MAX_PASSES: usize = 8;

/// Repairs what can be repaired. Returns the new text and the findings that are left.
///
/// A pass after which the same repairs are suggested again was useless: its text went into
/// an unclosed comment, for example. It is undone. So a text that was repaired does not
/// change when it is repaired once more.
pub fn fix(text: &str) -> (String, Vec<Finding>) {
    let mut text = text.to_owned();
    let mut findings = lint(&text, &LintContext::default()).1;
    for _ in 0..MAX_PASSES {
        // E01 is a code fence that is never closed. After it, text cannot be told from code.
        if findings.iter().any(|finding| finding.code == "E01") {
            break;
        }
        let edits: Vec<Edit> = findings.iter().filter_map(|finding| finding.fix.clone()).collect();
        let next = apply(&text, edits);
        let left = lint(&next, &LintContext::default()).1;
        if next == text || repairable(&left) == repairable(&findings) {
            break;
        }
        (text, findings) = (next, left);
    }
    (text, findings)
}

/// Returns the codes of the findings with a repair, in order.
fn repairable(findings: &[Finding]) -> Vec<&str> {
    findings.iter().filter(|finding| finding.fix.is_some()).map(|finding| finding.code).collect()
}

/// Applies edits from the last line to the first. Of two edits of the same line, only the
/// one that comes first in `edits` is applied.
fn apply(text: &str, edits: Vec<Edit>) -> String {
    let crlf = text.contains("\r\n");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut edited: Vec<(usize, usize)> = Vec::new();
    let mut chosen: Vec<Edit> = Vec::new();
    for edit in edits {
        let clash = edited.iter().any(|&(from, end)| {
            edit.from < end.max(from + 1) && from < edit.end.max(edit.from + 1)
        });
        if !clash {
            edited.push((edit.from, edit.end));
            chosen.push(edit);
        }
    }
    chosen.sort_by_key(|edit| std::cmp::Reverse(edit.from));
    for edit in chosen {
        let from = edit.from.saturating_sub(1).min(lines.len());
        let end = edit.end.saturating_sub(1).clamp(from, lines.len());
        lines.splice(from..end, edit.text.split('\n').map(str::to_owned));
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
