//! The skills of a CaSH server, read like an agent would.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tool::{Ask, Call, Context, Failure, Json, Listing, Object, Provider, Reply};

use crate::request;

/// How long a list may be believed, in milliseconds.
const LIFETIME: u64 = 60_000;

const MOST: usize = 1_000;
/// Namespaces that are looked into, and their levels.
const NAMESPACES: usize = 200;
const DEEPEST: usize = 8;

/// One skill of the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    namespace: String,
    name: String,
    description: String,
}

/// What an index leads to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Index {
    skills: Vec<Entry>,
    /// Those that are named without what is in them.
    namespaces: Vec<String>,
}

/// Every skill that the other side lists for this caller.
pub(crate) async fn list(upstream: &dyn Provider, context: &Context) -> Result<Reply, Failure> {
    let mut skills: Vec<Entry> = Vec::new();
    let mut open = VecDeque::from([String::new()]);
    let mut seen = vec![String::new()];
    while let Some(namespace) = open.pop_front() {
        let arguments =
            if namespace.is_empty() { json!({}) } else { json!({"namespace": namespace}) };
        // A server without skills may say so with an error.
        let Ok(text) = request::text(upstream, "skill", arguments, context).await? else {
            continue;
        };
        let found = index(&text, &namespace);
        for skill in found.skills {
            if skills.len() < MOST && !skills.contains(&skill) {
                skills.push(skill);
            }
        }
        for below in found.namespaces {
            let shallow = below.split('.').count() <= DEEPEST && seen.len() <= NAMESPACES;
            if shallow && !seen.contains(&below) {
                seen.push(below.clone());
                open.push_back(below);
            }
        }
    }
    let told = |skill: &Entry| {
        let Entry { namespace, name, description } = skill;
        json!({"namespace": namespace, "name": name, "description": description})
    };
    let skills: Vec<Value> = skills.iter().map(told).collect();
    Ok(Reply::Result(json!({"skills": skills, "ttlMs": LIFETIME}).into()))
}

/// One skill: what the other side's `skill` says to the same question.
pub(crate) async fn read(
    upstream: &dyn Provider,
    mut params: Object,
    context: &Context,
) -> Result<Reply, Failure> {
    // The author of the format has a server that says `name`.
    if !takes(&upstream.listing(), "skillname")
        && takes(&upstream.listing(), "name")
        && let Some(name) = params.remove("skillname")
    {
        params.push("name", name);
    }
    let ask = |params: &Object| Ask::Call(Call::new("skill", params.to_json()));
    let reply = upstream.ask(ask(&params), context).await?;
    if !is_gated(&reply) {
        return Ok(reply);
    }
    // A gate over there keeps what is too long for its readers. What is too
    // long for ours is for our own gate to say.
    let kwargs = params.get("kwargs").and_then(|kwargs| Object::parse(kwargs).ok());
    let mut kwargs = kwargs.unwrap_or_default();
    kwargs.set("sizelimit", Json::encode(&request::NO_LIMIT));
    params.set("kwargs", kwargs.to_json());
    upstream.ask(ask(&params), context).await
}

/// Returns whether a gate kept the text, and would give it to who asks for more.
fn is_gated(reply: &Reply) -> bool {
    let Reply::Result(result) = reply else { return false };
    let gated = result.member("_meta").and_then(|meta| meta.member("cash/gated"));
    gated.is_some_and(|gated| gated.member("suggested").is_some())
}

fn takes(listing: &Listing, argument: &str) -> bool {
    let skill = listing.tools.iter().find(|tool| tool.name == "skill");
    let properties = skill.and_then(|tool| tool.input_schema.member("properties"));
    properties.as_ref().is_some_and(|all: &Json| all.member(argument).is_some())
}

/// Reads an index: a heading names a namespace or the group of them, a bullet
/// is a skill or, in such a group, a namespace. `within` is what was asked for.
fn index(text: &str, within: &str) -> Index {
    let mut index = Index::default();
    let (mut namespace, mut group) = (within.to_owned(), false);
    for line in text.lines().map(str::trim) {
        if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim();
            let last = heading.rsplit(' ').next().unwrap_or_default().trim_matches('`');
            let lower = heading.to_ascii_lowercase();
            group = lower.ends_with("namespaces");
            let names = lower.contains("namespace") && !group;
            namespace = if names { last.to_owned() } else { within.to_owned() };
            continue;
        }
        for entry in conform::outline::listing(line, false).functions {
            if group {
                let below = joined(within, &entry.name);
                index.namespaces.extend(is_legal(&below).then_some(below));
                continue;
            }
            // A name may stand with its namespace before it.
            let (above, name) = entry.name.rsplit_once('.').unwrap_or(("", &entry.name));
            let above = if above.is_empty() { namespace.as_str() } else { above };
            if is_legal(&joined(above, name)) {
                let (namespace, name) = (above.to_owned(), name.to_owned());
                index.skills.push(Entry { namespace, name, description: entry.description });
            }
        }
    }
    index
}

fn joined(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") }
}

fn is_legal(path: &str) -> bool {
    path.split('.').all(|level| level.len() <= 64 && catalog::name::is_legal(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, within: &str, skills: &[&str], namespaces: &[&str]) {
        let found = index(text, within);
        let told = found.skills.iter().map(|skill| joined(&skill.namespace, &skill.name));
        assert_eq!(told.collect::<Vec<String>>(), skills);
        assert_eq!(found.namespaces, namespaces);
    }

    #[test]
    fn an_index_is_read_with_its_namespaces() {
        let text = "# Skills\n\n- **first_steps** — Begin.\n\n## namespace orders.retail\n\n- **refund** — Refund.\n";
        check(text, "", &["first_steps", "orders.retail.refund"], &[]);
        check("- `a.b` — B.\n- 2774: Numbered.\n", "", &["a.b", "2774"], &[]);
    }

    #[test]
    fn namespaces_that_are_only_named_are_looked_into() {
        let text = "# Available Namespaces\n\n- **orders** — Orders.\n\n# Skills\n\n- **x** — X.\n";
        check(text, "", &["x"], &["orders"]);
        check("## Sub-namespaces\n- **retail**\n", "orders", &[], &["orders.retail"]);
        check("# Skills\n\n- **refund** — Refund.\n", "orders", &["orders.refund"], &[]);
    }
}
