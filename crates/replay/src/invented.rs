//! Invents servers with tools that nobody needs: distinct in name, meaning and arguments,
//! the same every time, and with answers.
//!
//! Each line of `data/invented.txt` is a server in a field of its own, with eight kinds of
//! things and two facts about each. A tool does one of the [`VERBS`] with one of the things.
//! Servers name and word their tools differently, as strangers do.

use serde_json::{Map, Value, json};

use crate::recording::{Server, Tool};

/// How many tools a server has, before there are more servers.
const TOOLS_PER_SERVER: usize = 10;

/// What can be done with things: names to choose from, descriptions to choose from, and what
/// it takes. In texts `@S` is the things, `@T` one of them, `@A` and `@B` its facts, and `@F`
/// the field.
struct Verb {
    /// `@` is the thing, or the things.
    names: [&'static str; 3],
    is_plural: bool,
    about: [&'static str; 3],
    takes: Takes,
    /// The answer, in which `@ID` is a number.
    answer: &'static str,
}

#[derive(Clone, Copy)]
enum Takes {
    Filter,
    Id,
    Words,
    Facts,
    IdAndFacts,
    Group,
    Period,
    Rows,
    IdAndPerson,
    TwoIds,
}

const VERBS: [Verb; 13] = [
    Verb {
        names: ["list_@", "all_@", "browse_@"],
        is_plural: true,
        about: [
            "List @S of the @F, page by page, ordered by @A. Narrow them down by @A or @B.",
            "Gives all @S that are on file in the @F, a page at a time.",
            "Page through the @F's @S. Each comes with its id, @A and @B.",
        ],
        takes: Takes::Filter,
        answer: r#"{"items": [], "total": 0, "next": null}"#,
    },
    Verb {
        names: ["get_@", "read_@", "@_details"],
        is_plural: false,
        about: [
            "Read one @T by its id, with @A, @B and when it was changed last.",
            "Everything that the @F knows about a @T.",
            "Looks a @T up by id and returns @A, @B and remarks.",
        ],
        takes: Takes::Id,
        answer: "There is no @T with this id.",
    },
    Verb {
        names: ["search_@", "find_@", "query_@"],
        is_plural: true,
        about: [
            "Find @S by words in their remarks, @A or @B; the best match comes first.",
            "Full-text search over the @S of the @F. Quotes keep words together.",
            "Search for @S in the @F when the id is not known.",
        ],
        takes: Takes::Words,
        answer: r#"{"matches": [], "searched": "@S"}"#,
    },
    Verb {
        names: ["create_@", "add_@", "register_@"],
        is_plural: false,
        about: [
            "Enter a new @T with its @A and @B. Returns the id that it was given.",
            "Adds a @T to the @F's books; what is entered can be changed later.",
            "Register a @T. Fails if one with the same @A exists.",
        ],
        takes: Takes::Facts,
        answer: r#"{"id": "@T-@ID", "state": "created"}"#,
    },
    Verb {
        names: ["update_@", "change_@", "edit_@"],
        is_plural: false,
        about: [
            "Change @A or @B of a @T. What is left out stays as it is.",
            "Edit a @T that the @F has on file, and note who did it.",
            "Corrects the entry of a @T; the earlier one is kept in its history.",
        ],
        takes: Takes::IdAndFacts,
        answer: "There is no @T with this id; nothing was changed.",
    },
    Verb {
        names: ["delete_@", "remove_@", "drop_@"],
        is_plural: false,
        about: [
            "Delete a @T for good. This cannot be undone.",
            "Takes a @T out of the @F's books, if nothing refers to it.",
            "Remove a @T and everything that hangs on it.",
        ],
        takes: Takes::Id,
        answer: "There is no @T with this id; nothing was deleted.",
    },
    Verb {
        names: ["count_@", "@_statistics", "summarize_@"],
        is_plural: true,
        about: [
            "Count @S by @A or @B over a period.",
            "Figures about the @F's @S: how many there are per @A, and the mean @B.",
            "Sums up @S in groups, for a chart or a monthly report.",
        ],
        takes: Takes::Group,
        answer: r#"{"groups": {}, "total": 0}"#,
    },
    Verb {
        names: ["export_@", "download_@", "dump_@"],
        is_plural: true,
        about: [
            "Write the @S of a period into a file and return its name.",
            "Exports @S with @A and @B as a table, for use in other programs.",
            "Make a download of the @F's @S.",
        ],
        takes: Takes::Period,
        answer: r#"{"file": "@S-@ID.csv", "rows": 0}"#,
    },
    Verb {
        names: ["import_@", "upload_@", "load_@"],
        is_plural: true,
        about: [
            "Take in many @S at once. Rows without @A are refused, and named in the answer.",
            "Loads @S from rows; what is there already is updated.",
            "Upload @S that were collected on paper or elsewhere.",
        ],
        takes: Takes::Rows,
        answer: r#"{"accepted": 0, "refused": []}"#,
    },
    Verb {
        names: ["@_history", "get_@_changes", "audit_@"],
        is_plural: false,
        about: [
            "Who changed a @T, when, and what its @A was before.",
            "The changes of a @T since it was entered, the latest first.",
            "Trace how @A and @B of a @T came to be what they are.",
        ],
        takes: Takes::Id,
        answer: r#"{"changes": []}"#,
    },
    Verb {
        names: ["assign_@", "delegate_@", "hand_over_@"],
        is_plural: false,
        about: [
            "Make somebody responsible for a @T, and tell them.",
            "Hands a @T of the @F over to another person.",
            "Assign a @T; whoever had it before is told as well.",
        ],
        takes: Takes::IdAndPerson,
        answer: "There is no @T with this id; nobody was told.",
    },
    Verb {
        names: ["archive_@", "close_@", "retire_@"],
        is_plural: false,
        about: [
            "Put a @T away: it is not listed any more, and can still be read.",
            "Closes a @T in the @F's books with a reason.",
            "Retire a @T when its @B does not matter any more.",
        ],
        takes: Takes::Id,
        answer: "There is no @T with this id; nothing was archived.",
    },
    Verb {
        names: ["compare_@", "diff_@", "match_@"],
        is_plural: true,
        about: [
            "Put two @S side by side and say where @A and @B differ.",
            "Compares two @S of the @F, fact by fact.",
            "Tell how alike two @S are, to find those that were entered twice.",
        ],
        takes: Takes::TwoIds,
        answer: r#"{"differences": [], "similarity": 1.0}"#,
    },
];

/// A kind of things, with two facts about each.
struct Thing<'a> {
    name: &'a str,
    facts: [&'a str; 2],
}

/// Returns servers with `n_tools` tools together, or with as many as there are. A larger
/// catalogue has all tools of a smaller one when both are large enough for all servers.
pub(crate) fn servers(n_tools: usize) -> Vec<Server> {
    let lines: Vec<&str> = include_str!("../data/invented.txt").lines().collect();
    let n_servers = n_tools.div_ceil(TOOLS_PER_SERVER).min(lines.len());
    let share = |at: usize| n_tools / n_servers + usize::from(at < n_tools % n_servers);
    lines.iter().take(n_servers).enumerate().map(|(at, line)| server(line, at, share(at))).collect()
}

fn server(line: &str, at: usize, n_tools: usize) -> Server {
    let (label, things) = line.split_once(':').unwrap_or((line, ""));
    let things: Vec<Thing<'_>> = things.split_whitespace().filter_map(thing).collect();
    let places = 0..things.len() * VERBS.len();
    // All things come before the first of them comes again, each time with another verb.
    let tools = places.take(n_tools).map(|n| {
        let (thing, round) = (n % things.len(), n / things.len());
        tool(label, &things[thing], &VERBS[(round + thing) % VERBS.len()], at + thing)
    });
    Server { name: label.to_owned(), label: label.to_owned(), tools: tools.collect() }
}

/// Reads `name(fact,fact)`.
fn thing(text: &str) -> Option<Thing<'_>> {
    let (name, facts) = text.strip_suffix(')')?.split_once('(')?;
    Some(Thing { name, facts: facts.split_once(',')?.into() })
}

/// Makes a tool; `style` chooses among words.
fn tool(field: &str, thing: &Thing<'_>, verb: &Verb, style: usize) -> Tool {
    let subject = if verb.is_plural { plural(thing.name) } else { thing.name.to_owned() };
    let name = verb.names[style % verb.names.len()].replace('@', &subject);
    let spaced = |name: &str| name.replace('_', " ");
    let fill = |text: &str| {
        text.replace("@ID", &(1000 + style * 7).to_string())
            .replace("@T", &spaced(thing.name))
            .replace("@S", &spaced(&plural(thing.name)))
            .replace("@F", &spaced(field))
            .replace("@A", &spaced(thing.facts[0]))
            .replace("@B", &spaced(thing.facts[1]))
    };
    let definition = json!({
        "name": name,
        "description": fill(verb.about[(style / 2) % verb.about.len()]),
        "inputSchema": schema(thing, verb.takes, &spaced(thing.name)),
    });
    Tool { name, definition, answer: Value::String(fill(verb.answer)) }
}

fn schema(thing: &Thing<'_>, takes: Takes, name: &str) -> Value {
    let text = |about: String| json!({"type": "string", "description": about});
    let id = || text(format!("The id of the {name}"));
    let fact = |fact: &str| {
        let about = format!("{} of the {name}", fact.replace('_', " "));
        let ends = ["_no", "_min", "_kg", "_m", "_t", "_c", "_percent", "_mm", "_l", "_g", "_h"];
        let kind = if ends.iter().any(|end| fact.ends_with(end)) { "number" } else { "string" };
        json!({"type": kind, "description": about})
    };
    let [a, b] = thing.facts;
    let limit =
        json!({"type": "integer", "minimum": 1, "maximum": 200, "description": "How many at most"});
    let day = |which: &str| json!({"type": "string", "format": "date", "description": format!("The {which} day of the period")});
    let (members, required): (Vec<(&str, Value)>, Vec<&str>) = match takes {
        Takes::Filter => {
            let page = text("Where to go on, from the page before".to_owned());
            (vec![(a, fact(a)), (b, fact(b)), ("limit", limit), ("page", page)], vec![])
        }
        Takes::Id => (vec![("id", id())], vec!["id"]),
        Takes::Words => {
            let words = text(format!("Words about the {name}"));
            (vec![("words", words), (a, fact(a)), ("limit", limit)], vec!["words"])
        }
        Takes::Facts => {
            let remarks = text("Anything else that is worth knowing".to_owned());
            (vec![(a, fact(a)), (b, fact(b)), ("remarks", remarks)], vec![a, b])
        }
        Takes::IdAndFacts => (vec![("id", id()), (a, fact(a)), (b, fact(b))], vec!["id"]),
        Takes::Group => {
            let by = json!({"type": "string", "enum": [a, b], "description": "What to group by"});
            (vec![("group_by", by), ("from", day("first")), ("to", day("last"))], vec!["group_by"])
        }
        Takes::Period => {
            let format =
                json!({"type": "string", "enum": ["csv", "json", "xlsx"], "default": "csv"});
            (vec![("from", day("first")), ("to", day("last")), ("format", format)], vec!["from"])
        }
        Takes::Rows => {
            let row =
                json!({"type": "object", "properties": {a: fact(a), b: fact(b)}, "required": [a]});
            let rows = json!({"type": "array", "items": row, "description": "One object per row"});
            (vec![("rows", rows)], vec!["rows"])
        }
        Takes::IdAndPerson => {
            let person = text("The name or mail address of the person".to_owned());
            (vec![("id", id()), ("person", person)], vec!["id", "person"])
        }
        Takes::TwoIds => (vec![("first", id()), ("second", id())], vec!["first", "second"]),
    };
    let members: Map<String, Value> =
        members.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({"type": "object", "properties": members, "required": required})
}

fn plural(word: &str) -> String {
    let consonant_y = word.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match consonant_y {
        Some(stem) => format!("{stem}ies"),
        None if word.ends_with(['s', 'x']) || word.ends_with("ch") || word.ends_with("sh") => {
            format!("{word}es")
        }
        None => format!("{word}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all(n_tools: usize) -> Vec<Tool> {
        servers(n_tools).into_iter().flat_map(|server| server.tools).collect()
    }

    #[test]
    fn five_thousand_tools_differ_in_what_they_say_and_take() {
        let tools = all(5_000);
        assert_eq!(tools.len(), 5_000);
        // A name or a description of its own is not enough: both together with the arguments
        // make a meaning, and none occurs twice.
        let without_name = |tool: &Tool| {
            format!("{}{}", tool.definition["description"], tool.definition["inputSchema"])
        };
        let meanings: BTreeSet<String> = tools.iter().map(without_name).collect();
        assert_eq!(meanings.len(), 5_000);
        let text: String = meanings.into_iter().collect();
        assert!(!text.contains('@'), "every place is filled in");
    }

    #[test]
    fn names_are_unique_within_a_server_and_most_of_them_altogether() {
        for server in servers(5_000) {
            let names: BTreeSet<&String> = server.tools.iter().map(|tool| &tool.name).collect();
            assert_eq!(names.len(), server.tools.len(), "{}", server.label);
        }
        let names: BTreeSet<String> = all(5_000).into_iter().map(|tool| tool.name).collect();
        assert!(4_900 <= names.len(), "{}", names.len());
    }

    #[test]
    fn a_large_catalogue_has_all_of_a_smaller_one() {
        let large = all(5_000);
        assert!(all(500).iter().all(|tool| large.contains(tool)));
        assert_eq!((all(0).len(), all(7).len(), all(100_000).len()), (0, 7, 5_200));
    }

    #[test]
    fn an_invented_tool_reads_like_one() {
        let tools = all(300);
        let tool = tools
            .iter()
            .find(|tool| tool.definition["description"].as_str().unwrap().contains("swarm"))
            .unwrap();
        assert!(tool.name.contains("swarm"), "{tool:?}");
        assert!(tool.answer.as_str().is_some_and(|answer| !answer.is_empty()));
    }
}
