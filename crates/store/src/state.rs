//! The traits that every store of state implements.
//!
//! Each trait is one need: a [document](Documents) that many change, a value to
//! [use once](SingleUse), a [counter in a window](Counters), a [value that
//! expires](Expiring), [large bytes](Blobs), a [lease](Leases), an [append-only
//! log](Lines), a [message](Messages) to another replica. Files and memory
//! implement them in this crate, a server that several replicas share in another.
//! All of them store bytes under names; users of a store encode their own types.
//!
//! Every operation ends within the `timeout` that its caller gives, and fails in
//! one of four ways ([`StateError`]). An answer from memory is ready at once,
//! without an allocation: see [`StateFuture`]. Stores do not know tools or callers.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, Either, Ready};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tokio::sync::watch;

/// The result of a store operation: ready, or to be awaited.
pub type StateFuture<'a, T> =
    Either<Ready<Result<T, StateError>>, BoxFuture<'a, Result<T, StateError>>>;

/// Returns a result that is ready.
pub fn ready<'a, T>(answer: Result<T, StateError>) -> StateFuture<'a, T> {
    Either::Left(futures::future::ready(answer))
}

/// Returns a result that has to be awaited.
pub fn later<'a, T>(
    answer: impl Future<Output = Result<T, StateError>> + Send + 'a,
) -> StateFuture<'a, T> {
    Either::Right(Box::pin(answer))
}

/// Why a store operation failed. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Try again later; the operation may have been carried out all the same.
    #[error("the store cannot be used: {reason}")]
    Unavailable { reason: String },
    /// Somebody else was quicker: read the new state, then decide again.
    #[error("somebody else changed or holds it")]
    Conflict,
    /// The value is larger than the store allows.
    #[error("it is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    /// The blob, lease or value does not exist any more.
    #[error("it is gone")]
    Gone,
}

impl StateError {
    pub fn unavailable(reason: impl std::fmt::Display) -> StateError {
        StateError::Unavailable { reason: reason.to_string() }
    }
}

/// The version of a document: a digest of its content.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version([u8; 32]);

impl Version {
    /// Returns the version of a document with this content. A document that changes
    /// and changes back has its old version again, which does not matter to those
    /// who change it by a pure function.
    pub fn of_content(bytes: &[u8]) -> Version {
        let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
        let mut version = [0; 32];
        version.copy_from_slice(digest.as_ref());
        Version(version)
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Version {
        Version(bytes)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A document as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    pub bytes: Bytes,
    pub version: Version,
}

/// What to do with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Keep,
    Replace(Bytes),
    Remove,
}

/// Documents that many may change. A name is a relative path without `..`.
pub trait Documents: Send + Sync {
    fn read<'a>(&'a self, name: &'a str, timeout: Duration) -> StateFuture<'a, Option<Versioned>>;

    /// Replaces the document by `next` (`None` removes it) if its version is still
    /// `expected` (`None`: it does not exist); [`StateError::Conflict`] if it is not.
    /// Returns the new version.
    fn swap<'a>(
        &'a self,
        name: &'a str,
        expected: Option<Version>,
        next: Option<Bytes>,
        timeout: Duration,
    ) -> StateFuture<'a, Option<Version>>;

    /// Returns a stream with an item whenever the document may have changed, whoever
    /// changed it. Several changes may give one item.
    fn watch(&self, name: &str) -> BoxStream<'static, ()>;
}

/// Changes a document by a pure function, which is called again if somebody else
/// was quicker. Returns the document after the change.
pub async fn change<E: From<StateError>>(
    documents: &dyn Documents,
    name: &str,
    timeout: Duration,
    mut decide: impl FnMut(Option<&[u8]>) -> Result<Change, E>,
) -> Result<Option<Versioned>, E> {
    let end = Deadline::after(timeout);
    loop {
        let before = documents.read(name, end.left()).await?;
        let next = match decide(before.as_ref().map(|before| before.bytes.as_ref()))? {
            Change::Keep => return Ok(before),
            Change::Replace(bytes) => Some(bytes),
            Change::Remove => None,
        };
        let expected = before.map(|before| before.version);
        match documents.swap(name, expected, next.clone(), end.left()).await {
            Ok(version) => {
                let pair = next.zip(version);
                return Ok(pair.map(|(bytes, version)| Versioned { bytes, version }));
            }
            // Try again: a conflict means that somebody else made progress.
            Err(StateError::Conflict) if !end.left().is_zero() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Values that can be taken once, such as authorization codes.
pub trait SingleUse: Send + Sync {
    /// Stores `value` for `ttl`; [`StateError::Conflict`] if the key has a value.
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()>;

    /// Removes the value and returns it to exactly one caller; `None` to all others.
    fn take<'a>(&'a self, key: &'a str, timeout: Duration) -> StateFuture<'a, Option<Bytes>>;
}

/// Values that expire.
pub trait Expiring: Send + Sync {
    /// Stores `value` for `ttl`, replacing the value that the key may have.
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()>;

    fn get<'a>(&'a self, key: &'a str, timeout: Duration) -> StateFuture<'a, Option<Bytes>>;

    /// Adds `bytes` to a value that has exactly `at` bytes (0: there is none), and lets
    /// it live for `ttl` from now on; [`StateError::Conflict`] if it has more or fewer.
    /// So of several who add to what they read, one does.
    fn append_at<'a>(
        &'a self,
        key: &'a str,
        at: u64,
        bytes: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()>;

    /// Replaces a value that is still `expected` (`None`: there is none) by `next`, which
    /// lives for `ttl`; [`StateError::Conflict`] if it is another.
    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<Bytes>,
        next: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()>;

    /// Lets a value live for `ttl` from now on; returns whether there is one.
    fn touch<'a>(&'a self, key: &'a str, ttl: Duration, timeout: Duration)
    -> StateFuture<'a, bool>;

    /// Removes a value; returns whether there was one.
    fn remove<'a>(&'a self, key: &'a str, timeout: Duration) -> StateFuture<'a, bool>;
}

/// An amount to spend from one counter, and the limit of that counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    pub key: &'a str,
    pub amount: u32,
    /// The most that may be spent within the window.
    pub limit: u32,
    /// How long a spent amount counts; for ever if `None`.
    pub window: Option<Duration>,
}

/// Whether claims were granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spending {
    Granted,
    /// Nothing was spent, because this claim is over its limit. Waiting does not
    /// help if `retry_after` is `None`.
    Refused {
        claim_index: usize,
        retry_after: Option<Duration>,
    },
}

/// Returns the part of a key before the first `/`. Claims that are spent together
/// have the same tag, so a cluster can keep their counters on one node.
pub fn tag(key: &str) -> &str {
    key.split('/').next().unwrap_or(key)
}

/// Counters over sliding windows of time, by the store's own clock. All claims of
/// one operation must have the same [`tag`].
pub trait Counters: Send + Sync {
    /// Spends all of the claims, or none.
    fn spend<'a>(&'a self, claims: &'a [Claim<'a>], timeout: Duration)
    -> StateFuture<'a, Spending>;

    /// Returns what [`Counters::spend`] would return, without spending anything.
    fn check<'a>(&'a self, claims: &'a [Claim<'a>], timeout: Duration)
    -> StateFuture<'a, Spending>;

    /// Takes back the claims that were spent last.
    fn give_back<'a>(&'a self, claims: &'a [Claim<'a>], timeout: Duration) -> StateFuture<'a, ()>;
}

/// The name and size of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobMeta {
    pub name: String,
    pub n_bytes: u64,
}

impl BlobMeta {
    /// Encodes any name as one that is legal for files and objects.
    pub fn encode_name(name: &str) -> String {
        tool::hex::encode(name.as_bytes())
    }

    /// Creates the entry of a blob from its [encoded](BlobMeta::encode_name) name;
    /// `None` if that is not the name of a blob.
    pub fn decode(encoded: &str, n_bytes: u64) -> Option<BlobMeta> {
        let name = String::from_utf8(tool::hex::decode(encoded)?).ok()?;
        Some(BlobMeta { name, n_bytes })
    }

    /// Collects entries, sorted by name.
    pub fn sorted(entries: impl Iterator<Item = BlobMeta>) -> Vec<BlobMeta> {
        let mut entries: Vec<BlobMeta> = entries.collect();
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        entries
    }
}

/// Values that may be large. Each belongs to an owner.
pub trait Blobs: Send + Sync {
    /// Stores a blob, replacing one of that name.
    fn put<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        bytes: Bytes,
        timeout: Duration,
    ) -> StateFuture<'a, ()>;

    /// Returns the bytes of a blob in `range`; [`StateError::Gone`] if there is no
    /// such blob.
    fn get<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        range: Range<u64>,
        timeout: Duration,
    ) -> StateFuture<'a, Bytes>;

    /// Deletes a blob; returns whether there was one.
    fn delete<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        timeout: Duration,
    ) -> StateFuture<'a, bool>;

    /// Lists the blobs of an owner, sorted by name.
    fn list<'a>(&'a self, owner: &'a str, timeout: Duration) -> StateFuture<'a, Vec<BlobMeta>>;
}

/// The exclusive right to do something for a limited time.
#[derive(Debug, PartialEq, Eq)]
pub struct Lease {
    pub name: String,
    /// The fencing token: it grows with every lease of that name, so a request with
    /// a smaller one comes from somebody who lost the lease.
    pub fence: u64,
}

/// Leases: at most one holder of each name at a time.
pub trait Leases: Send + Sync {
    /// Takes the lease for `ttl`; [`StateError::Conflict`] while somebody holds it.
    fn acquire<'a>(
        &'a self,
        name: &'a str,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, Lease>;

    /// Extends the lease to `ttl` from now; [`StateError::Gone`] if it was lost.
    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()>;

    /// Ends the lease, if it is still held.
    fn release(&self, lease: Lease, timeout: Duration) -> StateFuture<'_, ()>;
}

/// Append-only logs of lines. The oldest lines of a long log are dropped.
pub trait Lines: Send + Sync {
    /// Appends a line, which must not contain a line end.
    fn append<'a>(&'a self, log: &'a str, line: Bytes, timeout: Duration) -> StateFuture<'a, ()>;

    /// Returns the last lines that are still there, oldest first.
    fn last<'a>(
        &'a self,
        log: &'a str,
        n_lines: usize,
        timeout: Duration,
    ) -> StateFuture<'a, Vec<Bytes>>;
}

/// Messages to other replicas. A mailbox has one receiver, and each message is
/// received once.
pub trait Messages: Send + Sync {
    /// Puts a message into a mailbox, where it waits for at most `ttl`. The oldest
    /// are dropped if too many wait.
    fn send<'a>(
        &'a self,
        mailbox: &'a str,
        message: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()>;

    /// Takes all messages out of a mailbox, in the order in which they were sent.
    /// Waits at most `wait` for one if there is none.
    fn receive<'a>(&'a self, mailbox: &'a str, wait: Duration) -> StateFuture<'a, Vec<Bytes>>;
}

/// Makes a stream of the notifications of a watch channel.
pub fn changes(watched: watch::Receiver<()>) -> BoxStream<'static, ()> {
    let next = |mut watched: watch::Receiver<()>| async move {
        watched.changed().await.ok().map(|()| ((), watched))
    };
    futures::stream::unfold(watched, next).boxed()
}

/// Fails if so many bytes are over the limit.
pub fn check_size(n_bytes: usize, limit: u64) -> Result<(), StateError> {
    match u64::try_from(n_bytes).is_ok_and(|n_bytes| n_bytes <= limit) {
        true => Ok(()),
        false => Err(StateError::TooLarge { limit }),
    }
}

/// Waits for a store operation in code that is not async: in commands, and in
/// threads of their own. It blocks the thread, so it is not for runtime threads.
pub fn wait<T: Send>(answer: impl Future<Output = T> + Send) -> T {
    // Outside of a runtime the stores of this crate do everything at once.
    let ready = move || answer.now_or_never().expect("everything is done at once here");
    match tokio::runtime::Handle::try_current() {
        Err(_) => ready(),
        Ok(_) => std::thread::scope(|scope| match scope.spawn(ready).join() {
            Ok(answer) => answer,
            Err(panic) => std::panic::resume_unwind(panic),
        }),
    }
}

/// The time at which an operation has to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(std::time::Instant, Duration);

impl Deadline {
    pub(crate) fn after(timeout: Duration) -> Deadline {
        Deadline(std::time::Instant::now(), timeout)
    }

    pub(crate) fn left(&self) -> Duration {
        self.1.saturating_sub(self.0.elapsed())
    }
}
