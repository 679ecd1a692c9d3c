//! The record of a session that all replicas share.
//!
//! It holds what a replica needs to carry the session on: what the client said in
//! `initialize`, what it wants since then, and which replicas have the session. A record of
//! the release before is read; one of a release to come is refused.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tool::{Identity, Json, Object};

use crate::level::Level;
use crate::revision::method;
use crate::serve::session::Session;

/// The version of the record's format. Records of the first format have none, which is 0.
const FORMAT: u32 = 1;

/// How many replicas a record names. Those that had the session first are left out: they
/// have ended, in all likelihood.
const MAX_REPLICAS: usize = 64;

/// The record of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SharedSession {
    #[serde(default)]
    version: u32,
    /// The params of `initialize`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) params: Option<Json>,
    /// The fingerprint of the caller.
    caller: String,
    /// The least log level that the client wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) subscriptions: BTreeSet<String>,
    /// The tags of the replicas that have the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) replicas: Vec<u32>,
    /// Whether the client ended the session. Then nothing else counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) ended: bool,
}

/// Why a record cannot be used. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnreadableRecord {
    #[error(
        "the session was opened by a newer release of gatelet (its record has format {0}, this \
         release knows up to {FORMAT}); send `initialize` again, and upgrade all replicas"
    )]
    Newer(u32),
    #[error("the record of the session cannot be read; send `initialize` again")]
    Malformed,
}

/// Why a request has no session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MissingSession {
    #[error(
        "no such session: it ended, was idle for too long, or what you may do has changed; send \
         `initialize` again"
    )]
    Unknown,
    #[error(transparent)]
    Unreadable(#[from] UnreadableRecord),
}

/// What a request changed about a session, for every replica that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SharedChange {
    Level(String),
    Subscribed(String),
    Unsubscribed(String),
}

impl SharedSession {
    /// Makes the record of a session that the replica with this tag has.
    pub(super) fn new(session: &Session, tag: u32) -> SharedSession {
        let client = &session.client;
        let params = [
            ("protocolVersion", Json::encode(session.revision.as_str())),
            ("capabilities", client.capabilities.clone()),
            ("clientInfo", client.raw.clone()),
        ];
        let params = params.into_iter().map(|(key, value)| (key.to_owned(), value));
        SharedSession {
            version: FORMAT,
            params: Some(Object::from_iter(params).to_json()),
            caller: fingerprint(&session.caller),
            level: session.level().map(|level| level.as_str().to_owned()),
            subscriptions: session.subscriptions(),
            replicas: vec![tag],
            ended: false,
        }
    }

    pub(super) fn parse(text: &str) -> Result<SharedSession, UnreadableRecord> {
        #[derive(Deserialize)]
        struct Versioned {
            #[serde(default)]
            version: u32,
        }
        // Only the version is read first: a newer record may have any shape.
        let malformed = |_| UnreadableRecord::Malformed;
        let Versioned { version } = serde_json::from_str(text).map_err(malformed)?;
        if FORMAT < version {
            return Err(UnreadableRecord::Newer(version));
        }
        serde_json::from_str(text).map_err(malformed)
    }

    pub(super) fn encode(&self) -> String {
        Json::encode(&SharedSession { version: FORMAT, ..self.clone() }).as_str().to_owned()
    }

    pub(super) fn belongs_to(&self, caller: &Identity) -> bool {
        !self.ended && self.caller == fingerprint(caller)
    }

    pub(super) fn level(&self) -> Option<Level> {
        self.level.as_deref().and_then(Level::parse)
    }

    /// Adds a replica that has the session.
    pub(super) fn join(&mut self, tag: u32) {
        if !self.replicas.contains(&tag) {
            let n_over = (self.replicas.len() + 1).saturating_sub(MAX_REPLICAS);
            self.replicas.drain(..n_over);
            self.replicas.push(tag);
        }
    }

    pub(super) fn change(&mut self, change: &SharedChange) {
        match change {
            SharedChange::Level(level) => self.level = Some(level.clone()),
            SharedChange::Subscribed(uri) => drop(self.subscriptions.insert(uri.clone())),
            SharedChange::Unsubscribed(uri) => drop(self.subscriptions.remove(uri)),
        }
    }

    /// Ends the session. Only what tells the other replicas stays.
    pub(super) fn end(&mut self) {
        (self.ended, self.params, self.level) = (true, None, None);
        self.caller.clear();
        self.subscriptions.clear();
    }
}

impl SharedChange {
    /// Returns what a request with this method changes if it succeeds.
    pub(super) fn of(method: &str, params: Option<&Json>) -> Option<SharedChange> {
        let text = |key: &str| params.and_then(|params| params.member_as::<String>(key));
        match method {
            method::SET_LEVEL => text("level").map(SharedChange::Level),
            method::SUBSCRIBE => text("uri").map(SharedChange::Subscribed),
            method::UNSUBSCRIBE => text("uri").map(SharedChange::Unsubscribed),
            _ => None,
        }
    }
}

/// Returns a hash that is the same for the same subject with the same rights only.
fn fingerprint(caller: &Identity) -> String {
    let Identity { subject, scopes, roles, groups, address: _ } = caller;
    let text = Json::encode(&(subject, scopes, roles, groups));
    tool::hex::encode(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_the_first_format_is_read() {
        let caller = fingerprint(&Identity::default());
        let first =
            format!(r#"{{"params":{{"protocolVersion":"2025-06-18"}},"caller":"{caller}"}}"#);
        let record = SharedSession::parse(&first).unwrap();
        assert!(record.belongs_to(&Identity::default()));
        assert_eq!((record.level(), record.replicas.len()), (None, 0));
        let again = SharedSession::parse(&record.encode()).unwrap();
        assert_eq!(again, SharedSession { version: FORMAT, ..record });
    }

    #[test]
    fn a_record_of_a_release_to_come_is_refused_with_the_remedy() {
        let newer = format!(r#"{{"version":{},"sealed":"x"}}"#, FORMAT + 1);
        let refused = SharedSession::parse(&newer).unwrap_err();
        assert_eq!(refused, UnreadableRecord::Newer(FORMAT + 1));
        assert!(refused.to_string().contains("upgrade all replicas"));
        assert_eq!(SharedSession::parse("{"), Err(UnreadableRecord::Malformed));
        assert_eq!(SharedSession::parse("{}"), Err(UnreadableRecord::Malformed));
    }

    #[test]
    fn what_the_client_wants_is_kept_until_the_session_ends() {
        let mut record = SharedSession::parse(r#"{"params":null,"caller":""}"#).unwrap();
        let params =
            |text: &str| Json::encode(&serde_json::from_str::<serde_json::Value>(text).unwrap());
        let (level, uri) = (params(r#"{"level":"error"}"#), params(r#"{"uri":"a://b"}"#));
        let change = |method: &str, params: &Json| SharedChange::of(method, Some(params)).unwrap();
        record.change(&change("logging/setLevel", &level));
        record.change(&change("resources/subscribe", &uri));
        assert_eq!(record.level(), Level::parse("error"));
        assert_eq!(record.subscriptions.len(), 1);
        record.change(&change("resources/unsubscribe", &uri));
        assert!(record.subscriptions.is_empty());
        assert_eq!(SharedChange::of("tools/call", Some(&uri)), None);
        (1..=100).for_each(|tag| record.join(tag));
        record.join(100);
        assert_eq!((record.replicas.len(), record.replicas[0]), (MAX_REPLICAS, 37));
        record.end();
        let record = SharedSession::parse(&record.encode()).unwrap();
        assert!(record.ended && !record.belongs_to(&Identity::default()));
    }
}
