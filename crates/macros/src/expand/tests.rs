use std::str::FromStr;

use super::*;

fn expanded(options: &str, function: &str) -> syn::Result<String> {
    let tokens = |text| TokenStream::from_str(text).unwrap();
    tool(tokens(options), tokens(function)).map(|code| code.to_string())
}

#[track_caller]
fn refuses(options: &str, function: &str, expected: &str) {
    let error = expanded(options, function).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

/// A function that is a tool with any options.
const FINE: &str = "/// Says hello.\n fn hello() {}";

#[test]
fn an_option_that_is_wrong_is_told_with_what_is_right() {
    for (options, expected) in [
        ("colour = \"red\"", "no option is called `colour`; there are `name`"),
        ("read_only, read_only", "`read_only` is given twice"),
        ("name = \"two words\"", "a tool's name is 1 to 128 of `A-Z a-z 0-9 _ - . /`"),
        ("name = \"\"", "a tool's name is 1 to 128"),
        ("title", "`title` is written `title = \"text\"`"),
        ("title = true", "`title` is written `title = \"text\"`"),
        ("read_only = \"yes\"", "`read_only` is written `read_only alone, or `= false``"),
        ("tags = \"one\"", "`tags` is written `tags = [\"one\", \"two\"]`"),
        ("timeout = \"10\"", "a duration is a whole number above zero with a unit"),
        ("timeout = \"0s\"", "a duration is a whole number above zero with a unit"),
        ("cache_ttl = \"1.5h\"", "a duration is a whole number above zero with a unit"),
        ("read_only, destructive", "a tool cannot be `read_only` and `destructive`"),
    ] {
        refuses(options, FINE, expected);
    }
}

#[test]
fn a_function_that_cannot_be_a_tool_says_why() {
    for (function, expected) in [
        ("fn hello() {}", "a tool needs a description: write a doc comment"),
        ("/// X.\n fn hello<T>(one: T) {}", "its function cannot be generic"),
        ("/// X.\n fn hello(&self) {}", "a tool is a free function; keep state in `State<T>`"),
        ("/// X.\n fn hello(one: &str) {}", "arguments are owned: take `String` for `&str`"),
        ("/// X.\n fn hello((a, b): (u8, u8)) {}", "an argument needs a plain name"),
        ("/// X.\n fn hello(all: Args<A>, one: u8) {}", "takes the whole arguments object"),
        ("/// X.\n fn hello(one: Args<A>, two: Args<B>) {}", "takes the whole arguments object"),
        ("/// X.\n fn größe() {}", "MCP allows only `A-Z a-z 0-9 _ - . /` in a tool's name"),
        ("struct Hello;", "expected"),
    ] {
        refuses("", function, expected);
    }
}

#[test]
fn every_name_that_is_made_up_begins_with_underscores() {
    let code = expanded("", "/// X.\n fn call(#[default(1)] arguments: u8) -> u8 { arguments }");
    let code = code.unwrap();
    for made_up in ["struct __ToolArguments", "fn __default_of_arguments", "| __call |"] {
        assert!(code.contains(made_up), "{made_up}: {code}");
    }
}

#[test]
fn what_is_left_out_is_left_out_whole() {
    let code = expanded("", "/// X.\n #[cfg(never)] fn hello() {}").unwrap();
    // The function, its type and everything beside them.
    assert_eq!(code.matches("# [cfg (never)]").count(), 3, "{code}");
}
