//! State that lasts as long as the process.
//!
//! Nothing here waits, so every answer is ready. Lifetimes and windows are measured
//! by the [`Clock`] as it runs in this process, which never jumps. What there may
//! be many of is bounded.

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
    BlobInfo, Blobs, Claim, Counters, Documents, Expiring, Lease, Leases, Lines, Messages,
    SingleUse, Spending, StateError, StateFuture, Version, Versioned, changes, fits, later, ready,
};
use counters::Windows;

/// What memory may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest document, value, blob or line.
    pub value_bytes: u64,
    /// How many single uses, expiring values and counters there may be, each.
    pub n_values: usize,
    /// How many lines a log keeps.
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
    held: Mutex<Held>,
    /// Told when a message was sent.
    sent: Notify,
}

#[derive(Default)]
struct Held {
    documents: HashMap<String, Bytes>,
    watched: HashMap<String, watch::Sender<()>>,
    single_uses: Values,
    expiring: Values,
    windows: Windows,
    blobs: BTreeMap<(String, String), Bytes>,
    leases: HashMap<String, Holding>,
    logs: HashMap<String, VecDeque<Bytes>>,
    mailboxes: HashMap<String, VecDeque<(Bytes, Duration)>>,
}

/// The newest lease of a name, and until when it is held.
#[derive(Default)]
struct Holding {
    fence: u64,
    end: Duration,
}

impl Memory {
    pub fn new(clock: Arc<dyn Clock>, limits: Limits) -> Memory {
        Memory { clock, limits, held: Mutex::default(), sent: Notify::new() }
    }

    /// Nothing that is kept under this lock is half done when somebody panics.
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fits(&self, bytes: &Bytes) -> Result<(), StateError> {
        fits(bytes.len(), self.limits.value_bytes)
    }
}

impl Documents for Memory {
    fn read<'a>(&'a self, name: &'a str, _: Duration) -> StateFuture<'a, Option<Versioned>> {
        let bytes = self.held().documents.get(name).cloned();
        ready(Ok(bytes.map(|bytes| Versioned { version: Version::of(&bytes), bytes })))
    }

    fn swap<'a>(
        &'a self,
        name: &'a str,
        expected: Option<Version>,
        next: Option<Bytes>,
        _: Duration,
    ) -> StateFuture<'a, Option<Version>> {
        if let Some(Err(error)) = next.as_ref().map(|next| self.fits(next)) {
            return ready(Err(error));
        }
        let mut held = self.held();
        if held.documents.get(name).map(|bytes| Version::of(bytes)) != expected {
            return ready(Err(StateError::Conflict));
        }
        let changed = next.as_ref().map(|bytes| Version::of(bytes));
        match next {
            Some(bytes) => drop(held.documents.insert(name.to_owned(), bytes)),
            None => drop(held.documents.remove(name)),
        }
        if let Some(watched) = held.watched.get(name) {
            watched.send_replace(());
        }
        ready(Ok(changed))
    }

    fn watch(&self, name: &str) -> BoxStream<'static, ()> {
        let mut held = self.held();
        held.watched.retain(|_, watched| 0 < watched.receiver_count());
        let watched = held.watched.entry(name.to_owned()).or_default().subscribe();
        drop(held);
        changes(watched)
    }
}

impl SingleUse for Memory {
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        life: Duration,
        _: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = self.fits(&value) {
            return ready(Err(error));
        }
        let now = self.clock.elapsed();
        let mut held = self.held();
        if held.single_uses.get(key, now).is_some() {
            return ready(Err(StateError::Conflict));
        }
        held.single_uses.put(key, value, now + life, self.limits.n_values);
        ready(Ok(()))
    }

    fn take<'a>(&'a self, key: &'a str, _: Duration) -> StateFuture<'a, Option<Bytes>> {
        let now = self.clock.elapsed();
        ready(Ok(self.held().single_uses.remove(key, now)))
    }
}

impl Expiring for Memory {
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        life: Duration,
        _: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = self.fits(&value) {
            return ready(Err(error));
        }
        let end = self.clock.elapsed() + life;
        self.held().expiring.put(key, value, end, self.limits.n_values);
        ready(Ok(()))
    }

    fn get<'a>(&'a self, key: &'a str, _: Duration) -> StateFuture<'a, Option<Bytes>> {
        let now = self.clock.elapsed();
        ready(Ok(self.held().expiring.get(key, now)))
    }

    fn touch<'a>(&'a self, key: &'a str, life: Duration, _: Duration) -> StateFuture<'a, bool> {
        let now = self.clock.elapsed();
        let mut held = self.held();
        let found = held.expiring.remove(key, now);
        let is_there = found.is_some();
        if let Some(value) = found {
            held.expiring.put(key, value, now + life, self.limits.n_values);
        }
        ready(Ok(is_there))
    }

    fn remove<'a>(&'a self, key: &'a str, _: Duration) -> StateFuture<'a, bool> {
        let now = self.clock.elapsed();
        ready(Ok(self.held().expiring.remove(key, now).is_some()))
    }
}

impl Counters for Memory {
    fn spend<'a>(&'a self, claims: &'a [Claim<'a>], _: Duration) -> StateFuture<'a, Spending> {
        let now = self.clock.elapsed();
        let mut held = self.held();
        let judged = held.windows.look(claims, now);
        if judged == Spending::Granted {
            held.windows.spend(claims, now, self.limits.n_values);
        }
        ready(Ok(judged))
    }

    fn look<'a>(&'a self, claims: &'a [Claim<'a>], _: Duration) -> StateFuture<'a, Spending> {
        ready(Ok(self.held().windows.look(claims, self.clock.elapsed())))
    }

    fn give_back<'a>(&'a self, claims: &'a [Claim<'a>], _: Duration) -> StateFuture<'a, ()> {
        self.held().windows.give_back(claims);
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
        if let Err(error) = self.fits(&bytes) {
            return ready(Err(error));
        }
        self.held().blobs.insert((owner.to_owned(), name.to_owned()), bytes);
        ready(Ok(()))
    }

    fn get<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        range: Range<u64>,
        _: Duration,
    ) -> StateFuture<'a, Bytes> {
        let held = self.held();
        let Some(bytes) = held.blobs.get(&(owner.to_owned(), name.to_owned())) else {
            return ready(Err(StateError::Gone));
        };
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(bytes.len());
        let (start, end) = (at(range.start), at(range.end));
        ready(Ok(bytes.slice(start.min(end)..end)))
    }

    fn delete<'a>(&'a self, owner: &'a str, name: &'a str, _: Duration) -> StateFuture<'a, bool> {
        let key = (owner.to_owned(), name.to_owned());
        ready(Ok(self.held().blobs.remove(&key).is_some()))
    }

    fn list<'a>(&'a self, owner: &'a str, _: Duration) -> StateFuture<'a, Vec<BlobInfo>> {
        let held = self.held();
        let mine = held.blobs.range((owner.to_owned(), String::new())..);
        let mine = mine.take_while(|((other, _), _)| other == owner);
        let info = |((_, name), bytes): (&(String, String), &Bytes)| BlobInfo {
            name: name.clone(),
            n_bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        };
        ready(Ok(mine.map(info).collect()))
    }
}

impl Leases for Memory {
    fn acquire<'a>(&'a self, name: &'a str, life: Duration, _: Duration) -> StateFuture<'a, Lease> {
        let now = self.clock.elapsed();
        let mut held = self.held();
        let holding = held.leases.entry(name.to_owned()).or_default();
        if now < holding.end {
            return ready(Err(StateError::Conflict));
        }
        holding.fence += 1;
        holding.end = now + life;
        ready(Ok(Lease { name: name.to_owned(), fence: holding.fence }))
    }

    fn renew<'a>(&'a self, lease: &'a Lease, life: Duration, _: Duration) -> StateFuture<'a, ()> {
        let now = self.clock.elapsed();
        let mut held = self.held();
        match held.leases.get_mut(&lease.name) {
            Some(holding) if holding.fence == lease.fence && now < holding.end => {
                holding.end = now + life;
                ready(Ok(()))
            }
            Some(_) | None => ready(Err(StateError::Gone)),
        }
    }

    fn release(&self, lease: Lease, _: Duration) -> StateFuture<'_, ()> {
        let mut held = self.held();
        if let Some(holding) = held.leases.get_mut(&lease.name)
            && holding.fence == lease.fence
        {
            holding.end = Duration::ZERO;
        }
        ready(Ok(()))
    }
}

impl Lines for Memory {
    fn append<'a>(&'a self, log: &'a str, line: Bytes, _: Duration) -> StateFuture<'a, ()> {
        if let Err(error) = self.fits(&line) {
            return ready(Err(error));
        }
        let mut held = self.held();
        let lines = held.logs.entry(log.to_owned()).or_default();
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
        let held = self.held();
        let lines = held.logs.get(log).map(|lines| {
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
        life: Duration,
        _: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = self.fits(&message) {
            return ready(Err(error));
        }
        let now = self.clock.elapsed();
        let mut held = self.held();
        held.mailboxes.retain(|_, waiting| waiting.back().is_some_and(|(_, end)| now < *end));
        let waiting = held.mailboxes.entry(mailbox.to_owned()).or_default();
        waiting.push_back((message, now + life));
        if self.limits.n_lines < waiting.len() {
            waiting.pop_front();
        }
        self.sent.notify_waiters();
        ready(Ok(()))
    }

    fn receive<'a>(&'a self, mailbox: &'a str, wait: Duration) -> StateFuture<'a, Vec<Bytes>> {
        let take = move || {
            let now = self.clock.elapsed();
            let waiting = self.held().mailboxes.remove(mailbox).unwrap_or_default();
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

/// Values that end, by key.
#[derive(Default)]
struct Values {
    values: HashMap<String, (Bytes, Duration)>,
    /// The same by when they end.
    ends: BTreeSet<(Duration, String)>,
}

impl Values {
    fn get(&mut self, key: &str, now: Duration) -> Option<Bytes> {
        let (value, end) = self.values.get(key)?;
        (now < *end).then(|| value.clone())
    }

    /// Keeps a value. What ends first makes room where there is none.
    fn put(&mut self, key: &str, value: Bytes, end: Duration, most: usize) {
        self.drop(key);
        while most <= self.values.len() {
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
            let life = Duration::from_secs(seconds);
            let put = Expiring::put(&memory, key, Bytes::from_static(b"x"), life, Duration::ZERO);
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
