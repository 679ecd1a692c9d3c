//! A stored result of a call, with its owner and metadata.

use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};
use tool::context::CONNECTION_PREFIX;
use tool::{Context, Json, Reply, hex};

use crate::overview::Overview;
use crate::part::{self, PartRef};
use crate::result_text::ResultText;

/// One stored result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// A unique, short and unguessable id.
    pub handle: String,
    pub owner: Owner,
    /// When it was created, in milliseconds since 1970.
    pub made: u64,
    /// The operator's label for the upstream, and the tool's name there.
    pub upstream: String,
    pub tool: String,
    /// The canonical id of the tool, empty if it was not recorded.
    pub id: String,
    /// Identifies the call that created it, among the calls of its owner. A
    /// [fingerprint](Artifact::fingerprint), so that no arguments are stored.
    pub key: String,
    /// The whole result, with secrets masked.
    pub result: Json,
    /// The result with its secrets, for the operator alone; see [`RawResults`].
    pub raw: Option<Json>,
    /// The length of the result in characters.
    pub chars: usize,
    pub parts: PartIndex,
}

/// The parts of an artifact and its overview. Both need the whole result parsed,
/// so they are computed once and shared by all copies of the artifact.
#[derive(Clone, Debug, Default)]
pub struct PartIndex(Arc<LazyIndex>);

#[derive(Debug, Default)]
struct LazyIndex {
    references: OnceLock<Vec<PartRef>>,
    overview: OnceLock<Overview>,
}

impl PartIndex {
    /// Creates an index with references that were computed before.
    pub fn from_references(parts: Vec<PartRef>) -> PartIndex {
        PartIndex(Arc::new(LazyIndex {
            references: OnceLock::from(parts),
            overview: OnceLock::new(),
        }))
    }
}

/// All are equal: an index follows from the result, which is compared itself.
impl PartialEq for PartIndex {
    fn eq(&self, _: &PartIndex) -> bool {
        true
    }
}

/// The metadata of an artifact, known without reading its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactMeta {
    pub handle: String,
    /// When it was created, in milliseconds since 1970.
    pub made: u64,
    pub upstream: String,
    pub tool: String,
    pub chars: usize,
    pub parts: Vec<PartRef>,
}

/// Whether results with their secrets are stored beside the masked ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RawResults {
    #[default]
    Dropped,
    Kept,
}

/// The owner of artifacts: an identity, or else a session, or else a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(String);

/// Begins the owner for an identified caller.
const SUBJECT: &str = "subject:";

impl Owner {
    /// Returns the owner of the results of a request with this context.
    pub fn from_context(context: &Context) -> Owner {
        if context.caller.is_anonymous() {
            let kind = if context.is_connection_only() { "" } else { "session:" };
            Owner(format!("{kind}{}", context.session))
        } else {
            Owner(format!("{SUBJECT}{}", context.caller.subject))
        }
    }

    /// Returns whether this owner may read an artifact of the `other`, given its
    /// handle.
    ///
    /// A caller of whom only the connection is known may come back on another one,
    /// so for such callers knowing the handle is enough. It is never listed to
    /// anybody but its owner.
    pub fn opens(&self, other: &Owner) -> bool {
        self == other
            || (self.0.starts_with(CONNECTION_PREFIX) && other.0.starts_with(CONNECTION_PREFIX))
    }

    /// Returns whether an artifact of the `other` may have been made by this owner, whose
    /// connection or session was another one then. It may as well be a stranger's.
    pub fn may_have_been(&self, other: &Owner) -> bool {
        let is_known = |owner: &Owner| owner.0.starts_with(SUBJECT);
        self == other || !(is_known(self) || is_known(other))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Creates the owner from the text that [`Owner::as_str`] gave to a store.
    pub fn from_stored(text: &str) -> Owner {
        Owner(text.to_owned())
    }
}

impl Artifact {
    /// Creates a handle for an artifact of this owner; longer where
    /// [knowing it is enough](Owner::opens) to read the artifact.
    pub fn new_handle(owner: &Owner) -> String {
        let length = if owner.0.starts_with(CONNECTION_PREFIX) { 24 } else { 12 };
        uuid::Uuid::new_v4().simple().to_string()[..length].to_owned()
    }

    /// Hashes a text that identifies a call into an [`Artifact::key`].
    pub fn fingerprint(call: &str) -> String {
        hex::encode(&Sha256::digest(call.as_bytes()))
    }

    /// Returns the [main text](ResultText::main) of the result, or the result as
    /// JSON if it has none.
    pub fn text(&self) -> String {
        let reply = Reply::Result(self.result.clone());
        let Some(result) = reply.tool_result() else { return self.result.to_string() };
        ResultText::new(&result).main().unwrap_or(self.result.as_str()).to_owned()
    }

    /// Returns references to its parts. The first call parses the whole result.
    pub fn parts(&self) -> &[PartRef] {
        let references = || part::references(&self.handle, &self.result);
        self.parts.0.references.get_or_init(references)
    }

    /// Returns its overview. The first call parses the whole result.
    pub fn overview(&self) -> &Overview {
        self.parts.0.overview.get_or_init(|| {
            let reply = Reply::Result(self.result.clone());
            let result = reply.tool_result();
            let text = result.as_ref().map(ResultText::new);
            let (result, text) = (result.as_ref(), text.as_ref());
            // The references need the same parsed result, so they are computed too.
            self.parts.0.references.get_or_init(|| {
                part::references_parsed(&self.handle, &self.result, result.zip(text))
            });
            Overview::new(&self.result, result, text, self.chars)
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

    /// Returns how many bytes it takes in a store.
    pub fn bytes(&self) -> usize {
        let raw = self.raw.as_ref().map_or(0, |raw| raw.as_bytes().len());
        self.result.as_bytes().len() + raw
    }
}
