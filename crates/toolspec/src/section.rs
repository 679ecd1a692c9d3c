//! The eight topics of a tool's sections, and the titles by which they are recognised.

use serde::Serialize;

/// The topic of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    Purpose,
    Invocation,
    Input,
    Output,
    Errors,
    Idempotency,
    Usage,
    Security,
}

/// All topics, in the order of the canonical form.
pub const TOPICS: [Topic; 8] = [
    Topic::Purpose,
    Topic::Invocation,
    Topic::Input,
    Topic::Output,
    Topic::Errors,
    Topic::Idempotency,
    Topic::Usage,
    Topic::Security,
];

impl Topic {
    /// The canonical title, without its number.
    pub fn title(self) -> &'static str {
        match self {
            Topic::Purpose => "Tool Purpose and Description",
            Topic::Invocation => "Invocation Name",
            Topic::Input => "Input Schema (Parameters)",
            Topic::Output => "Output Schema (Return Value)",
            Topic::Errors => "Error Handling",
            Topic::Idempotency => "Idempotency",
            Topic::Usage => "Usage Examples (for MCP context)",
            Topic::Security => "Security Considerations",
        }
    }

    /// One-based place in the canonical form.
    pub fn number(self) -> usize {
        TOPICS.iter().position(|&topic| topic == self).map_or(0, |at| at + 1)
    }

    /// The canonical title, with its number.
    pub fn heading(self) -> String {
        format!("{}. {}", self.number(), self.title())
    }

    /// Recognises a title, numbered or not, in any of its variants.
    pub(crate) fn from_title(title: &str) -> Option<Topic> {
        let words = normalize_title(title);
        SYNONYMS.iter().find(|(_, names)| names.contains(&words.as_str())).map(|&(topic, _)| topic)
    }
}

const SYNONYMS: &[(Topic, &[&str])] = &[
    (
        Topic::Purpose,
        &[
            "tool purpose and description",
            "tool purpose",
            "purpose",
            "description",
            "overview",
            "purpose and description",
            "summary",
        ],
    ),
    (Topic::Invocation, &["invocation name", "invocation", "tool name", "name"]),
    (
        Topic::Input,
        &[
            "input schema",
            "input",
            "inputs",
            "parameters",
            "arguments",
            "schema",
            "tool schema",
            "input parameters",
            "params",
            "args",
        ],
    ),
    (
        Topic::Output,
        &[
            "output schema",
            "output",
            "outputs",
            "returns",
            "return",
            "return schema",
            "return value",
            "response",
            "success",
            "returns on success",
            "result",
            "example response",
        ],
    ),
    (
        Topic::Errors,
        &[
            "error handling",
            "error cases",
            "error responses",
            "error response",
            "error",
            "errors",
            "error contract",
            "error conditions",
        ],
    ),
    (Topic::Idempotency, &["idempotency", "idempotent", "trust and idempotency"]),
    (
        Topic::Usage,
        &[
            "usage examples",
            "usage example",
            "usage",
            "examples",
            "example",
            "example usage",
            "example invocation",
            "example call",
        ],
    ),
    (Topic::Security, &["security considerations", "security", "security notes"]),
];

/// Normalizes a title: lower case, without number, parenthesis, marks and final colon.
pub(crate) fn normalize_title(title: &str) -> String {
    let title = without_number(title);
    let title = title.split('(').next().unwrap_or(title);
    let plain: String = title.chars().filter(|letter| !matches!(letter, '*' | '`')).collect();
    plain.trim().trim_end_matches(':').trim().to_lowercase()
}

/// Removes a leading `3.` or `3)` from a title.
pub(crate) fn without_number(title: &str) -> &str {
    let title = title.trim();
    let digits = title.bytes().take_while(u8::is_ascii_digit).count();
    match title[digits..].strip_prefix(['.', ')']) {
        Some(rest) if digits != 0 => rest.trim_start(),
        Some(_) | None => title,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_recognised_in_their_variants() {
        let cases = [
            ("3. Input Schema (Parameters)", Some(Topic::Input)),
            ("Arguments", Some(Topic::Input)),
            ("5. Idempotency", Some(Topic::Idempotency)),
            ("7. Usage Examples (JSON)", Some(Topic::Usage)),
            ("Returns on success:", Some(Topic::Output)),
            ("Navigation Links", None),
            ("Auto-Discovery", None),
        ];
        for (title, topic) in cases {
            assert_eq!(Topic::from_title(title), topic, "{title}");
        }
        for topic in TOPICS {
            assert_eq!(Topic::from_title(&topic.heading()), Some(topic));
        }
    }
}
