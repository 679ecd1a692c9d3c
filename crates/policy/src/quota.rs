//! Quotas: how often a meta-tool, a tool or an identity may be used, per minute and
//! per session.
//!
//! What a caller may do in a minute counts over all its sessions, so a new one
//! gains nothing. An anonymous caller is the address that it connects from.
//!
//! All limits that apply to a call are looked at before any is charged, so a
//! refused call costs nothing. The state is bounded: sessions that were not
//! seen for longest are forgotten first.
//!
//! A [`Limiter`] counts in this process and has every answer at hand. Whoever counts
//! for several processes takes the [claims](Config::claims) of an act elsewhere.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Either, Ready, ready};
use parking_lot::Mutex;
use tool::{CallerKey, Context};

use crate::pattern::{Named, Pattern};
use crate::refusal::{Refusal, Refused};
use crate::validate::ValidCall;
use tool::clock::Clock;

/// An answer that is at hand, which costs nothing to wait for, or on its way from
/// a store that several processes share.
pub type QuotaFuture<'a, T> = Either<Ready<T>, BoxFuture<'a, T>>;

/// An answer that is at hand.
pub fn at_hand<'a, T>(answer: T) -> QuotaFuture<'a, T> {
    Either::Left(ready(answer))
}

/// How often calls may be made.
pub trait Quota: Send + Sync {
    /// Takes what this call costs, or says when to come again.
    fn spend<'a>(
        &'a self,
        call: &'a ValidCall,
        context: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>>;

    /// Gives back what [`Quota::spend`] took, for a call that was not let
    /// through after all.
    fn refund<'a>(&'a self, _: &'a ValidCall, _: &'a Context) -> QuotaFuture<'a, ()> {
        at_hand(())
    }

    /// What [`Quota::spend`] would say, without taking anything.
    fn check<'a>(
        &'a self,
        _: &'a ValidCall,
        _: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        at_hand(Ok(()))
    }

    /// Takes what using one of a surface's own tools costs.
    fn spend_meta<'a>(
        &'a self,
        _tool: &'a str,
        _: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        at_hand(Ok(()))
    }

    /// Gives back what [`Quota::spend_meta`] took.
    fn refund_meta<'a>(&'a self, _tool: &'a str, _: &'a Context) -> QuotaFuture<'a, ()> {
        at_hand(())
    }
}

/// The window of a rate.
const MINUTE: Duration = Duration::from_secs(60);
/// How many sessions and identities are remembered at once.
const MEMORY: usize = 10_000;

/// What is limited. Nothing, by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Per caller or session, and meta-tool, by name: `tool_execute`, …
    pub meta: Vec<(String, Rate)>,
    /// Per caller or session, and tool.
    pub tools: Vec<(Pattern, Rate)>,
    /// Per identity, over all its sessions and tools.
    pub identity: Rate,
}

/// A limit on how often. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    pub per_minute: Option<u32>,
    pub per_session: Option<u32>,
}

/// Something that is about to be done.
#[derive(Clone, Copy, Debug)]
pub struct Act<'a> {
    /// `None` where there are no sessions: then the caller stands for one.
    pub session: Option<&'a str>,
    pub caller: CallerKey<'a>,
    pub meta_tool: &'a str,
    pub tool: Option<Named<'a>>,
}

/// A limit that is reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rate limit exceeded ({scope})")]
pub struct Exceeded {
    /// Which limit: `tool_execute/minute`, `tool:<id>/session`.
    pub scope: String,
    /// When to come again; `None` when waiting does not help.
    pub retry_after: Option<Duration>,
}

impl From<Exceeded> for Refusal {
    fn from(exceeded: Exceeded) -> Refusal {
        let message = exceeded.to_string();
        Refusal { code: Refused::RateLimited, message, retry_after: exceeded.retry_after }
    }
}

/// What an act takes of one limit, for whoever counts elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateClaim {
    /// Which limit it is, as in [`Exceeded`].
    pub scope: String,
    /// What is counted together. Everything before the first `/` is the caller.
    pub key: String,
    pub limit: u32,
    /// How long an act counts; for as long as the session when `None`.
    pub window: Option<Duration>,
}

/// Whether an act is counted or only checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    Count,
    Check,
}

/// What was done so far.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    buckets: HashMap<Key, Bucket>,
    /// Buckets by when they were last used, oldest first; may hold doubles.
    used: VecDeque<(Key, Duration)>,
}

/// What is counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    who: Who,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Who {
    Session(Box<str>),
    Subject(Box<str>),
    Address(Option<IpAddr>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum What {
    MetaTool(Box<str>),
    /// By the pattern that names it.
    Tool(Box<str>),
    Everything,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    recent: VecDeque<Duration>,
    total: u32,
    last: Duration,
}

impl Config {
    /// What an act takes of each limit that applies to it.
    pub fn claims(&self, act: &Act<'_>) -> Vec<RateClaim> {
        let caller = Who::of(act.caller).written();
        let mut claims = Vec::new();
        for (scope, Key { who, what }, rate) in self.limits(act) {
            let who = match who {
                Who::Session(session) => format!("{caller}/session {session:?}"),
                Who::Subject(_) | Who::Address(_) => caller.clone(),
            };
            let limits =
                [(rate.per_session, "session", None), (rate.per_minute, "minute", Some(MINUTE))];
            for (limit, unit, window) in limits {
                let Some(limit) = limit else { continue };
                let (scope, key) = (format!("{scope}/{unit}"), format!("{who}/{what:?}/{unit}"));
                claims.push(RateClaim { scope, key, limit, window });
            }
        }
        claims
    }

    /// The limits that apply to an act: scope, key of its bucket, rate.
    fn limits(&self, act: &Act<'_>) -> Vec<(String, Key, Rate)> {
        let mut limits = Vec::new();
        for (_, rate) in self.meta.iter().filter(|(name, _)| name == act.meta_tool) {
            let what = What::MetaTool(act.meta_tool.into());
            split(&mut limits, act.meta_tool, act, &what, *rate);
        }
        if let Some(tool) = act.tool {
            // Of two that are spelled alike, each has the limit that is meant for it.
            let exact = self.tools.iter().find(|(pattern, _)| pattern.means(tool));
            let wide = || self.tools.iter().find(|(pattern, _)| pattern.may_mean(tool));
            if let Some((pattern, rate)) = exact.or_else(wide) {
                let what = What::Tool(pattern.as_str().into());
                split(&mut limits, &format!("tool:{}", tool.id), act, &what, *rate);
            }
        }
        if let CallerKey::Subject(_) = act.caller
            && self.identity != Rate::default()
        {
            let key = Key { who: Who::of(act.caller), what: What::Everything };
            limits.push(("identity".to_owned(), key, self.identity));
        }
        limits
    }
}

/// What a rate says of a session, and what it says of the caller.
fn split(
    limits: &mut Vec<(String, Key, Rate)>,
    scope: &str,
    act: &Act<'_>,
    what: &What,
    rate: Rate,
) {
    let caller = || Who::of(act.caller);
    if rate.per_session.is_some() {
        let who = act.session.map_or_else(caller, |session| Who::Session(session.into()));
        let key = Key { who, what: what.clone() };
        limits.push((scope.to_owned(), key, Rate { per_minute: None, ..rate }));
    }
    if rate.per_minute.is_some() {
        let key = Key { who: caller(), what: what.clone() };
        // Where there are no sessions, both are counted in one place, once.
        match limits.last_mut() {
            Some((_, last, other)) if *last == key => other.per_minute = rate.per_minute,
            _ => limits.push((scope.to_owned(), key, Rate { per_session: None, ..rate })),
        }
    }
}

impl Who {
    fn of(caller: CallerKey<'_>) -> Who {
        match caller {
            CallerKey::Subject(subject) => Who::Subject(subject.into()),
            CallerKey::Address(address) => Who::Address(address),
        }
    }
}

impl Who {
    /// As text that no other has, without a `/`.
    fn written(&self) -> String {
        let escaped = |text: &str| text.replace('%', "%25").replace('/', "%2f");
        match self {
            Who::Session(session) => format!("session {}", escaped(session)),
            Who::Subject(subject) => format!("subject {}", escaped(subject)),
            Who::Address(Some(address)) => format!("address {address}"),
            Who::Address(None) => "address".to_owned(),
        }
    }
}

impl Meter {
    /// Whether an act is within the limits, counting it when it is to count.
    pub fn judge(
        &mut self,
        config: &Config,
        act: &Act<'_>,
        charge: Charge,
        now: Duration,
    ) -> Result<(), Exceeded> {
        let limits = config.limits(act);
        for (scope, key, rate) in &limits {
            if let Some(bucket) = self.buckets.get_mut(key) {
                bucket.check(scope, *rate, now)?;
            }
        }
        if charge == Charge::Count {
            for (_, key, _) in limits {
                self.count(key, now);
            }
        }
        Ok(())
    }

    /// Takes back the last count of an act.
    pub fn refund(&mut self, config: &Config, act: &Act<'_>) {
        for (_, key, _) in config.limits(act) {
            if let Some(bucket) = self.buckets.get_mut(&key) {
                bucket.recent.pop_back();
                bucket.total = bucket.total.saturating_sub(1);
            }
        }
    }

    fn count(&mut self, key: Key, now: Duration) {
        let bucket = self.buckets.entry(key.clone()).or_default();
        bucket.recent.push_back(now);
        bucket.total = bucket.total.saturating_add(1);
        bucket.last = now;
        self.used.push_back((key, now));
        self.forget();
    }

    /// Forgets the buckets that were not used for longest.
    fn forget(&mut self) {
        while MEMORY < self.buckets.len() || 4 * MEMORY < self.used.len() {
            let Some((key, when)) = self.used.pop_front() else { return };
            let stale = self.buckets.get(&key).is_some_and(|bucket| bucket.last == when);
            if stale && MEMORY < self.buckets.len() {
                self.buckets.remove(&key);
            }
        }
    }
}

impl Bucket {
    fn check(&mut self, scope: &str, rate: Rate, now: Duration) -> Result<(), Exceeded> {
        while self.recent.front().is_some_and(|oldest| *oldest + MINUTE <= now) {
            self.recent.pop_front();
        }
        let over = |limit: Option<u32>, count: usize| {
            limit.is_some_and(|limit| usize::try_from(limit).is_ok_and(|limit| limit <= count))
        };
        if over(rate.per_session, usize::try_from(self.total).unwrap_or(usize::MAX)) {
            return Err(Exceeded { scope: format!("{scope}/session"), retry_after: None });
        }
        if over(rate.per_minute, self.recent.len()) {
            let oldest = self.recent.front().copied().unwrap_or(now);
            let retry_after = Some((oldest + MINUTE).saturating_sub(now));
            return Err(Exceeded { scope: format!("{scope}/minute"), retry_after });
        }
        Ok(())
    }
}

/// The stage: one meter for everybody.
pub struct Limiter {
    config: Config,
    clock: Arc<dyn Clock>,
    meter: Mutex<Meter>,
}

impl Limiter {
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Limiter {
        Limiter { config, clock, meter: Mutex::default() }
    }

    fn judge(
        &self,
        meta_tool: &str,
        call: Option<&ValidCall>,
        charge: Charge,
        context: &Context,
    ) -> Result<(), Refusal> {
        let act = act(meta_tool, call, context);
        let now = self.clock.elapsed();
        let mut meter = self.meter.lock();
        meter.judge(&self.config, &act, charge, now).map_err(Refusal::from)
    }

    fn give_back(&self, meta_tool: &str, call: Option<&ValidCall>, context: &Context) {
        let mut meter = self.meter.lock();
        meter.refund(&self.config, &act(meta_tool, call, context));
    }
}

/// What is about to be done when a meta-tool is used, or a call is made by it.
pub fn act<'a>(meta_tool: &'a str, call: Option<&'a ValidCall>, context: &'a Context) -> Act<'a> {
    let session = context.has_session().then_some(&*context.session);
    // The limits of a function are for calls of it: asking how a task stands
    // must not use up what its next call may cost.
    let tool = call.filter(|call| !call.what.is_aside()).map(|call| call.callee.named());
    Act { session, caller: context.caller.caller_key(), meta_tool, tool }
}

impl Quota for Limiter {
    fn spend<'a>(
        &'a self,
        call: &'a ValidCall,
        context: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        at_hand(self.judge(call.meta_tool(), Some(call), Charge::Count, context))
    }

    fn check<'a>(
        &'a self,
        call: &'a ValidCall,
        context: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        at_hand(self.judge(call.meta_tool(), Some(call), Charge::Check, context))
    }

    fn spend_meta<'a>(
        &'a self,
        tool: &'a str,
        context: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        at_hand(self.judge(tool, None, Charge::Count, context))
    }

    fn refund<'a>(&'a self, call: &'a ValidCall, context: &'a Context) -> QuotaFuture<'a, ()> {
        self.give_back(call.meta_tool(), Some(call), context);
        at_hand(())
    }

    fn refund_meta<'a>(&'a self, tool: &'a str, context: &'a Context) -> QuotaFuture<'a, ()> {
        self.give_back(tool, None, context);
        at_hand(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn rate(value: &Value) -> Rate {
        let limit = |key: &str| value[key].as_u64().map(|limit| limit as u32);
        Rate {
            per_minute: limit("max_calls_per_minute"),
            per_session: limit("max_calls_per_session"),
        }
    }

    #[test]
    fn the_sequence_of_the_vectors_is_judged_alike() {
        let text = include_str!("../tests/vectors/contextweaver_controls.json");
        let vectors: Value = serde_json::from_str(text).unwrap();
        let policy = &vectors["rate_limit_policy"];
        let config = Config {
            meta: ["tool_browse", "tool_execute", "tool_view"]
                .map(|name| (name.to_owned(), rate(&policy[name])))
                .into(),
            tools: policy["per_tool"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(id, limits)| (Pattern::new(id), rate(limits)))
                .collect(),
            identity: Rate::default(),
        };
        let mut meter = Meter::default();
        for step in vectors["rate_limit_sequence"].as_array().unwrap() {
            let named = |id: &'static str| {
                let (upstream, name) = id.split_once(':').unwrap();
                let name = name.split('#').next().unwrap();
                Named { id, upstream, name, shown: crate::pattern::Shown::AsNamed }
            };
            let id = step["tool_id"].as_str().map(|id| -> &'static str { id.to_owned().leak() });
            let act = Act {
                session: Some("s"),
                caller: CallerKey::Address(None),
                meta_tool: step["meta_tool"].as_str().unwrap(),
                tool: id.map(named),
            };
            let charge = if step["record"] == true { Charge::Count } else { Charge::Check };
            let now = Duration::from_secs(step["t"].as_u64().unwrap());
            let judged = meter.judge(&config, &act, charge, now);
            assert_eq!(judged.is_ok(), step["allowed"] == true, "{step}");
            if let Err(exceeded) = judged {
                assert_eq!(exceeded.scope, step["scope"]);
                let after = exceeded.retry_after.map(|after| after.as_secs_f64());
                assert_eq!(after, step["retry_after"].as_f64());
            }
        }
    }

    fn act<'a>(session: &'a str, subject: &'a str) -> Act<'a> {
        let caller = match subject {
            "" => CallerKey::Address(None),
            subject => CallerKey::Subject(subject),
        };
        Act { session: Some(session), caller, meta_tool: "tool_execute", tool: None }
    }

    #[test]
    fn a_new_session_or_another_name_of_the_client_gains_nothing() {
        let config = Config {
            meta: vec![("tool_execute".into(), Rate { per_minute: Some(3), per_session: None })],
            ..Config::default()
        };
        let address = |text: &str| CallerKey::Address(Some(text.parse().unwrap()));
        for caller in [CallerKey::Subject("ann"), address("192.0.2.7"), CallerKey::Address(None)] {
            let mut meter = Meter::default();
            let mut judge = |session, caller| {
                let act = Act { caller, ..act(session, "") };
                meter.judge(&config, &act, Charge::Count, Duration::ZERO).is_ok()
            };
            assert!(judge("1", caller) && judge("2", caller) && judge("3", caller));
            assert!(!judge("4", caller), "{caller:?}");
            assert!(judge("5", CallerKey::Subject("bob")) && judge("6", address("192.0.2.8")));
        }
    }

    #[test]
    fn a_request_without_a_session_counts_for_its_caller() {
        let context = |session: &str| Context {
            caller: Arc::new(tool::Identity { subject: "ann".into(), ..Default::default() }),
            session: session.into(),
            ..Context::anonymous()
        };
        for session in ["", "implied:3:ann1:a", "implied:3:ann1:b"] {
            let context = context(session);
            assert_eq!(super::act("call", None, &context).session, None, "{session}");
        }
        let real = context("6a1f");
        assert_eq!(super::act("call", None, &real).session, Some("6a1f"));
    }

    proptest::proptest! {
        /// Whatever separates words: names that would run together stay apart.
        #[test]
        fn callers_are_counted_apart_whatever_is_in_their_names(
            left in "[a@:/#|\\x1f ]{1,6}", right in "[a@:/#|\\x1f ]{1,6}",
            session in "[a@:/#|\\x1f ]{0,6}", other in "[a@:/#|\\x1f ]{0,6}",
        ) {
            proptest::prop_assume!(left != right);
            let rate = Rate { per_minute: Some(1), per_session: Some(1) };
            let config = Config {
                meta: vec![("tool_execute".into(), rate)],
                identity: rate,
                ..Config::default()
            };
            let mut meter = Meter::default();
            let judge = |meter: &mut Meter, session: &str, subject: &str| {
                meter.judge(&config, &act(session, subject), Charge::Count, Duration::ZERO).is_ok()
            };
            let session = format!("1{session}");
            let other = format!("2{other}");
            proptest::prop_assert!(judge(&mut meter, &session, &left));
            proptest::prop_assert!(judge(&mut meter, &other, &right));
            proptest::prop_assert!(!judge(&mut meter, &other, &left));
        }
    }

    #[test]
    fn an_identity_is_limited_over_all_its_sessions() {
        let config = Config {
            identity: Rate { per_minute: Some(2), per_session: None },
            ..Config::default()
        };
        let mut meter = Meter::default();
        let mut judge = |session, subject| {
            meter.judge(&config, &act(session, subject), Charge::Count, Duration::ZERO).is_ok()
        };
        assert!(judge("a", "ann") && judge("b", "ann"));
        assert!(!judge("c", "ann"));
        assert!(judge("c", "bob"));
        assert!(judge("c", "") && judge("c", "") && judge("c", ""));
    }

    #[test]
    fn a_refused_act_costs_nothing() {
        let config = Config {
            meta: vec![("tool_execute".into(), Rate { per_minute: Some(1), per_session: Some(2) })],
            ..Config::default()
        };
        let mut meter = Meter::default();
        let mut judge = |seconds| {
            let now = Duration::from_secs(seconds);
            meter.judge(&config, &act("s", ""), Charge::Count, now).map_err(|e| e.scope)
        };
        assert_eq!(judge(0), Ok(()));
        for second in 1..30 {
            assert_eq!(judge(second), Err("tool_execute/minute".to_owned()));
        }
        assert_eq!(judge(60), Ok(()));
        assert_eq!(judge(200), Err("tool_execute/session".to_owned()));
    }

    #[test]
    fn memory_is_bounded() {
        let config = Config {
            meta: vec![("tool_execute".into(), Rate { per_minute: Some(1), per_session: None })],
            ..Config::default()
        };
        let mut meter = Meter::default();
        for n in 0..(MEMORY as u64 + 500) {
            let subject = format!("s{n}");
            let now = Duration::from_millis(n);
            meter.judge(&config, &act("", &subject), Charge::Count, now).unwrap();
        }
        assert_eq!(meter.buckets.len(), MEMORY);
        let who = Who::Subject("s0".into());
        let first = Key { who, what: What::MetaTool("tool_execute".into()) };
        assert!(!meter.buckets.contains_key(&first));
    }
}
