//! Finds the parts of a result that an agent used in the arguments of later calls.

use serde_json::Value;

/// Shorter parts may match by chance.
const SHORTEST: usize = 8;

/// Returns the words of `later` arguments that came from a result: they are in `result`, and
/// not in `before`, the question and earlier arguments.
pub(crate) fn used_parts<'a>(
    result: &str,
    before: &str,
    later: impl Iterator<Item = &'a Value>,
) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for arguments in later {
        each_text(arguments, &mut |text| {
            for word in text.split(|c: char| c.is_whitespace() || "\"'()[]{}<>,;".contains(c)) {
                let is_new = || !found.iter().any(|other| other == word) && !before.contains(word);
                if SHORTEST <= word.len() && is_new() && result.contains(word) {
                    found.push(word.to_owned());
                }
            }
        });
    }
    found
}

fn each_text(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, visit)),
        Value::Object(members) => members.values().for_each(|member| each_text(member, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_known_before_and_what_is_short_does_not_count() {
        let later = serde_json::json!({"path": "/data/report-7.pdf known-before ab"});
        let result = "see /data/report-7.pdf, known-before and ab";
        assert_eq!(
            used_parts(result, "known-before", [&later].into_iter()),
            ["/data/report-7.pdf"]
        );
    }
}
