//! MCP's server card, and the catalog that lists it, for clients that have not connected
//! yet (drafts of 2026; off unless switched on).
//!
//! Anybody may read them, so they contain the address and the protocol revisions of this
//! server, and nothing about its upstreams.

use mcp::revision::Revision;
use serde_json::{Value, json};
use url::Url;

/// The media type of a card.
pub const MEDIA_TYPE: &str = "application/mcp-server+json";
/// The path of the catalog of this host.
pub const CATALOG_PATH: &str = "/.well-known/mcp/catalog.json";
/// The path of a card, after the path of its endpoint.
pub const CARD_SUFFIX: &str = "/server-card";

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";
const DESCRIPTION: &str = "Finds and runs the tools of the MCP servers behind it.";
/// The length of the longest title, in characters.
const MAX_TITLE: usize = 100;

/// The facts about this server that its cards contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// The server's URL as clients write it, without a path.
    pub base: String,
    /// The name of the publisher.
    pub title: String,
    pub version: String,
}

impl Card {
    /// Renders the card of the endpoint at a path.
    pub fn of_endpoint(&self, path: &str) -> Value {
        let title: String = self.title.chars().take(MAX_TITLE).collect();
        let title = Some(title).filter(|title| !title.is_empty());
        json!({
            "$schema": SCHEMA,
            "name": self.name(path),
            "version": self.version,
            "title": title.as_deref().unwrap_or("gatelet"),
            "description": DESCRIPTION,
            "remotes": [{
                "type": "streamable-http",
                "url": format!("{}{path}", self.base),
                "supportedProtocolVersions": Revision::ALL.map(Revision::as_str),
            }],
        })
    }

    /// Renders the catalog, which lists only the endpoint at this path.
    pub fn catalog(&self, path: &str) -> Value {
        let title: String = self.title.chars().take(MAX_TITLE).collect();
        json!({
            "specVersion": "draft",
            "entries": [{
                "identifier": format!("urn:mcp:server:{}", self.name(path)),
                "displayName": title,
                "mediaType": MEDIA_TYPE,
                "url": format!("{}{path}{CARD_SUFFIX}", self.base),
            }],
        })
    }

    /// The reversed host name and the endpoint, such as `example.gate/gatelet-mcp`.
    fn name(&self, path: &str) -> String {
        let url = Url::parse(&self.base).ok();
        let host = match url.as_ref().and_then(Url::host) {
            Some(url::Host::Domain(domain)) => {
                domain.trim_matches('.').rsplit('.').collect::<Vec<_>>().join(".")
            }
            Some(url::Host::Ipv4(address)) => address.to_string(),
            Some(url::Host::Ipv6(_)) | None => "localhost".to_owned(),
        };
        let legal =
            |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '-' };
        let host: String = host.chars().map(legal).take(150).collect();
        let path: String = path.trim_matches('/').chars().map(legal).take(40).collect();
        format!("{host}/gatelet-{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_has_the_name_that_its_catalog_gives() {
        for (base, name) in [
            ("https://gate.example.com", "com.example.gate/gatelet-mcp"),
            ("http://127.0.0.1:4747", "127.0.0.1/gatelet-mcp"),
            ("http://[::1]:4747", "localhost/gatelet-mcp"),
            ("https://bücher.example", "example.xn--bcher-kva/gatelet-mcp"),
            ("nonsense", "localhost/gatelet-mcp"),
        ] {
            let card = Card { base: base.into(), title: "Us".into(), version: "1".into() };
            let (own, catalog) = (card.of_endpoint("/mcp"), card.catalog("/mcp"));
            assert_eq!(own["name"], name);
            let entry = &catalog["entries"][0];
            assert_eq!(entry["identifier"], format!("urn:mcp:server:{name}"));
            assert_eq!(entry["url"], format!("{base}/mcp/server-card"));
            assert_eq!(own["remotes"][0]["url"], format!("{base}/mcp"));
        }
    }

    #[test]
    fn a_card_stays_within_what_its_schema_allows() {
        let card = Card {
            base: format!("https://{}.example", "a.".repeat(90)),
            title: "x".repeat(500),
            version: "1".into(),
        };
        let own = card.of_endpoint("/mcp/cash");
        let name = own["name"].as_str().unwrap();
        assert!(name.len() <= 200 && name.matches('/').count() == 1, "{name}");
        assert_eq!(own["title"].as_str().unwrap().len(), 100);
        assert!((1..=100).contains(&own["description"].as_str().unwrap().len()));
    }
}
