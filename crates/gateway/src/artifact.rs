//! Answers that were too long to go out, kept whole for later.
//!
//! An artifact has an owner, and nobody else can read it or learn that it is
//! there. It lives for a while and within bounds; the oldest go first. Where
//! artifacts live is a [`Store`]; [`Memory`] is the one in this process.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use tool::context::VISIT;
use tool::reply::ToolResult;
use tool::{Context, Json, Reply, hex};

use crate::clock::Clock;
use crate::envelope::{self, Reference};

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

/// Where each part of an artifact is. Found out once, however many copies of
/// the artifact there are, because it takes reading the whole.
#[derive(Clone, Debug, Default)]
pub struct Parts(Arc<OnceLock<Vec<Reference>>>);

impl Parts {
    /// The parts as they were found out before.
    pub fn known(parts: Vec<Reference>) -> Parts {
        Parts(Arc::new(OnceLock::from(parts)))
    }
}

/// What follows from the rest makes no difference.
impl PartialEq for Parts {
    fn eq(&self, _: &Parts) -> bool {
        true
    }
}

/// What is known of an artifact without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub handle: String,
    pub made: u64,
    pub upstream: String,
    pub tool: String,
    pub chars: usize,
    pub parts: Vec<Reference>,
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
    pub fn of(context: &Context) -> Owner {
        if context.caller.is_anonymous() {
            let kind = if context.is_visit() { "" } else { "session:" };
            Owner(format!("{kind}{}", context.session))
        } else {
            Owner(format!("subject:{}", context.caller.subject))
        }
    }

    /// Whether this owner may read what the `other` owns, given its handle.
    ///
    /// A caller who is known by a connection only may come back on another
    /// one, so to such callers the handle is the key. It is never listed to
    /// anybody else.
    pub fn opens(&self, other: &Owner) -> bool {
        self == other || (self.0.starts_with(VISIT) && other.0.starts_with(VISIT))
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
        let length = if owner.0.starts_with(VISIT) { 24 } else { 12 };
        uuid::Uuid::new_v4().simple().to_string()[..length].to_owned()
    }

    /// The [`Artifact::key`] of a call, from what identifies the call.
    pub fn fingerprint(call: &str) -> String {
        hex::encode(&Sha256::digest(call.as_bytes()))
    }

    /// What a reader reads: what the result [mainly](Reading::main) is, or else
    /// the result as it travels.
    pub fn text(&self) -> String {
        let reply = Reply::Result(self.result.clone());
        let Some(result) = reply.tool_result() else { return self.result.to_string() };
        Reading::of(&result).main().unwrap_or(self.result.as_str()).to_owned()
    }

    /// Where each part of it is. Reads the whole when it is first asked.
    pub fn parts(&self) -> &[Reference] {
        self.parts.0.get_or_init(|| envelope::references(self))
    }

    pub fn header(&self) -> Header {
        Header {
            handle: self.handle.clone(),
            made: self.made,
            upstream: self.upstream.clone(),
            tool: self.tool.clone(),
            chars: self.chars,
            parts: self.parts().to_vec(),
        }
    }

    /// How much room it takes, all in all.
    pub fn bytes(&self) -> usize {
        let raw = self.raw.as_ref().map_or(0, |raw| raw.as_bytes().len());
        self.result.as_bytes().len() + raw
    }
}

/// The two things that a result can be read as, taken out of it once.
pub(crate) struct Reading<'a> {
    /// The text of the result, or its structured content when it has no text.
    pub(crate) text: Option<Cow<'a, str>>,
    structured: Option<&'a str>,
}

impl<'a> Reading<'a> {
    pub(crate) fn of(result: &'a ToolResult) -> Reading<'a> {
        let block = |block: &Json| {
            let own = block.member_as::<String>("text");
            own.or_else(|| block.member("resource")?.member_as("text"))
        };
        let mut texts = result.content.iter().filter_map(block);
        let structured = result.structured.as_ref().map(Json::as_str);
        // Most have one text, which need not be copied.
        let text = match texts.next() {
            Some(mut first) => {
                for next in texts {
                    first.push('\n');
                    first.push_str(&next);
                }
                Some(Cow::Owned(first))
            }
            None => structured.map(Cow::Borrowed),
        };
        Reading { text, structured }
    }

    /// Whether the structured content of a result is what it consists of, and
    /// its text says only a little about it.
    pub(crate) fn is_structured(&self) -> bool {
        let text = self.text.as_ref().map_or(0, |text| text.len());
        self.structured.is_some_and(|structured| text < structured.len() / 2)
    }

    /// What a result mainly is: its text, or its structured content where that
    /// is much longer.
    pub(crate) fn main(&self) -> Option<&str> {
        let structured = self.structured.filter(|_| self.is_structured());
        structured.or(self.text.as_deref())
    }
}

/// The text of a result, or its structured content when it has no text.
pub fn readable(result: &ToolResult) -> Option<String> {
    Reading::of(result).text.map(Cow::into_owned)
}

/// Whether the structured content of a result is what it consists of, and its
/// text says only a little about it.
pub fn is_structured(result: &ToolResult) -> bool {
    result.structured.is_some() && Reading::of(result).is_structured()
}

/// How an artifact is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// Where its store keeps artifacts.
    InPlace,
    /// In memory only, because it could not be written.
    InMemory { reason: String },
}

/// An artifact that is longer than all that its owner may have kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {bytes} bytes, and at most {limit} are kept for one caller")]
pub struct TooLong {
    pub bytes: usize,
    pub limit: usize,
}

/// Where artifacts live.
#[async_trait]
pub trait Store: Send + Sync {
    /// Keeps an artifact, and says how; or says that it is not kept. A call has
    /// one answer: an earlier one to the same call is no longer it.
    async fn put(&self, artifact: Artifact) -> Result<Keeping, TooLong>;

    /// The artifact of that handle, if the owner [opens](Owner::opens) it.
    async fn get(&self, owner: &Owner, handle: &str) -> Option<Arc<Artifact>>;

    /// The owner's artifact that answers the call with that key.
    async fn made_by(&self, owner: &Owner, key: &str) -> Option<Arc<Artifact>>;

    /// Forgets which call made an artifact, so that the same call runs again.
    async fn detach(&self, owner: &Owner, handle: &str);

    /// What there is of an owner, the latest first. Nothing is read for it.
    async fn list(&self, owner: &Owner) -> Vec<Header>;
}

/// Bounds on what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long an artifact lives.
    pub life: Duration,
    /// Bytes per owner.
    pub owner_bytes: usize,
    /// Bytes in all.
    pub total_bytes: usize,
}

impl Config {
    /// Whether an artifact can be kept at all.
    pub fn takes(&self, artifact: &Artifact) -> Result<(), TooLong> {
        let (bytes, limit) = (artifact.bytes(), self.owner_bytes.min(self.total_bytes));
        if limit < bytes { Err(TooLong { bytes, limit }) } else { Ok(()) }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config { life: Duration::from_secs(3600), owner_bytes: 64 << 20, total_bytes: 256 << 20 }
    }
}

/// Artifacts in memory.
pub struct Memory {
    config: Config,
    clock: Arc<dyn Clock>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// In the order of their last use.
    shelf: VecDeque<Place>,
    bytes: usize,
}

struct Place {
    artifact: Arc<Artifact>,
    since: Duration,
    attached: bool,
}

impl Memory {
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Memory {
        Memory { config, clock, kept: Mutex::default() }
    }

    /// Has no artifact answer this call any more.
    pub fn supersede(&self, owner: &Owner, key: &str) {
        self.with(|kept| kept.supersede(owner, key));
    }

    fn with<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        let mut kept = self.kept.lock().expect("nothing panics while it holds this");
        let now = self.clock.elapsed();
        let life = self.config.life;
        kept.drop_where(|place| life <= now.saturating_sub(place.since));
        act(&mut kept)
    }
}

impl Kept {
    fn drop_where(&mut self, gone: impl Fn(&Place) -> bool) {
        let freed = &mut self.bytes;
        self.shelf.retain(|place| {
            let goes = gone(place);
            if goes {
                *freed -= place.artifact.bytes();
            }
            !goes
        });
    }

    fn owned(&self, owner: &Owner) -> usize {
        let mine = self.shelf.iter().filter(|place| place.artifact.owner == *owner);
        mine.map(|place| place.artifact.bytes()).sum()
    }

    /// No artifact answers this call any more.
    fn supersede(&mut self, owner: &Owner, key: &str) {
        let same = |place: &&mut Place| place.artifact.owner == *owner && place.artifact.key == key;
        for place in self.shelf.iter_mut().filter(same) {
            place.attached = false;
        }
    }

    /// Takes out the least recently used artifact, of `owner` if one is given.
    fn evict(&mut self, owner: Option<&Owner>) -> bool {
        let matches = |place: &Place| owner.is_none_or(|owner| place.artifact.owner == *owner);
        let Some(at) = self.shelf.iter().position(matches) else { return false };
        let place = self.shelf.remove(at);
        self.bytes -= place.map_or(0, |place| place.artifact.bytes());
        true
    }
}

#[async_trait]
impl Store for Memory {
    async fn put(&self, artifact: Artifact) -> Result<Keeping, TooLong> {
        self.config.takes(&artifact)?;
        artifact.parts();
        let (bytes, since) = (artifact.bytes(), self.clock.elapsed());
        self.with(|kept| {
            while self.config.owner_bytes < kept.owned(&artifact.owner) + bytes
                && kept.evict(Some(&artifact.owner))
            {}
            while self.config.total_bytes < kept.bytes + bytes && kept.evict(None) {}
            kept.supersede(&artifact.owner, &artifact.key);
            kept.bytes += bytes;
            kept.shelf.push_back(Place { artifact: Arc::new(artifact), since, attached: true });
        });
        Ok(Keeping::InPlace)
    }

    async fn get(&self, owner: &Owner, handle: &str) -> Option<Arc<Artifact>> {
        self.with(|kept| {
            let mine = |place: &Place| {
                place.artifact.handle == handle && owner.opens(&place.artifact.owner)
            };
            let at = kept.shelf.iter().position(mine)?;
            let place = kept.shelf.remove(at)?;
            let artifact = Arc::clone(&place.artifact);
            kept.shelf.push_back(place);
            Some(artifact)
        })
    }

    async fn made_by(&self, owner: &Owner, key: &str) -> Option<Arc<Artifact>> {
        self.with(|kept| {
            let mine = |place: &&Place| {
                place.attached && place.artifact.key == key && place.artifact.owner == *owner
            };
            kept.shelf.iter().rev().find(mine).map(|place| Arc::clone(&place.artifact))
        })
    }

    async fn detach(&self, owner: &Owner, handle: &str) {
        self.with(|kept| {
            let mine = |place: &&mut Place| {
                place.artifact.handle == handle && place.artifact.owner == *owner
            };
            if let Some(place) = kept.shelf.iter_mut().find(mine) {
                place.attached = false;
            }
        });
    }

    async fn list(&self, owner: &Owner) -> Vec<Header> {
        let mut mine: Vec<Header> = self.with(|kept| {
            let mine = kept.shelf.iter().filter(|place| place.artifact.owner == *owner);
            mine.map(|place| place.artifact.header()).collect()
        });
        mine.sort_by_key(|header| std::cmp::Reverse(header.made));
        mine
    }
}

#[cfg(test)]
mod tests;
