//! Errors that put the next attempt right.

use std::time::Duration;

use catalog::{Problem, Slot, Unresolved};
use tool::{Failure, Object, Reply, Sent};

use super::View;
use super::arguments::{BadCall, CallArguments};
use crate::dispatch::CallError;
use crate::error::classify;
use crate::own::line;
use crate::surface::meta;

/// How many likely meanings are named.
const NEAR: usize = 3;

impl View<'_> {
    /// Whether a function exists as far as this caller is concerned.
    pub(super) fn sees(&self, slot: Slot) -> bool {
        let trust = &self.shared.dispatcher.stages.trust;
        trust.sees(&self.context.caller, &self.snapshot.catalog, slot)
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
            Err(unresolved) => Err(unresolved),
        }
    }

    pub(super) fn unknown(&self, why: &Unresolved, arguments: &CallArguments) -> Reply {
        let CallArguments { namespace, function, .. } = arguments;
        // What is away may have the function: nobody can tell now.
        if *why == Unresolved::Function
            && let Ok(found) = self.snapshot.catalog.namespace(namespace)
            && let Some(reason) = self.away(found)
        {
            return Reply::error_text(&format!(
                "**Error:** `{}` is unavailable: {reason}. It is tried again by itself; \
                 `call(namespace=\"gatelet\", function=\"status\")` tells how it fares.",
                found.path
            ));
        }
        Reply::error_text(&self.no_such(why, namespace, function))
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
        };
        let near = self.near(why, namespace, function);
        if !near.is_empty() {
            text.push_str(" Nearest:\n");
            text.push_str(&near.join("\n"));
        }
        text.push(if near.is_empty() { ' ' } else { '\n' });
        text.push_str(&match why {
            Unresolved::Function if !namespace.is_empty() => {
                format!(
                    "Use `help(namespace=\"{}\")` to see available functions.",
                    short(namespace)
                )
            }
            Unresolved::Function | Unresolved::Namespace | Unresolved::Malformed => {
                "Use `help()` to see available namespaces.".to_owned()
            }
        });
        text
    }

    fn near(&self, why: &Unresolved, namespace: &str, function: &str) -> Vec<String> {
        let catalog = &self.snapshot.catalog;
        let sees = |slot| self.sees(slot);
        // The whole path in one argument is the commonest slip.
        let joined = format!("{namespace}.{function}");
        let joined = joined.trim_matches('.');
        if let Some((path, name)) = joined.rsplit_once('.')
            && let Ok(slot) = catalog.resolve(path, name)
            && self.sees(slot)
        {
            return vec![line(catalog, slot)];
        }
        let trust = &self.shared.dispatcher.stages.trust;
        let by = meta::guessed_by(&**trust, &self.context.caller);
        let mut lines = Vec::new();
        if *why != Unresolved::Function {
            let near = catalog.nearest_namespaces(namespace, 4 * NEAR, by, &sees);
            for found in near.into_iter().filter(|found| self.shows(found)).take(NEAR) {
                match catalog.resolve(&found.path, function) {
                    Ok(slot) if self.sees(slot) => lines.push(line(catalog, slot)),
                    Ok(_) | Err(_) => lines.push(format!("- namespace `{}`", found.path)),
                }
            }
        }
        let mut slots = Vec::new();
        if !function.is_empty() {
            slots = catalog.nearest_functions(namespace, function, NEAR, by, &sees);
        }
        for slot in slots {
            let told = line(catalog, slot);
            if !lines.contains(&told) && lines.len() < NEAR + 1 {
                lines.push(told);
            }
        }
        lines
    }

    pub(super) fn bad_call(&self, problem: &BadCall) -> Reply {
        Reply::error_text(&match problem {
            BadCall::NoObject => "**Error:** The arguments must be an object.".to_owned(),
            BadCall::NoFunction => {
                "**Error:** `function` is required. Use `help()` to see what there is.".to_owned()
            }
            BadCall::Wrong(what, must) => format!("**Error:** `{what}` must be {must}."),
            BadCall::Flat { namespace, function, kwargs } => self.flat(namespace, function, kwargs),
        })
    }

    /// Arguments beside `kwargs` instead of in it.
    fn flat(&self, namespace: &str, function: &str, kwargs: &Object) -> String {
        let slot = match self.resolve(namespace, function) {
            Ok(slot) => slot,
            Err(why) => return self.no_such(&why, namespace, function),
        };
        let names: Vec<String> = kwargs.keys().map(|key| format!("`{}`", short(key))).collect();
        let catalog = &self.snapshot.catalog;
        format!(
            "**Error:** {} must be inside `kwargs`: `call(namespace=\"{}\", function=\"{}\", \
             kwargs={})`.\nSignature: {}",
            names.join(", "),
            catalog.path(slot),
            catalog.function(slot).name,
            catalog::summary::cut(kwargs.to_json().as_str(), 400),
            catalog.signature(slot, 600),
        )
    }

    pub(super) fn bad_kwargs(&self, slot: Slot, problems: &[Problem]) -> Reply {
        let catalog = &self.snapshot.catalog;
        let (path, name) = (catalog.path(slot), &catalog.function(slot).name);
        let lines: Vec<String> = problems.iter().map(|problem| format!("- {problem}")).collect();
        Reply::error_text(&format!(
            "**Error:** The kwargs of `{path}.{name}` do not fit:\n{}\nSignature: {}\nUse \
             `help(namespace=\"{path}\", function=\"{name}\")` for details.",
            lines.join("\n"),
            catalog.signature(slot, 600),
        ))
    }

    pub(super) fn failed(&self, slot: Slot, error: &CallError) -> Reply {
        match error {
            CallError::BadArguments { problems } => self.bad_kwargs(slot, problems),
            CallError::Refused(refusal) => {
                let text = format!("**Error:** {}", refusal.message);
                let meta = serde_json::json!({"cash/error": {
                    "code": refusal.code.as_str(),
                    "retryAfterMs": refusal.retry_after.map(|after| after.as_millis() as u64),
                }});
                super::annotated(&text, true, &meta)
            }
            CallError::Failed { upstream, cause } => {
                // What an upstream says when it fails may hold its credentials.
                let told = told(upstream, cause);
                let told = self.shared.dispatcher.stages.scrubber.scrub(&told);
                let code = classify(cause);
                let meta = serde_json::json!({"cash/error": {
                    "code": code,
                    "retryable": code.passes(),
                    "retryAfterMs": retry_after(cause).map(|after| after.as_millis() as u64),
                }});
                super::annotated(&format!("**Error:** {told}"), true, &meta)
            }
        }
    }
}

fn retry_after(cause: &Failure) -> Option<Duration> {
    match cause {
        Failure::RateLimited { retry_after } => *retry_after,
        Failure::Unavailable { .. }
        | Failure::Timeout { .. }
        | Failure::Lost { .. }
        | Failure::Unauthorized { .. }
        | Failure::Unusable { .. }
        | Failure::Cancelled
        | Failure::Unsupported { .. } => None,
    }
}

/// Why no answer came, and whether trying again is safe.
fn told(upstream: &str, cause: &Failure) -> String {
    let what = match cause {
        Failure::Unavailable { reason } => format!("`{upstream}` is unavailable: {reason}."),
        Failure::Timeout { after } => format!("`{upstream}` did not answer within {after:?}."),
        Failure::Lost { reason, .. } => format!("The connection to `{upstream}` broke: {reason}."),
        Failure::Unauthorized { reason } => {
            format!("`{upstream}` wants other credentials: {reason}. The operator has to help.")
        }
        Failure::RateLimited { retry_after: Some(after) } => {
            format!(
                "`{upstream}` limits the rate of calls; try again in {} s.",
                after.as_secs().saturating_add(1)
            )
        }
        Failure::RateLimited { retry_after: None } => {
            format!("`{upstream}` limits the rate of calls; try again later.")
        }
        Failure::Unusable { reason } => {
            format!("`{upstream}` gave an answer that cannot be used: {reason}.")
        }
        Failure::Cancelled => "The call was cancelled.".to_owned(),
        Failure::Unsupported { what } => format!("`{upstream}` needs what is missing: {what}."),
    };
    let what = catalog::summary::cut(&what.split_whitespace().collect::<Vec<_>>().join(" "), 400);
    match cause.sent() {
        Sent::Perhaps => format!("{what} The function may have run."),
        Sent::No => what,
    }
}

/// A caller's own words, short enough to be repeated.
fn short(text: &str) -> String {
    catalog::summary::cut(&text.replace(['`', '\n', '\r'], " "), 80)
}
