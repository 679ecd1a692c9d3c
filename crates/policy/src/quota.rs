//! How often things may be done: by meta-tool, by tool, by identity; in a
//! minute and in a session.
//!
//! All limits that apply to a call are looked at before any is charged, so a
//! refused call costs nothing. The state is bounded: sessions that were not
//! seen for longest are forgotten first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tool::Context;

use crate::pattern::{Named, Pattern};
use crate::refusal::{Refusal, Refused};
use crate::validate::ValidCall;
use tool::clock::Clock;

/// How often calls may be made.
pub trait Quota: Send + Sync {
    /// Takes what this call costs, or says when to come again.
    fn spend(&self, call: &ValidCall, context: &Context) -> Result<(), Refusal>;

    /// Gives back what [`Quota::spend`] took, for a call that was not let
    /// through after all.
    fn refund(&self, _: &ValidCall, _: &Context) {}

    /// What [`Quota::spend`] would say, without taking anything.
    fn check(&self, _: &ValidCall, _: &Context) -> Result<(), Refusal> {
        Ok(())
    }

    /// Takes what using one of a surface's own tools costs.
    fn spend_meta(&self, _tool: &str, _: &Context) -> Result<(), Refusal> {
        Ok(())
    }

    /// Gives back what [`Quota::spend_meta`] took.
    fn refund_meta(&self, _tool: &str, _: &Context) {}
}

/// The window of a rate.
const MINUTE: Duration = Duration::from_secs(60);
/// How many sessions and identities are remembered at once.
const MEMORY: usize = 10_000;

/// What is limited. Nothing, by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Per session and meta-tool, by name: `tool_execute`, `tool_browse`, …
    pub meta: Vec<(String, Rate)>,
    /// Per session and tool.
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
    pub session: &'a str,
    /// Empty for an anonymous caller, whom only the session limits.
    pub subject: &'a str,
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

/// Whether an act is counted or only checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    Count,
    Check,
}

/// What was done so far.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    buckets: HashMap<String, Bucket>,
    /// Buckets by when they were last used, oldest first; may hold doubles.
    used: VecDeque<(String, Duration)>,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    recent: VecDeque<Duration>,
    total: u32,
    last: Duration,
}

impl Config {
    /// The limits that apply to an act: scope, key of its bucket, rate.
    fn limits(&self, act: &Act<'_>) -> Vec<(String, String, Rate)> {
        let mut limits = Vec::new();
        let session = act.session;
        for (_, rate) in self.meta.iter().filter(|(name, _)| name == act.meta_tool) {
            let scope = act.meta_tool.to_owned();
            limits.push((scope, format!("s\u{1f}{session}\u{1f}{}", act.meta_tool), *rate));
        }
        if let Some(tool) = act.tool {
            let named = |(pattern, _): &&(Pattern, Rate)| pattern.names(tool);
            if let Some((pattern, rate)) = self.tools.iter().find(named) {
                let key = format!("t\u{1f}{session}\u{1f}{}", pattern.as_str());
                limits.push((format!("tool:{}", tool.id), key, *rate));
            }
        }
        if !act.subject.is_empty() && self.identity != Rate::default() {
            limits.push(("identity".to_owned(), format!("i\u{1f}{}", act.subject), self.identity));
        }
        limits
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

    fn count(&mut self, key: String, now: Duration) {
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
        meter.judge(&self.config, &act, charge, now).map_err(|exceeded| Refusal {
            code: Refused::RateLimited,
            message: exceeded.to_string(),
            retry_after: exceeded.retry_after,
        })
    }
}

impl Limiter {
    fn refund(&self, meta_tool: &str, call: Option<&ValidCall>, context: &Context) {
        let mut meter = self.meter.lock();
        meter.refund(&self.config, &act(meta_tool, call, context));
    }
}

fn act<'a>(meta_tool: &'a str, call: Option<&'a ValidCall>, context: &'a Context) -> Act<'a> {
    let subject = context.caller.subject.as_str();
    // Without sessions an identity's calls count as one.
    let session = if context.session.is_empty() { subject } else { context.kin() };
    // The limits of a function are for calls of it: asking how a task stands
    // must not use up what its next call may cost.
    let tool = call.filter(|call| !call.what.is_aside()).map(|call| call.callee.named());
    Act { session, subject, meta_tool, tool }
}

impl Quota for Limiter {
    fn spend(&self, call: &ValidCall, context: &Context) -> Result<(), Refusal> {
        self.judge(call.meta_tool(), Some(call), Charge::Count, context)
    }

    fn check(&self, call: &ValidCall, context: &Context) -> Result<(), Refusal> {
        self.judge(call.meta_tool(), Some(call), Charge::Check, context)
    }

    fn spend_meta(&self, tool: &str, context: &Context) -> Result<(), Refusal> {
        self.judge(tool, None, Charge::Count, context)
    }

    fn refund(&self, call: &ValidCall, context: &Context) {
        Limiter::refund(self, call.meta_tool(), Some(call), context);
    }

    fn refund_meta(&self, tool: &str, context: &Context) {
        Limiter::refund(self, tool, None, context);
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
                Named { id, upstream, name: name.split('#').next().unwrap() }
            };
            let id = step["tool_id"].as_str().map(|id| -> &'static str { id.to_owned().leak() });
            let act = Act {
                session: "s",
                subject: "",
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
        Act { session, subject, meta_tool: "tool_execute", tool: None }
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
            let session = format!("s{n}");
            let now = Duration::from_millis(n);
            meter.judge(&config, &act(&session, ""), Charge::Count, now).unwrap();
        }
        assert_eq!(meter.buckets.len(), MEMORY);
        assert!(!meter.buckets.contains_key("s\u{1f}s0\u{1f}tool_execute"));
    }
}
