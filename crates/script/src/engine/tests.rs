use std::collections::VecDeque;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::protocol::Thrown;

/// Answers every call with its path and arguments, or as told.
#[derive(Default)]
struct Echo {
    open: VecDeque<Call>,
    made: Vec<String>,
    /// Answers the last call first.
    backwards: bool,
}

impl CallChannel for Echo {
    fn call(&mut self, call: Call) -> io::Result<()> {
        self.made.push(call.path.join("."));
        self.open.push_back(call);
        Ok(())
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let next = if self.backwards { self.open.pop_back() } else { self.open.pop_front() };
        let Call { number, path, arguments } = next.ok_or(io::ErrorKind::UnexpectedEof)?;
        let result = match path.last().map(String::as_str) {
            Some("fail") => {
                Err(Thrown { message: "no such order".to_owned(), code: Some("GONE".to_owned()) })
            }
            _ => Ok(raw(
                &json!({"of": path.join("."), "given": serde_json::from_str::<Value>(arguments.get()).unwrap()}),
            )),
        };
        Ok(Answer { number, result })
    }
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

fn limits() -> Limits {
    Limits { steps: 3_000_000, memory: 16 << 20, calls: 20, ..Limits::default() }
}

fn finish(code: &str, inputs: &Value, outside: &mut Echo) -> Finished {
    let start = Start { code: code.to_owned(), inputs: raw(inputs), limits: limits() };
    run(&start, outside).unwrap()
}

#[test]
fn a_script_that_throws_null_is_told_so() {
    for code in ["throw null", "await Promise.reject(null)"] {
        let ScriptError::Thrown { message, .. } = fails(code) else { panic!("{code}") };
        assert!(message.starts_with("null, which the script threw"), "{message}");
    }
}

#[track_caller]
fn returns(code: &str, expected: &Value) {
    let finished = finish(code, &json!({"n": 2}), &mut Echo::default());
    let returned = finished.outcome.unwrap_or_else(|error| panic!("{error:?}"));
    let value = returned.map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap());
    assert_eq!(value, *expected);
}

#[track_caller]
fn fails(code: &str) -> ScriptError {
    finish(code, &json!({}), &mut Echo::default()).outcome.expect_err(code)
}

#[test]
fn a_script_is_the_body_of_an_async_function() {
    returns("return inputs.n + 1", &json!(3));
    returns("const x = await Promise.resolve(4); return {x}", &json!({"x": 4}));
    returns("inputs.n", &Value::Null);
    returns("function f() { return [1, 2, 3].map(x => x * 2) } return f()", &json!([2, 4, 6]));
}

#[test]
fn functions_are_called_by_their_path_and_give_data() {
    returns(
        "const one = await tools.orders.retail.create({id: 1}); return one",
        &json!({"of": "orders.retail.create", "given": {"id": 1}}),
    );
    returns("return (await tools['my-files'].read()).given", &json!({}));
    returns(
        "const all = await Promise.all([1, 2, 3].map(n => tools.a.b({n}))); return all.map(x => x.given.n)",
        &json!([1, 2, 3]),
    );
    returns(
        "try { await tools.a.fail({}) } catch (e) { return [e.message, e.code] }",
        &json!(["no such order", "GONE"]),
    );
}

#[test]
fn answers_may_come_in_any_order() {
    let mut echo = Echo { backwards: true, ..Echo::default() };
    let code = "return (await Promise.all([1, 2].map(n => tools.a.b({n})))).map(x => x.given.n)";
    let finished = finish(code, &json!({}), &mut echo);
    assert_eq!(finished.outcome.unwrap().unwrap().get(), "[1,2]");
}

#[test]
fn the_log_goes_with_the_answer_within_bounds() {
    let code = "console.log('a', {b: 1}, [2]); console.error(new Error('x')); return 1";
    let finished = finish(code, &json!({}), &mut Echo::default());
    assert_eq!(finished.log, ["a {\"b\":1} [2]", "x"]);
    let code = "for (let i = 0; i < 100000; i++) console.log('x'.repeat(100)); return 1";
    let finished = finish(code, &json!({}), &mut Echo::default());
    assert!(finished.log.len() < 100 && 90_000 < finished.log_dropped);
}

#[test]
fn errors_say_what_and_where() {
    let ScriptError::Thrown { message, place } = fails("const a = 1;\nconst b = 2;\nnull.x") else {
        panic!();
    };
    assert!(message.starts_with("TypeError: cannot read property 'x' of null"), "{message}");
    assert_eq!(place, "line 3");
    assert!(matches!(fails("return ("), ScriptError::Syntax { .. }));
    assert!(matches!(fails("}); evil("), ScriptError::Syntax { .. }));
    for (code, expected) in [
        ("throw 'just text'", "it threw just text"),
        ("throw undefined", "it threw undefined"),
        ("throw 7", "it threw "),
        ("throw {get message() { throw 1 }}", "it threw object"),
        ("throw new Proxy(new Error('x'), {get() { throw 2 }})", "it threw "),
        ("throw Symbol('x')", "it threw symbol"),
    ] {
        let error = fails(code);
        let ScriptError::Thrown { message, .. } = &error else { panic!("{code}: {error:?}") };
        assert!(message.starts_with(expected), "{code}: {message}");
    }
    assert!(matches!(fails("await new Promise(() => {})"), ScriptError::Stuck));
    assert!(matches!(fails("return () => 1"), ScriptError::Unwritable(_)));
    assert!(matches!(fails("const a = {}; a.a = a; return a"), ScriptError::Unwritable(_)));
    assert!(matches!(fails("return 10n"), ScriptError::Unwritable(_)));
    assert!(matches!(fails("await tools.a.b(1, 2)"), ScriptError::Thrown { .. }));
}

#[test]
fn hostile_scripts_end_within_the_limits() {
    use Limit::{Calls, Memory, Returned, Stack, Steps};
    let mut others = Vec::new();
    for (code, expected) in [
        ("while (true) {}", vec![Steps]),
        ("for (;;) { try { for (;;) {} } catch (e) {} }", vec![Steps]),
        ("try { while (true) {} } finally { while (true) {} }", vec![Steps]),
        (
            "(function f() { Promise.resolve().then(f) })(); await new Promise(() => {})",
            vec![Steps],
        ),
        ("const a = []; while (true) a.push('x'.repeat(10000) + a.length)", vec![Memory, Steps]),
        ("let s = 'x'; while (true) s += s", vec![Memory, Steps]),
        ("return 'x'.repeat(2 ** 29)", vec![Memory]),
        ("new Uint8Array(2 ** 30); return 1", vec![Memory]),
        ("return /(a+)+$/.test('a'.repeat(40) + 'b')", vec![Steps]),
        ("return /(x+x+)+y/.test('x'.repeat(100000))", vec![Steps, Memory, Stack]),
        ("(function f() { return f() + 1 })()", vec![Stack]),
        (
            "let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return JSON.stringify(a)",
            vec![Stack, Memory],
        ),
        ("return JSON.parse('['.repeat(1e6))", vec![Stack, Memory]),
        ("for (let i = 0; i < 30; i++) await tools.a.b({i}); return 1", vec![Calls]),
        ("return 'x'.repeat(5 << 20)", vec![Returned]),
        ("return new Array(1e8).fill(0).length", vec![Memory, Steps]),
        ("eval('while(true){}')", vec![Steps]),
        ("new Function('while(true){}')()", vec![Steps]),
        ("const p = new Proxy({}, {get: () => { for (;;) {} }}); return p.x", vec![Steps]),
        ("return {toJSON() { for (;;) {} }}", vec![Steps]),
        (
            "const o = {}; Object.defineProperty(o, 'x', {enumerable: true, get() { for (;;) {} }}); return o",
            vec![Steps],
        ),
    ] {
        let ended = fails(code);
        // Where memory is so full that there is none for an error, no more can be said.
        let is_full =
            matches!(&ended, ScriptError::Thrown { message, .. } if message == NULL_THROWN);
        let is_expected =
            |limit: &Limit| ended == ScriptError::Limit(*limit) || (is_full && *limit == Memory);
        if !expected.iter().any(is_expected) {
            others.push(format!("{code}: {ended:?}"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn hostile_scripts_that_hit_no_limit_end_as_well() {
    let mut others = Vec::new();
    for code in [
        // Promises that never settle, and those that settle into each other.
        "await Promise.race([])",
        "const p = (async () => { await p })(); await p",
        "await {then() {}}",
        // Calls in thousands, side by side.
        "await Promise.all(Array.from({length: 5000}, (_, n) => tools.a.b({n})))",
        // Getters on what is given to functions, and on what comes back.
        "await tools.a.b({get x() { for (;;) {} }})",
        "await tools.a.b({toJSON() { throw null }})",
        "Object.defineProperty(Object.prototype, 'of', {get() { for (;;) {} }, set() { for (;;) {} }}); \
         const r = await tools.a.b({}); delete r.of; return r.of",
        "Object.prototype.toJSON = function () { for (;;) {} }; return {}",
        "Array.prototype.toJSON = () => { throw 1 }; await tools.a.b({x: []})",
        "await tools.a.b(tools)",
        "await tools.a.b(new Proxy({}, {ownKeys() { for (;;) {} }}))",
        "let o = {}; for (let i = 0; i < 1e5; i++) o = {o}; await tools.a.b(o)",
        // Strings and paths that grow.
        "let t = tools; for (let i = 0; i < 1e6; i++) t = t['x'.repeat(1000)]; await t({})",
        "console.log('x'.repeat(1e8)); for (;;) console.log({a: 1})",
        "throw new Error('x'.repeat(1e7))",
        "return 'a'.repeat(1e6).replace(/a/g, 'a'.repeat(1e6))",
        "return 'x'.padEnd(2 ** 30).normalize('NFKD')",
        "return new RegExp('(' .repeat(1e5) + ')'.repeat(1e5)).test('x')",
        // Iterators, generators, classes and labels without an end.
        "for (const x of {[Symbol.iterator]() { return {next: () => ({})} }}) {}",
        "function* g() { for (;;) yield* g() } for (const x of g()) {}",
        "class A extends A {}; new A()",
        "with_ = 1; eval('(' .repeat(1e5))",
    ] {
        let finished = finish(code, &json!({}), &mut Echo::default());
        if finished.outcome.is_ok() {
            others.push(format!("{code}: {:?}", finished.outcome));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn prototypes_that_are_tampered_with_change_nothing_outside_of_the_script() {
    returns(
        "Promise.prototype.then = () => { throw 1 }; JSON.stringify = () => 'x'; \
         Object.prototype.evil = 1; Array.prototype.map = null; Function.prototype.call = null; \
         return {a: [1]}",
        &json!({"a": [1]}),
    );
    returns("tools.x = 1; return typeof tools.x", &json!("function"));
    returns("globalThis.tools = 1; return (await tools.a.b({})).of", &json!("a.b"));
    let mut echo = Echo::default();
    finish(
        "Object.prototype.then = f => f(1); return (await tools.a.b({})).of",
        &json!({}),
        &mut echo,
    );
    assert_eq!(echo.made, ["a.b"]);
}

#[test]
fn there_is_no_clock_no_chance_and_no_way_out() {
    for code in [
        "return Date.now()",
        "return new Date()",
        "return Date()",
        "return Math.random()",
        "return new (new Date(0).constructor)()",
    ] {
        assert!(matches!(fails(code), ScriptError::Thrown { .. }), "{code}");
    }
    returns("return new Date('2024-02-03T04:05:06Z').getTime()", &json!(1_706_933_106_000_u64));
    returns("return new Date(0).toISOString()", &json!("1970-01-01T00:00:00.000Z"));
    for name in [
        "process",
        "require",
        "fetch",
        "std",
        "os",
        "setTimeout",
        "performance",
        "WeakRef",
        "FinalizationRegistry",
        "Atomics",
        "WebAssembly",
        "Deno",
        "navigator",
    ] {
        let code = format!("return '{name} ' + typeof {name}");
        returns(&code, &json!(format!("{name} undefined")));
    }
    for (code, taught) in [
        ("setTimeout(() => {}, 1)", "no timers"),
        ("const fs = require('fs')", "no modules"),
        ("await import('fs')", "no modules"),
        ("return new Intl.NumberFormat('de').format(1)", "no locales"),
        ("return await fetch('http://a.b')", "no network"),
        ("return crypto.randomUUID()", "no randomness"),
        ("return new URL('http://a.b').host", "language alone"),
    ] {
        let ScriptError::Thrown { message, .. } = fails(code) else { panic!("{code}") };
        assert!(message.contains(taught), "{code}: {message}");
    }
    let ScriptError::Thrown { message, .. } = fails("return mine") else { panic!("it is missing") };
    assert!(message.ends_with("is not defined"), "{message}");
    returns(
        "return globalThis.constructor.constructor('return typeof process')()",
        &json!("undefined"),
    );
}

#[test]
fn one_script_leaves_nothing_for_the_next() {
    returns("globalThis.secret = 1; Object.prototype.leak = 2; return 0", &json!(0));
    returns("return [typeof secret, ({}).leak === undefined]", &json!(["undefined", true]));
}
