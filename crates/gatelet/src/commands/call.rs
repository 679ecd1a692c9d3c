//! `gatelet call`: call a function behind the gate.

use std::io::Read;

use serde_json::{Map, Value, json};

use super::verb::{self, Output, Wait, Words};
use crate::exit::{Done, Stop};
use crate::paths::Paths;
use crate::wire::Pace;

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
    /// The function, as `namespace.function`
    function: String,

    /// Its arguments
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,

    /// Let this many characters through instead of the gate's limit
    #[arg(long, value_name = "CHARACTERS")]
    sizelimit: Option<u64>,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let mut arguments = Map::new();
    if let Some((namespace, function)) = args.function.rsplit_once('.') {
        arguments.insert("namespace".to_owned(), json!(namespace));
        arguments.insert("function".to_owned(), json!(function));
    } else {
        arguments.insert("function".to_owned(), json!(args.function));
    }
    arguments.insert("kwargs".to_owned(), Value::Object(read(&args.arguments)?));
    if let Some(limit) = args.sizelimit {
        arguments.insert("sizelimit".to_owned(), json!(limit));
    }
    verb::with_gateway(paths, Pace::WhenAsked, async |gateway| {
        let label = args.function.split('.').next().unwrap_or_default();
        verb::settle(gateway, Wait::For(label)).await;
        let reply = verb::ask(gateway, "call", arguments).await?;
        let done = verb::answer(&reply, Words::Theirs, args.output)?;
        let down = done == Done::AnswerIsError && verb::is_down(gateway, label);
        Ok(if down { Done::NoAnswer } else { done })
    })
}

fn read(words: &[String]) -> Result<Map<String, Value>, Stop> {
    let mut arguments = Map::new();
    for word in words {
        if word == "-" {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| Stop::Usage(format!("cannot read standard input: {error}")))?;
            arguments.extend(object(&text)?);
        } else if word.trim_start().starts_with('{') {
            arguments.extend(object(word)?);
        } else {
            let (key, value) = verb::pair(word)?;
            arguments.insert(key, value);
        }
    }
    Ok(arguments)
}

fn object(text: &str) -> Result<Map<String, Value>, Stop> {
    serde_json::from_str(text)
        .map_err(|error| Stop::Usage(format!("the arguments are no JSON object: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: &[&str], expected: &str) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let found = read(&words).map(|map| Value::Object(map).to_string());
        assert_eq!(found.unwrap_or_else(|stop| stop.to_string()), expected);
    }

    #[test]
    fn arguments_are_text_json_or_whole_objects() {
        check(&["a=1", "b:=[1]", "c=x=y"], r#"{"a":"1","b":[1],"c":"x=y"}"#);
        check(&[r#"{"a": 1}"#, "a=2"], r#"{"a":"2"}"#);
        check(&[], "{}");
    }

    #[test]
    fn what_is_no_argument_is_said_to_be_none() {
        check(&["a"], "`a` is no argument; write `key=text` or `key:=JSON`");
        check(&["a:=x"], "`a` is not JSON: expected value at line 1 column 1");
    }
}
