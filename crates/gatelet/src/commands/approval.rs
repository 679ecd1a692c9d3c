//! Asks the person at the terminal for approval of a call.
//!
//! A gateway answers a call that needs approval with a question, and with the number of
//! the request for approval or a confirmation token. Here that answer is parsed and the
//! question is put to the person; the command then approves and makes the call again.

use std::io::{BufRead, IsTerminal};

use policy::confirm;
use tool::Reply;

use crate::exit::CliError;
use crate::terminal::{WARNING, foreign, paint, say};

/// What a gateway asks before a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// What is to be approved.
    text: String,
    pub(super) method: ApprovalMethod,
}

/// How the call is approved.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ApprovalMethod {
    /// By allowing the request for approval with this number.
    Request(u64),
    /// By making the call again with this confirmation token.
    Token(String),
}

/// The beginning of a token.
const TOKEN: &str = confirm::PREFIX;

/// The text before the number of a request.
const REQUEST: &str = "approval request ";

/// The text after the question.
const AFTER_QUESTION: &str = ". Nothing was done.";

impl Question {
    /// Parses the question in a reply; `None` if the reply is not a question.
    pub(super) fn parse(reply: &Reply) -> Option<Question> {
        let result = reply.tool_result().filter(|result| result.is_error)?;
        let text = result.text();
        let asked =
            text.strip_prefix("**Error:** ").or_else(|| text.strip_prefix("**Paused:** "))?;
        let (question, rest) = asked.split_once(AFTER_QUESTION)?;
        let until = |start: usize, is_part: fn(char) -> bool| {
            rest[start..].split(|c: char| !is_part(c)).next().unwrap_or_default()
        };
        let method = match (rest.find(REQUEST), rest.find(TOKEN)) {
            (Some(at), _) => ApprovalMethod::Request(
                until(at + REQUEST.len(), |c| c.is_ascii_digit()).parse().ok()?,
            ),
            (None, Some(at)) => ApprovalMethod::Token(
                until(at, |c| c.is_ascii_alphanumeric() || c == '-').to_owned(),
            ),
            (None, None) => return None,
        };
        Some(Question { text: question.to_owned(), method })
    }

    /// Asks the person at the terminal. Without a terminal, the answer is no.
    pub(super) fn ask_person(&self) -> bool {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() || !std::io::stderr().is_terminal() {
            return false;
        }
        say(&format!("{} Go on? [y/N]", paint(WARNING, foreign(&self.text))));
        let mut answer = String::new();
        let read = stdin.lock().read_line(&mut answer);
        read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    }

    /// The error of a call that nobody approved.
    pub(super) fn refusal(&self, tool: &str) -> CliError {
        let question = foreign(&self.text);
        let tool = tool::shell::word(tool);
        let tool = tool.as_deref().unwrap_or("NAME");
        let grant = format!("where no rule asks, `gatelet trust grant {tool}`");
        let more = match &self.method {
            ApprovalMethod::Request(number) => {
                format!("{grant}; `gatelet approvals show {number}` says whether one does")
            }
            ApprovalMethod::Token(_) => grant,
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
        let question = Question::parse(&reply(text, true)).unwrap();
        assert_eq!(question.method, ApprovalMethod::Token("confirm-00ff".to_owned()));
        let said = question.refusal("a/b").to_string();
        assert!(said.starts_with("`a/b` may destroy something, and nobody agreed"), "{said}");
        assert!(said.contains("--yes") && said.contains("gatelet trust grant a/b"), "{said}");
        assert_eq!(Question::parse(&reply(text, false)), None);
        let text = "**Error:** it destroys. Nothing was done. It waits as approval request 12, for";
        assert_eq!(
            Question::parse(&reply(text, true)).unwrap().method,
            ApprovalMethod::Request(12)
        );
        assert_eq!(Question::parse(&reply("**Error:** it broke", true)), None);
    }
}
