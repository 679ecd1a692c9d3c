//! Runs one script, in this process and on this thread.
//!
//! The script is the body of an async function with `inputs` and `tools`. A
//! call of a function leaves through [`Outside::call`] and is a promise until
//! [`Outside::answer`] brings its answer; the same answers in the same order make
//! the same script do the same, because there is no clock and no randomness in
//! it.

mod console;
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

/// Where the calls of a script go and its answers come from.
pub trait Outside {
    /// A function is called.
    fn call(&mut self, call: Call) -> io::Result<()>;

    /// Waits for the answer of one of the calls that are open.
    fn answer(&mut self) -> io::Result<Answer>;
}

/// How deeply the engine may recurse, in bytes of the thread's stack.
const STACK: usize = 512 << 10;

/// Runs a script to its end. Fails only if the outside does.
pub fn run(start: &Start, outside: &mut dyn Outside) -> io::Result<Finished> {
    let shared = Rc::new(Shared::default());
    shared.log.borrow_mut().room = start.limits.logged;
    let outcome = match fresh(&start.limits, &shared) {
        Ok((runtime, context)) => {
            let outcome = context.with(|ctx| drive(&ctx, start, &shared, outside));
            // What is kept for answers must not outlive the engine.
            shared.open.borrow_mut().clear();
            drop(context);
            drop(runtime);
            outcome?
        }
        Err(_) => Err(ScriptError::Limit(Limit::Memory)),
    };
    let outcome = match shared.hit.get() {
        Some(limit) => Err(ScriptError::Limit(limit)),
        None => outcome,
    };
    let Log { lines, dropped, .. } = shared.log.take();
    Ok(Finished { outcome, log: lines, log_dropped: dropped, steps: shared.steps.get() })
}

fn fresh(limits: &Limits, shared: &Rc<Shared>) -> rquickjs::Result<(Runtime, Context)> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(limits.memory);
    runtime.set_max_stack_size(STACK);
    let (counted, most) = (Rc::clone(shared), limits.steps);
    runtime.set_interrupt_handler(Some(Box::new(move || {
        let steps = counted.steps.get() + STEPS_AT_ONCE;
        counted.steps.set(steps);
        if most < steps {
            counted.hit.set(Some(Limit::Steps));
        }
        most < steps
    })));
    let context = setup::context(&runtime)?;
    Ok((runtime, context))
}

type Outcome = Result<Option<Box<serde_json::value::RawValue>>, ScriptError>;

fn drive(
    ctx: &Ctx<'_>,
    start: &Start,
    shared: &Rc<Shared>,
    outside: &mut dyn Outside,
) -> io::Result<Outcome> {
    let main = match setup::begin(ctx, start, shared).catch(ctx) {
        Ok(promise) => promise,
        Err(error) => return Ok(Err(script_error(&error))),
    };
    loop {
        while ctx.execute_pending_job() && shared.hit.get().is_none() {}
        if shared.hit.get().is_some() {
            return Ok(Err(ScriptError::Stuck));
        }
        for call in shared.made.take() {
            if start.limits.calls as u64 <= call.number {
                shared.hit.set(Some(Limit::Calls));
                return Ok(Err(ScriptError::Limit(Limit::Calls)));
            }
            outside.call(call)?;
        }
        if let Some(outcome) = ended(ctx, &main, start) {
            return Ok(outcome);
        }
        if shared.open.borrow().is_empty() {
            return Ok(Err(ScriptError::Stuck));
        }
        let answer = outside.answer()?;
        let open = shared.open.borrow_mut().remove(&answer.number);
        let Some(open) = open else { continue };
        if let Err(error) = value::settle(ctx, open.resolve, open.reject, answer).catch(ctx) {
            return Ok(Err(script_error(&error)));
        }
    }
}

/// What the script came to, if it is over.
fn ended<'js>(ctx: &Ctx<'js>, main: &Promise<'js>, start: &Start) -> Option<Outcome> {
    let result = main.result::<rquickjs::Value<'js>>()?;
    Some(match result.catch(ctx) {
        Err(error) => Err(script_error(&error)),
        Ok(returned) if returned.is_undefined() => Ok(None),
        Ok(returned) => value::written(ctx, returned, start.limits.returned),
    })
}

/// What is said of a thrown `null`.
const NULL: &str = "null, which the script threw, or the engine because its memory was full: \
                    throw an `Error` instead, or create less at once";

/// An error of the engine, told with the line of the script.
fn script_error(error: &CaughtError<'_>) -> ScriptError {
    let CaughtError::Exception(exception) = error else {
        let message = match error {
            // The engine throws it where memory does not even suffice for an error, and
            // by then has freed what filled it: nothing tells the two apart.
            CaughtError::Value(value) if value.is_null() => NULL.to_owned(),
            CaughtError::Value(value) => format!("it threw {}", value::described(value)),
            CaughtError::Error(error) => error.to_string(),
            CaughtError::Exception(_) => String::new(),
        };
        return ScriptError::Thrown { message, place: String::new() };
    };
    let message = value::message_of(exception);
    let place = value::place(&exception.stack().unwrap_or_default());
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
