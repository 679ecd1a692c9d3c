//! The question that a person has to agree to before a call goes on.

use std::fmt;

/// A question that a person has to agree to before a call goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub text: String,
    /// Whether the question would no longer be asked if the operator trusted the tool.
    pub ended_by_trust: bool,
}

impl Question {
    /// Joins two questions into one. Trust ends it only if it ends both.
    #[must_use]
    pub fn and(&self, other: &Question) -> Question {
        Question {
            text: format!("{self}; {other}"),
            ended_by_trust: self.ended_by_trust && other.ended_by_trust,
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_ends_two_questions_only_where_it_ends_each() {
        let question =
            |text: &str, ended_by_trust| Question { text: text.to_owned(), ended_by_trust };
        let (trust, rule) = (question("it destroys", true), question("a rule asks", false));
        assert_eq!(trust.and(&rule), question("it destroys; a rule asks", false));
        assert!(trust.and(&trust).ended_by_trust);
    }
}
