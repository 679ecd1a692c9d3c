//! Parses the responses of the official registry, and of others with its `v0.1`
//! interface.

use serde_json::Value;
use url::Url;

/// The URL of the official registry.
pub const OFFICIAL: &str = "https://registry.modelcontextprotocol.io";

/// A server in the registry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub name: String,
    pub version: String,
    pub description: String,
    /// `active`, `deprecated` or `deleted`.
    pub status: String,
    /// The types of its packages and remotes, such as `npm`.
    pub kinds: Vec<String>,
    /// Its `server.json`.
    pub document: Value,
}

/// One page of search results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// Returns the URL of a search for servers whose name or description contains this text.
pub fn search_url(base: &Url, text: &str, cursor: Option<&str>) -> Url {
    let mut url = url_below(base, &["v0.1", "servers"]);
    let mut query = url.query_pairs_mut();
    query.append_pair("search", text).append_pair("limit", "50").append_pair("version", "latest");
    if let Some(cursor) = cursor {
        query.append_pair("cursor", cursor);
    }
    drop(query);
    url
}

/// Returns the URL of one version of a server; the latest when `version` is `None`.
pub fn version_url(base: &Url, name: &str, version: Option<&str>) -> Url {
    url_below(base, &["v0.1", "servers", name, "versions", version.unwrap_or("latest")])
}

fn url_below(base: &Url, path: &[&str]) -> Url {
    let mut url = base.clone();
    url.set_query(None);
    if let Ok(mut segments) = url.path_segments_mut() {
        // A slash in a name is escaped.
        segments.pop_if_empty().extend(path);
    }
    url
}

/// Parses a page of search results; items that are not servers are left out.
pub fn parse_page(text: &str) -> Result<Page, serde_json::Error> {
    let whole: Value = serde_json::from_str(text)?;
    let entries =
        whole["servers"].as_array().into_iter().flatten().filter_map(parse_entry).collect();
    let next = whole["metadata"]["nextCursor"].as_str().filter(|next| !next.is_empty());
    Ok(Page { entries, next: next.map(str::to_owned) })
}

/// Parses the response about one server; `None` when it is not a server.
pub fn parse_server(text: &str) -> Result<Option<Entry>, serde_json::Error> {
    Ok(parse_entry(&serde_json::from_str(text)?))
}

fn parse_entry(raw: &Value) -> Option<Entry> {
    let document = raw.get("server").unwrap_or(raw);
    let text = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
    let official = &raw["_meta"]["io.modelcontextprotocol.registry/official"];
    let status = official["status"].as_str().or(document["status"].as_str()).unwrap_or("active");
    let packages = document["packages"].as_array().into_iter().flatten();
    let packages = packages.filter_map(|package| package["registryType"].as_str());
    let remotes = document["remotes"].as_array().into_iter().flatten();
    let remotes = remotes.filter_map(|remote| remote["type"].as_str());
    let mut kinds: Vec<String> = packages.chain(remotes).map(str::to_owned).collect();
    kinds.dedup();
    let name = text("name");
    (!name.is_empty()).then(|| Entry {
        name,
        version: text("version"),
        description: text("description"),
        status: status.to_owned(),
        kinds,
        document: document.clone(),
    })
}

/// Sorts entries by how many of the words they contain, and drops duplicates and deleted
/// servers.
pub fn rank(entries: Vec<Entry>, words: &[String]) -> Vec<Entry> {
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let score = |entry: &Entry| {
        let (name, about) = (entry.name.to_lowercase(), entry.description.to_lowercase());
        let in_name = words.iter().filter(|word| name.contains(*word)).count();
        let in_text = words.iter().filter(|word| about.contains(*word)).count();
        let is_old = usize::from(entry.status != "active");
        (2 * in_name + in_text, usize::MAX - is_old)
    };
    let mut kept: Vec<Entry> = Vec::new();
    for entry in entries {
        let is_known = kept.iter().any(|other| other.name == entry.name);
        if entry.status != "deleted" && !is_known {
            kept.push(entry);
        }
    }
    kept.sort_by(|one, other| score(other).cmp(&score(one)).then(one.name.cmp(&other.name)));
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server(name: &str, about: &str, status: &str) -> Value {
        json!({
            "server": {"name": name, "description": about, "version": "1.0.0",
                       "packages": [{"registryType": "npm", "identifier": "x"}]},
            "_meta": {"io.modelcontextprotocol.registry/official": {"status": status, "isLatest": true}},
        })
    }

    #[test]
    fn names_are_escaped_in_addresses() {
        let base = Url::parse("https://r.example/api/").unwrap();
        let url = version_url(&base, "io.github.a/b", None);
        assert_eq!(
            url.as_str(),
            "https://r.example/api/v0.1/servers/io.github.a%2Fb/versions/latest"
        );
        let url = search_url(&base, "a b&c", Some("x"));
        assert!(
            url.as_str().contains("search=a+b%26c") && url.as_str().contains("cursor=x"),
            "{url}"
        );
        let sly = version_url(&base, "../../x", Some("1"));
        assert!(!sly.as_str().contains("/../"), "{sly}");
    }

    #[test]
    fn a_page_is_read_and_ranked_and_what_was_deleted_is_left_out() {
        let text = json!({
            "servers": [server("a/other", "mail and files", "active"), server("b/mail", "mail", "active"),
                        server("c/mail", "mail", "deleted"), server("d/mail", "mail", "deprecated"),
                        server("b/mail", "again", "active"), {"nonsense": 1}, 7],
            "metadata": {"count": 7, "nextCursor": "n"},
        });
        let page = parse_page(&text.to_string()).unwrap();
        assert_eq!(page.next.as_deref(), Some("n"));
        let names: Vec<String> =
            rank(page.entries, &["Mail".to_owned()]).into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["b/mail", "d/mail", "a/other"]);
    }
}
