//! A store of state in memory, which lasts as long as the process.
//!
//! Every result is ready at once, except for messages that are waited for. Expiry
//! and windows are measured by the monotonic side of the [`Clock`]. The number of
//! values, counters, lines and messages is limited.

mod counters;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use tokio::sync::{Notify, watch};
use tool::clock::Clock;

use crate::state::{
    BlobMeta, Blobs, Claim, Counters, Documents, Expiring, Lease, Leases, Lines, Messages,
    SingleUse, Spending, StateError, StateFuture, Version, Versioned, changes, check_size, later,
    ready,
};
use counters::Windows;

/// The limits of a store in memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum size of a document, value, blob or line.
    pub value_bytes: u64,
    /// The maximum number of single-use values, of expiring values and of counters.
    pub n_values: usize,
    /// The maximum number of lines in a log and of messages in a mailbox.
    pub n_lines: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { value_bytes: 64 << 20, n_values: 10_000, n_lines: 10_000 }
    }
}

/// A store in memory.
pub struct Memory {
    clock: Arc<dyn Clock>,
    limits: Limits,
    contents: Mutex<Contents>,
    /// Notified when a message was sent.
    sent: Notify,
}

#[derive(Default)]
struct Contents {
    documents: HashMap<String, Bytes>,
    watched: HashMap<String, watch::Sender<()>>,
    single_uses: ExpiringValues,
    expiring: ExpiringValues,
    windows: Windows,
    blobs: BTreeMap<(String, String), Bytes>,
    leases: HashMap<String, LeaseState>,
    logs: HashMap<String, VecDeque<Bytes>>,
    mailboxes: HashMap<String, VecDeque<(Bytes, Duration)>>,
}

/// The newest lease of a name, and until when it is held.
#[derive(Default)]
struct LeaseState {
    fence: u64,
    end: Duration,
}

impl Memory {
    pub fn new(clock: Arc<dyn Clock>, limits: Limits) -> Memory {
        Memory { clock, limits, contents: Mutex::default(), sent: Notify::new() }
    }

    /// Locks the contents. A panic under the lock leaves nothing half done.
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_size(&self, bytes: &Bytes) -> Result<(), StateError> {
        check_size(bytes.len(), self.limits.value_bytes)
    }
}

impl Documents for Memory {
    fn read<'a>(&'a self, name: &'a str, _: Duration) -> StateFuture<'a, Option<Versioned>> {
        let bytes = self.contents().documents.get(name).cloned();
        ready(Ok(bytes.map(|bytes| Versioned { version: Version::of_content(&bytes), bytes })))
    }

    fn swap<'a>(
        &'a self,
        name: &'a str,
        expected: Option<Version>,
        next: Option<Bytes>,
        _: Duration,
    ) -> StateFuture<'a, Option<Version>> {
        if let Some(Err(error)) = next.as_ref().map(|next| self.check_size(next)) {
            return ready(Err(error));
        }
        let mut contents = self.contents();
        if contents.documents.get(name).map(|bytes| Version::of_content(bytes)) != expected {
            return ready(Err(StateError::Conflict));
        }
        let changed = next.as_ref().map(|bytes| Version::of_content(bytes));
        match next {
            Some(bytes) => drop(contents.documents.insert(name.to_owned(), bytes)),
            None => drop(contents.documents.remove(name)),
        }
        if let Some(watched) = contents.watched.get(name) {
            watched.send_replace(());
        }
        ready(Ok(changed))
    }

    fn watch(&self, name: &str) -> BoxStream<'static, ()> {
        let mut contents = self.contents();
        contents.watched.retain(|_, watched| 0 < watched.receiver_count());
        let watched = contents.watched.entry(name.to_owned()).or_default().subscribe();
        drop(contents);
        changes(watched)
    }
}

impl SingleUse for Memory {
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        ttl: Duration,
        _: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = self.check_size(&value) {
            return ready(Err(error));
        }
        let now = self.clock.elapsed();
        let mut contents = self.contents();
        if contents.single_uses.get(key, now).is_some() {
            return ready(Err(StateError::Conflict));
        }
        contents.single_uses.put(key, value, now + ttl, self.limits.n_values);
        ready(Ok(()))
    }

    fn take<'a>(&'a self, key: &'a str, _: Duration) -> StateFuture<'a, Option<Bytes>> {
        let now = self.clock.elapsed();
        ready(Ok(self.contents().single_uses.remove(key, now)))
    }
}

impl Expiring for Memory {
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        ttl: Duration,
        _: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = self.check_size(&value) {
            return ready(Err(error));
        }
        let end = self.clock.elapsed() + ttl;
        self.contents().expiring.put(key, value, end, self.limits.n_values);
        ready(Ok(()))
    }

    fn get<'a>(&'a self, key: &'a str, _: Duration) -> StateFuture<'a, Option<Bytes>> {
        let now = self.clock.elapsed();
        ready(Ok(self.contents().expiring.get(key, now)))
    }

    fn append_at<'a>(
        &'a self,
        key: &'a str,
        at: u64,
        bytes: Bytes,
        ttl: Duration,
        _: Duration,
    ) -> StateFuture<'a, ()> {
        let now = self.clock.elapsed();
        let mut contents = self.contents();
        let before = contents.expiring.get(key, now).unwrap_or_default();
        if u64::try_from(before.len()) != Ok(at) {
            return ready(Err(StateError::Conflict));
        }
        let value = Bytes::from([before, bytes].concat());
        if let Err(error) = self.check_size(&value) {
            return ready(Err(error));
        }
        contents.expiring.put(key, value, now + ttl, self.limits.n_values);
        ready(Ok(()))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<Bytes>,
        next: Bytes,
        ttl: Duration,
        _: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = self.check_size(&next) {
            return ready(Err(error));
        }
        let now = self.clock.elapsed();
        let mut contents = self.contents();
        if contents.expiring.get(key, now) != expected {
            return ready(Err(StateError::Conflict));
        }
        contents.expiring.put(key, next, now + ttl, self.limits.n_values);
        ready(Ok(()))
    }

    fn touch<'a>(&'a self, key: &'a str, ttl: Duration, _: Duration) -> StateFuture<'a, bool> {
        let now = self.clock.elapsed();
        let mut contents = self.contents();
        let found = contents.expiring.remove(key, now);
        let is_there = found.is_some();
        if let Some(value) = found {
            contents.expiring.put(key, value, now + ttl, self.limits.n_values);
        }
        ready(Ok(is_there))
    }

    fn remove<'a>(&'a self, key: &'a str, _: Duration) -> StateFuture<'a, bool> {
        let now = self.clock.elapsed();
        ready(Ok(self.contents().expiring.remove(key, now).is_some()))
    }
}

impl Counters for Memory {
    fn spend<'a>(&'a self, claims: &'a [Claim<'a>], _: Duration) -> StateFuture<'a, Spending> {
        let now = self.clock.elapsed();
        let mut contents = self.contents();
        let judged = contents.windows.check(claims, now);
        if judged == Spending::Granted {
            contents.windows.spend(claims, now, self.limits.n_values);
        }
        ready(Ok(judged))
    }

    fn check<'a>(&'a self, claims: &'a [Claim<'a>], _: Duration) -> StateFuture<'a, Spending> {
        ready(Ok(self.contents().windows.check(claims, self.clock.elapsed())))
    }

    fn give_back<'a>(&'a self, claims: &'a [Claim<'a>], _: Duration) -> StateFuture<'a, ()> {
        self.contents().windows.give_back(claims);
        ready(Ok(()))
    }
}

impl Blobs for Memory {
    fn put<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        bytes: Bytes,
        _: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = self.check_size(&bytes) {
            return ready(Err(error));
        }
        self.contents().blobs.insert((owner.to_owned(), name.to_owned()), bytes);
        ready(Ok(()))
    }

    fn get<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        range: Range<u64>,
        _: Duration,
    ) -> StateFuture<'a, Bytes> {
        let contents = self.contents();
        let Some(bytes) = contents.blobs.get(&(owner.to_owned(), name.to_owned())) else {
            return ready(Err(StateError::Gone));
        };
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(bytes.len());
        let (start, end) = (at(range.start), at(range.end));
        ready(Ok(bytes.slice(start.min(end)..end)))
    }

    fn delete<'a>(&'a self, owner: &'a str, name: &'a str, _: Duration) -> StateFuture<'a, bool> {
        let key = (owner.to_owned(), name.to_owned());
        ready(Ok(self.contents().blobs.remove(&key).is_some()))
    }

    fn list<'a>(&'a self, owner: &'a str, _: Duration) -> StateFuture<'a, Vec<BlobMeta>> {
        let contents = self.contents();
        let mine = contents.blobs.range((owner.to_owned(), String::new())..);
        let mine = mine.take_while(|((other, _), _)| other == owner);
        let info = |((_, name), bytes): (&(String, String), &Bytes)| BlobMeta {
            name: name.clone(),
            n_bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        };
        ready(Ok(mine.map(info).collect()))
    }
}

impl Leases for Memory {
    fn acquire<'a>(&'a self, name: &'a str, ttl: Duration, _: Duration) -> StateFuture<'a, Lease> {
        let now = self.clock.elapsed();
        let mut contents = self.contents();
        let lease_state = contents.leases.entry(name.to_owned()).or_default();
        if now < lease_state.end {
            return ready(Err(StateError::Conflict));
        }
        lease_state.fence += 1;
        lease_state.end = now + ttl;
        ready(Ok(Lease { name: name.to_owned(), fence: lease_state.fence }))
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration, _: Duration) -> StateFuture<'a, ()> {
        let now = self.clock.elapsed();
        let mut contents = self.contents();
        match contents.leases.get_mut(&lease.name) {
            Some(lease_state) if lease_state.fence == lease.fence && now < lease_state.end => {
                lease_state.end = now + ttl;
                ready(Ok(()))
            }
            Some(_) | None => ready(Err(StateError::Gone)),
        }
    }

    fn release(&self, lease: Lease, _: Duration) -> StateFuture<'_, ()> {
        let mut contents = self.contents();
        if let Some(lease_state) = contents.leases.get_mut(&lease.name)
            && lease_state.fence == lease.fence
        {
            lease_state.end = Duration::ZERO;
        }
        ready(Ok(()))
    }
}

impl Lines for Memory {
    fn append<'a>(&'a self, log: &'a str, line: Bytes, _: Duration) -> StateFuture<'a, ()> {
        if let Err(error) = self.check_size(&line) {
            return ready(Err(error));
        }
        let mut contents = self.contents();
        let lines = contents.logs.entry(log.to_owned()).or_default();
        lines.push_back(line);
        if self.limits.n_lines < lines.len() {
            lines.pop_front();
        }
        ready(Ok(()))
    }

    fn last<'a>(
        &'a self,
        log: &'a str,
        n_lines: usize,
        _: Duration,
    ) -> StateFuture<'a, Vec<Bytes>> {
        let contents = self.contents();
        let lines = contents.logs.get(log).map(|lines| {
            let skipped = lines.len().saturating_sub(n_lines);
            lines.iter().skip(skipped).cloned().collect()
        });
        ready(Ok(lines.unwrap_or_default()))
    }
}

impl Messages for Memory {
    fn send<'a>(
        &'a self,
        mailbox: &'a str,
        message: Bytes,
        ttl: Duration,
        _: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = self.check_size(&message) {
            return ready(Err(error));
        }
        let now = self.clock.elapsed();
        let mut contents = self.contents();
        contents.mailboxes.retain(|_, waiting| waiting.back().is_some_and(|(_, end)| now < *end));
        let waiting = contents.mailboxes.entry(mailbox.to_owned()).or_default();
        waiting.push_back((message, now + ttl));
        if self.limits.n_lines < waiting.len() {
            waiting.pop_front();
        }
        self.sent.notify_waiters();
        ready(Ok(()))
    }

    fn receive<'a>(&'a self, mailbox: &'a str, wait: Duration) -> StateFuture<'a, Vec<Bytes>> {
        let take = move || {
            let now = self.clock.elapsed();
            let waiting = self.contents().mailboxes.remove(mailbox).unwrap_or_default();
            let alive = waiting.into_iter().filter(|(_, end)| now < *end);
            alive.map(|(message, _)| message).collect::<Vec<_>>()
        };
        if wait.is_zero() {
            return ready(Ok(take()));
        }
        later(async move {
            let arrived = async {
                loop {
                    let told = self.sent.notified();
                    let messages = take();
                    if !messages.is_empty() {
                        return messages;
                    }
                    told.await;
                }
            };
            Ok(tokio::time::timeout(wait, arrived).await.unwrap_or_default())
        })
    }
}

/// Values that expire, by key.
#[derive(Default)]
struct ExpiringValues {
    values: HashMap<String, (Bytes, Duration)>,
    /// The keys by the time at which their values expire.
    ends: BTreeSet<(Duration, String)>,
}

impl ExpiringValues {
    fn get(&mut self, key: &str, now: Duration) -> Option<Bytes> {
        let (value, end) = self.values.get(key)?;
        (now < *end).then(|| value.clone())
    }

    /// Stores a value. If there are too many, those that expire first are dropped.
    fn put(&mut self, key: &str, value: Bytes, end: Duration, max_values: usize) {
        self.drop(key);
        while max_values <= self.values.len() {
            let Some((_, first)) = self.ends.pop_first() else { break };
            self.values.remove(&first);
        }
        self.values.insert(key.to_owned(), (value, end));
        self.ends.insert((end, key.to_owned()));
    }

    fn remove(&mut self, key: &str, now: Duration) -> Option<Bytes> {
        let (value, end) = self.drop(key)?;
        (now < end).then_some(value)
    }

    fn drop(&mut self, key: &str) -> Option<(Bytes, Duration)> {
        let (key, (value, end)) = self.values.remove_entry(key)?;
        self.ends.remove(&(end, key));
        Some((value, end))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tool::clock::Fake;

    use super::*;
    use crate::conformance;

    #[tokio::test]
    async fn memory_does_what_every_store_does() {
        let clock = Arc::new(Fake::default());
        let advance = |by| clock.advance(by);
        let memory = Arc::new(Memory::new(Arc::clone(&clock) as _, Limits::default()));
        conformance::documents(&|| Arc::clone(&memory) as _).await;
        conformance::documents_changed_at_once(&|| Arc::clone(&memory) as _).await;
        conformance::documents_watched(&|| Arc::clone(&memory) as _).await;
        conformance::single_use(&|| Arc::clone(&memory) as _, &advance).await;
        conformance::single_use_taken_at_once(&|| Arc::clone(&memory) as _).await;
        conformance::expiring(&|| Arc::clone(&memory) as _, &advance).await;
        conformance::expiring_appended_at_once(&|| Arc::clone(&memory) as _).await;
        conformance::counters(&*memory, &advance).await;
        conformance::counters_spent_at_once(&*memory).await;
        conformance::blobs(&|| Arc::clone(&memory) as _).await;
        conformance::leases(&|| Arc::clone(&memory) as _, &advance).await;
        conformance::leases_acquired_at_once(&|| Arc::clone(&memory) as _).await;
        conformance::lines(&|| Arc::clone(&memory) as _).await;
        conformance::messages(&|| Arc::clone(&memory) as _, &advance).await;
    }

    #[test]
    fn what_ends_first_makes_room() {
        let limits = Limits { n_values: 2, ..Limits::default() };
        let memory = Memory::new(Arc::new(Fake::default()), limits);
        for (key, seconds) in [("a", 20), ("b", 10), ("c", 30)] {
            let ttl = Duration::from_secs(seconds);
            let put = Expiring::put(&memory, key, Bytes::from_static(b"x"), ttl, Duration::ZERO);
            assert_eq!(put.now_or_never(), Some(Ok(())), "memory is always ready");
        }
        let is_there = |key: &str| {
            let got = Expiring::get(&memory, key, Duration::ZERO).now_or_never().unwrap();
            got.unwrap().is_some()
        };
        assert_eq!(["a", "b", "c"].map(is_there), [true, false, true]);
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let limits = Limits { value_bytes: 3, ..Limits::default() };
        let memory = Memory::new(Arc::new(Fake::default()), limits);
        let put = Blobs::put(&memory, "o", "b", Bytes::from_static(b"four"), Duration::ZERO);
        assert_eq!(put.now_or_never(), Some(Err(StateError::TooLarge { limit: 3 })));
    }
}
