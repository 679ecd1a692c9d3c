//! References of skills to functions: parsed from metadata, and found in the text.

use std::borrow::Cow;
use std::fmt;

use catalog::{Catalog, name};
use tool::text::without_invisible;

/// A function, as a skill names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// Dotted; empty for the root.
    pub namespace: String,
    pub function: String,
}

/// How many functions are found in a text at most.
const MAX_REFERENCES: usize = 200;
/// How long the arguments of a call in a text may be.
const MAX_ARGUMENTS_BYTES: usize = 400;
/// How long the name of a function with its namespace may be.
const MAX_NAME_BYTES: usize = 400;

impl Reference {
    /// Parses a path such as `orders.create`.
    pub fn parse(path: &str) -> Option<Reference> {
        let (namespace, function) = path.rsplit_once('.').unwrap_or(("", path));
        let legal = !name::canonical(function).is_empty()
            && name::path(namespace).is_some()
            && is_shown_as_written(path);
        legal.then(|| Reference { namespace: namespace.to_owned(), function: function.to_owned() })
    }

    /// A digest of the function's signature in this catalog: its parameters, their
    /// types and which of them are required. Descriptions do not count.
    pub fn signature(&self, catalog: &Catalog) -> Option<String> {
        let slot = catalog.resolve(&self.namespace, &self.function).ok()?;
        Some(name::tag(&catalog.signature(slot, usize::MAX), 12))
    }

    /// Returns whether both name the same function.
    pub fn is(&self, other: &Reference) -> bool {
        name::same(&self.function, &other.function)
            && name::path(&self.namespace) == name::path(&other.namespace)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return f.write_str(&self.function);
        }
        write!(f, "{}.{}", self.namespace, self.function)
    }
}

/// Returns whether a name can stand between backticks in a line of ours. The name of no
/// function that can be called has other characters, but the text of a stranger may.
fn is_shown_as_written(name: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && c != '`';
    name.len() <= MAX_NAME_BYTES
        && name.chars().all(is_plain)
        && matches!(without_invisible(name), Cow::Borrowed(_))
}

/// Finds the functions in `call(…)` and `help(…)` of a text.
pub(super) fn mentioned(text: &str) -> Vec<Reference> {
    let mut found: Vec<Reference> = Vec::new();
    for (at, mark) in text.match_indices("(") {
        let before = &text[..at];
        if MAX_REFERENCES <= found.len() {
            break;
        }
        if !(before.ends_with("call") || before.ends_with("help")) {
            continue;
        }
        let arguments = arguments(&text[at + mark.len()..]);
        let Some(function) = argument(arguments, "function") else { continue };
        let namespace = argument(arguments, "namespace").unwrap_or_default();
        let is_name =
            |text: &str| !text.contains(['{', '<', '…', '$']) && is_shown_as_written(text);
        let reference =
            Reference { namespace: namespace.to_owned(), function: function.to_owned() };
        let names_one = is_name(namespace) && is_name(function) && !function.is_empty();
        if names_one && !found.iter().any(|other| other.is(&reference)) {
            found.push(reference);
        }
    }
    found
}

/// Returns the arguments of a call: the text up to the closing parenthesis.
pub(super) fn arguments(rest: &str) -> &str {
    let mut end = rest.len().min(MAX_ARGUMENTS_BYTES);
    while !rest.is_char_boundary(end) {
        end -= 1;
    }
    let rest = &rest[..end];
    &rest[..rest.find(')').unwrap_or(rest.len())]
}

/// Returns the value of `key="…"` in the arguments of a call.
pub(super) fn argument<'a>(arguments: &'a str, key: &str) -> Option<&'a str> {
    let (_, after) = arguments.split_once(key)?;
    let value = after.trim_start().strip_prefix(['=', ':'])?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    value[1..].split(quote).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found: Vec<String> = mentioned(text).iter().map(Reference::to_string).collect();
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn calls_in_a_text_are_found_in_any_order_of_their_arguments() {
        check("Use `call(namespace=\"orders\", function=\"create\", kwargs={})`.", "orders.create");
        check("call(function='x') then help(function=\"y\", namespace=\"a.b\")", "x a.b.y");
        check("call(namespace=\"a\", function=\"f\") call(namespace=\"A\", function=\"F\")", "a.f");
    }

    #[test]
    fn what_names_no_function_is_no_reference() {
        check("call(namespace=\"orders\") recall(x) call me (function)", "");
        check("call(namespace=\"{{ns}}\", function=\"f\") call(function=\"<name>\")", "");
        check("call(", "");
    }

    #[test]
    fn what_cannot_be_shown_as_it_is_written_is_no_reference() {
        for odd in ["a\nb", "a\u{1b}[2Jb", "a\u{202e}b", "a\u{e0041}b", "a\u{2028}b", "a`b"] {
            check(&format!("call(namespace=\"x\", function=\"{odd}\")"), "");
            check(&format!("call(namespace=\"{odd}\", function=\"f\")"), "");
            assert_eq!(Reference::parse(&format!("x.{odd}")), None, "{odd:?}");
            assert_eq!(Reference::parse(&format!("{odd}.f")), None, "{odd:?}");
        }
        assert_eq!(Reference::parse(&"x".repeat(100_000)), None);
        assert!(Reference::parse("größe.日本語").is_some());
    }

    #[test]
    fn paths_are_split_at_their_last_dot() {
        let parsed = Reference::parse("a.b.c").unwrap();
        assert_eq!((parsed.namespace.as_str(), parsed.function.as_str()), ("a.b", "c"));
        assert_eq!(Reference::parse("a..c"), None);
        assert_eq!(Reference::parse("."), None);
    }
}
