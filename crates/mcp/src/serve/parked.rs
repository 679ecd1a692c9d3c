//! Calls that wait until their client continues them.
//!
//! A modern client cannot be asked while its request is open. When a provider
//! asks something of it, the call is put aside here, the client gets the
//! questions together with a state that names the call, and its next request
//! takes the call up again. The state is authenticated, good for one caller and
//! one question, for a short time; the number of parked calls is bounded, and
//! the oldest of whoever has the most gives way.
//!
//! A provider may park calls in the same way, being a gatelet like us. Its states
//! would be taken for ours when they come back, so they are marked on their way
//! out: one mark for every gatelet that they pass.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use sha2::Sha256;
use tokio::time::Instant;
use tool::{Json, Reply};

use super::channel::ClientChannel;

/// The answer that is being made.
pub(crate) type Call = BoxFuture<'static, Reply>;

/// How states of ours begin; every other one belongs to the provider.
const PREFIX: &str = "gatelet.";
/// How a provider's states begin that would be taken for ours. What follows is
/// the state; ours have no dot after the first.
const VIA: &str = "gatelet.via.";
/// The id of a call: the tag of its replica, and what cannot be guessed.
const N_ID: usize = 20;
const N_TAG: usize = 4;

/// How many calls may be parked, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub calls: usize,
    pub time: Duration,
}

/// The parked calls.
pub(crate) struct ParkedCalls {
    key: [u8; 32],
    limits: Limits,
    /// What tells this replica from others; 0 where there are none.
    replica: u32,
    parked: Mutex<Parked>,
}

/// What a call is bound to, so that its state is good for nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallKey {
    pub(crate) subject: String,
    pub(crate) method: String,
    /// The tool, the prompt or the resource.
    pub(crate) name: String,
    /// What it is called with: a tool may stand for many, and its arguments
    /// say for which.
    pub(crate) arguments: Option<Json>,
}

/// Who made a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateOwner<'a> {
    /// It was made here, or claims to be.
    Ours,
    /// The provider's, as the provider wrote it.
    Provider(&'a str),
}

/// A call that is put aside.
pub(crate) struct ParkedCall {
    pub(crate) call: Call,
    pub(crate) channel: Arc<ClientChannel>,
}

/// Why no parked call belongs to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error(
        "`requestState` was not made for this request, or before a restart: send it back unchanged with the same arguments, or make the call again without `requestState` and `inputResponses`"
    )]
    Forged,
    #[error(
        "the call no longer waits for this answer; make it again without `requestState` and `inputResponses`"
    )]
    Gone,
}

/// A parked call, whose it is and until when.
struct Waiting {
    until: Instant,
    subject: String,
    call: ParkedCall,
}

#[derive(Default)]
struct Parked {
    calls: HashMap<[u8; N_ID], Waiting>,
    /// Oldest first.
    order: VecDeque<[u8; N_ID]>,
    /// Whether the task that drops what has waited too long runs.
    sweeping: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { calls: 256, time: Duration::from_secs(600) }
    }
}

impl ParkedCalls {
    pub(crate) fn new(limits: Limits, replica: u32) -> ParkedCalls {
        ParkedCalls { key: rand::random(), limits, replica, parked: Mutex::default() }
    }

    /// The replica that holds the call which a state of ours names. Only that one
    /// can tell whether the state is true.
    pub(crate) fn replica(state: &str) -> Option<u32> {
        let sealed = URL_SAFE_NO_PAD.decode(state.strip_prefix(PREFIX)?).ok()?;
        let (tag, _) = sealed.split_first_chunk::<N_TAG>()?;
        Some(u32::from_be_bytes(*tag)).filter(|tag| *tag != 0)
    }

    /// Puts a call aside and returns the state that names it.
    pub(crate) fn put(self: &Arc<Self>, key: &CallKey, entry: ParkedCall) -> String {
        let mut id: [u8; N_ID] = rand::random();
        id[..N_TAG].copy_from_slice(&self.replica.to_be_bytes());
        let until = Instant::now() + self.limits.time;
        let waiting = Waiting { until, subject: key.subject.clone(), call: entry };
        let mut parked = self.parked.lock();
        parked.put(id, waiting, self.limits.calls);
        if !std::mem::replace(&mut parked.sweeping, true) {
            self.sweep_from_now_on(until);
        }
        drop(parked);
        let mut sealed = id.to_vec();
        sealed.extend_from_slice(&self.seal(&id, key).finalize().into_bytes());
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Returns who made a state that a client sends.
    pub(crate) fn owner(state: &str) -> StateOwner<'_> {
        match state.strip_prefix(VIA) {
            Some(theirs) => StateOwner::Provider(theirs),
            None if state.starts_with(PREFIX) => StateOwner::Ours,
            None => StateOwner::Provider(state),
        }
    }

    /// A provider's state, as a client gets it.
    pub(crate) fn mark_foreign(state: &str) -> Cow<'_, str> {
        match state.starts_with(PREFIX) {
            true => Cow::Owned(format!("{VIA}{state}")),
            false => Cow::Borrowed(state),
        }
    }

    /// Takes the call that a state names.
    pub(crate) fn take(&self, state: &str, key: &CallKey) -> Result<ParkedCall, Refused> {
        let id = self.open(state, key).ok_or(Refused::Forged)?;
        let found = self.parked.lock().remove(&id);
        let Waiting { until, call, .. } = found.ok_or(Refused::Gone)?;
        if until <= Instant::now() { Err(Refused::Gone) } else { Ok(call) }
    }

    fn open(&self, state: &str, key: &CallKey) -> Option<[u8; N_ID]> {
        let sealed = URL_SAFE_NO_PAD.decode(state.strip_prefix(PREFIX)?).ok()?;
        let (id, seal) = sealed.split_first_chunk::<N_ID>()?;
        self.seal(id, key).verify_slice(seal).ok()?;
        Some(*id)
    }

    fn seal(&self, id: &[u8; N_ID], key: &CallKey) -> Hmac<Sha256> {
        let mut seal =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("any key length is good for HMAC");
        seal.update(id);
        let arguments = key.arguments.as_ref().map(sorted).unwrap_or_default();
        for part in [&key.subject, &key.method, &key.name, &arguments] {
            seal.update(&(part.len() as u64).to_le_bytes());
            seal.update(part.as_bytes());
        }
        seal
    }

    /// Drops what has waited too long, which cancels it, until nothing is left.
    fn sweep_from_now_on(self: &Arc<Self>, mut until: Instant) {
        let park = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep_until(until).await;
                let Some(park) = park.upgrade() else { return };
                match park.parked.lock().sweep(Instant::now()) {
                    Some(next) => until = next,
                    None => return,
                }
            }
        });
    }
}

impl Parked {
    fn put(&mut self, id: [u8; N_ID], waiting: Waiting, limit: usize) {
        while limit <= self.calls.len()
            && let Some(oldest) = self.oldest_of_most()
        {
            self.remove(&oldest);
        }
        self.calls.insert(id, waiting);
        self.order.push_back(id);
    }

    fn remove(&mut self, id: &[u8; N_ID]) -> Option<Waiting> {
        let found = self.calls.remove(id)?;
        self.order.retain(|other| other != id);
        Some(found)
    }

    /// The oldest call of the caller who has the most of them: nobody's calls
    /// give way to those of somebody who has more.
    fn oldest_of_most(&self) -> Option<[u8; N_ID]> {
        let mut n_calls: HashMap<&str, usize> = HashMap::new();
        for waiting in self.calls.values() {
            *n_calls.entry(&waiting.subject).or_default() += 1;
        }
        let most = n_calls.values().max().copied()?;
        let has_most = |id: &&[u8; N_ID]| n_calls.get(&*self.calls[*id].subject) == Some(&most);
        self.order.iter().find(has_most).copied()
    }

    /// Drops what has waited too long, and says when to look again.
    fn sweep(&mut self, now: Instant) -> Option<Instant> {
        self.calls.retain(|_, waiting| now < waiting.until);
        let calls = &self.calls;
        self.order.retain(|id| calls.contains_key(id));
        // All wait equally long, so the oldest is the next.
        let next = self.order.front().and_then(|id| self.calls.get(id));
        let next = next.map(|waiting| waiting.until);
        self.sweeping = next.is_some();
        next
    }
}

/// The same text for the same arguments, in whichever order they are written.
/// Arguments that are no tree for us, such as nesting without end, have to come
/// back as they were.
fn sorted(arguments: &Json) -> String {
    match arguments.to_value() {
        Ok(mut value) => {
            value.sort_all_objects();
            value.to_string()
        }
        Err(_) => arguments.to_string(),
    }
}

#[cfg(test)]
mod tests;
