//! The skills of a CaSH server, as the skills extension tells them.

use serde_json::{Value, json};
use tool::{Context, Failure, Json, Provider, Reply, RpcError};

/// The name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// How the address of a skill begins.
pub(super) const SCHEME: &str = "skill://";

/// How long a list may be believed.
const LIFETIME: u64 = 60_000;

const MOST: usize = 1_000;

/// Answers `skills/list`.
pub(super) async fn list(upstream: &dyn Provider, context: &Context) -> Result<Reply, Failure> {
    let listed = match super::text(upstream, "skill", json!({}), context).await? {
        Ok(text) => entries(&text),
        Err(_) => Vec::new(),
    };
    let told = |(namespace, name, description): &(String, String, String)| {
        let address = address(namespace, name);
        json!({"uri": address, "frontmatter": {"name": name, "description": description}})
    };
    let skills: Vec<Value> = listed.iter().take(MOST).map(told).collect();
    let result = json!({"skills": skills, "ttlMs": LIFETIME, "cacheScope": "private"});
    Ok(Reply::Result(result.into()))
}

/// Answers a read of one skill: its text as the other side gives it.
pub(super) async fn read(
    upstream: &dyn Provider,
    uri: &str,
    context: &Context,
) -> Result<Reply, Failure> {
    let unknown = || Reply::Error(RpcError::new(-32002, format!("no skill `{uri}`")));
    let Some((namespace, name)) = named(uri) else { return Ok(unknown()) };
    let wanted = json!({"namespace": namespace, "skillname": name});
    Ok(match super::text(upstream, "skill", wanted, context).await? {
        Ok(text) => {
            let content = json!({"uri": uri, "mimeType": "text/markdown", "text": text});
            Reply::Result(Json::from(json!({"contents": [content]})))
        }
        Err(error) => Reply::Error(error),
    })
}

fn address(namespace: &str, name: &str) -> String {
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{SCHEME}{}{slash}{name}/SKILL.md", namespace.replace('.', "/"))
}

fn named(uri: &str) -> Option<(String, String)> {
    let path = uri.strip_prefix(SCHEME)?.strip_suffix("/SKILL.md")?;
    let (namespace, name) = path.rsplit_once('/').unwrap_or(("", path));
    Some((namespace.replace('/', "."), name.to_owned()))
}

/// Namespace, name and description of every skill in an index: headings name
/// namespaces, bullets are skills.
fn entries(text: &str) -> Vec<(String, String, String)> {
    let mut namespace = String::new();
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim();
            let last = heading.rsplit(' ').next().unwrap_or_default().trim_matches('`');
            let names = heading.to_ascii_lowercase().contains("namespace");
            namespace = if names { last.to_owned() } else { String::new() };
            continue;
        }
        let listed = conform::outline::listing(line, false).functions;
        for entry in listed {
            // A name may stand with its namespace before it.
            let (within, name) = entry.name.rsplit_once('.').unwrap_or(("", &entry.name));
            let within = if within.is_empty() { namespace.as_str() } else { within };
            let levels = within.split('.').filter(|level| !level.is_empty());
            if catalog::name::is_legal(name) && levels.clone().all(catalog::name::is_legal) {
                found.push((within.to_owned(), name.to_owned(), entry.description.clone()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_read_with_its_namespaces() {
        let text = "# Skills\n\n- **first_steps** — Begin.\n\n## namespace orders.retail\n\n- **refund** — Refund.\n";
        let found = entries(text);
        let told: Vec<String> = found.iter().map(|(ns, name, _)| format!("{ns}/{name}")).collect();
        assert_eq!(told, ["/first_steps", "orders.retail/refund"]);
    }

    #[test]
    fn an_address_leads_back_to_its_skill() {
        for (namespace, name) in [("", "a"), ("orders", "b"), ("orders.retail", "c")] {
            let address = address(namespace, name);
            assert_eq!(named(&address), Some((namespace.to_owned(), name.to_owned())), "{address}");
        }
        assert_eq!(named("skill://a"), None);
    }
}
