//! The messages between replicas, as JSON.
//!
//! A replica of the next or the last release may send what this one does not know:
//! unknown members are ignored, and an unknown question is [recognized](Received), so
//! that it can be answered at once.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tool::Json;

/// The version of the messages, which grows with each kind or member that is added.
/// Those without one are of version 0.
pub(super) const VERSION: u32 = 1;

/// A message between replicas.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReplicaMessage {
    /// A request for an endpoint; the answer goes to the replica `from`, with `number`.
    Ask {
        endpoint: String,
        from: u32,
        number: u64,
        message: Json,
        #[serde(default)]
        version: u32,
    },
    Answer {
        number: u64,
        message: Json,
        /// Whether the receiver did not know what to do with the request.
        #[serde(default)]
        refused: bool,
    },
    /// Opens a tunnel to an upstream that the receiver runs under the lease `fence`.
    Open {
        upstream: String,
        fence: u64,
        from: u32,
        tunnel: u64,
        #[serde(default)]
        version: u32,
    },
    /// A line through a tunnel.
    Line {
        tunnel: u64,
        /// Counts the lines of one direction from 0; replicas of version 0 do not.
        #[serde(default)]
        number: Option<u64>,
        text: String,
    },
    /// How many lines the sender has sent through a tunnel, so that the receiver notices
    /// that the last ones are lost, or the tunnel itself.
    Sent {
        tunnel: u64,
        from: u32,
        n_lines: u64,
    },
    Close {
        tunnel: u64,
    },
}

/// What a replica received.
pub(super) enum Received {
    Message(ReplicaMessage),
    /// A request that this release does not know.
    UnknownRequest {
        from: u32,
        number: u64,
    },
    /// A tunnel of a kind that this release does not know.
    UnknownTunnel {
        from: u32,
        tunnel: u64,
    },
    /// Nobody waits for an answer to it.
    Unreadable(serde_json::Error),
}

/// What an unknown message may have in common with those that are known.
#[derive(Deserialize)]
struct UnknownMessage {
    from: u32,
    number: Option<u64>,
    tunnel: Option<u64>,
}

impl ReplicaMessage {
    /// The answer to a request that cannot be processed. Replicas of version 0 find
    /// that they cannot read it.
    pub(super) fn refusal(number: u64) -> ReplicaMessage {
        ReplicaMessage::Answer { number, message: Json::null(), refused: true }
    }

    pub(super) fn receive(bytes: &[u8]) -> Received {
        let error = match serde_json::from_slice(bytes) {
            Ok(message) => return Received::Message(message),
            Err(error) => error,
        };
        let unknown = serde_json::from_slice::<HashMap<String, UnknownMessage>>(bytes);
        let unknown = unknown.ok().and_then(|kinds| kinds.into_values().next());
        match unknown {
            Some(UnknownMessage { from, number: Some(number), .. }) => {
                Received::UnknownRequest { from, number }
            }
            Some(UnknownMessage { from, tunnel: Some(tunnel), .. }) => {
                Received::UnknownTunnel { from, tunnel }
            }
            Some(_) | None => Received::Unreadable(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_last_release_are_read_and_those_of_the_next_are_recognized() {
        let line = ReplicaMessage::receive(br#"{"line":{"tunnel":7,"text":"x"}}"#);
        let Received::Message(ReplicaMessage::Line { number, .. }) = line else {
            panic!("a line is a message")
        };
        assert_eq!(number, None);
        let later = br#"{"ask":{"endpoint":"/mcp","from":1,"number":2,"message":{},"later":true}}"#;
        let later = ReplicaMessage::receive(later);
        assert!(matches!(later, Received::Message(ReplicaMessage::Ask { version: 0, .. })));
        let wish = ReplicaMessage::receive(br#"{"wish":{"from":3,"number":4,"for":"rain"}}"#);
        assert!(matches!(wish, Received::UnknownRequest { from: 3, number: 4 }));
        let pipe = ReplicaMessage::receive(br#"{"pipe":{"from":3,"tunnel":5}}"#);
        assert!(matches!(pipe, Received::UnknownTunnel { from: 3, tunnel: 5 }));
        for nothing in [&b"{"[..], b"{}", br#"{"wish":{"for":"rain"}}"#, b"[]"] {
            assert!(matches!(ReplicaMessage::receive(nothing), Received::Unreadable(_)));
        }
    }

    #[test]
    fn a_refusal_is_an_answer_to_the_last_release_too() {
        let text = Json::encode(&ReplicaMessage::refusal(4));
        let back = ReplicaMessage::receive(text.as_str().as_bytes());
        let Received::Message(ReplicaMessage::Answer { number: 4, refused: true, .. }) = back
        else {
            panic!("{text}")
        };
    }
}
