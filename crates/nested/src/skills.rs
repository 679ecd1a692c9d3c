//! Lists and reads the skills of a CaSH server through its `skill` tool.

use std::collections::{HashSet, VecDeque};

use serde_json::{Value, json};
use tool::{Ask, Call, Context, Failure, Json, Listing, Object, Provider, Reply};

use crate::request::{self, Page};

/// How long a list may be cached.
const TTL_MILLIS: u64 = 60_000;

const MAX_SKILLS: usize = 1_000;
/// The maximum number of namespaces that are visited, and of their levels.
const MAX_NAMESPACES: usize = 200;
const MAX_DEPTH: usize = 8;

/// One skill of the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    namespace: String,
    name: String,
    description: String,
}

/// The entries of one reply of `skill`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Index {
    skills: Vec<Entry>,
    /// Namespaces that are listed without their skills.
    namespaces: Vec<String>,
}

/// Returns every skill that the server lists for this caller.
pub(crate) async fn list(upstream: &dyn Provider, context: &Context) -> Result<Reply, Failure> {
    let (mut skills, mut known): (Vec<Entry>, HashSet<Entry>) = (Vec::new(), HashSet::new());
    let mut open = VecDeque::from([String::new()]);
    let mut seen = vec![String::new()];
    while let Some(namespace) = open.pop_front() {
        let arguments =
            if namespace.is_empty() { json!({}) } else { json!({"namespace": namespace}) };
        // A server without skills may say so with an error.
        let page = request::page(upstream, "skill", arguments, context).await?;
        let Ok(Page { text, .. }) = page else { continue };
        let found = parse_index(&text, &namespace);
        for skill in found.skills {
            if skills.len() < MAX_SKILLS && known.insert(skill.clone()) {
                skills.push(skill);
            }
        }
        for below in found.namespaces {
            let shallow = below.split('.').count() <= MAX_DEPTH && seen.len() <= MAX_NAMESPACES;
            if shallow && !seen.contains(&below) {
                seen.push(below.clone());
                open.push_back(below);
            }
        }
    }
    let to_json = |skill: &Entry| {
        let Entry { namespace, name, description } = skill;
        json!({"namespace": namespace, "name": name, "description": description})
    };
    let skills: Vec<Value> = skills.iter().map(to_json).collect();
    Ok(Reply::Result(json!({"skills": skills, "ttlMs": TTL_MILLIS}).into()))
}

/// Reads one skill: forwards the request to the `skill` tool of the server.
pub(crate) async fn read(
    upstream: &dyn Provider,
    mut params: Object,
    context: &Context,
) -> Result<Reply, Failure> {
    // The reference server calls the parameter `name`.
    if !has_parameter(&upstream.listing(), "skillname")
        && has_parameter(&upstream.listing(), "name")
        && let Some(name) = params.remove("skillname")
    {
        params.push("name", name);
    }
    let ask = |params: &Object| Ask::Call(Call::new("skill", params.to_json()));
    let reply = upstream.ask(ask(&params), context).await?;
    if !is_gated(&reply) {
        return Ok(reply);
    }
    // The server's own gate held the text back. Ask again without a limit: gatelet's
    // gate limits the result.
    let kwargs = params.get("kwargs").and_then(|kwargs| Object::parse(kwargs).ok());
    let mut kwargs = kwargs.unwrap_or_default();
    kwargs.set("sizelimit", Json::encode(&request::NO_LIMIT));
    params.set("kwargs", kwargs.to_json());
    upstream.ask(ask(&params), context).await
}

/// Returns whether the server's gate held the text back and suggests a higher limit.
fn is_gated(reply: &Reply) -> bool {
    let Reply::Result(result) = reply else { return false };
    let gated = result.member("_meta").and_then(|meta| meta.member("cash/gated"));
    gated.is_some_and(|gated| gated.member("suggested").is_some())
}

fn has_parameter(listing: &Listing, argument: &str) -> bool {
    let skill = listing.tools.iter().find(|tool| tool.name == "skill");
    let properties = skill.and_then(|tool| tool.input_schema.member("properties"));
    properties.as_ref().is_some_and(|all: &Json| all.member(argument).is_some())
}

/// Parses the reply to a request for `namespace_asked`: a heading names a namespace or
/// begins a list of namespaces, a bullet is a skill or, in such a list, a namespace.
fn parse_index(text: &str, namespace_asked: &str) -> Index {
    let mut index = Index::default();
    let (mut namespace, mut group) = (namespace_asked.to_owned(), false);
    for line in text.lines().map(str::trim) {
        if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim();
            let last = heading.rsplit(' ').next().unwrap_or_default().trim_matches('`');
            let lower = heading.to_ascii_lowercase();
            group = lower.ends_with("namespaces");
            let names = lower.contains("namespace") && !group;
            namespace = if names { last.to_owned() } else { namespace_asked.to_owned() };
            continue;
        }
        for entry in conform::outline::listing(line, false).functions {
            if group {
                let below = join_path(namespace_asked, &entry.name);
                index.namespaces.extend(is_legal(&below).then_some(below));
                continue;
            }
            // A name may begin with its namespace.
            let (above, name) = entry.name.rsplit_once('.').unwrap_or(("", &entry.name));
            let above = if above.is_empty() { namespace.as_str() } else { above };
            if is_legal(&join_path(above, name)) {
                let (namespace, name) = (above.to_owned(), name.to_owned());
                index.skills.push(Entry { namespace, name, description: entry.description });
            }
        }
    }
    index
}

fn join_path(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") }
}

fn is_legal(path: &str) -> bool {
    path.split('.').all(|level| level.len() <= 64 && catalog::name::is_legal(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, namespace_asked: &str, skills: &[&str], namespaces: &[&str]) {
        let found = parse_index(text, namespace_asked);
        let paths = found.skills.iter().map(|skill| join_path(&skill.namespace, &skill.name));
        assert_eq!(paths.collect::<Vec<String>>(), skills);
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
