//! What was asked, for the last words about it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};

/// The body of a request, in the extensions of its response: a stream that has
/// to end without the answer says so, and needs the question's id. Clones are
/// the same.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<u8>>>);

/// Questions that are longer are not remembered.
const LONGEST: usize = 64 << 10;

impl Heard {
    pub(crate) fn note(&self, piece: &[u8]) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One byte more tells that it is not whole.
        let room = (LONGEST + 1).saturating_sub(heard.len()).min(piece.len());
        heard.extend_from_slice(&piece[..room]);
    }

    /// The event that answers the question, if it is one.
    pub(super) fn last_words(&self) -> Option<Bytes> {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let question: Value = serde_json::from_slice(&heard).ok()?;
        question["method"].as_str()?;
        let id = question.get("id").filter(|id| id.is_string() || id.is_number())?;
        let message = "the gate is closing, and this took too long";
        let error = json!({"code": -32000, "message": message});
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
        Some(format!("event: message\ndata: {answer}\n\n").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], expected: bool) {
        let heard = Heard::default();
        pieces.iter().for_each(|piece| heard.note(piece.as_bytes()));
        assert_eq!(heard.last_words().is_some(), expected, "{pieces:?}");
    }

    #[test]
    fn only_a_whole_question_gets_last_words() {
        check(&[r#"{"id": 7, "meth"#, r#"od": "tools/call"}"#], true);
        check(&[r#"{"id": "a", "method": "ping"}"#], true);
        check(&[r#"{"method": "notifications/x"}"#], false);
        check(&[r#"{"id": 7, "result": {}}"#], false);
        check(&[r#"{"id": 7, "#], false);
        check(&[], false);
        let long = format!(r#"{{"id": 7, "method": "x", "params": "{}"}}"#, "x".repeat(LONGEST));
        check(&[&long], false);
    }
}
