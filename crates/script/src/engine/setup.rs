//! Sets up the globals of a script: the language, `tools`, `inputs`, `console`, and
//! nothing else.

use std::rc::Rc;

use rquickjs::context::intrinsic;
use rquickjs::function::Rest;
use rquickjs::{Context, Ctx, Function, Object, Persistent, Promise, Runtime, Value};

use super::shared::{PendingCall, Shared};
use super::value;
use crate::protocol::{Call, Start};

/// Creates a context with the language alone. It has no weak references, which would
/// show when memory is collected, and no performance counters, which are a clock.
pub(super) fn new_context(runtime: &Runtime) -> rquickjs::Result<Context> {
    Context::builder()
        .with::<intrinsic::Date>()
        .with::<intrinsic::Eval>()
        .with::<intrinsic::RegExpCompiler>()
        .with::<intrinsic::RegExp>()
        .with::<intrinsic::Json>()
        .with::<intrinsic::Proxy>()
        .with::<intrinsic::MapSet>()
        .with::<intrinsic::TypedArrays>()
        .with::<intrinsic::Promise>()
        .build(runtime)
}

/// Removes clock and randomness. Takes the function that makes a call; returns `tools`
/// and the function that compiles the code of a script.
const PRELUDE: &str = r#"(function (call) {
  "use strict";
  const { Proxy, Reflect, Object, Error } = globalThis;
  const RealDate = Date;
  const noClock = () => {
    throw new Error("scripts have no clock: pass the time in `inputs`, or call a function for it");
  };
  const NoClockDate = new Proxy(RealDate, {
    construct(target, args, made) {
      if (args.length === 0) noClock();
      return Reflect.construct(target, args, made === NoClockDate ? target : made);
    },
    apply: noClock,
    get: (target, key) => (key === "now" ? noClock : Reflect.get(target, key)),
  });
  RealDate.prototype.constructor = NoClockDate;
  globalThis.Date = NoClockDate;
  Math.random = () => {
    throw new Error("scripts have no randomness: pass what is needed in `inputs`");
  };
  for (const name of ["Atomics", "SharedArrayBuffer", "WeakRef", "FinalizationRegistry", "performance", "navigator"]) {
    delete globalThis[name];
  }
  // What the language asks of every object: awaiting or writing `tools` calls nothing.
  // No name is this deep; every level copies those above it, which the engine does not count.
  const deepest = 32;
  const below = (path, key) => {
    if (path.length === deepest) throw new Error("no function has so many names: tools.a.b.c…");
    return at([...path, key]);
  };
  const at = (path) =>
    new Proxy(function () {}, {
      get: (_, key) =>
        typeof key !== "string" || key === "then" || key === "toJSON" ? undefined : below(path, key),
      apply: (_, self, args) => call(path, args[0], args.length),
      set: () => false,
      defineProperty: () => false,
      deleteProperty: () => false,
      getPrototypeOf: () => null,
    });
  const AsyncFunction = (async () => {}).constructor;
  return [at([]), (code) => new AsyncFunction("inputs", "tools", code)];
})"#;

/// Starts the script.
pub(super) fn start_script<'js>(
    ctx: &Ctx<'js>,
    start: &Start,
    shared: &Rc<Shared>,
) -> rquickjs::Result<Promise<'js>> {
    let (logged, called) = (Rc::clone(shared), Rc::clone(shared));
    let log = Function::new(ctx.clone(), move |ctx: Ctx<'js>, parts: Rest<Value<'js>>| {
        let parts: Vec<String> = parts.0.iter().map(|part| value::log_text(&ctx, part)).collect();
        logged.log.borrow_mut().push(parts.join(" "));
    })?;
    let console = Object::new(ctx.clone())?;
    for name in ["log", "info", "warn", "error", "debug"] {
        console.set(name, log.clone())?;
    }
    ctx.globals().set("console", console)?;
    let call = move |ctx: Ctx<'js>, path: Vec<String>, argument: Value<'js>, n_arguments: usize| {
        make_call(&ctx, &called, path, argument, n_arguments)
    };
    let call = Function::new(ctx.clone(), call)?;
    let prelude: Function<'js> = ctx.eval(PRELUDE)?;
    let (tools, make): (Value<'js>, Function<'js>) = {
        let made: rquickjs::Array<'js> = prelude.call((call,))?;
        (made.get(0)?, made.get(1)?)
    };
    let main: Function<'js> = make.call((start.code.as_str(),))?;
    let inputs = ctx.json_parse(start.inputs.get())?;
    main.call((inputs, tools))
}

/// Handles a call of the script: returns a promise, and queues the call.
fn make_call<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    path: Vec<String>,
    argument: Value<'js>,
    n_arguments: usize,
) -> rquickjs::Result<Promise<'js>> {
    let shown = format!("tools.{}", path.join("."));
    if 1 < n_arguments {
        let message =
            format!("{shown} takes one object with its arguments, not {n_arguments} values");
        return Err(value::type_error(ctx, &message));
    }
    let arguments = match argument.is_undefined() || argument.is_null() {
        true => "{}".to_owned(),
        // It need not be an object: the only argument of a search is its text.
        false => value::to_json(ctx, argument)?.ok_or_else(|| {
            value::type_error(ctx, &format!("{shown} takes an object with its arguments"))
        })?,
    };
    let arguments = serde_json::value::RawValue::from_string(arguments)
        .map_err(|_| value::type_error(ctx, &format!("{shown}: the arguments are not JSON")))?;
    let (promise, resolve, reject) = ctx.promise()?;
    let number = shared.n_calls.get();
    shared.n_calls.set(number + 1);
    let pending = PendingCall {
        resolve: Persistent::save(ctx, resolve),
        reject: Persistent::save(ctx, reject),
    };
    shared.pending.borrow_mut().insert(number, pending);
    shared.new_calls.borrow_mut().push(Call { number, path, arguments });
    Ok(promise)
}
