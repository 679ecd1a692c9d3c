//! Scripts of callers, and the parts of results that they ask for.

use std::io;

use artifacts::pick::Pick;
use offload::StopFlag;
use script::engine::{self, CallChannel};
use script::protocol::{Answer, Call, Start};
use script::{Journal, Limits};
use serde_json::value::RawValue;
use testkit::fuzz::Dictionary;
use tool::Json;

use crate::{JSON, Target, halves, text};

static SCRIPTS: Dictionary = Dictionary {
    seeds: &[
        "const a = await tools.x.y({n: 1}); return a",
        "return await Promise.all([1, 2].map(n => tools.a.b({n})))",
        "try { await tools.a.b(1n) } catch (e) { console.log(e); throw e }",
        "return [...'abc'].reverse().join('').replace(/(b+)+$/g, x => x)",
        "class A extends Array { static get [Symbol.species]() { return Proxy } } return new A(3).map(x => x)",
        "return new Uint32Array(new ArrayBuffer(64), 4, 2).subarray(1)",
        "let s = ''; for (const k in globalThis) s += k; return JSON.stringify({s}, null, 1)",
        "const p = new Proxy(tools, {}); return p.a.b.constructor",
        "Object.prototype.then = f => f(1); return (await tools.a.b({})).of",
        "throw {get message() { throw null }}",
        "let t = tools; for (const k of 'abc'.repeat(99)) t = t[k]; return t({})",
        // One for each limit of the engine.
        "for (;;) {}",
        "const a = []; for (;;) a.push('x'.repeat(99999) + a.length)",
        "return 'x'.repeat(2 ** 29) + 'y'.padEnd(2 ** 30)",
        "return /(a+)+$/.test('a'.repeat(40) + 'b')",
        "(function f() { return f() + 1 })()",
        "const f = () => Promise.resolve().then(f); await f()",
        "for (let n = 0; n < 99; n++) tools.a.b({n}); return 1",
        "return await Promise.all(Array.from({length: 50}, (_, n) => tools.a.b({n})))",
        "return 'y'.repeat(70000)",
        "for (let n = 0; n < 9999; n++) console.log('z'.repeat(n))",
        "let o = {}; for (let n = 0; n < 99999; n++) o = {o}; return o",
        "const o = {}; o.o = o; return o",
        "return {toJSON() { for (;;) {} }}",
    ],
    words: &[
        "tools.a.b(",
        "await ",
        "return ",
        "Promise.",
        "then(",
        "=>",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "`${",
        "/(a*)*/",
        ".__proto__",
        ".constructor",
        "Symbol.iterator",
        "Reflect.",
        "eval(",
        "new Proxy(",
        "BigInt(",
        "1e308",
        "'\\u{0}'",
        "async ",
        "yield ",
        "function* f() {",
        "delete ",
        "Object.defineProperty(",
        "Object.prototype.toJSON = ",
        "throw null",
        "await new Promise(() => {})",
        "tools[",
        ".repeat(1e6)",
        "get x() {",
        "for (;;) ",
        "catch (e) {",
        "finally {",
        ";",
    ],
};

/// Answers every call with its own arguments, and counts them.
#[derive(Default)]
struct Echo {
    unanswered: Vec<Call>,
    n_calls: usize,
}

impl CallChannel for Echo {
    fn call(&mut self, call: Call) -> io::Result<()> {
        self.n_calls += 1;
        self.unanswered.push(call);
        Ok(())
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let call = self.unanswered.pop().ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(Answer { number: call.number, result: Ok(call.arguments) })
    }
}

fn script(bytes: &[u8]) {
    let limits = Limits {
        steps: 200_000,
        memory: 4 << 20,
        calls: 20,
        returned: 1 << 16,
        ..Limits::default()
    };
    let inputs = RawValue::from_string("{}".to_owned()).expect("an empty object is JSON");
    let start = Start { code: text(bytes).into_owned(), inputs, limits };
    let mut echo = Echo::default();
    let finished = engine::run(&start, &mut echo).expect("every call is answered");
    let Limits { steps, calls, returned, logged, .. } = start.limits;
    assert!(finished.log.iter().map(String::len).sum::<usize>() <= logged);
    assert!(echo.n_calls <= calls, "{} calls", echo.n_calls);
    // What it threw after the last step may be looked at, too.
    assert!(finished.steps <= 2 * steps, "{} steps", finished.steps);
    if let Ok(Some(json)) = &finished.outcome {
        assert!(json.get().len() <= returned, "{} bytes came back", json.get().len());
    }
}

/// A pick, a line end, and the result that it is taken from.
static PICKS: Dictionary = Dictionary {
    seeds: &[
        "\".items[]|{id}\"\n{\"structuredContent\":{\"items\":[{\"id\":1}]}}",
        "[\"a\",\"b.c\"]\n{\"content\":[{\"type\":\"text\",\"text\":\"[{\\\"a\\\":1}]\"}]}",
        "{\"fields\":[\"a\\\"\\\\(1)\"],\"limit\":2,\"count\":true}\n{\"content\":[]}",
    ],
    words: JSON,
};

fn pick(bytes: &[u8]) {
    let (pick, result) = halves(bytes);
    let (Ok(pick), Ok(result)) =
        (Json::parse(text(pick).into_owned()), Json::parse(text(result).into_owned()))
    else {
        return;
    };
    if let Ok(pick) = Pick::parse(&pick)
        && let Ok(picked) = pick.run(&result, 500, &StopFlag::never())
    {
        assert!(picked.text.chars().count() <= 500);
    }
}

/// A journal as it was stored whole, and the lines since.
static JOURNALS: Dictionary = Dictionary {
    seeds: &[
        concat!(
            r#"{"code":"x","inputs":{},"answered":[],"begun":{},"waiting":null,"finished":false}"#,
            "\n",
            r#"{"begun":{"number":0,"call":{"path":["a"],"digest":"00"}}}"#,
            "\n",
            r#"{"answered":{"number":0,"call":{"path":["a"],"digest":"00"},"result":{"Ok":1}}}"#,
            "\n",
            r#"{"forgotten":1}"#,
            "\n",
            r#"{"beg"#,
            "\n",
            r#"{"resumed":7}"#,
            "\n",
            r#"{"stopped":{"finished":true,"waiting":3,"questions":{"3":"s"}}}"#,
            "\n",
        ),
        r#"{"code":"x","inputs":{},"answered":[{"number":0,"call":{"path":["a"],"digest":"00"},"result":{"Ok":1}}],"begun":{"1":{"path":["b"],"digest":""}},"waiting":1,"finished":false}"#,
    ],
    words: JSON,
};

fn journal(bytes: &[u8]) {
    let (whole, lines) = halves(bytes);
    let whole = serde_json::from_slice::<Journal>(whole).map(Journal::indexed);
    let Some(journal) = whole.ok().and_then(|whole| whole.with_lines(lines).ok()) else {
        return;
    };
    let arguments = RawValue::from_string("{}".to_owned()).expect("an empty object is JSON");
    let call = Call { number: 0, path: vec!["a".to_owned()], arguments };
    let _ = journal.lookup(&call);
    let again = serde_json::to_string(&journal).expect("what was read can be written");
    assert!(serde_json::from_str::<Journal>(&again).is_ok());
}

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "script", dictionary: &SCRIPTS, check: script },
    Target { name: "pick", dictionary: &PICKS, check: pick },
    Target { name: "journal", dictionary: &JOURNALS, check: journal },
];
