//! The queue of calls that wait for approval: a plain value, changed by pure functions
//! and stored as one document.
//!
//! A request is bound to its caller and to the exact call. An approval can be used
//! once, before it expires. Every change is made on the whole queue, so a store with
//! compare-and-swap guarantees single use across processes and machines.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Requests that wait, were decided or were used, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// The highest number ever given to a request.
    last_number: u64,
    requests: Vec<QueuedRequest>,
}

/// One call that a person has to agree to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedRequest {
    pub number: u64,
    /// A hash of caller, call and arguments, which the approval is bound to.
    pub binding: String,
    /// A hash of the caller; the number of waiting requests per caller is bounded.
    pub caller_hash: String,
    #[serde(flatten)]
    pub subject: Subject,
    /// Milliseconds since 1970.
    pub asked_at: u64,
    /// Milliseconds since 1970.
    pub expires_at: u64,
    pub state: RequestState,
}

/// What the person who decides gets to read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// Why the call needs approval.
    pub question: String,
    /// Whether trusting the tool would end the question. Missing in queues that earlier
    /// versions stored.
    #[serde(default)]
    pub ended_by_trust: bool,
    /// Empty for an anonymous caller.
    pub caller: String,
    /// The client's own name.
    pub client: String,
    /// The operator's label for the upstream.
    pub upstream: String,
    /// The upstream's name for the tool, resource or prompt.
    pub tool: String,
    /// The arguments as JSON, or the beginning of them.
    pub arguments: String,
    /// The full length of the arguments in bytes, if `arguments` is shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_cut_from: Option<usize>,
    /// The digest of the tool's definition at the time of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The state of a request. `by` says who decided, `at` when (milliseconds since 1970).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "is")]
pub enum RequestState {
    Waiting,
    Allowed {
        by: String,
        at: u64,
    },
    Denied {
        by: String,
        at: u64,
    },
    /// It was allowed, and the call was let through.
    Used {
        by: String,
        at: u64,
    },
}

/// A person's decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Deny,
}

/// A request before it has a number.
#[derive(Clone, Debug)]
pub struct NewRequest {
    pub binding: String,
    pub caller_hash: String,
    pub subject: Subject,
}

/// The approval status of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// There is no request for it.
    Unasked,
    /// The request of this number waits.
    Waiting(u64),
    /// The request of this number was allowed, and can be used once.
    Allowed(u64),
    Denied {
        number: u64,
        by: String,
    },
}

/// Too many requests wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueFull {
    /// Of this caller.
    Caller,
    /// Of all callers together.
    Everybody,
}

/// Why a request cannot be decided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecideError {
    #[error(
        "no request {0} waits; it may have expired (`gatelet approvals list` shows those that do)"
    )]
    Unknown(u64),
    #[error("request {0} was allowed and used already: the call was let through")]
    Used(u64),
}

/// The most waiting requests of one caller, and of all callers together. In a full queue
/// whoever has the most gives way.
const MAX_WAITING_PER_CALLER: usize = 20;
const MAX_WAITING: usize = 200;
/// The most decided requests that are kept for the operator to see.
const MAX_DECIDED: usize = 100;

/// How far the clocks of machines that share a queue may differ, in milliseconds.
const CLOCK_SKEW: u64 = 60_000;

impl Queue {
    /// An empty queue that does not use the numbers up to `last_number` again. Somebody
    /// may still hold a number of a queue that was lost, and must not decide about
    /// another call by it.
    pub fn after(last_number: u64) -> Queue {
        Queue { last_number, requests: Vec::new() }
    }

    /// The status of the call with this binding.
    pub fn status(&self, binding: &str, now: u64) -> CallStatus {
        let found = self.requests.iter().rev().find(|request| {
            request.binding == binding && request.is_alive(now) && !request.is_used()
        });
        let Some(request) = found else { return CallStatus::Unasked };
        let number = request.number;
        match &request.state {
            RequestState::Waiting => CallStatus::Waiting(number),
            RequestState::Allowed { .. } => CallStatus::Allowed(number),
            RequestState::Denied { by, .. } => CallStatus::Denied { number, by: by.clone() },
            RequestState::Used { .. } => CallStatus::Unasked,
        }
    }

    /// Adds a request that expires after `life` milliseconds, unless the queue has one
    /// for the same call. Returns its number.
    pub fn add(&mut self, new: NewRequest, now: u64, life: u64) -> Result<u64, QueueFull> {
        self.sweep(now);
        match self.status(&new.binding, now) {
            CallStatus::Waiting(number)
            | CallStatus::Allowed(number)
            | CallStatus::Denied { number, .. } => return Ok(number),
            CallStatus::Unasked => {}
        }
        let waiting = || self.requests.iter().filter(|request| request.is_waiting());
        let n_own = waiting().filter(|one| one.caller_hash == new.caller_hash).count();
        if MAX_WAITING_PER_CALLER <= n_own {
            return Err(QueueFull::Caller);
        }
        if MAX_WAITING <= waiting().count() {
            let number = self.to_give_way(&new, n_own).ok_or(QueueFull::Everybody)?;
            self.requests.retain(|request| request.number != number);
        }
        self.last_number += 1;
        let NewRequest { binding, caller_hash, subject } = new;
        self.requests.push(QueuedRequest {
            number: self.last_number,
            binding,
            caller_hash,
            subject,
            asked_at: now,
            expires_at: now.saturating_add(life),
            state: RequestState::Waiting,
        });
        Ok(self.last_number)
    }

    /// Uses up the approval of this call, if there is one. Only the caller that gets
    /// `true` may make the call.
    pub fn use_approval(&mut self, binding: &str, now: u64) -> bool {
        let found = self.requests.iter_mut().find(|request| {
            let is_allowed = matches!(request.state, RequestState::Allowed { .. });
            request.binding == binding && is_allowed && request.is_alive(now)
        });
        let Some(request) = found else { return false };
        if let RequestState::Allowed { by, .. } = &request.state {
            request.state = RequestState::Used { by: by.clone(), at: now };
        }
        true
    }

    /// Decides a request, for `life` milliseconds. A decision can be changed until it is
    /// used.
    pub fn decide(
        &mut self,
        number: u64,
        verdict: Verdict,
        by: &str,
        now: u64,
        life: u64,
    ) -> Result<QueuedRequest, DecideError> {
        let found = self.requests.iter_mut().find(|request| request.number == number);
        let request = found.filter(|request| request.is_alive(now));
        let request = request.ok_or(DecideError::Unknown(number))?;
        if request.is_used() {
            return Err(DecideError::Used(number));
        }
        let by = by.to_owned();
        request.state = match verdict {
            Verdict::Allow => RequestState::Allowed { by, at: now },
            Verdict::Deny => RequestState::Denied { by, at: now },
        };
        request.expires_at = now.saturating_add(life);
        Ok(request.clone())
    }

    /// The requests that have not expired, oldest first.
    pub fn unexpired(&self, now: u64) -> impl Iterator<Item = &QueuedRequest> {
        self.requests.iter().filter(move |request| request.is_alive(now))
    }

    /// The request of this number, unless it has expired.
    pub fn get(&self, number: u64, now: u64) -> Option<&QueuedRequest> {
        self.unexpired(now).find(|request| request.number == number)
    }

    /// Returns the waiting request that gives way to a new one in a full queue: the latest of
    /// whoever has the most, if that is more than the new caller will have. Addresses are easy
    /// to come by, so to a known caller all anonymous ones count as one, and to an anonymous one
    /// only anonymous ones give way.
    fn to_give_way(&self, new: &NewRequest, n_own: usize) -> Option<u64> {
        let mut anonymous = HashMap::new();
        let mut known = HashMap::new();
        for request in self.requests.iter().filter(|request| request.is_waiting()) {
            let callers =
                if request.subject.caller.is_empty() { &mut anonymous } else { &mut known };
            let of_caller: &mut (usize, u64) =
                callers.entry(request.caller_hash.as_str()).or_default();
            *of_caller = (of_caller.0 + 1, request.number);
        }
        let n_anonymous: usize = anonymous.values().map(|(n_waiting, _)| n_waiting).sum();
        let most = |callers: HashMap<&str, (usize, u64)>| callers.into_values().max();
        let (most_anonymous, most_known) = (most(anonymous), most(known));
        let (n_waiting, number) = match new.subject.caller.is_empty() {
            true => most_anonymous?,
            false => {
                let all_anonymous = most_anonymous.map(|(_, number)| (n_anonymous, number));
                all_anonymous.max(most_known)?
            }
        };
        (n_own + 1 < n_waiting).then_some(number)
    }

    /// Removes expired requests, and the oldest decided ones.
    fn sweep(&mut self, now: u64) {
        self.requests.retain(|request| request.is_alive(now));
        let n_over = self.requests.iter().filter(|request| !request.is_waiting()).count();
        let mut too_many = n_over.saturating_sub(MAX_DECIDED);
        self.requests.retain(|request| {
            let goes = 0 < too_many && !request.is_waiting();
            too_many -= usize::from(goes);
            !goes
        });
    }
}

impl QueuedRequest {
    pub fn is_waiting(&self) -> bool {
        self.state == RequestState::Waiting
    }

    fn is_used(&self) -> bool {
        matches!(self.state, RequestState::Used { .. })
    }

    /// Whether it has not expired. A time in the future means that the clock was set
    /// back, so the age is unknown and the request counts as expired.
    fn is_alive(&self, now: u64) -> bool {
        let since = match &self.state {
            RequestState::Waiting => self.asked_at,
            RequestState::Allowed { at, .. }
            | RequestState::Denied { at, .. }
            | RequestState::Used { at, .. } => *at,
        };
        now < self.expires_at && since <= now.saturating_add(CLOCK_SKEW)
    }
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Allow => "allow",
            Verdict::Deny => "deny",
        }
    }
}

impl RequestState {
    /// A stable name, for commands and the console.
    pub fn as_str(&self) -> &'static str {
        match self {
            RequestState::Waiting => "waiting",
            RequestState::Allowed { .. } => "allowed",
            RequestState::Denied { .. } => "denied",
            RequestState::Used { .. } => "used",
        }
    }
}

#[cfg(test)]
mod tests;
