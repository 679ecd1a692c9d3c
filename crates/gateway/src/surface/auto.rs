//! Which surface a client gets when nobody says: by what it says of itself.
//!
//! A client may name a surface in its experimental capabilities. Otherwise its
//! name decides, where it is a host whose ways are known; every other gets the
//! surface that costs any host the least.

use tool::Client;

use super::Surface;

/// The experimental capability by which a client names a surface itself.
pub const WISH: &str = "gatelet/surface";

/// A host whose ways are known.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// What it calls itself in `clientInfo.name`, whatever the case.
    pub name: &'static str,
    pub surface: Surface,
    /// What it does with definitions.
    pub because: &'static str,
}

const fn host(name: &'static str, surface: Surface, because: &'static str) -> Host {
    Host { name, surface, because }
}

/// Hosts, by what they do with definitions.
pub const HOSTS: &[Host] = &[
    host("claude-code", Surface::Direct, "reads definitions when a tool is needed"),
    host("mcp-inspector", Surface::Direct, "shows a person what there is"),
    host("inspector-client", Surface::Direct, "shows a person what there is"),
    host("claude-ai", Surface::Cash, "sends every definition with every message"),
    host("cursor-vscode", Surface::Cash, "takes forty tools at most"),
    host("Visual Studio Code", Surface::Cash, "takes 128 tools at most"),
    host("windsurf-client", Surface::Cash, "takes a hundred tools at most"),
    host("codex-mcp-client", Surface::Cash, "sends every definition with every message"),
    host("gemini-cli-mcp-client", Surface::Cash, "sends every definition with every message"),
    host("Zed", Surface::Cash, "sends every definition with every message"),
    host("goose", Surface::Cash, "sends every definition with every message"),
    host("Cline", Surface::Cash, "writes every definition into its prompt"),
    host("opencode", Surface::Cash, "sends every definition with every message"),
];

/// The surface for a client.
pub fn choose(client: &Client) -> Surface {
    let wish = client.capabilities.member("experimental").and_then(|all| all.member(WISH));
    let wish = wish.and_then(|wish| wish.member_as::<String>("name").or_else(|| wish.read().ok()));
    let wish = wish.and_then(|name| name.parse().ok()).filter(|wish| *wish != Surface::Auto);
    let known = || HOSTS.iter().find(|host| host.name.eq_ignore_ascii_case(&client.name));
    wish.or_else(|| known().map(|host| host.surface)).unwrap_or(Surface::Cash)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_known_host_gets_its_surface_and_all_others_the_cheapest() {
        for host in HOSTS {
            let upper = host.name.to_uppercase();
            assert_eq!(choose(&Client::named(host.name, "")), host.surface, "{}", host.name);
            assert_eq!(choose(&Client::named(&upper, "")), host.surface, "{upper}");
        }
        assert_eq!(choose(&Client::named("somebody", "")), Surface::Cash);
        assert_eq!(choose(&Client::named("", "")), Surface::Cash);
    }

    #[test]
    fn a_client_may_name_a_surface_itself() {
        let wishing = |wish: serde_json::Value| {
            let capabilities = json!({"experimental": {WISH: wish}}).into();
            choose(&Client { capabilities, ..Client::named("claude-code", "") })
        };
        assert_eq!(wishing(json!({"name": "gateway"})), Surface::Gateway);
        assert_eq!(wishing(json!("proxy")), Surface::Proxy);
        assert_eq!(wishing(json!("auto")), Surface::Direct);
        assert_eq!(wishing(json!({"name": 7})), Surface::Direct);
    }
}
