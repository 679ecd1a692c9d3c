//! Remembered approvals: rules for calls that an operator no longer wants to be asked
//! about, each for one tool as it looked then, with certain arguments.
//!
//! Such a rule is part of the configuration, where an operator wrote it or agreed to
//! it; nothing is remembered automatically.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::approval::queue::Subject;
use crate::glob::glob;
use crate::pattern::{Names, Pattern};

/// A rule for calls that need no approval any more.
#[derive(Clone, Debug, PartialEq)]
pub struct RememberedApproval {
    /// The tool, as `upstream:tool`.
    pub tool: Pattern,
    /// The digest of the tool's definition, or its first characters; any definition
    /// when `None`.
    pub digest: Option<String>,
    /// Arguments that have to be given with this value.
    pub exactly: BTreeMap<String, Value>,
    /// Arguments that have to match this pattern; `*` stands for anything, `?` for one
    /// character. A `*` alone stands for one word.
    pub like: BTreeMap<String, String>,
}

/// Why a request cannot become a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRemembered {
    #[error("its arguments are too long to be remembered")]
    TooLong,
    #[error("an argument is or holds null, which TOML cannot say")]
    Null,
    #[error("its tool cannot be named by a rule; `gatelet trust grant` can name it")]
    Unnameable,
}

impl RememberedApproval {
    /// Makes a rule from a request: the same tool as it is now, with the same arguments.
    /// Only single words may differ, and paths within the same directory.
    pub fn from_subject(subject: &Subject) -> Result<RememberedApproval, NotRemembered> {
        let Subject { upstream, tool, arguments, arguments_cut_from, digest, .. } = subject;
        if arguments_cut_from.is_some() {
            return Err(NotRemembered::TooLong);
        }
        if [upstream, tool].iter().any(|name| name.contains(['*', '?'])) {
            return Err(NotRemembered::Unnameable);
        }
        let given: Map<String, Value> =
            serde_json::from_str(arguments).map_err(|_| NotRemembered::Unnameable)?;
        let (mut exactly, mut like) = (BTreeMap::new(), BTreeMap::new());
        for (name, value) in given {
            if holds_null(&value) {
                return Err(NotRemembered::Null);
            }
            match value {
                Value::String(text) => match generalize(&text) {
                    Some(pattern) => drop(like.insert(name, pattern)),
                    None => drop(exactly.insert(name, Value::String(text))),
                },
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_) => drop(exactly.insert(name, value)),
            }
        }
        let tool = Pattern::new(&format!("{upstream}:{tool}"));
        Ok(RememberedApproval { tool, digest: digest.clone(), exactly, like })
    }

    /// Whether the rule covers a call: this tool, exactly these arguments, and each with a
    /// value that matches.
    pub fn matches(&self, names: Names<'_>, digest: Option<&str>, arguments: &str) -> bool {
        let looks_the_same = self.digest.as_deref().is_none_or(|seen| {
            seen.len() >= SHORTEST_DIGEST && digest.is_some_and(|now| now.starts_with(seen))
        });
        if !looks_the_same || !self.tool.matches_exactly(names) {
            return false;
        }
        let Ok(given) = serde_json::from_str::<Map<String, Value>>(arguments) else { return false };
        let known: BTreeSet<&String> = self.exactly.keys().chain(self.like.keys()).collect();
        let has_names = given.len() == known.len() && given.keys().all(|name| known.contains(name));
        let is_exact = |(name, value): (&String, &Value)| given.get(name) == Some(value);
        let is_like = |(name, pattern): (&String, &String)| {
            let text = given.get(name).and_then(Value::as_str);
            text.is_some_and(|text| matches_pattern(pattern, text))
        };
        has_names && self.exactly.iter().all(is_exact) && self.like.iter().all(is_like)
    }
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(holds_null),
        Value::Object(members) => members.values().any(holds_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A shorter prefix of a digest could match by chance.
const SHORTEST_DIGEST: usize = 12;

/// The pattern that replaces a text in a rule; `None` where the text has to stay as it
/// is.
fn generalize(text: &str) -> Option<String> {
    match text.rsplit_once('/') {
        Some((directory, _)) if directory.contains(['*', '?']) || leads_up(directory) => None,
        Some((directory, _)) if !directory.is_empty() => Some(format!("{directory}/*")),
        // A file in the root directory: too much would match.
        Some(_) => None,
        None if is_word(text) => Some(ANY_WORD.to_owned()),
        // A sentence, a command or an option: it is unclear what is similar to it.
        None => None,
    }
}

/// The pattern for any single word.
pub const ANY_WORD: &str = "*";

/// Whether a text is one word that no program takes for a path, an option, an address
/// or a command.
fn is_word(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | '+');
    let is_first = |c: char| c.is_alphanumeric() || c == '_';
    text.starts_with(is_first) && text.chars().all(is_plain) && !text.contains("..")
}

/// Whether a character has a special meaning in a shell.
fn is_shell_character(c: char) -> bool {
    c.is_control() || ";|&$<>`".contains(c)
}

/// Whether a text matches a pattern. The part that a wildcard matches must not lead out
/// of the directory before it, and must not begin a shell command.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    if pattern == ANY_WORD {
        return is_word(text);
    }
    let is_added = |c: char| is_shell_character(c) && !pattern.contains(c);
    let stays = !pattern.contains(['*', '?']) || !(leads_up(text) || text.contains(is_added));
    stays && glob(pattern, text)
}

/// Whether a path has a `..` segment, also where it is percent-encoded.
fn leads_up(text: &str) -> bool {
    let plain =
        text.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\");
    plain.contains('\0') || plain.split(['/', '\\']).any(|step| step.trim() == "..")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pattern::ExposedNameRef;

    fn subject(arguments: &Value) -> Subject {
        Subject {
            question: String::new(),
            ended_by_trust: true,
            caller: String::new(),
            client: String::new(),
            upstream: "files".to_owned(),
            tool: "delete".to_owned(),
            arguments: arguments.to_string(),
            arguments_cut_from: None,
            digest: Some("0123456789abcdef".to_owned()),
        }
    }

    const DIGEST: Option<&str> = Some("0123456789abcdef");

    fn named<'a>(upstream: &'a str, name: &'a str) -> Names<'a> {
        Names { id: "x", upstream, name, exposed: ExposedNameRef::UpstreamName }
    }

    #[test]
    fn a_remembered_call_may_differ_only_in_texts_and_only_within_a_directory() {
        let agreed = json!({"path": "/tmp/build/a.o", "force": true, "note": "old"});
        let rule = RememberedApproval::from_subject(&subject(&agreed)).unwrap();
        let fits = |arguments: Value| {
            rule.matches(named("files", "delete"), DIGEST, &arguments.to_string())
        };
        assert!(fits(agreed.clone()));
        assert!(fits(json!({"note": "x", "force": true, "path": "/tmp/build/b.o"})));
        for other in [
            json!({"path": "/tmp/other/a.o", "force": true, "note": ""}),
            json!({"path": "/tmp/build/../../etc/passwd", "force": true, "note": ""}),
            json!({"path": "/tmp/build/%2E%2e/x", "force": true, "note": ""}),
            json!({"path": "/tmp/build/..\\x", "force": true, "note": ""}),
            json!({"path": ["/tmp/build/a.o"], "force": true, "note": ""}),
            json!({"path": "/tmp/build/a.o", "force": false, "note": ""}),
            json!({"path": "/tmp/build/a.o", "force": "true", "note": ""}),
            json!({"path": "/tmp/build/a.o", "force": true}),
            json!({"path": "/tmp/build/a.o", "force": true, "note": "", "recursive": true}),
        ] {
            assert!(!fits(other.clone()), "{other}");
        }
    }

    #[test]
    fn a_word_is_remembered_for_other_words_and_for_nothing_that_is_more() {
        let rule = RememberedApproval::from_subject(&subject(&json!({"name": "report"}))).unwrap();
        assert_eq!(rule.like["name"], ANY_WORD);
        let fits = |text: &str| {
            let arguments = json!({"name": text}).to_string();
            rule.matches(named("files", "delete"), DIGEST, &arguments)
        };
        for word in ["report", "other", "a.b-c_d", "ann@example", "größe", "7"] {
            assert!(fits(word), "{word}");
        }
        for more in [
            "",
            "/etc/passwd",
            "a/b",
            "a\\b",
            "..",
            "../..",
            "a..b",
            ".ssh",
            "-rf",
            "--force",
            "a b",
            "rm -rf / ; x",
            "a;b",
            "a|b",
            "a&b",
            "$HOME",
            "`id`",
            "a>b",
            "a\nb",
            "~",
            "*",
            "a?",
            "x:y",
            "%2e%2e",
            "a\u{202e}b",
            "\"a\"",
            "'a'",
            "(a)",
            "{a}",
            "!a",
            "#a",
            "a=b",
        ] {
            assert!(!fits(more), "{more:?}");
        }
    }

    #[test]
    fn a_path_with_a_command_behind_it_is_none_of_its_directory() {
        let rule =
            RememberedApproval::from_subject(&subject(&json!({"path": "/tmp/b/a.o"}))).unwrap();
        let fits = |text: &str| {
            let arguments = json!({"path": text}).to_string();
            rule.matches(named("files", "delete"), DIGEST, &arguments)
        };
        assert!(fits("/tmp/b/my file (2).o"));
        for text in
            ["/tmp/b/x; rm -rf ~", "/tmp/b/$(id)", "/tmp/b/`id`", "/tmp/b/x\nrm", "/tmp/b/x|y"]
        {
            assert!(!fits(text), "{text:?}");
        }
    }

    #[test]
    fn another_tool_or_the_same_one_changed_is_not_remembered() {
        let agreed = json!({"path": "/tmp/build/a.o"});
        let rule = RememberedApproval::from_subject(&subject(&agreed)).unwrap();
        let text = agreed.to_string();
        assert!(!rule.matches(named("files", "delete_all"), DIGEST, &text));
        assert!(!rule.matches(named("other", "delete"), DIGEST, &text));
        assert!(!rule.matches(named("files", "delete"), Some("fedcba9876543210"), &text));
        assert!(!rule.matches(named("files", "delete"), None, &text));
    }

    #[test]
    fn what_could_be_taken_for_a_pattern_is_remembered_as_it_is() {
        for text in ["/a*/b", "/etc", "/a/../b/c", "rm -rf x", "--force", "two words", "*", ""] {
            let rule = RememberedApproval::from_subject(&subject(&json!({"path": text}))).unwrap();
            assert_eq!(rule.exactly["path"], text);
            assert!(rule.like.is_empty());
        }
        let odd = Subject { tool: "del*".to_owned(), ..subject(&json!({})) };
        assert_eq!(RememberedApproval::from_subject(&odd), Err(NotRemembered::Unnameable));
    }
}
