//! The family of traits that every store of state implements.
//!
//! Each trait is one need: a [document](Documents) that many change, something
//! to [use once](SingleUse), a [counter in a window](Counters), a [value that
//! expires](Expiring), [large bytes](Blobs), a [lease](Leases), an [append-only
//! line](Lines), a [message](Messages) to another replica. Files and memory implement them here; a server that several
//! machines share can implement them as well. Who keeps something speaks its
//! own words and translates them into these names and bytes.
//!
//! Every operation ends within the time that its caller gives it, and fails in
//! one of four ways ([`StateError`]). What is at hand is answered at once,
//! without an allocation: see [`StateFuture`]. Stores know nothing of tools and
//! callers.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, Either, Ready};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tokio::sync::watch;

/// The answer of a store: ready, or on its way.
pub type StateFuture<'a, T> =
    Either<Ready<Result<T, StateError>>, BoxFuture<'a, Result<T, StateError>>>;

/// An answer that is at hand.
pub fn ready<'a, T>(answer: Result<T, StateError>) -> StateFuture<'a, T> {
    Either::Left(futures::future::ready(answer))
}

/// An answer that has to be waited for.
pub fn later<'a, T>(
    answer: impl Future<Output = Result<T, StateError>> + Send + 'a,
) -> StateFuture<'a, T> {
    Either::Right(Box::pin(answer))
}

/// Why a store did not do what was asked. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Try again later; it may have been done all the same.
    #[error("the store cannot be used: {reason}")]
    Unavailable { reason: String },
    /// Somebody else was quicker: look again, then decide.
    #[error("somebody else changed or holds it")]
    Conflict,
    /// It will never fit.
    #[error("it is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    /// It was there and is not any more.
    #[error("it is gone")]
    Gone,
}

impl StateError {
    pub fn unavailable(reason: impl std::fmt::Display) -> StateError {
        StateError::Unavailable { reason: reason.to_string() }
    }
}

/// What tells one state of a document from another. Only its store reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version([u8; 32]);

impl Version {
    /// The version of a document that holds these bytes. Two documents that hold
    /// the same are the same to everybody who changes them by a pure function.
    pub fn of(bytes: &[u8]) -> Version {
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

/// What is to become of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Keep,
    Replace(Bytes),
    Remove,
}

/// Documents that many may change. A name is a relative path without `..`.
pub trait Documents: Send + Sync {
    fn read<'a>(&'a self, name: &'a str, within: Duration) -> StateFuture<'a, Option<Versioned>>;

    /// Puts `next` in the place of the document (`None` removes it), if it is
    /// still as `expected` (`None`: not there). A [`StateError::Conflict`] when
    /// it is not. Gives the version that it has then.
    fn swap<'a>(
        &'a self,
        name: &'a str,
        expected: Option<Version>,
        next: Option<Bytes>,
        within: Duration,
    ) -> StateFuture<'a, Option<Version>>;

    /// Says when the document may have changed, whoever changed it: at least
    /// once after each change, and once for several that come together.
    fn watch(&self, name: &str) -> BoxStream<'static, ()>;
}

/// Changes a document by a pure function, which is asked again when somebody
/// else was quicker. Gives the document as it is then.
pub async fn change<E: From<StateError>>(
    documents: &dyn Documents,
    name: &str,
    within: Duration,
    mut decide: impl FnMut(Option<&[u8]>) -> Result<Change, E>,
) -> Result<Option<Versioned>, E> {
    let end = Deadline::after(within);
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
            // Whenever one is refused another one was let through.
            Err(StateError::Conflict) if !end.left().is_zero() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Things that may be used once.
pub trait SingleUse: Send + Sync {
    /// Keeps `value` for its life. A [`StateError::Conflict`] when there is one
    /// of that key already.
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, ()>;

    /// Gives the value to exactly one of all who ask; `None` to the others.
    fn take<'a>(&'a self, key: &'a str, within: Duration) -> StateFuture<'a, Option<Bytes>>;
}

/// Values that expire.
pub trait Expiring: Send + Sync {
    /// Keeps `value` for its life, in the place of one that may be there.
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, ()>;

    fn get<'a>(&'a self, key: &'a str, within: Duration) -> StateFuture<'a, Option<Bytes>>;

    /// Gives a value a new life from now; whether it is there.
    fn touch<'a>(&'a self, key: &'a str, life: Duration, within: Duration)
    -> StateFuture<'a, bool>;

    /// Whether there was one.
    fn remove<'a>(&'a self, key: &'a str, within: Duration) -> StateFuture<'a, bool>;
}

/// What is to be spent of one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    pub key: &'a str,
    pub amount: u32,
    /// The most that may be spent within the window.
    pub limit: u32,
    /// How long what is spent counts; for good when `None`.
    pub window: Option<Duration>,
}

/// Whether claims were granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spending {
    Granted,
    /// Nothing was spent, because of the claim at this place. Waiting does not
    /// help when `retry_after` is `None`.
    Refused {
        at: usize,
        retry_after: Option<Duration>,
    },
}

/// What the keys of claims that are spent together have in common: everything
/// before the first `/`. A store may keep counters of one tag in one place.
pub fn tag(key: &str) -> &str {
    key.split('/').next().unwrap_or(key)
}

/// Counters in windows of time. The store's clock decides. All claims of one
/// operation have the same [`tag`].
pub trait Counters: Send + Sync {
    /// Spends all of the claims, or none.
    fn spend<'a>(&'a self, claims: &'a [Claim<'a>], within: Duration) -> StateFuture<'a, Spending>;

    /// What [`Counters::spend`] would say, without spending anything.
    fn look<'a>(&'a self, claims: &'a [Claim<'a>], within: Duration) -> StateFuture<'a, Spending>;

    /// Gives back what was spent last.
    fn give_back<'a>(&'a self, claims: &'a [Claim<'a>], within: Duration) -> StateFuture<'a, ()>;
}

/// What is known of a blob without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobInfo {
    pub name: String,
    pub n_bytes: u64,
}

/// Bytes that may be large. Each belongs to an owner.
pub trait Blobs: Send + Sync {
    /// Keeps a blob, in the place of one that may be there.
    fn put<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        bytes: Bytes,
        within: Duration,
    ) -> StateFuture<'a, ()>;

    /// The part of a blob that lies in `range`; [`StateError::Gone`] when there
    /// is no such blob.
    fn get<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        range: Range<u64>,
        within: Duration,
    ) -> StateFuture<'a, Bytes>;

    /// Whether there was one.
    fn delete<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        within: Duration,
    ) -> StateFuture<'a, bool>;

    /// What an owner has, by name.
    fn list<'a>(&'a self, owner: &'a str, within: Duration) -> StateFuture<'a, Vec<BlobInfo>>;
}

/// The right to do something alone for a while.
#[derive(Debug, PartialEq, Eq)]
pub struct Lease {
    pub name: String,
    /// Grows with every lease of that name: what carries a smaller number than
    /// the newest that was seen comes from somebody who lost the lease.
    pub fence: u64,
}

/// Leases: at most one holder of each name at a time.
pub trait Leases: Send + Sync {
    /// A [`StateError::Conflict`] while somebody else holds it.
    fn acquire<'a>(
        &'a self,
        name: &'a str,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, Lease>;

    /// Holds it for another `life` from now; [`StateError::Gone`] when it was
    /// lost.
    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, ()>;

    /// Lets go of it, if it is still held.
    fn release(&self, lease: Lease, within: Duration) -> StateFuture<'_, ()>;
}

/// Logs of lines that are only ever added to. The oldest go when it gets long.
pub trait Lines: Send + Sync {
    /// Adds a line, which holds no line break.
    fn append<'a>(&'a self, log: &'a str, line: Bytes, within: Duration) -> StateFuture<'a, ()>;

    /// The last lines, oldest first, as far as they are kept.
    fn last<'a>(
        &'a self,
        log: &'a str,
        n_lines: usize,
        within: Duration,
    ) -> StateFuture<'a, Vec<Bytes>>;
}

/// Messages to others, such as another replica. A mailbox has one receiver; what
/// was received is not received again.
pub trait Messages: Send + Sync {
    /// Puts a message into a mailbox, where it waits for its life at most. The
    /// oldest go when too many wait.
    fn send<'a>(
        &'a self,
        mailbox: &'a str,
        message: Bytes,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, ()>;

    /// Takes what is in a mailbox, in the order in which it was sent. Waits that
    /// long for a message when there is none, and not at all for zero.
    fn receive<'a>(&'a self, mailbox: &'a str, wait: Duration) -> StateFuture<'a, Vec<Bytes>>;
}

/// The changes that a channel tells of from now on.
pub fn changes(watched: watch::Receiver<()>) -> BoxStream<'static, ()> {
    let next = |mut watched: watch::Receiver<()>| async move {
        watched.changed().await.ok().map(|()| ((), watched))
    };
    futures::stream::unfold(watched, next).boxed()
}

/// Whether so many bytes are within a limit.
pub fn fits(n_bytes: usize, limit: u64) -> Result<(), StateError> {
    match u64::try_from(n_bytes).is_ok_and(|n_bytes| n_bytes <= limit) {
        true => Ok(()),
        false => Err(StateError::TooLarge { limit }),
    }
}

/// Waits for an answer in code that is not async: in commands, and in threads
/// of their own. Whoever calls this on a runtime thread holds it up.
pub fn wait<T: Send>(answer: impl Future<Output = T> + Send) -> T {
    // Away from a runtime nothing is left for later.
    let ready = move || answer.now_or_never().expect("everything is done at once here");
    match tokio::runtime::Handle::try_current() {
        Err(_) => ready(),
        Ok(_) => std::thread::scope(|scope| match scope.spawn(ready).join() {
            Ok(answer) => answer,
            Err(panic) => std::panic::resume_unwind(panic),
        }),
    }
}

/// When an operation has to be over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(std::time::Instant, Duration);

impl Deadline {
    pub(crate) fn after(within: Duration) -> Deadline {
        Deadline(std::time::Instant::now(), within)
    }

    pub(crate) fn left(&self) -> Duration {
        self.1.saturating_sub(self.0.elapsed())
    }
}
