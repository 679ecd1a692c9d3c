//! A stored result of a call, with its owner and metadata.

use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};
use tool::context::CONNECTION_PREFIX;
use tool::{Context, Json, Reply, hex};

use crate::overview::Overview;
use crate::part::{self, PartRef};
use crate::reading::ResultText;

/// One kept answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// Unique, short, and not to be guessed.
    pub handle: String,
    pub owner: Owner,
    /// Milliseconds since 1970.
    pub made: u64,
    /// The operator's label for the upstream, and the tool's name there.
    pub upstream: String,
    pub tool: String,
    /// The canonical id of the tool, empty where it was not written down.
    pub id: String,
    /// What identifies the call that made it, for its owner: a
    /// [fingerprint](Artifact::fingerprint), because arguments are nobody's
    /// to keep.
    pub key: String,
    /// The whole result, with secrets masked: what anybody may look at.
    pub result: Json,
    /// The result as it came, for the operator alone and only if they say so.
    pub raw: Option<Json>,
    pub chars: usize,
    pub parts: Parts,
}

/// Where each part of an artifact is, and what is told of it. Found out once,
/// however many copies of the artifact there are, because it takes reading the
/// whole.
#[derive(Clone, Debug, Default)]
pub struct Parts(Arc<Found>);

#[derive(Debug, Default)]
struct Found {
    references: OnceLock<Vec<PartRef>>,
    overview: OnceLock<Overview>,
}

impl Parts {
    /// The parts as they were found out before.
    pub fn known(parts: Vec<PartRef>) -> Parts {
        Parts(Arc::new(Found { references: OnceLock::from(parts), overview: OnceLock::new() }))
    }
}

/// What follows from the rest makes no difference.
impl PartialEq for Parts {
    fn eq(&self, _: &Parts) -> bool {
        true
    }
}

/// The metadata of an artifact, known without reading its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactMeta {
    pub handle: String,
    pub made: u64,
    pub upstream: String,
    pub tool: String,
    pub chars: usize,
    pub parts: Vec<PartRef>,
}

/// Whether results are kept as they came beside what may be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Raw {
    #[default]
    Dropped,
    Kept,
}

/// Whose artifacts these are: an identity's, or else a session's, or else a
/// connection's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(String);

impl Owner {
    /// The owner of what a question with this context brings about.
    pub fn from_context(context: &Context) -> Owner {
        if context.caller.is_anonymous() {
            let kind = if context.is_connection_only() { "" } else { "session:" };
            Owner(format!("{kind}{}", context.session))
        } else {
            Owner(format!("subject:{}", context.caller.subject))
        }
    }

    /// Returns whether this owner may read what the `other` owns, given its handle.
    ///
    /// A caller who is known by a connection only may come back on another
    /// one, so to such callers the handle is the key. It is never listed to
    /// anybody else.
    pub fn opens(&self, other: &Owner) -> bool {
        self == other
            || (self.0.starts_with(CONNECTION_PREFIX) && other.0.starts_with(CONNECTION_PREFIX))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The owner that [`Owner::as_str`] wrote down.
    pub fn read(text: &str) -> Owner {
        Owner(text.to_owned())
    }
}

impl Artifact {
    /// A new handle for something of this owner; longer where it is the key.
    pub fn new_handle(owner: &Owner) -> String {
        let length = if owner.0.starts_with(CONNECTION_PREFIX) { 24 } else { 12 };
        uuid::Uuid::new_v4().simple().to_string()[..length].to_owned()
    }

    /// The [`Artifact::key`] of a call, from what identifies the call.
    pub fn fingerprint(call: &str) -> String {
        hex::encode(&Sha256::digest(call.as_bytes()))
    }

    /// Returns what a reader reads: what the result [mainly](ResultText::main) is,
    /// or else the result as it travels.
    pub fn text(&self) -> String {
        let reply = Reply::Result(self.result.clone());
        let Some(result) = reply.tool_result() else { return self.result.to_string() };
        ResultText::new(&result).main().unwrap_or(self.result.as_str()).to_owned()
    }

    /// Returns where each part of it is. Reads the whole when it is first asked.
    pub fn parts(&self) -> &[PartRef] {
        let references = || part::references(&self.handle, &self.result);
        self.parts.0.references.get_or_init(references)
    }

    /// Returns what is told of it. Reads the whole when it is first asked.
    pub fn overview(&self) -> &Overview {
        self.parts.0.overview.get_or_init(|| {
            let reply = Reply::Result(self.result.clone());
            let result = reply.tool_result();
            let reading = result.as_ref().map(ResultText::new);
            let (result, reading) = (result.as_ref(), reading.as_ref());
            // What was read for the one is not read again for the other.
            self.parts.0.references.get_or_init(|| {
                part::references_parsed(&self.handle, &self.result, result.zip(reading))
            });
            Overview::of(&self.result, result, reading, self.chars)
        })
    }

    pub fn meta(&self) -> ArtifactMeta {
        ArtifactMeta {
            handle: self.handle.clone(),
            made: self.made,
            upstream: self.upstream.clone(),
            tool: self.tool.clone(),
            chars: self.chars,
            parts: self.parts().to_vec(),
        }
    }

    /// Returns how much room it takes, all in all.
    pub fn bytes(&self) -> usize {
        let raw = self.raw.as_ref().map_or(0, |raw| raw.as_bytes().len());
        self.result.as_bytes().len() + raw
    }
}
