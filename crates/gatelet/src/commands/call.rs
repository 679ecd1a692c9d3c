//! `gatelet call`: call a function behind gatelet.

use std::io::Read;

use policy::confirm;
use serde_json::{Map, Value, json};

use super::approval::{self, ApprovalMethod};
use super::asking::{self, Author, Wait};
use super::output::Output;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::wire::StartPolicy;

/// Call a function
///
/// Arguments are `key=text` or `key:=JSON`, or one JSON object, or `-` for a
/// JSON object on standard input. Text becomes the type that the function
/// asks for.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gatelet call time.now timezone=Europe/Berlin
  gatelet call json.query filter=.a json:='{\"a\": [1, 2]}'
  gatelet call units.convert '{\"value\": 26.2, \"from\": \"mi\", \"to\": \"km\"}'")]
pub(crate) struct Args {
    /// The function, as `namespace.function`, or both as two words
    function: String,

    /// Its arguments
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,

    /// Let this many characters through instead of the gate's limit
    #[arg(long, value_name = "CHARACTERS")]
    sizelimit: Option<u64>,

    /// Agree beforehand to what gatelet would ask about, such as a tool that destroys
    #[arg(long, short)]
    yes: bool,

    #[command(flatten)]
    output: Output,
}

/// The size limit where a program reads the reply: none, because no model reads it.
const NO_LIMIT: u64 = 1 << 40;

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let mut arguments = Map::new();
    let (name, words) = split_name(&args.function, &args.arguments);
    if let Some((namespace, function)) = name.rsplit_once('.') {
        arguments.insert("namespace".to_owned(), json!(namespace));
        arguments.insert("function".to_owned(), json!(function));
    } else {
        arguments.insert("function".to_owned(), json!(name));
    }
    arguments.insert("kwargs".to_owned(), Value::Object(parse_arguments(words)?));
    let for_a_program = args.output.is_json().then_some(NO_LIMIT);
    if let Some(limit) = args.sizelimit.or(for_a_program) {
        arguments.insert("sizelimit".to_owned(), json!(limit));
    }
    asking::with_gateway_or_running(paths, StartPolicy::OnDemand, async |gate| {
        let label = name.split('.').next().unwrap_or_default();
        gate.wait_until_known(Wait::For(label)).await;
        // The person at this terminal is asked, so the call must not wait for another.
        arguments.insert(confirm::ARGUMENT.to_owned(), json!(confirm::DO_NOT_WAIT));
        let mut reply = gate.call_tool("call", arguments.clone()).await?;
        if let Some(question) = approval::Question::parse(&reply) {
            if !args.yes && !question.ask_person() {
                if args.output.is_json() {
                    asking::print_reply(&reply, Author::Upstream, args.output)?;
                }
                return Err(question.refusal(&name.replacen('.', "/", 1)).into());
            }
            match question.method {
                ApprovalMethod::Token(token) => {
                    arguments.insert(confirm::ARGUMENT.to_owned(), json!(token));
                }
                ApprovalMethod::Request(number) => gate.decide(number, true, paths).await?,
            }
            reply = gate.call_tool("call", arguments).await?;
        }
        let done = asking::print_reply(&reply, Author::Upstream, args.output)?;
        let down = done == Done::AnswerIsError && gate.is_down(label);
        Ok(if down { Done::NoAnswer } else { done })
    })
}

/// Returns the function's name and its arguments; the name may be two words, as in `help`.
fn split_name<'a>(function: &str, words: &'a [String]) -> (String, &'a [String]) {
    let is_name = |word: &String| word != "-" && !word.contains(['=', '{']);
    match words.split_first() {
        Some((second, rest)) if is_name(second) && !function.contains(['.', '/', ':']) => {
            (format!("{function}.{second}"), rest)
        }
        Some(_) | None => (asking::dotted(function), words),
    }
}

/// Parses the arguments of the function: `key=text`, `key:=JSON`, a JSON object, or `-` for
/// a JSON object on stdin.
fn parse_arguments(words: &[String]) -> Result<Map<String, Value>, CliError> {
    let mut arguments = Map::new();
    for word in words {
        if word == "-" {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| CliError::Usage(format!("cannot read standard input: {error}")))?;
            arguments.extend(parse_object(&text)?);
        } else if word.trim_start().starts_with('{') {
            arguments.extend(parse_object(word)?);
        } else {
            let (key, value) = asking::parse_pair(word)?;
            arguments.insert(key, value);
        }
    }
    Ok(arguments)
}

fn parse_object(text: &str) -> Result<Map<String, Value>, CliError> {
    serde_json::from_str(text)
        .map_err(|error| CliError::Usage(format!("the arguments are no JSON object: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: &[&str], expected: &str) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let found = parse_arguments(&words).map(|map| Value::Object(map).to_string());
        assert_eq!(found.unwrap_or_else(|stop| stop.to_string()), expected);
    }

    #[test]
    fn arguments_are_text_json_or_whole_objects() {
        check(&["a=1", "b:=[1]", "c=x=y"], r#"{"a":"1","b":[1],"c":"x=y"}"#);
        check(&[r#"{"a": 1}"#, "a=2"], r#"{"a":"2"}"#);
        check(&[], "{}");
    }

    #[test]
    fn a_function_is_one_word_or_two() {
        let words = ["now".to_owned(), "timezone=UTC".to_owned()];
        assert_eq!(split_name("time", &words), ("time.now".to_owned(), &words[1..]));
        assert_eq!(split_name("time.now", &words), ("time.now".to_owned(), &words[..]));
        assert_eq!(split_name("time/now", &words[1..]), ("time.now".to_owned(), &words[1..]));
        assert_eq!(split_name("now", &["-".to_owned()]).0, "now");
    }

    #[test]
    fn what_is_no_argument_is_said_to_be_none() {
        check(&["a"], "`a` is no argument; write `key=text` or `key:=JSON`");
        check(&["a:=x"], "`a` is not JSON: expected value at line 1 column 1");
    }
}
