//! Error replies that say how to write the call correctly.

mod misplaced;

use std::time::Duration;

use catalog::summary::{cut, echo as short};
use catalog::{Problem, Slot, Unresolved};
use serde_json::json;
use tool::{Failure, Json, Object, Reply, RpcError, Sent};

use super::arguments::{BadCall, BadMember, CallArguments, MAX_MEMBERS, MalformedCall};
use super::request::CashRequest;
use crate::builtin::{LABEL, function_line};
use crate::dispatch::CallError;
use crate::recipes::SCRIPTS_OFF;
use crate::surface::oversize::annotated;
use policy::code::{Code, classify};
use policy::refusal::Refusal;

/// How many similar names an error suggests.
const MAX_SIMILAR: usize = 3;
/// The most bytes of an upstream's error that is passed on unchanged.
const MAX_ERROR_BYTES: usize = 2_000;

/// All functions of a namespace with at most this many are suggested.
const MAX_SUGGESTIONS: usize = 5;
/// How many functions of a larger namespace are suggested at least.
const MIN_FROM_NAMESPACE: usize = 2;

impl CashRequest<'_> {
    /// The error for `call_read` of a function that may change something.
    pub(super) fn may_change(&self, slot: Slot) -> Reply {
        let catalog = &self.snapshot.catalog;
        let (path, name) = (catalog.path(slot), &catalog.function(slot).name);
        Reply::error_text(&format!(
            "**Error:** `{name}` of `{path}` is not known to change nothing: run it with `call`. \
             The operator can name what only reads in `read_only`, or vouch for what says so with \
             `gatelet trust grant`."
        ))
    }

    /// The error for a function or namespace that does not exist.
    pub(super) fn unknown_function(&self, why: &Unresolved, arguments: &CallArguments) -> Reply {
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
        error_reply(&self.no_such(why, namespace, function), code, Retry::Never)
    }

    /// The error for something unknown in a namespace whose upstream is unavailable and
    /// may have it.
    pub(super) fn unavailable(&self, why: &Unresolved, namespace: &str) -> Option<Reply> {
        match why {
            Unresolved::Malformed | Unresolved::Ambiguous => return None,
            Unresolved::Namespace | Unresolved::Function => {}
        }
        let catalog = &self.snapshot.catalog;
        let found = catalog.deepest_namespace(namespace).filter(|found| self.shows(found))?;
        let reason = self.unavailable_reason(found)?;
        let upstream = found.source.map(|source| catalog.sources()[source].label.as_str());
        let told = format!(
            "**Error:** `{}` is unavailable: {reason}. \
             `call(namespace=\"gatelet\", function=\"status\")` tells how it fares.",
            found.path
        );
        Some(upstream_error(&told, Code::UpstreamUnavailable, Retry::Perhaps, upstream, Sent::No))
    }

    /// Says what does not exist, what was probably meant, and where to look.
    pub(super) fn no_such(&self, why: &Unresolved, namespace: &str, function: &str) -> String {
        if namespace == LABEL && function == "run" {
            return format!("**Error:** {SCRIPTS_OFF}.");
        }
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
        let near = self.suggestions(why, namespace, function);
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

    /// Renders the functions and namespaces that were probably meant.
    fn suggestions(&self, why: &Unresolved, namespace: &str, function: &str) -> Vec<String> {
        let catalog = &self.snapshot.catalog;
        let sees = |slot| self.sees(slot);
        if *why == Unresolved::Ambiguous {
            let alike = self.alike(namespace, function);
            return alike
                .into_iter()
                .take(MAX_SUGGESTIONS)
                .map(|slot| function_line(catalog, slot))
                .collect();
        }
        if let Some(slot) = self.resolve_joined(namespace, function) {
            return vec![function_line(catalog, slot)];
        }
        let by = self.visible.guesses_by();
        let mut lines = Vec::new();
        if *why != Unresolved::Function {
            let near = catalog.nearest_namespaces(namespace, 4 * MAX_SIMILAR, by, &sees);
            for found in near.into_iter().filter(|found| self.shows(found)).take(MAX_SIMILAR) {
                match catalog.resolve(&found.path, function) {
                    Ok(slot) if self.sees(slot) => lines.push(function_line(catalog, slot)),
                    Ok(_) | Err(_) => lines.push(format!("- namespace `{}`", short(&found.path))),
                }
            }
        }
        let mut slots = Vec::new();
        if !function.is_empty() {
            slots = catalog.nearest_functions(namespace, function, MAX_SIMILAR, by, &sees);
        }
        for slot in self.likely(namespace, function, slots) {
            let line = function_line(catalog, slot);
            if !lines.contains(&line) && lines.len() < MAX_SUGGESTIONS + 1 {
                lines.push(line);
            }
        }
        lines
    }

    /// Orders the functions that were probably meant, and adds some of the namespace.
    /// Whoever names an existing namespace means something in it: its functions come
    /// first, and all of them are added if they are few.
    fn likely(&self, namespace: &str, function: &str, mut near: Vec<Slot>) -> Vec<Slot> {
        let home = self.snapshot.catalog.namespace(namespace).ok();
        let home = home.filter(|home| !home.path.is_empty());
        let own = home.map(|home| home.functions.as_slice()).unwrap_or_default();
        let own: Vec<Slot> = own.iter().copied().filter(|slot| self.sees(*slot)).collect();
        near.sort_by_key(|slot| !own.contains(slot));
        let n_near = near.iter().filter(|slot| own.contains(slot)).count();
        let room = if own.len() <= MAX_SUGGESTIONS {
            MAX_SUGGESTIONS
        } else {
            MIN_FROM_NAMESPACE.saturating_sub(n_near)
        };
        let rest: Vec<Slot> = own.into_iter().filter(|slot| !near.contains(slot)).collect();
        let rest = self.snapshot.catalog.by_likeness(function, rest);
        near.splice(n_near..n_near, rest.into_iter().take(room));
        near
    }

    /// Renders the beginning of a call of a function, up to its arguments.
    fn address(&self, slot: Slot) -> String {
        let catalog = &self.snapshot.catalog;
        let (path, name) = (catalog.path(slot), &catalog.function(slot).name);
        format!("call(namespace=\"{path}\", function=\"{name}\", ")
    }

    /// The error for malformed arguments of `call`, with everything that is wrong.
    pub(super) fn bad_call(&self, problem: BadCall) -> Reply {
        let MalformedCall { call, wrong: mistakes, unknown } = match problem {
            BadCall::MalformedCall(malformed) => *malformed,
            BadCall::NotAnObject => {
                let text = "**Error:** The arguments must be an object.";
                return error_reply(text, Code::ArgsInvalid, Retry::Never);
            }
            BadCall::TooManyMembers => {
                let text = format!(
                    "**Error:** `call` has more than {MAX_MEMBERS} members. It takes `namespace`, \
                     `function`, `kwargs`, `sizelimit` and `pick`: the arguments of the function \
                     go into `kwargs`."
                );
                return error_reply(&text, Code::ArgsInvalid, Retry::Never);
            }
        };
        let messages: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        let is_named = !mistakes.iter().any(|mistake| match mistake {
            BadMember::Namespace | BadMember::Function | BadMember::NoFunction => true,
            BadMember::Kwargs | BadMember::Size | BadMember::Pick(_) => false,
        });
        let text = match self.resolve(&call.namespace, &call.function) {
            Ok(slot) if is_named => self.corrected(slot, messages, &unknown, call),
            Err(why) if is_named && messages.is_empty() => {
                return self.unknown_function(&why, &call);
            }
            Err(why) if is_named => {
                let missing = self.no_such(&why, &call.namespace, &call.function);
                format!("**Error:** {}.\n{missing}", messages.join("; "))
            }
            Ok(_) | Err(_) => {
                let next = match mistakes.contains(&BadMember::Namespace) {
                    true => String::new(),
                    false => format!(" {}", self.without_function(&call.namespace)),
                };
                format!("**Error:** {}.{next}", messages.join("; "))
            }
        };
        error_reply(&text, Code::ArgsInvalid, Retry::Never)
    }

    /// The error for a malformed batch.
    pub(super) fn bad_batch(&self, why: &str) -> Reply {
        error_reply(&format!("**Error:** {why}."), Code::ArgsInvalid, Retry::Never)
    }

    /// Says where to look if no function is given; the namespace may be the whole address of
    /// one.
    fn without_function(&self, namespace: &str) -> String {
        if let Some(slot) = self.resolve_joined(namespace, "") {
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
        error_reply(&told, Code::ArgsInvalid, Retry::Never)
    }

    /// Returns an upstream's JSON-RPC error unchanged unless it is long: then its message
    /// is cut to one line, and long data is left out.
    pub(super) fn rejected(&self, error: RpcError) -> Reply {
        if error.raw.as_str().len() <= MAX_ERROR_BYTES {
            return Reply::Error(error);
        }
        let scrubber = &self.cash.pipeline.scrubber;
        let mut raw = Object::new();
        raw.push("code", Json::encode(&error.code));
        raw.push("message", Json::encode(&scrubber.scrub_to_line(&error.message)));
        let data = error.raw.member("data").filter(|data| data.as_str().len() <= MAX_ERROR_BYTES);
        data.into_iter().for_each(|data| raw.push("data", data));
        Reply::Error(RpcError::parse(raw.to_json()))
    }

    /// The error for a call that the pipeline refused.
    pub(super) fn refusal(&self, refusal: &Refusal) -> Reply {
        let text = format!("**Error:** {}", refusal_text(refusal));
        let retry = refusal.retry_after.map_or(Retry::Never, Retry::After);
        error_reply(&text, refusal.code.code(), retry)
    }

    /// The reply for a call error.
    pub(super) fn call_error(&self, slot: Slot, error: &CallError) -> Reply {
        match error {
            CallError::BadArguments { problems } => self.bad_kwargs(slot, problems),
            CallError::Refused(refusal) => self.refusal(refusal),
            CallError::Failed { upstream, cause } => {
                // An upstream's failure message may contain its credentials.
                let text = failure_text(upstream, cause);
                let scrubbed = self.cash.pipeline.scrubber.scrub(&text);
                let code = classify(cause);
                let retry = match cause.retry_after() {
                    Some(after) => Retry::After(after),
                    None if code.is_transient() => Retry::Perhaps,
                    None => Retry::Never,
                };
                let text = format!("**Error:** {scrubbed}");
                upstream_error(&text, code, retry, Some(upstream), cause.sent())
            }
        }
    }
}

/// Makes an error reply for the model, with a code for programs in `_meta`.
fn error_reply(text: &str, code: Code, retry: Retry) -> Reply {
    upstream_error(text, code, retry, None, Sent::No)
}

/// Makes an error reply that names the upstream that did not answer.
fn upstream_error(
    text: &str,
    code: Code,
    retry: Retry,
    upstream: Option<&str>,
    sent: Sent,
) -> Reply {
    let (retryable, after) = match retry {
        Retry::Never => (false, None),
        Retry::Perhaps => (true, None),
        Retry::After(after) => (true, Some(after.as_millis() as u64)),
    };
    let details = json!({
        "code": code,
        "retryable": retryable,
        "retryAfterMs": after,
        "upstream": upstream,
        "mayHaveRun": sent == Sent::Perhaps,
    });
    annotated(text, true, &json!({"cash/error": details}))
}

/// Whether the same call may succeed when it is made again.
#[derive(Clone, Copy)]
enum Retry {
    Never,
    Perhaps,
    After(Duration),
}

/// Says why the pipeline refused a call, and when it may be made again.
fn refusal_text(refusal: &Refusal) -> String {
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

/// Says why no answer came, and whether the function may have run.
fn failure_text(upstream: &str, cause: &Failure) -> String {
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
        Failure::Unsupported { feature: what } => {
            format!("`{upstream}` needs what is missing: {what}.")
        }
    };
    let what = cut(&what.split_whitespace().collect::<Vec<_>>().join(" "), 400);
    match cause.sent() {
        Sent::Perhaps => format!("{what} The function may have run."),
        Sent::No => what,
    }
}
