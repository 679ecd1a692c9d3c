//! What a configuration means and what is said about a wrong one.

use super::*;

struct Empty;

impl Environment for Empty {
    fn get(&self, _: &str) -> Option<String> {
        None
    }
}

fn reading(text: &str) -> Result<(Config, Problems), Problems> {
    let source = SourceFile { name: "gatelet.toml".to_owned(), text: text.to_owned() };
    parse(source, Path::new("/base"), &Empty)
}

fn reading_json(text: &str) -> Result<(Config, Problems), Problems> {
    let source = SourceFile { name: "gatelet.json".to_owned(), text: text.to_owned() };
    parse(source, Path::new("/base"), &Empty)
}

/// Every problem as `line:column message (hint)`.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let problems = match reading(text) {
        Ok((_, problems)) | Err(problems) => problems,
    };
    let mut found: Vec<(usize, String)> = problems
        .iter()
        .map(|problem| {
            let (line, column) = problems.line_and_column(problem.span.start);
            let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})"));
            let hint = hint.unwrap_or_default();
            (problem.span.start, format!("{line}:{column} {}{hint}", problem.message))
        })
        .collect();
    found.sort();
    let found: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(found, expected);
}

#[test]
fn an_empty_file_is_a_configuration() {
    check("", &[]);
    let (config, _) = reading("").unwrap();
    assert_eq!(config.serve.listen.to_string(), "127.0.0.1:4747");
    assert_eq!(config.gate.limit, 10_000);
}

#[test]
fn an_upstream_is_a_program_or_an_address() {
    let text = r#"
        [[upstream]]
        label = "files"
        command = "mcp-files"
        args = ["--root", "."]
        cwd = "data"
        start = "on-demand"
        idle_stop = "10m"

        [[upstream]]
        label = "docs"
        url = "https://example.org/mcp"
        transport = "sse"
    "#;
    check(text, &["6:15 `upstream[0].cwd`: there is no directory `/base/data`"]);
    let (config, _) = reading(text).unwrap();
    let [files, docs] = &config.upstreams[..] else { panic!("two upstreams") };
    assert_eq!(files.start, Start::OnDemand);
    assert_eq!(files.idle_stop, Some(std::time::Duration::from_secs(600)));
    let Reach::Program { cwd, args, .. } = &files.reach else { panic!("a program") };
    assert_eq!((cwd.as_deref(), args.len()), (Some(Path::new("/base/data")), 2));
    let Reach::Address { wire, .. } = &docs.reach else { panic!("an address") };
    assert_eq!(*wire, Some(HttpTransport::Sse));
}

#[test]
fn an_origin_is_one_however_it_is_written() {
    let text = "[auth]\norigins = [\"https://APP.example:443/\", \"http://b.example:81\"]\n\
                public_url = \"https://gate.example/base/\"\n";
    check(text, &[]);
    let (config, _) = reading(text).unwrap();
    assert_eq!(config.auth.origins, ["https://app.example", "http://b.example:81"]);
    assert_eq!(config.auth.public_url.as_deref(), Some("https://gate.example/base"));
}

#[test]
fn every_problem_is_reported_at_once_and_at_its_place() {
    let text = r#"
[[upstream]]
lable = "files"
command = 7

[[upstream]]
label = "a b"
url = "ftp://x"
start = "on_demand"
call_timeout = "soon"

[gate]
limit = 0

[serv]
"#;
    check(
        text,
        &[
            "2:1 `upstream[0]`: needs a `label` (name the namespace: label = \"files\")",
            "3:1 unknown key `upstream[0].lable` (did you mean `label`?)",
            "4:11 `upstream[0].command`: must be text, not a number",
            "7:9 `upstream[1].label`: `a b` cannot be a namespace (1 to 64 letters, digits, `_` and `-`)",
            "8:7 `upstream[1].url`: must start with `https://` or `http://`",
            "9:9 `upstream[1].start`: must be \"eager\" or \"on-demand\" (did you mean \"on-demand\"?)",
            "10:16 `upstream[1].call_timeout`: `soon` is not a duration: write it like `500ms`, `30s`, `5m` or `1h 30m`",
            "13:9 `gate.limit`: must be at least 1",
            "15:2 unknown key `serv` (did you mean `serve`?)",
        ],
    );
}

/// One mistake each, and what is said about it.
const MISTAKES: &[(&str, &str)] = &[
    (
        "[auth]\norigins = [\"app.example\"]",
        "2:12 `auth.origins[0]`: must start with `https://` or `http://`, such as `https://app.example`",
    ),
    (
        "[auth]\norigins = [\"https://a.example\", \"*\"]",
        "2:33 `auth.origins[1]`: must name each page: `*` would let every web page use this gate",
    ),
    (
        "[auth]\norigins = [\"https://*.example\"]",
        "2:12 `auth.origins[0]`: must be scheme, host and port, such as `https://app.example`",
    ),
    (
        "[auth]\norigins = [\"https://app.example/page\"]",
        "2:12 `auth.origins[0]`: must be scheme, host and port, such as `https://app.example`",
    ),
    (
        "[auth]\npublic_url = \"gate.example\"",
        "2:14 `auth.public_url`: must start with `https://` or `http://`, such as `https://app.example`",
    ),
    (
        "[auth]\npublic_url = \"https://u:p@gate.example\"",
        "2:14 `auth.public_url`: has a name or a password in it",
    ),
    (
        "[auth]\npublic_url = \"https://gate.example?a=b\"",
        "2:14 `auth.public_url`: has a query: only scheme, host, port and path",
    ),
    ("[auth]\nscope = \"\"", "2:9 `auth.scope`: is empty: name a scope, or leave it out"),
    (
        "[controls]\ndefault = \"maybe\"",
        "2:11 `controls.default`: must be \"allow\" or \"deny\" or \"ask\"",
    ),
    (
        "[[controls.rule]]\naction = \"denied\"",
        "2:10 `controls.rule[0].action`: must be \"allow\" or \"deny\" or \"ask\"",
    ),
    (
        "[[controls.rule]]\naction = \"Deny\"",
        "2:10 `controls.rule[0].action`: must be \"allow\" or \"deny\" or \"ask\" (did you mean \"deny\"?)",
    ),
    (
        "[[controls.rule]]\ntool = \"x\"",
        "1:1 `controls.rule[0]`: needs `action` (`allow`, `deny` or `ask`.)",
    ),
    (
        "[[trust.rule]]\ntool = \"x\"",
        "1:1 `trust.rule[0]`: needs `destructive` (Whether it may delete or overwrite something.)",
    ),
    (
        "[controls.pins.f]",
        "1:1 `controls.pins.f`: needs `expected_hash` (As `gatelet upstreams --report` tells it.)",
    ),
    ("[serve.tls]\ncert = \"x\"", "1:1 `serve.tls`: needs `key` (Its private key in PEM.)"),
    (
        "[[mount]]\nlabel = \"x\"",
        "1:1 `mount[0]`: needs `manifest` (Where the manifest is: an https URL.)",
    ),
    (
        "[[trust.rule]]\ntool = 3\ndestructive = true",
        "2:8 `trust.rule[0].tool`: must be text, not a number",
    ),
    (
        "[controls.retry]\nattempts = 5000000000",
        "2:12 `controls.retry.attempts`: must be at most 4294967295",
    ),
    ("[gate]\nlimit = 99999999999999999999", "2:9 `gate.limit`: is too large a number"),
    (
        "[gate]\nlimit = 200\nceiling = 100",
        "2:9 `gate.limit`: is above the ceiling of 100 (raise `ceiling`, or lower `limit`)",
    ),
];

#[test]
fn a_mistake_is_reported_and_never_empties_the_configuration() {
    for (text, expected) in MISTAKES {
        check(text, &[expected]);
        assert!(reading(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_left_out_of_a_list_does_not_move_what_follows() {
    check(
        "[[mount]]\nlabel = \"x\"\n[[mount]]\nmanifest = \"no url\"\n[[mount]]\n[[mount]]\nmanifest = \"none\"",
        &[
            "1:1 `mount[0]`: needs `manifest` (Where the manifest is: an https URL.)",
            "4:12 `mount[1].manifest`: `no url` is no URL: relative URL without a base",
            "5:1 `mount[2]`: needs `manifest` (Where the manifest is: an https URL.)",
            "7:12 `mount[3].manifest`: `none` is no URL: relative URL without a base",
        ],
    );
}

#[test]
fn of_what_cannot_be_read_only_that_is_said() {
    let source = SourceFile { name: "gatelet.json".to_owned(), text: "{".to_owned() };
    let Err(problems) = parse(source, Path::new("/base"), &Empty) else { panic!() };
    assert_eq!(problems.iter().count(), 1, "{problems}");
}

#[test]
fn the_line_for_a_log_tells_what_was_probably_meant() {
    let Err(problems) = reading("[serv]") else { panic!("an error") };
    assert_eq!(problems.summary(), "gatelet.toml:1:2 unknown key `serv` (did you mean `serve`?)");
}

/// Every place of the schema, with a way to put a value there.
struct Spot<'s> {
    schema: &'s serde_json::Value,
    path: String,
    around: Vec<Around>,
}

/// What stands around a value: a list, or a table with what else it must have.
#[derive(Clone)]
enum Around {
    List,
    Table { key: String, rest: serde_json::Map<String, serde_json::Value> },
}

impl Spot<'_> {
    /// A whole document that has `value` at this place.
    fn with(&self, value: serde_json::Value) -> String {
        let document = self.around.iter().rev().fold(value, |value, around| match around {
            Around::List => serde_json::json!([value]),
            Around::Table { key, rest } => {
                let mut table = rest.clone();
                table.insert(key.clone(), value);
                table.into()
            }
        });
        document.to_string()
    }
}

fn spots<'s>(root: &'s serde_json::Value, spot: Spot<'s>, found: &mut Vec<Spot<'s>>) {
    let Spot { schema, path, around } = &spot;
    let mut below = |schema: &'s serde_json::Value, key: &str, path: String| {
        let mut around = around.clone();
        around.push(Around::Table { key: key.to_owned(), rest: least(root, spot.schema) });
        let spot = Spot { schema: schema_check::resolve_reference(root, schema), path, around };
        spots(root, spot, found);
    };
    let dotted = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
        below(schema, key, dotted(key));
    }
    if let Some(schema) = schema.get("additionalProperties").filter(|any| any.is_object()) {
        below(schema, "some", dotted("some"));
    }
    if let Some(items) = schema.get("items") {
        let around = around.iter().cloned().chain([Around::List]).collect();
        let schema = schema_check::resolve_reference(root, items);
        spots(root, Spot { schema, path: format!("{path}[0]"), around }, found);
    }
    found.push(spot);
}

/// Returns what a table must have at the least.
fn least(
    root: &serde_json::Value,
    schema: &serde_json::Value,
) -> serde_json::Map<String, serde_json::Value> {
    let required = schema["required"].as_array().into_iter().flatten();
    let member = |key: &serde_json::Value| {
        let key = key.as_str().unwrap();
        let below = schema_check::resolve_reference(root, &schema["properties"][key]);
        let value = match (schema_check::allowed_texts(below), below["type"].as_str()) {
            (Some(words), _) => words[0].into(),
            (None, Some("string")) => "x".into(),
            (None, Some("boolean")) => false.into(),
            other => panic!("`{key}` needs a sample: {other:?}"),
        };
        (key.to_owned(), value)
    };
    required.map(member).collect()
}

#[track_caller]
fn is_reported(document: &str, path: &str, needle: &str) {
    let source = SourceFile { name: "gatelet.json".to_owned(), text: document.to_owned() };
    let problems = match parse(source, Path::new("/base"), &Empty) {
        Err(problems) => problems,
        Ok(_) => panic!("nothing is said against {document}"),
    };
    let found: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    let there = format!("`{path}`: ");
    assert!(
        found.iter().any(|text| text.starts_with(&there) && text.contains(needle)),
        "{document}: {found:?}"
    );
}

#[test]
fn wherever_the_schema_is_broken_it_is_said_at_that_place() {
    let root = schema();
    let mut found = Vec::new();
    spots(&root, Spot { schema: &root, path: String::new(), around: Vec::new() }, &mut found);
    let (mut lacking, mut words, mut kinds, mut numbers) = (0, 0, 0, 0);
    for spot in found.iter().filter(|spot| !spot.path.is_empty()) {
        let whole = least(&root, spot.schema);
        for key in whole.keys() {
            let mut table = whole.clone();
            table.remove(key);
            is_reported(&spot.with(table.into()), &spot.path, &format!("needs `{key}`"));
            lacking += 1;
        }
        if schema_check::allowed_texts(spot.schema).is_some() {
            is_reported(&spot.with("no such word".into()), &spot.path, "must be \"");
            words += 1;
        } else {
            is_reported(&spot.with(serde_json::Value::Null), &spot.path, "must be ");
            kinds += 1;
        }
        if schema_check::type_names(spot.schema).contains(&"integer") {
            is_reported(&spot.with(1e30.into()), &spot.path, "is too large");
            numbers += 1;
        }
    }
    assert!(5 < lacking && 10 < words && 100 < kinds && 20 < numbers);
}

#[test]
fn a_built_in_namespace_gives_way_to_an_upstream_and_that_is_said() {
    let text = "[builtin]\ntools = true\n\n[[upstream]]\nlabel = \"time\"\nurl = \"https://a.example/mcp\"\n\
                [[upstream]]\nlabel = \"time_2\"\nurl = \"https://b.example/mcp\"\n";
    let said = "2:9 `builtin.tools`: an upstream is called `time`, so the built-in namespace of that \
                name is `time_3` here; rules for `time` are about the upstream";
    check(text, &[said]);
    let (config, _) = reading(text).unwrap();
    let labels: Vec<String> = config.builtin_labels().into_iter().map(|(label, _)| label).collect();
    assert_eq!(labels, ["json", "memory", "text", "time_3", "units"]);
}

#[test]
fn a_long_line_is_shown_around_the_place_and_many_problems_are_counted() {
    let keys: Vec<String> =
        (0..100).map(|at| format!("\"nonsense_{at}_{}\": 1", "x".repeat(50))).collect();
    let text = format!("{{\"gate\": {{{}}}}}", keys.join(", "));
    let Err(problems) = reading_json(&text) else { panic!("it is wrong") };
    let shown = anstream::adapter::strip_str(&problems.to_string()).to_string();
    assert!(shown.len() < 20_000, "{} bytes", shown.len());
    assert!(shown.lines().all(|line| line.chars().count() < 500), "{shown}");
    assert!(shown.ends_with("gatelet.json: 100 errors, 80 of them not shown"), "{shown}");
    let mut lines = shown.lines().skip_while(|line| !line.contains("key `gate.nonsense_9_"));
    let line = lines.nth(2).unwrap();
    let at = lines.next().unwrap().chars().position(|c| c == '^').unwrap();
    let pointed: String = line.chars().skip(at).collect();
    assert!(pointed.starts_with("\"nonsense_9_") && line.contains('…'), "{shown}");
    assert!(problems.summary().len() < 20_000);
}

#[test]
fn an_error_is_shown_before_any_warning() {
    let upstream = "[[upstream]]\nlabel = \"a\"\ncommand = \"x y\"\n";
    let many: String = (0..30).map(|at| upstream.replace("\"a\"", &format!("\"a{at}\""))).collect();
    let Err(problems) = reading(&format!("{many}[serv]\n")) else { panic!("wrong") };
    assert!(problems.to_string().contains("did you mean `serve`?"), "{problems}");
}

#[test]
fn what_looks_like_a_secret_is_not_repeated() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    for text in [
        format!(
            r#"{{"mcpServers": {{"é": {{"command": "x", "env": {{"A": "{secret}"}}, "no": 1}}}}}}"#
        ),
        format!(r#"{{"mcpServers": {{"a": {{"command": "x --key {secret}", "no": 1}}}}}}"#),
    ] {
        let (_, problems) = reading_json(&text).unwrap();
        let shown = problems.to_string();
        assert!(!shown.contains("0123456789abc") && shown.contains("\"no\""), "{shown}");
    }
    let text = "[[upstream]]\nenv = { API_TOKEN = \"hunter2-hunter2\" }, no = 1\n";
    let Err(problems) = reading(text) else { panic!("it is wrong") };
    let shown = problems.to_string();
    assert!(!shown.contains("hunter2") && shown.contains("API_TOKEN = ****"), "{shown}");
}

#[test]
fn what_cannot_be_read_is_all_that_is_said_of_a_document() {
    let text = "[gate\n\n[[upstream]]\nlabel = \"a\"\ncommand = \"b\"\n";
    let Err(problems) = reading(text) else { panic!("it is wrong") };
    let said: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert!(said.iter().all(|said| !said.contains("must be")), "{said:?}");
    assert!(!said.is_empty());
}

#[test]
fn an_empty_command_is_none() {
    for command in ["", "  ", "${env:NOWHERE:-}"] {
        let text = format!("[[upstream]]\nlabel = \"a\"\ncommand = \"{command}\"\n");
        check(&text, &["3:11 `upstream[0].command`: must name a program"]);
    }
}

#[test]
fn a_gate_that_anybody_reaches_must_ask_who_it_is_or_be_open() {
    let exposed = |text: &str| reading(text).unwrap().0.exposure_problem(false).is_some();
    let listen = "[serve]\nlisten = \"0.0.0.0:4747\"\n";
    assert!(exposed(listen));
    assert!(!exposed(&format!("{listen}open = true\n")));
    assert!(!exposed("[serve]\nlisten = \"127.0.0.1:4747\"\n"));
    assert!(!exposed(""));
    assert!(reading(listen).unwrap().0.exposure_problem(true).is_none());
}

static TOML: testkit::fuzz::Dictionary = testkit::fuzz::Dictionary {
    seeds: &[
        "[[upstream]]\nlabel = \"a\"\ncommand = \"b\"\nargs = [\"c\"]\n[gate]\nlimit = 5\n",
        "[serve]\nlisten = \"127.0.0.1:1\"\n[auth]\nscope = \"x\"\n[controls]\nrules = [{}]\n",
    ],
    words: &[
        "[[",
        "]]",
        "[",
        "]",
        "{",
        "}",
        " = ",
        "\"",
        "\"\"\"",
        "'",
        "\n",
        "a.",
        "upstream",
        "${env:A:-",
        "${file:",
        "1979-05-27",
        "0x",
        "inf",
        "#",
        ",",
        "[[upstream]]\n",
    ],
};

static JSONC: testkit::fuzz::Dictionary = testkit::fuzz::Dictionary {
    seeds: &["{\"mcpServers\": {\"a\": {\"command\": \"b\", \"args\": [\"c\"], /* d */}}} // e"],
    words: &["{", "}", "[", "]", "\"", ":", ",", "/*", "*/", "//", "\n", "{\"a\":", "mcpServers"],
};

#[test]
fn fuzz_configuration() {
    testkit::fuzz::run("configuration", &TOML, |bytes| {
        let _ = reading(&String::from_utf8_lossy(bytes));
    });
}

#[test]
fn fuzz_foreign_configuration() {
    testkit::fuzz::run("foreign_configuration", &JSONC, |bytes| {
        let _ = reading_json(&String::from_utf8_lossy(bytes));
    });
}

#[test]
fn an_upstream_with_a_bracket_too_few_is_refused_with_how_to_write_it() {
    for rest in ["", "[gate]\nlimit = 5000\n"] {
        let text = format!("[upstream]\nlabel = \"x\"\ncommand = \"y\"\n{rest}");
        let Err(problems) = reading(&text) else { panic!("it is taken for something else") };
        let said = problems.to_string();
        assert!(said.contains("`upstream`: must be a list"), "{said}");
        assert!(said.contains("`[[upstream]]`"), "{said}");
    }
}
