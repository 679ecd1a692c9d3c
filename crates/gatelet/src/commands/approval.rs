//! The person at the terminal agrees to a call, or does not.
//!
//! gatelet answers a call that somebody has to agree to with a question and the
//! number under which it waits, or with a token that is good once. Here the
//! question is put to the person; then the request is allowed, and the same call
//! is made again.

use std::io::{BufRead, IsTerminal};

use policy::confirm;
use tool::Reply;

use crate::exit::CliError;
use crate::terminal::{WARNING, foreign, paint, say};

/// What gatelet asks before a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// What is to be agreed to.
    text: String,
    pub(super) way: Way,
}

/// How somebody agrees.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By allowing the request of this number.
    Request(u64),
    /// By showing this token.
    Token(String),
}

/// How a token begins.
const TOKEN: &str = confirm::PREFIX;

/// What stands before the number of a request.
const REQUEST: &str = "approval request ";

/// What stands behind the question in gatelet's answer.
const UNDONE: &str = ". Nothing was done.";

impl Question {
    /// The question in an answer, if it is one.
    pub(super) fn in_reply(reply: &Reply) -> Option<Question> {
        let result = reply.tool_result().filter(|result| result.is_error)?;
        let text = result.text();
        let asked =
            text.strip_prefix("**Error:** ").or_else(|| text.strip_prefix("**Paused:** "))?;
        let (question, rest) = asked.split_once(UNDONE)?;
        let until = |start: usize, is_part: fn(char) -> bool| {
            rest[start..].split(|c: char| !is_part(c)).next().unwrap_or_default()
        };
        let way = match (rest.find(REQUEST), rest.find(TOKEN)) {
            (Some(at), _) => {
                Way::Request(until(at + REQUEST.len(), |c| c.is_ascii_digit()).parse().ok()?)
            }
            (None, Some(at)) => {
                Way::Token(until(at, |c| c.is_ascii_alphanumeric() || c == '-').to_owned())
            }
            (None, None) => return None,
        };
        Some(Question { text: question.to_owned(), way })
    }

    /// Asks the person at the terminal, where there is one.
    pub(super) fn is_agreed_to(&self) -> bool {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() || !std::io::stderr().is_terminal() {
            return false;
        }
        say(&format!("{} Go on? [y/N]", paint(WARNING, foreign(&self.text))));
        let mut answer = String::new();
        let read = stdin.lock().read_line(&mut answer);
        read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    }

    /// What is said where nobody agreed.
    pub(super) fn refused(&self, tool: &str) -> CliError {
        let question = foreign(&self.text);
        let tool = tool::shell::word(tool);
        let tool = tool.as_deref().unwrap_or("NAME");
        let grant = format!("where no rule asks, `gatelet trust grant {tool}`");
        let more = match &self.way {
            Way::Request(number) => {
                format!("{grant}; `gatelet approvals show {number}` says whether one does")
            }
            Way::Token(_) => grant,
        };
        CliError::Refused(format!(
            "{question}, and nobody agreed: nothing was done. Run it again with `--yes`. What ends \
             the question for good: {more}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reply(text: &str, is_error: bool) -> Reply {
        let content = json!([{"type": "text", "text": text}]);
        Reply::Result(json!({"content": content, "isError": is_error}).into())
    }

    #[test]
    fn a_question_and_its_token_are_found_in_the_answer() {
        let text = "**Error:** `a/b` may destroy something. Nothing was done. Ask the user; if they \
                    agree, make exactly the same call again with the token: \
                    `call(function=\"a.b\", confirm=\"confirm-00ff\")` (good once, for 10 minutes)";
        let question = Question::in_reply(&reply(text, true)).unwrap();
        assert_eq!(question.way, Way::Token("confirm-00ff".to_owned()));
        let said = question.refused("a/b").to_string();
        assert!(said.starts_with("`a/b` may destroy something, and nobody agreed"), "{said}");
        assert!(said.contains("--yes") && said.contains("gatelet trust grant a/b"), "{said}");
        assert_eq!(Question::in_reply(&reply(text, false)), None);
        let text = "**Error:** it destroys. Nothing was done. It waits as approval request 12, for";
        assert_eq!(Question::in_reply(&reply(text, true)).unwrap().way, Way::Request(12));
        assert_eq!(Question::in_reply(&reply("**Error:** it broke", true)), None);
    }
}
