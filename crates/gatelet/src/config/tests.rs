//! What a configuration means and what is said about a wrong one.

use super::*;

struct Empty;

impl Environment for Empty {
    fn get(&self, _: &str) -> Option<String> {
        None
    }
}

fn reading(text: &str) -> Result<(Config, Problems), Stop> {
    let source = Source { name: "gatelet.toml".to_owned(), text: text.to_owned() };
    read(source, Path::new("/base"), &Empty)
}

/// Every problem as `line:column message (hint)`.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let problems = match reading(text) {
        Ok((_, problems)) | Err(Stop::Config(problems)) => problems,
        Err(other) => panic!("{other}"),
    };
    let mut found: Vec<(usize, String)> = problems
        .iter()
        .map(|problem| {
            let (line, column) = problems.place(problem.span.start);
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
    check(text, &[]);
    let (config, _) = reading(text).unwrap();
    let [files, docs] = &config.upstreams[..] else { panic!("two upstreams") };
    assert_eq!(files.start, Start::OnDemand);
    assert_eq!(files.idle_stop, Some(std::time::Duration::from_secs(600)));
    let Reach::Program { cwd, args, .. } = &files.reach else { panic!("a program") };
    assert_eq!((cwd.as_deref(), args.len()), (Some(Path::new("/base/data")), 2));
    let Reach::Address { wire, .. } = &docs.reach else { panic!("an address") };
    assert_eq!(*wire, Some(Wire::Sse));
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
