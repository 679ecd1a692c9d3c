//! Errors that put the next attempt right.

mod stray;

use std::time::Duration;

use catalog::summary::{cut, echo as short};
use catalog::{Problem, Slot, Unresolved};
use serde_json::json;
use tool::{Failure, Json, Object, Reply, RpcError, Sent};

use super::View;
use super::arguments::{BadCall, CallArguments, Mistaken, Wrong};
use crate::builtin::line;
use crate::dispatch::CallError;
use crate::surface::oversize::annotated;
use policy::code::{Code, classify};
use policy::refusal::Refusal;

/// How many likely meanings are named.
const NEAR: usize = 3;
/// How much of an upstream's error goes on as it is.
const REJECTED: usize = 2_000;

/// A namespace of so few functions is told whole.
const FEW: usize = 5;
/// So many of a larger one are told, however little they are like a name.
const OWN: usize = 2;

impl View<'_> {
    /// A function that may change something, asked for where only reading is
    /// allowed.
    pub(super) fn may_change(&self, slot: Slot) -> Reply {
        let catalog = &self.snapshot.catalog;
        let (path, name) = (catalog.path(slot), &catalog.function(slot).name);
        Reply::error_text(&format!(
            "**Error:** `{name}` of `{path}` is not known to change nothing: run it with `call`. \
             The operator can name what only reads in `read_only`, or vouch for what says so with \
             `gatelet trust grant`."
        ))
    }

    /// Whether a function exists as far as this caller is concerned.
    pub(super) fn sees(&self, slot: Slot) -> bool {
        self.visible.shows_function(&self.snapshot.catalog, slot)
    }

    /// The function that is meant. What the caller may not see is unknown.
    pub(super) fn resolve(&self, namespace: &str, function: &str) -> Result<Slot, Unresolved> {
        let catalog = &self.snapshot.catalog;
        match catalog.resolve(namespace, function) {
            Ok(slot) if self.sees(slot) => Ok(slot),
            Ok(_) => match catalog.namespace(namespace) {
                Ok(found) if self.shows(found) => Err(Unresolved::Function),
                Ok(_) | Err(_) => Err(Unresolved::Namespace),
            },
            Err(Unresolved::Function) => match catalog.namespace(namespace) {
                Ok(found) if self.shows(found) => Err(Unresolved::Function),
                Ok(_) | Err(_) => Err(Unresolved::Namespace),
            },
            // Of what they may not see nobody is told that it is alike.
            Err(Unresolved::Ambiguous) => match self.alike(namespace, function).as_slice() {
                [] => match catalog.namespace(namespace) {
                    Ok(found) if self.shows(found) => Err(Unresolved::Function),
                    Ok(_) | Err(_) => Err(Unresolved::Namespace),
                },
                [only] => Ok(*only),
                _ => Err(Unresolved::Ambiguous),
            },
            Err(unresolved) => Err(unresolved),
        }
    }

    /// The functions that a name means which several have, as far as the caller
    /// sees them.
    fn alike(&self, namespace: &str, function: &str) -> Vec<Slot> {
        let alike = self.snapshot.catalog.alike(namespace, function).iter().copied();
        alike.filter(|slot| self.sees(*slot)).collect()
    }

    pub(super) fn unknown(&self, why: &Unresolved, arguments: &CallArguments) -> Reply {
        let CallArguments { namespace, function, .. } = arguments;
        if let Some(reply) = self.unavailable(why, namespace) {
            return reply;
        }
        let code = match why {
            Unresolved::Malformed => Code::PathInvalid,
            Unresolved::Namespace | Unresolved::Function | Unresolved::Ambiguous => {
                Code::PathNotFound
            }
        };
        wrong(&self.no_such(why, namespace, function), code, Retry::Never)
    }

    /// What is said of something unknown whose upstream is away: that may have
    /// it, and nobody can tell now.
    pub(super) fn unavailable(&self, why: &Unresolved, namespace: &str) -> Option<Reply> {
        match why {
            Unresolved::Malformed | Unresolved::Ambiguous => return None,
            Unresolved::Namespace | Unresolved::Function => {}
        }
        let catalog = &self.snapshot.catalog;
        let found = catalog.deepest_namespace(namespace).filter(|found| self.shows(found))?;
        let reason = self.away(found)?;
        let upstream = found.source.map(|source| catalog.sources()[source].label.as_str());
        let told = format!(
            "**Error:** `{}` is unavailable: {reason}. \
             `call(namespace=\"gatelet\", function=\"status\")` tells how it fares.",
            found.path
        );
        Some(unanswered(&told, Code::UpstreamUnavailable, Retry::Perhaps, upstream, Sent::No))
    }

    /// What is missing, what was probably meant, and where to look.
    pub(super) fn no_such(&self, why: &Unresolved, namespace: &str, function: &str) -> String {
        let mut text = match why {
            Unresolved::Malformed => format!(
                "**Error:** `{}` is no namespace: levels are separated by single dots.",
                short(namespace)
            ),
            Unresolved::Namespace => format!("**Error:** No namespace `{}`.", short(namespace)),
            Unresolved::Function if namespace.is_empty() => {
                format!("**Error:** No function `{}` in the root namespace.", short(function))
            }
            Unresolved::Function => format!(
                "**Error:** No function `{}` in namespace `{}`.",
                short(function),
                short(namespace)
            ),
            Unresolved::Ambiguous => format!(
                "**Error:** `{}` could be any of several functions in namespace `{}`: use the \
                 exact spelling.",
                short(function),
                short(namespace)
            ),
        };
        if namespace.is_empty() && ["call", "help", "skill"].contains(&function) {
            return format!("{text} `{function}` is a tool of its own, beside `call`.");
        }
        let near = self.near(why, namespace, function);
        if !near.is_empty() {
            text.push_str(" Nearest:\n");
            text.push_str(&near.join("\n"));
        }
        text.push(if near.is_empty() { ' ' } else { '\n' });
        text.push_str(&match why {
            Unresolved::Function | Unresolved::Ambiguous if !namespace.is_empty() => {
                format!(
                    "Use `help(namespace=\"{}\")` to see available functions.",
                    short(namespace)
                )
            }
            Unresolved::Function
            | Unresolved::Namespace
            | Unresolved::Malformed
            | Unresolved::Ambiguous => "Use `help()` to see available namespaces.".to_owned(),
        });
        text
    }

    fn near(&self, why: &Unresolved, namespace: &str, function: &str) -> Vec<String> {
        let catalog = &self.snapshot.catalog;
        let sees = |slot| self.sees(slot);
        if *why == Unresolved::Ambiguous {
            let alike = self.alike(namespace, function);
            return alike.into_iter().take(FEW).map(|slot| line(catalog, slot)).collect();
        }
        if let Some(slot) = self.joined(namespace, function) {
            return vec![line(catalog, slot)];
        }
        let by = self.visible.guesses_by();
        let mut lines = Vec::new();
        if *why != Unresolved::Function {
            let near = catalog.nearest_namespaces(namespace, 4 * NEAR, by, &sees);
            for found in near.into_iter().filter(|found| self.shows(found)).take(NEAR) {
                match catalog.resolve(&found.path, function) {
                    Ok(slot) if self.sees(slot) => lines.push(line(catalog, slot)),
                    Ok(_) | Err(_) => lines.push(format!("- namespace `{}`", short(&found.path))),
                }
            }
        }
        let mut slots = Vec::new();
        if !function.is_empty() {
            slots = catalog.nearest_functions(namespace, function, NEAR, by, &sees);
        }
        for slot in self.likely(namespace, function, slots) {
            let told = line(catalog, slot);
            if !lines.contains(&told) && lines.len() < FEW + 1 {
                lines.push(told);
            }
        }
        lines
    }

    /// The functions that may be meant, of those that are near. Whoever names a
    /// namespace that there is means something in it: its own come before
    /// others, some of them in any case, and all where they are few.
    fn likely(&self, namespace: &str, function: &str, mut near: Vec<Slot>) -> Vec<Slot> {
        let home = self.snapshot.catalog.namespace(namespace).ok();
        let home = home.filter(|home| !home.path.is_empty());
        let own = home.map(|home| home.functions.as_slice()).unwrap_or_default();
        let own: Vec<Slot> = own.iter().copied().filter(|slot| self.sees(*slot)).collect();
        near.sort_by_key(|slot| !own.contains(slot));
        let n_near = near.iter().filter(|slot| own.contains(slot)).count();
        let room = if own.len() <= FEW { FEW } else { OWN.saturating_sub(n_near) };
        let rest: Vec<Slot> = own.into_iter().filter(|slot| !near.contains(slot)).collect();
        let rest = self.snapshot.catalog.by_likeness(function, rest);
        near.splice(n_near..n_near, rest.into_iter().take(room));
        near
    }

    /// The function that is meant where its whole address stands in one
    /// argument, the commonest slip; some write it with other marks.
    fn joined(&self, namespace: &str, function: &str) -> Option<Slot> {
        let joined = format!("{namespace}.{function}").replace(['/', ':'], ".");
        let (path, name) = joined.trim_matches('.').rsplit_once('.')?;
        self.resolve(path, name).ok()
    }

    /// A call of a function, as far as its arguments.
    fn address(&self, slot: Slot) -> String {
        let catalog = &self.snapshot.catalog;
        let (path, name) = (catalog.path(slot), &catalog.function(slot).name);
        format!("call(namespace=\"{path}\", function=\"{name}\", ")
    }

    /// Everything that is wrong with a call that was never made.
    pub(super) fn bad_call(&self, problem: BadCall) -> Reply {
        let Mistaken { call, wrong: mistakes, flat } = match problem {
            BadCall::Mistaken(mistaken) => *mistaken,
            BadCall::NoObject => {
                let told = "**Error:** The arguments must be an object.";
                return wrong(told, Code::ArgsInvalid, Retry::Never);
            }
        };
        let said: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        let is_named = !mistakes.iter().any(|mistake| match mistake {
            Wrong::Namespace | Wrong::Function | Wrong::NoFunction => true,
            Wrong::Kwargs | Wrong::Size => false,
        });
        let told = match self.resolve(&call.namespace, &call.function) {
            Ok(slot) if is_named => self.mended(slot, said, &flat, call),
            Err(why) if is_named && said.is_empty() => return self.unknown(&why, &call),
            Err(why) if is_named => {
                let missing = self.no_such(&why, &call.namespace, &call.function);
                format!("**Error:** {}.\n{missing}", said.join("; "))
            }
            Ok(_) | Err(_) => {
                let next = match mistakes.contains(&Wrong::Namespace) {
                    true => String::new(),
                    false => format!(" {}", self.functionless(&call.namespace)),
                };
                format!("**Error:** {}.{next}", said.join("; "))
            }
        };
        wrong(&told, Code::ArgsInvalid, Retry::Never)
    }

    /// Where to look for a function when only a namespace is known, which may
    /// be the whole address.
    fn functionless(&self, namespace: &str) -> String {
        if let Some(slot) = self.joined(namespace, "") {
            return format!("Write: `{}kwargs={{…}})`.", self.address(slot));
        }
        match self.snapshot.catalog.namespace(namespace) {
            Ok(found) if !found.path.is_empty() && self.shows(found) => {
                let path = &found.path;
                format!("Use `help(namespace=\"{path}\")` to see its functions.")
            }
            Ok(_) | Err(_) => "Use `help()` to see what there is.".to_owned(),
        }
    }

    pub(super) fn bad_kwargs(&self, slot: Slot, problems: &[Problem]) -> Reply {
        let catalog = &self.snapshot.catalog;
        let (path, name) = (catalog.path(slot), &catalog.function(slot).name);
        let lines: Vec<String> = problems.iter().map(|problem| format!("- {problem}")).collect();
        let told = format!(
            "**Error:** The kwargs of `{path}.{name}` do not fit:\n{}\nSignature: {}\nUse \
             `help(namespace=\"{path}\", function=\"{name}\")` for details.",
            lines.join("\n"),
            catalog.shaped_signature(slot, 600),
        );
        wrong(&told, Code::ArgsInvalid, Retry::Never)
    }

    /// An upstream's refusal of the request as such. It goes on as it came
    /// unless it is long: then on one line, cut, without what is too long of it.
    pub(super) fn rejected(&self, error: RpcError) -> Reply {
        if error.raw.as_str().len() <= REJECTED {
            return Reply::Error(error);
        }
        let scrubber = &self.cash.pipeline.scrubber;
        let mut raw = Object::new();
        raw.push("code", Json::encode(&error.code));
        raw.push("message", Json::encode(&scrubber.collapse(&error.message)));
        let data = error.raw.member("data").filter(|data| data.as_str().len() <= REJECTED);
        data.into_iter().for_each(|data| raw.push("data", data));
        Reply::Error(RpcError::read(raw.to_json()))
    }

    /// Why the pipeline does not let something through.
    pub(super) fn refusal(&self, refusal: &Refusal) -> Reply {
        let told = format!("**Error:** {}", refused(refusal));
        let retry = refusal.retry_after.map_or(Retry::Never, Retry::After);
        wrong(&told, refusal.code.code(), retry)
    }

    pub(super) fn failed(&self, slot: Slot, error: &CallError) -> Reply {
        match error {
            CallError::BadArguments { problems } => self.bad_kwargs(slot, problems),
            CallError::Refused(refusal) => self.refusal(refusal),
            CallError::Failed { upstream, cause } => {
                // What an upstream says when it fails may hold its credentials.
                let told = told(upstream, cause);
                let told = self.cash.pipeline.scrubber.scrub(&told);
                let code = classify(cause);
                let retry = match cause.retry_after() {
                    Some(after) => Retry::After(after),
                    None if code.passes() => Retry::Perhaps,
                    None => Retry::Never,
                };
                let text = format!("**Error:** {told}");
                unanswered(&text, code, retry, Some(upstream), cause.sent())
            }
        }
    }
}

/// An error in words, with what a program wants to know of it.
fn wrong(text: &str, code: Code, retry: Retry) -> Reply {
    unanswered(text, code, retry, None, Sent::No)
}

/// The same, with the upstream from which no answer came.
fn unanswered(text: &str, code: Code, retry: Retry, upstream: Option<&str>, sent: Sent) -> Reply {
    let (retryable, after) = match retry {
        Retry::Never => (false, None),
        Retry::Perhaps => (true, None),
        Retry::After(after) => (true, Some(after.as_millis() as u64)),
    };
    let told = json!({
        "code": code,
        "retryable": retryable,
        "retryAfterMs": after,
        "upstream": upstream,
        "mayHaveRun": sent == Sent::Perhaps,
    });
    annotated(text, true, &json!({"cash/error": told}))
}

/// Whether the same call may succeed when it is made again.
#[derive(Clone, Copy)]
enum Retry {
    Never,
    Perhaps,
    After(Duration),
}

/// Why the gate does not let a call through, and when it would.
fn refused(refusal: &Refusal) -> String {
    match (refusal.code.code(), refusal.retry_after) {
        (_, Some(after)) => {
            format!("{}; try again in {} s", refusal.message, after.as_secs() + 1)
        }
        (Code::RateLimited, None) => {
            format!("{}; waiting does not help in this session", refusal.message)
        }
        (_, None) => refusal.message.clone(),
    }
}

/// Why no answer came, and whether trying again is safe.
fn told(upstream: &str, cause: &Failure) -> String {
    let what = match cause {
        Failure::Unavailable { reason } => format!("`{upstream}` is unavailable: {reason}."),
        Failure::Timeout { after } => format!("`{upstream}` did not answer within {after:?}."),
        Failure::Lost { reason, .. } => format!("The connection to `{upstream}` broke: {reason}."),
        Failure::Unauthorized { reason, .. } => {
            format!("`{upstream}` wants other credentials: {reason}. The operator has to help.")
        }
        Failure::Forbidden { reason, .. } => {
            format!("`{upstream}` does not allow this: {reason}. The operator has to help.")
        }
        Failure::RateLimited { retry_after: Some(after), .. } => {
            format!(
                "`{upstream}` limits the rate of calls; try again in {} s.",
                after.as_secs().saturating_add(1)
            )
        }
        Failure::RateLimited { retry_after: None, .. } => {
            format!("`{upstream}` limits the rate of calls; try again later.")
        }
        Failure::Unusable { reason } => {
            format!("`{upstream}` gave an answer that cannot be used: {reason}.")
        }
        Failure::Cancelled => "The call was cancelled.".to_owned(),
        Failure::Unsupported { what } => format!("`{upstream}` needs what is missing: {what}."),
    };
    let what = cut(&what.split_whitespace().collect::<Vec<_>>().join(" "), 400);
    match cause.sent() {
        Sent::Perhaps => format!("{what} The function may have run."),
        Sent::No => what,
    }
}
