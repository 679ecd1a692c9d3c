//! Calls that wait for somebody's approval: a plain value, changed by pure
//! functions and kept as one document.
//!
//! A request is bound to who asks and to exactly what they ask for. What is
//! allowed can be used once, before it expires. Every decision is made on the
//! whole queue, so whoever keeps it by compare-and-swap has single use across
//! processes and machines for nothing.

use serde::{Deserialize, Serialize};

/// Requests that wait, were decided or were used, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// The number of the newest request there ever was.
    last_number: u64,
    requests: Vec<QueuedRequest>,
}

/// One call that somebody has to agree to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedRequest {
    pub number: u64,
    /// A hash of who asks for what, with which arguments.
    pub binding: String,
    /// A hash of who asks; how many of them wait is bounded.
    pub caller_hash: String,
    #[serde(flatten)]
    pub subject: Subject,
    /// Milliseconds since 1970.
    pub asked_at: u64,
    /// Milliseconds since 1970.
    pub expires_at: u64,
    pub state: RequestState,
}

/// What a person reads who decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// Why it needs approval.
    pub question: String,
    /// Whether vouching for the tool would end the question. Those of earlier
    /// versions do not say.
    #[serde(default)]
    pub ended_by_trust: bool,
    /// Empty for an anonymous caller.
    pub caller: String,
    /// What the client calls itself.
    pub client: String,
    /// The operator's label for the upstream.
    pub upstream: String,
    /// The upstream's name for the tool, resource or prompt.
    pub tool: String,
    /// The arguments as JSON, or the beginning of them.
    pub arguments: String,
    /// How long the arguments are, in bytes, if they are not all here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_cut_from: Option<usize>,
    /// The tool as it looked when it was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// What became of a request. `by` says who decided, `at` when.
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

/// What somebody decides.
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

/// What has become of a call that needs approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody was asked.
    Unasked,
    Waiting(u64),
    /// It may be used, once.
    Allowed(u64),
    Denied {
        number: u64,
        by: String,
    },
}

/// Too many requests wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Of this caller.
    Caller,
    /// Of all callers together.
    Everybody,
}

/// Why a decision does not count. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecideError {
    #[error(
        "no request {0} waits; it may have expired (`gatelet approvals list` shows those that do)"
    )]
    Unknown(u64),
    #[error("request {0} was allowed and used already: the call was let through")]
    Used(u64),
}

/// How many requests of one caller may wait, and of all together.
const MOST_OF_CALLER: usize = 20;
const MOST: usize = 200;
/// How many requests that are over are kept to be looked at.
const MOST_OVER: usize = 100;

/// Machines that share a queue may differ by so much, in milliseconds.
const CLOCK_SKEW: u64 = 60_000;

impl Queue {
    /// What has become of a call.
    pub fn standing(&self, binding: &str, now: u64) -> Standing {
        let found = self.requests.iter().rev().find(|request| {
            request.binding == binding && request.is_alive(now) && !request.is_used()
        });
        let Some(request) = found else { return Standing::Unasked };
        let number = request.number;
        match &request.state {
            RequestState::Waiting => Standing::Waiting(number),
            RequestState::Allowed { .. } => Standing::Allowed(number),
            RequestState::Denied { by, .. } => Standing::Denied { number, by: by.clone() },
            RequestState::Used { .. } => Standing::Unasked,
        }
    }

    /// Puts a request into the queue, unless the same one stands there: then
    /// nothing changes. Gives its number.
    pub fn add(&mut self, new: NewRequest, now: u64, life: u64) -> Result<u64, Full> {
        self.sweep(now);
        match self.standing(&new.binding, now) {
            Standing::Waiting(number)
            | Standing::Allowed(number)
            | Standing::Denied { number, .. } => return Ok(number),
            Standing::Unasked => {}
        }
        let waiting = || self.requests.iter().filter(|request| request.is_waiting());
        if MOST <= waiting().count() {
            return Err(Full::Everybody);
        }
        if MOST_OF_CALLER <= waiting().filter(|one| one.caller_hash == new.caller_hash).count() {
            return Err(Full::Caller);
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

    /// Uses what was allowed for this call, if anything was: whoever is told
    /// `true` may go on, and nobody else is.
    pub fn take(&mut self, binding: &str, now: u64) -> bool {
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

    /// Decides about a request. What was decided may be decided otherwise until
    /// it is used.
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

    /// Those that have not expired, oldest first.
    pub fn alive(&self, now: u64) -> impl Iterator<Item = &QueuedRequest> {
        self.requests.iter().filter(move |request| request.is_alive(now))
    }

    /// One that has not expired.
    pub fn get(&self, number: u64, now: u64) -> Option<&QueuedRequest> {
        self.alive(now).find(|request| request.number == number)
    }

    /// Forgets what expired, and the oldest of what was decided.
    fn sweep(&mut self, now: u64) {
        self.requests.retain(|request| request.is_alive(now));
        let n_over = self.requests.iter().filter(|request| !request.is_waiting()).count();
        let mut too_many = n_over.saturating_sub(MOST_OVER);
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

    /// Whether it has not expired. What seems to come from the future was made by
    /// a clock that was set back since, and nobody knows how old it is.
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
    /// A stable word for it.
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
