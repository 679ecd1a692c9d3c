//! `gatelet selection`: makes schemas that constrain a model's choice of a tool, and checks
//! the choice, for programs that call a model themselves.

use std::io::Read;

use catalog::selection::{self, Names, Provider, Repairs, Status};

use crate::exit::{CliError, Done};
use crate::terminal::out;

/// Constrain a model's choice among tool ids, and check what it chose
///
/// The candidates are arguments, or lines of standard input of which the first word counts, so
/// that what `tool_browse` answers can be piped in as it is.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Print the schema that lets a model choose one candidate and nothing else
    Schema {
        /// How it is wrapped: `json_schema`, `openai` (a response format) or `anthropic` (a tool)
        #[arg(long, default_value = "json_schema", value_name = "FORM")]
        provider: Provider,
        /// The property that holds the choice
        #[arg(long, value_name = "NAME", default_value_t = Names::default().property)]
        property: String,
        /// What the schema is called where it needs a name
        #[arg(long, value_name = "NAME", default_value_t = Names::default().schema)]
        name: String,
        /// The ids to choose from; from standard input when left out
        #[arg(value_name = "ID")]
        candidates: Vec<String>,
    },
    /// Say whether a choice is one of the candidates: accepted, repaired or rejected (exit code 1)
    Check {
        /// What the model chose
        #[arg(value_name = "CHOICE", allow_hyphen_values = true)]
        selected: String,
        /// The ids it had; from standard input when left out
        #[arg(value_name = "ID")]
        candidates: Vec<String>,
        /// Take exact ids only: no other case, no beginnings
        #[arg(long)]
        strict: bool,
    },
}

/// How many bytes of stdin are read.
const MAX_BYTES: u64 = 16 << 20;

pub(crate) fn run(action: &Action) -> anyhow::Result<Done> {
    match action {
        Action::Schema { provider, property, name, candidates } => {
            let candidates = read_candidates(candidates)?;
            let names = Names { property: property.clone(), schema: name.clone() };
            let schema = selection::schema(&borrowed(&candidates), *provider, &names)
                .map_err(|error| CliError::Usage(error.to_string()))?;
            out(&crate::terminal::json_text(&schema)?);
            Ok(Done::Fine)
        }
        Action::Check { selected, candidates, strict } => {
            let candidates = read_candidates(candidates)?;
            let repairs = if *strict { Repairs::Refused } else { Repairs::Allowed };
            let checked = selection::check(Some(selected), &borrowed(&candidates), repairs);
            out(&crate::terminal::json_text(&checked)?);
            Ok(match checked.status {
                Status::Accepted | Status::Repaired => Done::Fine,
                Status::Rejected => Done::AnswerIsError,
            })
        }
    }
}

/// The candidates of the command line, or without any those on stdin.
fn read_candidates(candidates: &[String]) -> anyhow::Result<Vec<String>> {
    if !candidates.is_empty() {
        return Ok(candidates.to_vec());
    }
    let mut text = String::new();
    std::io::stdin().take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(candidate_ids(&text))
}

/// The line of `tool_browse` between cards that were shown before and new ones.
const MARKER: &str = "__cache_breakpoint__";

/// The tool ids in an answer of `tool_browse`: the first words of lines that are not
/// indented. Lines that are sentences do not count, but a word alone on its line does.
fn candidate_ids(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with(char::is_whitespace));
    let id = |line: &str| {
        let mut words = line.split_whitespace();
        let first = words.next().filter(|first| *first != MARKER)?;
        (first.contains([':', '…']) && !first.ends_with([':', '.']) || words.next().is_none())
            .then(|| first.to_owned())
    };
    lines.filter_map(id).collect()
}

fn borrowed(candidates: &[String]) -> Vec<&str> {
    candidates.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_browse_are_its_candidates() {
        let text = "demo:read_file#595f336e Read. [read-only]\n  (path: string)\n\nmcp:x@1\n";
        assert_eq!(candidate_ids(text), ["demo:read_file#595f336e", "mcp:x@1"]);
        assert_eq!(candidate_ids("one\ntwo\n"), ["one", "two"]);
    }

    #[test]
    fn what_a_browse_says_beside_its_cards_is_no_candidate() {
        let text = "Several servers offer this; say which.\nNot searched: slow (still starting).\n\
                    demo:a#595f336e Does a.\n__cache_breakpoint__\ndemo:b#595f336f Does b.\n\
                    Nothing matches. Closest: demo.\n/demo 3: a, b, c\n";
        assert_eq!(candidate_ids(text), ["demo:a#595f336e", "demo:b#595f336f"]);
    }
}
