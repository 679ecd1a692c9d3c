//! The JavaScript engine: runs one script, in this process and on this thread.
//!
//! The script is the body of an async function with `inputs` and `tools`. A call of a
//! function goes out through [`CallChannel::call`] and is a promise until
//! [`CallChannel::answer`] brings its answer. Without clock and randomness, the same
//! answers in the same order make the script do the same again.

mod console;
mod missing;
mod setup;
mod shared;
mod value;

use std::io;
use std::rc::Rc;

use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Promise, Runtime};

use crate::limits::{Limit, Limits, STEPS_AT_ONCE};
use crate::protocol::{Answer, Call, Finished, ScriptError, Start};
use console::Log;
use shared::Shared;

/// Carries the calls of a script out and their answers in.
pub trait CallChannel {
    /// Sends a call.
    fn call(&mut self, call: Call) -> io::Result<()>;

    /// Waits for the answer to any of the pending calls.
    fn answer(&mut self) -> io::Result<Answer>;
}

/// How much of the thread's stack the engine may use.
const MAX_STACK_BYTES: usize = 512 << 10;

/// Runs a script to its end. Fails only if the channel does.
pub fn run(start: &Start, channel: &mut dyn CallChannel) -> io::Result<Finished> {
    let shared = Rc::new(Shared::default());
    shared.log.borrow_mut().n_free_bytes = start.limits.logged;
    let outcome = match new_engine(&start.limits, &shared) {
        Ok((runtime, context)) => {
            let outcome = context.with(|ctx| drive(&ctx, start, &shared, channel));
            // Promises must not outlive the engine.
            shared.pending.borrow_mut().clear();
            drop(context);
            drop(runtime);
            outcome?
        }
        Err(_) => Err(ScriptError::Limit(Limit::Memory)),
    };
    let outcome = match shared.limit_hit.get() {
        Some(limit) => Err(ScriptError::Limit(limit)),
        None => outcome,
    };
    let Log { lines, dropped, .. } = shared.log.take();
    Ok(Finished { outcome, log: lines, log_dropped: dropped, steps: shared.steps.get() })
}

fn new_engine(limits: &Limits, shared: &Rc<Shared>) -> rquickjs::Result<(Runtime, Context)> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(limits.memory);
    runtime.set_max_stack_size(MAX_STACK_BYTES);
    let (counted, most) = (Rc::clone(shared), limits.steps);
    runtime.set_interrupt_handler(Some(Box::new(move || {
        let steps = counted.steps.get() + STEPS_AT_ONCE;
        counted.steps.set(steps);
        if most < steps {
            counted.limit_hit.set(Some(Limit::Steps));
        }
        most < steps
    })));
    let context = setup::new_context(&runtime)?;
    Ok((runtime, context))
}

type Outcome = Result<Option<Box<serde_json::value::RawValue>>, ScriptError>;

fn drive(
    ctx: &Ctx<'_>,
    start: &Start,
    shared: &Rc<Shared>,
    channel: &mut dyn CallChannel,
) -> io::Result<Outcome> {
    let main = match setup::start_script(ctx, start, shared).catch(ctx) {
        Ok(promise) => promise,
        Err(error) => return Ok(Err(script_error(&error))),
    };
    loop {
        while ctx.execute_pending_job() && shared.limit_hit.get().is_none() {}
        if shared.limit_hit.get().is_some() {
            return Ok(Err(ScriptError::Stuck));
        }
        for call in shared.new_calls.take() {
            if start.limits.calls as u64 <= call.number {
                shared.limit_hit.set(Some(Limit::Calls));
                return Ok(Err(ScriptError::Limit(Limit::Calls)));
            }
            channel.call(call)?;
        }
        if let Some(outcome) = outcome_if_ended(ctx, &main, start) {
            return Ok(outcome);
        }
        if shared.pending.borrow().is_empty() {
            return Ok(Err(ScriptError::Stuck));
        }
        let answer = channel.answer()?;
        let pending = shared.pending.borrow_mut().remove(&answer.number);
        let Some(pending) = pending else { continue };
        if let Err(error) = value::settle(ctx, pending.resolve, pending.reject, answer).catch(ctx) {
            return Ok(Err(script_error(&error)));
        }
    }
}

/// Returns the outcome of the script if it has ended.
fn outcome_if_ended<'js>(ctx: &Ctx<'js>, main: &Promise<'js>, start: &Start) -> Option<Outcome> {
    let result = main.result::<rquickjs::Value<'js>>()?;
    Some(match result.catch(ctx) {
        Err(error) => Err(script_error(&error)),
        Ok(returned) if returned.is_undefined() => Ok(None),
        Ok(returned) => value::returned_json(ctx, returned, start.limits.returned),
    })
}

/// The message for a thrown `null`.
const NULL_THROWN: &str = "null, which the script threw, or the engine because its memory was full: \
                    throw an `Error` instead, or create less at once";

/// Converts an error of the engine, with the line of the script.
fn script_error(error: &CaughtError<'_>) -> ScriptError {
    let CaughtError::Exception(exception) = error else {
        let message = match error {
            // The engine throws `null` if memory does not even suffice for an error, and
            // has freed memory by then, so the two cases cannot be distinguished.
            CaughtError::Value(value) if value.is_null() => NULL_THROWN.to_owned(),
            CaughtError::Value(value) => format!("it threw {}", value::describe(value)),
            CaughtError::Error(error) => error.to_string(),
            CaughtError::Exception(_) => String::new(),
        };
        return ScriptError::Thrown { message, place: String::new() };
    };
    let message = value::exception_message(exception);
    let place = value::script_line(&exception.stack().unwrap_or_default());
    let message = match missing::explain(&message) {
        Some(hint) => format!("{message}: {hint}"),
        None => message,
    };
    match message.as_str() {
        text if text.contains("out of memory") || text.contains("string too long") => {
            ScriptError::Limit(Limit::Memory)
        }
        text if text.contains("stack size exceeded") || text.contains("stack overflow") => {
            ScriptError::Limit(Limit::Stack)
        }
        text if text.starts_with("SyntaxError") => ScriptError::Syntax { message, place },
        _ => ScriptError::Thrown { message, place },
    }
}

#[cfg(test)]
mod tests;
