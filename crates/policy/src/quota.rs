//! Quotas: how often a meta-tool, a tool or an identity may be used, per minute and
//! per session.
//!
//! Limits per minute count over all sessions of a caller, so opening a new session
//! gains nothing. An anonymous caller is identified by its network address.
//!
//! All limits that apply to a call are checked before any is charged, so a refused
//! call costs nothing. The state is bounded: the buckets that were not used for
//! longest are dropped first.
//!
//! A [`Limiter`] counts in this process. A store that counts for several processes
//! uses [`Config::claims`] instead.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Either, Ready, ready};
use parking_lot::Mutex;
use tool::{CallerKey, Context};

use crate::pattern::{Names, Pattern};
use crate::refusal::{Refusal, RefusalCode};
use crate::validate::ValidCall;
use tool::clock::Clock;

/// An answer that is ready at once, or comes from a store that several processes
/// share.
pub type QuotaFuture<'a, T> = Either<Ready<T>, BoxFuture<'a, T>>;

/// Wraps an answer that is ready at once.
pub fn ready_now<'a, T>(answer: T) -> QuotaFuture<'a, T> {
    Either::Left(ready(answer))
}

/// The quota stage: limits how often calls may be made.
pub trait Quota: Send + Sync {
    /// Charges this call, or refuses it and says when to come again.
    fn spend<'a>(
        &'a self,
        call: &'a ValidCall,
        context: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>>;

    /// Gives back what [`Quota::spend`] charged, for a call that was not made after
    /// all.
    fn refund<'a>(&'a self, _: &'a ValidCall, _: &'a Context) -> QuotaFuture<'a, ()> {
        ready_now(())
    }

    /// What [`Quota::spend`] would answer, without charging anything.
    fn check<'a>(
        &'a self,
        _: &'a ValidCall,
        _: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        ready_now(Ok(()))
    }

    /// Charges the use of a meta-tool (one of a surface's own tools).
    fn spend_meta<'a>(
        &'a self,
        _tool: &'a str,
        _: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        ready_now(Ok(()))
    }

    /// Gives back what [`Quota::spend_meta`] charged.
    fn refund_meta<'a>(&'a self, _tool: &'a str, _: &'a Context) -> QuotaFuture<'a, ()> {
        ready_now(())
    }
}

/// The window of a rate.
const MINUTE: Duration = Duration::from_secs(60);
/// The most buckets (of sessions and callers) that are kept at once.
const MAX_BUCKETS: usize = 10_000;

/// The limits. There are none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Limits of meta-tools by name (`tool_execute`, …), for each caller or session.
    pub meta: Vec<(String, Rate)>,
    /// Limits of tools, for each caller or session.
    pub tools: Vec<(Pattern, Rate)>,
    /// The limit of each identity, over all its sessions and tools.
    pub identity: Rate,
}

/// How often something may be used. `None` means without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    pub per_minute: Option<u32>,
    pub per_session: Option<u32>,
}

/// One use of a meta-tool, and maybe of an upstream's tool, to be counted.
#[derive(Clone, Copy, Debug)]
pub struct Usage<'a> {
    /// `None` where there are no sessions; then limits per session count per caller.
    pub session: Option<&'a str>,
    pub caller: CallerKey<'a>,
    pub meta_tool: &'a str,
    pub tool: Option<Names<'a>>,
}

/// A limit that is reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rate limit exceeded ({scope})")]
pub struct Exceeded {
    /// The limit that is reached: `tool_execute/minute`, `tool:<id>/session`.
    pub scope: String,
    /// When to come again; `None` when waiting does not help.
    pub retry_after: Option<Duration>,
}

impl From<Exceeded> for Refusal {
    fn from(exceeded: Exceeded) -> Refusal {
        let message = exceeded.to_string();
        Refusal { code: RefusalCode::RateLimited, message, retry_after: exceeded.retry_after }
    }
}

/// One limit that a usage counts against, for a store that counts elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateClaim {
    /// The name of the limit, as in [`Exceeded`].
    pub scope: String,
    /// The key of the counter. Everything before the first `/` is the caller.
    pub key: String,
    pub limit: u32,
    /// How long a usage counts; for as long as the session when `None`.
    pub window: Option<Duration>,
}

/// Whether a usage is counted or only checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    Count,
    Check,
}

/// Counts usages, in one bucket for each caller and limit.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    buckets: HashMap<BucketKey, Bucket>,
    /// Buckets by when they were last used, oldest first; may hold doubles.
    used: VecDeque<(BucketKey, Duration)>,
}

/// Usages with the same key are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BucketKey {
    owner: CallerOrSession,
    counted: CountedThing,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CallerOrSession {
    Session(Box<str>),
    Subject(Box<str>),
    Address(Option<IpAddr>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CountedThing {
    MetaTool(Box<str>),
    /// Tools, by the pattern of the limit that applies to them.
    Tool(Box<str>),
    Everything,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    /// The times of the usages in the last minute.
    recent: VecDeque<Duration>,
    total: u32,
    last_used: Duration,
}

impl Config {
    /// Every limit that a usage counts against.
    pub fn claims(&self, usage: &Usage<'_>) -> Vec<RateClaim> {
        let caller = CallerOrSession::from_caller_key(usage.caller).to_key_text();
        let mut claims = Vec::new();
        for (scope, BucketKey { owner, counted }, rate) in self.limits(usage) {
            let owner = match owner {
                CallerOrSession::Session(session) => format!("{caller}/session {session:?}"),
                CallerOrSession::Subject(_) | CallerOrSession::Address(_) => caller.clone(),
            };
            let limits =
                [(rate.per_session, "session", None), (rate.per_minute, "minute", Some(MINUTE))];
            for (limit, unit, window) in limits {
                let Some(limit) = limit else { continue };
                let (scope, key) =
                    (format!("{scope}/{unit}"), format!("{owner}/{counted:?}/{unit}"));
                claims.push(RateClaim { scope, key, limit, window });
            }
        }
        claims
    }

    /// The limits that apply to a usage: the limit's name, the bucket's key, the rate.
    fn limits(&self, usage: &Usage<'_>) -> Vec<(String, BucketKey, Rate)> {
        let mut limits = Vec::new();
        for (_, rate) in self.meta.iter().filter(|(name, _)| name == usage.meta_tool) {
            let counted = CountedThing::MetaTool(usage.meta_tool.into());
            push_limits(&mut limits, usage.meta_tool, usage, &counted, *rate);
        }
        if let Some(tool) = usage.tool {
            // Of two lookalikes, each has the limit that is meant for it.
            let exact = self.tools.iter().find(|(pattern, _)| pattern.matches_exactly(tool));
            let wide = || self.tools.iter().find(|(pattern, _)| pattern.may_match(tool));
            if let Some((pattern, rate)) = exact.or_else(wide) {
                let counted = CountedThing::Tool(pattern.as_str().into());
                push_limits(&mut limits, &format!("tool:{}", tool.id), usage, &counted, *rate);
            }
        }
        if let CallerKey::Subject(_) = usage.caller
            && self.identity != Rate::default()
        {
            let key = BucketKey {
                owner: CallerOrSession::from_caller_key(usage.caller),
                counted: CountedThing::Everything,
            };
            limits.push(("identity".to_owned(), key, self.identity));
        }
        limits
    }
}

/// Adds the limits of a rate: the one per session and the one per caller.
fn push_limits(
    limits: &mut Vec<(String, BucketKey, Rate)>,
    scope: &str,
    usage: &Usage<'_>,
    counted: &CountedThing,
    rate: Rate,
) {
    let caller = || CallerOrSession::from_caller_key(usage.caller);
    if rate.per_session.is_some() {
        let owner =
            usage.session.map_or_else(caller, |session| CallerOrSession::Session(session.into()));
        let key = BucketKey { owner, counted: counted.clone() };
        limits.push((scope.to_owned(), key, Rate { per_minute: None, ..rate }));
    }
    if rate.per_minute.is_some() {
        let key = BucketKey { owner: caller(), counted: counted.clone() };
        // Where there are no sessions, both share one bucket.
        match limits.last_mut() {
            Some((_, last, other)) if *last == key => other.per_minute = rate.per_minute,
            _ => limits.push((scope.to_owned(), key, Rate { per_session: None, ..rate })),
        }
    }
}

impl CallerOrSession {
    fn from_caller_key(caller: CallerKey<'_>) -> CallerOrSession {
        match caller {
            CallerKey::Subject(subject) => CallerOrSession::Subject(subject.into()),
            CallerKey::Address(address) => CallerOrSession::Address(address),
        }
    }
}

impl CallerOrSession {
    /// A unique text without a `/`.
    fn to_key_text(&self) -> String {
        let escaped = |text: &str| text.replace('%', "%25").replace('/', "%2f");
        match self {
            CallerOrSession::Session(session) => format!("session {}", escaped(session)),
            CallerOrSession::Subject(subject) => format!("subject {}", escaped(subject)),
            CallerOrSession::Address(Some(address)) => format!("address {address}"),
            CallerOrSession::Address(None) => "address".to_owned(),
        }
    }
}

impl Meter {
    /// Checks a usage against the limits, and counts it if `charge` says so.
    pub fn judge(
        &mut self,
        config: &Config,
        usage: &Usage<'_>,
        charge: Charge,
        now: Duration,
    ) -> Result<(), Exceeded> {
        let limits = config.limits(usage);
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

    /// Takes back the last count of a usage.
    pub fn refund(&mut self, config: &Config, usage: &Usage<'_>) {
        for (_, key, _) in config.limits(usage) {
            if let Some(bucket) = self.buckets.get_mut(&key) {
                bucket.recent.pop_back();
                bucket.total = bucket.total.saturating_sub(1);
            }
        }
    }

    fn count(&mut self, key: BucketKey, now: Duration) {
        let bucket = self.buckets.entry(key.clone()).or_default();
        bucket.recent.push_back(now);
        bucket.total = bucket.total.saturating_add(1);
        bucket.last_used = now;
        self.used.push_back((key, now));
        self.drop_oldest();
    }

    /// Drops the buckets that were not used for longest.
    fn drop_oldest(&mut self) {
        while MAX_BUCKETS < self.buckets.len() || 4 * MAX_BUCKETS < self.used.len() {
            let Some((key, when)) = self.used.pop_front() else { return };
            let stale = self.buckets.get(&key).is_some_and(|bucket| bucket.last_used == when);
            if stale && MAX_BUCKETS < self.buckets.len() {
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

/// The quota stage of one process: one meter for all callers.
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
        let usage = usage(meta_tool, call, context);
        let now = self.clock.elapsed();
        let mut meter = self.meter.lock();
        meter.judge(&self.config, &usage, charge, now).map_err(Refusal::from)
    }

    fn take_back(&self, meta_tool: &str, call: Option<&ValidCall>, context: &Context) {
        let mut meter = self.meter.lock();
        meter.refund(&self.config, &usage(meta_tool, call, context));
    }
}

/// The usage to count when a meta-tool is used, by itself or to make a call.
pub fn usage<'a>(
    meta_tool: &'a str,
    call: Option<&'a ValidCall>,
    context: &'a Context,
) -> Usage<'a> {
    let session = context.has_session().then_some(&*context.session);
    // The limits of a function count its calls only: asking for the state of a task
    // must not use up the next call.
    let tool =
        call.filter(|call| !call.kind.belongs_to_other_call()).map(|call| call.callee.names());
    Usage { session, caller: context.caller.caller_key(), meta_tool, tool }
}

impl Quota for Limiter {
    fn spend<'a>(
        &'a self,
        call: &'a ValidCall,
        context: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        ready_now(self.judge(call.meta_tool(), Some(call), Charge::Count, context))
    }

    fn check<'a>(
        &'a self,
        call: &'a ValidCall,
        context: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        ready_now(self.judge(call.meta_tool(), Some(call), Charge::Check, context))
    }

    fn spend_meta<'a>(
        &'a self,
        tool: &'a str,
        context: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        ready_now(self.judge(tool, None, Charge::Count, context))
    }

    fn refund<'a>(&'a self, call: &'a ValidCall, context: &'a Context) -> QuotaFuture<'a, ()> {
        self.take_back(call.meta_tool(), Some(call), context);
        ready_now(())
    }

    fn refund_meta<'a>(&'a self, tool: &'a str, context: &'a Context) -> QuotaFuture<'a, ()> {
        self.take_back(tool, None, context);
        ready_now(())
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
                Names { id, upstream, name, exposed: crate::pattern::ExposedNameRef::UpstreamName }
            };
            let id = step["tool_id"].as_str().map(|id| -> &'static str { id.to_owned().leak() });
            let usage = Usage {
                session: Some("s"),
                caller: CallerKey::Address(None),
                meta_tool: step["meta_tool"].as_str().unwrap(),
                tool: id.map(named),
            };
            let charge = if step["record"] == true { Charge::Count } else { Charge::Check };
            let now = Duration::from_secs(step["t"].as_u64().unwrap());
            let judged = meter.judge(&config, &usage, charge, now);
            assert_eq!(judged.is_ok(), step["allowed"] == true, "{step}");
            if let Err(exceeded) = judged {
                assert_eq!(exceeded.scope, step["scope"]);
                let after = exceeded.retry_after.map(|after| after.as_secs_f64());
                assert_eq!(after, step["retry_after"].as_f64());
            }
        }
    }

    fn usage<'a>(session: &'a str, subject: &'a str) -> Usage<'a> {
        let caller = match subject {
            "" => CallerKey::Address(None),
            subject => CallerKey::Subject(subject),
        };
        Usage { session: Some(session), caller, meta_tool: "tool_execute", tool: None }
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
                let usage = Usage { caller, ..usage(session, "") };
                meter.judge(&config, &usage, Charge::Count, Duration::ZERO).is_ok()
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
            assert_eq!(super::usage("call", None, &context).session, None, "{session}");
        }
        let real = context("6a1f");
        assert_eq!(super::usage("call", None, &real).session, Some("6a1f"));
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
                meter.judge(&config, &usage(session, subject), Charge::Count, Duration::ZERO).is_ok()
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
            meter.judge(&config, &usage(session, subject), Charge::Count, Duration::ZERO).is_ok()
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
            meter.judge(&config, &usage("s", ""), Charge::Count, now).map_err(|e| e.scope)
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
        for n in 0..(MAX_BUCKETS as u64 + 500) {
            let subject = format!("s{n}");
            let now = Duration::from_millis(n);
            meter.judge(&config, &usage("", &subject), Charge::Count, now).unwrap();
        }
        assert_eq!(meter.buckets.len(), MAX_BUCKETS);
        let owner = CallerOrSession::Subject("s0".into());
        let first = BucketKey { owner, counted: CountedThing::MetaTool("tool_execute".into()) };
        assert!(!meter.buckets.contains_key(&first));
    }
}
