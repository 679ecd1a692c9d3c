//! Parked calls: calls that wait until their client resumes them.
//!
//! A modern client cannot be asked while its request is open. If a provider asks it
//! something, the call is parked here, the client gets the questions together with a state
//! (`requestState`) that names the call, and its next request resumes the call. The state
//! is authenticated, and valid for one caller and one request, for a short time. The number
//! of parked calls is limited; at the limit, the oldest of the caller with the most is
//! dropped.
//!
//! A provider may be a gatelet too, and park calls in the same way. So that its states are
//! not taken for ours when they come back, they get a prefix for every gatelet that they
//! pass.

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

/// The future reply of a call.
pub(crate) type ReplyFuture = BoxFuture<'static, Reply>;

/// The prefix of our states; all others belong to the provider.
const STATE_PREFIX: &str = "gatelet.";
/// The prefix of a provider's states that look like ours; the state follows. Ours have no
/// other dot.
const FOREIGN_PREFIX: &str = "gatelet.via.";
/// The length of a call's id: the tag of its replica, and random bytes.
const ID_BYTES: usize = 20;
const TAG_BYTES: usize = 4;

/// How many calls may be parked, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub calls: usize,
    pub time: Duration,
}

/// All parked calls.
pub(crate) struct ParkedCalls {
    secret: [u8; 32],
    limits: Limits,
    /// The tag of this replica; 0 if there is only one.
    replica: u32,
    parked: Mutex<ParkedTable>,
}

/// What a state is bound to, so that it is valid for nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallKey {
    pub(crate) subject: String,
    pub(crate) method: String,
    /// The tool, the prompt or the resource.
    pub(crate) name: String,
    /// The arguments, which may select a function of the tool.
    pub(crate) arguments: Option<Json>,
}

/// Whose state it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateOwner<'a> {
    /// Ours, or it claims to be.
    Ours,
    /// The provider's, as the provider wrote it.
    Provider(&'a str),
}

/// A parked call and the channel to its client.
pub(crate) struct ParkedCall {
    pub(crate) call: ReplyFuture,
    pub(crate) channel: Arc<ClientChannel>,
}

/// Why a state does not resume a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResumeError {
    #[error(
        "`requestState` was not made for this request, or before a restart: send it back unchanged with the same arguments, or make the call again without `requestState` and `inputResponses`"
    )]
    Forged,
    #[error(
        "the call no longer waits for this answer; make it again without `requestState` and `inputResponses`"
    )]
    Gone,
}

/// A parked call, with its caller and the time when it expires.
struct ParkedEntry {
    until: Instant,
    subject: String,
    call: ParkedCall,
}

#[derive(Default)]
struct ParkedTable {
    calls: HashMap<[u8; ID_BYTES], ParkedEntry>,
    /// Oldest first.
    order: VecDeque<[u8; ID_BYTES]>,
    /// Whether the task that drops expired calls runs.
    sweeping: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { calls: 256, time: Duration::from_secs(600) }
    }
}

impl ParkedCalls {
    pub(crate) fn new(limits: Limits, replica: u32) -> ParkedCalls {
        ParkedCalls { secret: rand::random(), limits, replica, parked: Mutex::default() }
    }

    /// Returns the tag of the replica that holds the call of a state. Only that replica can
    /// verify the state.
    pub(crate) fn replica_of(state: &str) -> Option<u32> {
        let sealed = URL_SAFE_NO_PAD.decode(state.strip_prefix(STATE_PREFIX)?).ok()?;
        let (tag, _) = sealed.split_first_chunk::<TAG_BYTES>()?;
        Some(u32::from_be_bytes(*tag)).filter(|tag| *tag != 0)
    }

    /// Parks a call and returns the state that names it.
    pub(crate) fn park(self: &Arc<Self>, key: &CallKey, entry: ParkedCall) -> String {
        let mut id: [u8; ID_BYTES] = rand::random();
        id[..TAG_BYTES].copy_from_slice(&self.replica.to_be_bytes());
        let until = Instant::now() + self.limits.time;
        let waiting = ParkedEntry { until, subject: key.subject.clone(), call: entry };
        let mut parked = self.parked.lock();
        parked.put(id, waiting, self.limits.calls);
        if !std::mem::replace(&mut parked.sweeping, true) {
            self.start_sweeping(until);
        }
        drop(parked);
        let mut sealed = id.to_vec();
        sealed.extend_from_slice(&self.seal(&id, key).finalize().into_bytes());
        format!("{STATE_PREFIX}{}", URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Returns whose state a client sends.
    pub(crate) fn owner(state: &str) -> StateOwner<'_> {
        match state.strip_prefix(FOREIGN_PREFIX) {
            Some(theirs) => StateOwner::Provider(theirs),
            None if state.starts_with(STATE_PREFIX) => StateOwner::Ours,
            None => StateOwner::Provider(state),
        }
    }

    /// Adds the prefix to a provider's state that looks like ours.
    pub(crate) fn mark_foreign(state: &str) -> Cow<'_, str> {
        match state.starts_with(STATE_PREFIX) {
            true => Cow::Owned(format!("{FOREIGN_PREFIX}{state}")),
            false => Cow::Borrowed(state),
        }
    }

    /// Removes and returns the call that a state names.
    pub(crate) fn resume(&self, state: &str, key: &CallKey) -> Result<ParkedCall, ResumeError> {
        let id = self.verify(state, key).ok_or(ResumeError::Forged)?;
        let found = self.parked.lock().remove(&id);
        let ParkedEntry { until, call, .. } = found.ok_or(ResumeError::Gone)?;
        if until <= Instant::now() { Err(ResumeError::Gone) } else { Ok(call) }
    }

    /// Returns the id in a state, if the state is authentic for this key.
    fn verify(&self, state: &str, key: &CallKey) -> Option<[u8; ID_BYTES]> {
        let sealed = URL_SAFE_NO_PAD.decode(state.strip_prefix(STATE_PREFIX)?).ok()?;
        let (id, seal) = sealed.split_first_chunk::<ID_BYTES>()?;
        self.seal(id, key).verify_slice(seal).ok()?;
        Some(*id)
    }

    /// Returns the message authentication code of an id with its key.
    fn seal(&self, id: &[u8; ID_BYTES], key: &CallKey) -> Hmac<Sha256> {
        let mut seal =
            Hmac::<Sha256>::new_from_slice(&self.secret).expect("any key length is good for HMAC");
        seal.update(id);
        let arguments = key.arguments.as_ref().map(canonical).unwrap_or_default();
        for part in [&key.subject, &key.method, &key.name, &arguments] {
            seal.update(&(part.len() as u64).to_le_bytes());
            seal.update(part.as_bytes());
        }
        seal
    }

    /// Starts the task that drops expired calls, which cancels them, until none is left.
    fn start_sweeping(self: &Arc<Self>, mut until: Instant) {
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

impl ParkedTable {
    fn put(&mut self, id: [u8; ID_BYTES], waiting: ParkedEntry, limit: usize) {
        while limit <= self.calls.len()
            && let Some(oldest) = self.oldest_of_heaviest_caller()
        {
            self.remove(&oldest);
        }
        self.calls.insert(id, waiting);
        self.order.push_back(id);
    }

    fn remove(&mut self, id: &[u8; ID_BYTES]) -> Option<ParkedEntry> {
        let found = self.calls.remove(id)?;
        self.order.retain(|other| other != id);
        Some(found)
    }

    /// Returns the oldest call of the caller with the most parked calls.
    fn oldest_of_heaviest_caller(&self) -> Option<[u8; ID_BYTES]> {
        let mut n_calls: HashMap<&str, usize> = HashMap::new();
        for waiting in self.calls.values() {
            *n_calls.entry(&waiting.subject).or_default() += 1;
        }
        let most = n_calls.values().max().copied()?;
        let has_most = |id: &&[u8; ID_BYTES]| n_calls.get(&*self.calls[*id].subject) == Some(&most);
        self.order.iter().find(has_most).copied()
    }

    /// Drops expired calls, and returns when the next one expires.
    fn sweep(&mut self, now: Instant) -> Option<Instant> {
        self.calls.retain(|_, waiting| now < waiting.until);
        let calls = &self.calls;
        self.order.retain(|id| calls.contains_key(id));
        // All have the same lifetime, so the oldest expires next.
        let next = self.order.front().and_then(|id| self.calls.get(id));
        let next = next.map(|waiting| waiting.until);
        self.sweeping = next.is_some();
        next
    }
}

/// Returns the arguments as text with sorted keys, so that their order does not matter.
/// Arguments that cannot be parsed, such as very deep nesting, are used as they are.
fn canonical(arguments: &Json) -> String {
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
