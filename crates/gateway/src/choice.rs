//! Which surfaces there are, and which one a client gets.
//!
//! On `auto` a client may name a surface in its experimental capabilities.
//! Otherwise its name decides, where it is a known host; every other client gets
//! the surface that costs any host the least.

use tool::Client;

/// A surface: the set of tools that a client sees instead of the upstreams' own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Surface {
    /// `call`, `help`, `skill`.
    #[default]
    Cash,
    /// `tool_browse`, `tool_execute`, `tool_view`, and more for resources and
    /// prompts.
    Gateway,
    /// Every upstream tool, stripped, with `tool_hydrate` and the like.
    Proxy,
    /// Every upstream tool, whole.
    Direct,
    /// Chosen among the others by what the client says about itself.
    Auto,
}

impl Surface {
    pub const ALL: [Surface; 5] =
        [Surface::Cash, Surface::Gateway, Surface::Proxy, Surface::Direct, Surface::Auto];

    pub const fn name(self) -> &'static str {
        match self {
            Surface::Cash => "cash",
            Surface::Gateway => "gateway",
            Surface::Proxy => "proxy",
            Surface::Direct => "direct",
            Surface::Auto => "auto",
        }
    }

    /// Describes in one line what clients of this surface see.
    pub const fn description(self) -> &'static str {
        match self {
            Surface::Cash => "`call`, `help` and `skill`",
            Surface::Gateway => "`tool_browse`, `tool_execute` and `tool_view`",
            Surface::Proxy => "Every tool by name, its definition on request",
            Surface::Direct => "Every tool, whole",
            Surface::Auto => "Chosen by what the client says of itself",
        }
    }

    /// Returns the surface that a client gets; resolves `Auto`.
    pub fn for_client(self, client: &Client) -> Surface {
        match self {
            Surface::Auto => choose(client),
            Surface::Cash | Surface::Gateway | Surface::Proxy | Surface::Direct => self,
        }
    }
}

/// The experimental capability by which a client names a surface itself.
pub const SURFACE_CAPABILITY: &str = "gatelet/surface";

/// A host program whose handling of tool definitions is known.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Its `clientInfo.name`, in any case.
    pub name: &'static str,
    pub surface: Surface,
    /// How it handles definitions, which is why it gets this surface.
    pub because: &'static str,
    /// The month in which that was last checked.
    pub as_of: &'static str,
}

const fn host(name: &'static str, surface: Surface, because: &'static str) -> Host {
    Host { name, surface, because, as_of: "2026-11" }
}

const DEFERS: &str =
    "defers every definition and searches them by name; three that stay loaded are found";
const OWN_SEARCH: &str = "puts many tools behind a search of its own, with some models";
const CODE_MODE: &str = "puts every server behind a code mode with a catalog of its own";
const SENDS_ALL: &str = "sends every definition with every message";
const CAPS: &str = "takes a limited number of tools";
const PERSON: &str = "shows a person what there is";

/// The known hosts. What Devin, Junie, Amp, LM Studio and Kiro's editor call themselves was
/// not found out. A host whose handling of definitions is uncertain counts as
/// sending all of them with every message: the surface for that works everywhere.
pub const HOSTS: &[Host] = &[
    host("mcp-inspector", Surface::Direct, PERSON),
    host("inspector-client", Surface::Direct, PERSON),
    host("inspector-cli", Surface::Direct, PERSON),
    host("Postman-Client", Surface::Direct, PERSON),
    host("claude-code", Surface::Cash, DEFERS),
    host("claude-ai", Surface::Cash, SENDS_ALL),
    host("Anthropic/ClaudeAI", Surface::Cash, SENDS_ALL),
    host("codex-mcp-client", Surface::Cash, OWN_SEARCH),
    host(
        "github-copilot-developer",
        Surface::Cash,
        "searches from about 30 tools on, with some models",
    ),
    host("opencode", Surface::Cash, CODE_MODE),
    host("openai-mcp", Surface::Cash, SENDS_ALL),
    host("ChatGPT", Surface::Cash, SENDS_ALL),
    host("cursor-vscode", Surface::Cash, CAPS),
    host("Cursor", Surface::Cash, CAPS),
    host("Visual Studio Code", Surface::Cash, "takes 128 tools, and groups more of them itself"),
    host(
        "Visual Studio Code - Insiders",
        Surface::Cash,
        "takes 128 tools, and groups more of them itself",
    ),
    host("windsurf-client", Surface::Cash, "takes a hundred tools at most; is Devin Desktop now"),
    host("antigravity-client", Surface::Cash, SENDS_ALL),
    host("gemini-cli-mcp-client", Surface::Cash, SENDS_ALL),
    // Appends the name of its entry: qwen-code, packages/core/src/tools/mcp-client.ts.
    host("qwen-cli-mcp-client", Surface::Cash, SENDS_ALL),
    host("Q CLI", Surface::Cash, SENDS_ALL),
    // Kiro's CLI, too (kirodotdev/Kiro#6935, 2026-03-30).
    host("Q DEV CLI", Surface::Cash, SENDS_ALL),
    host("Zed", Surface::Cash, SENDS_ALL),
    host("goose", Surface::Cash, SENDS_ALL),
    host("Cline", Surface::Cash, "writes every definition into its prompt"),
];

/// Chooses the surface for a client on `auto`.
pub fn choose(client: &Client) -> Surface {
    let named =
        client.capabilities.member("experimental").and_then(|all| all.member(SURFACE_CAPABILITY));
    let named =
        named.and_then(|named| named.member_as::<String>("name").or_else(|| named.parse_as().ok()));
    let named = named.and_then(|name| name.parse().ok()).filter(|named| *named != Surface::Auto);
    named.or_else(|| find_host(&client.name).map(|host| host.surface)).unwrap_or(Surface::Cash)
}

/// Returns the host with this client name, in any spelling. A bridge between
/// transports appends itself to the name: `claude-ai (via mcp-remote 0.1.37)`.
pub fn find_host(name: &str) -> Option<&'static Host> {
    let plain = |name: &str| name.trim().to_lowercase().replace([' ', '_'], "-");
    let name = plain(name);
    let name = name.split("-(via-").next().unwrap_or_default();
    let is_named = |host: &&Host| {
        let own = plain(host.name);
        // Those of one family append the name of their entry.
        let rest = name.strip_prefix(&own);
        rest.is_some_and(|rest| {
            rest.is_empty() || own.ends_with("-cli-mcp-client") && rest.starts_with('-')
        })
    };
    HOSTS.iter().find(is_named)
}

/// The text is not the name of a surface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no surface; use cash, gateway, proxy, direct or auto")]
pub struct UnknownSurface(pub String);

impl std::str::FromStr for Surface {
    type Err = UnknownSurface;

    fn from_str(text: &str) -> Result<Surface, UnknownSurface> {
        let known = Surface::ALL.into_iter().find(|surface| surface.name() == text);
        known.ok_or_else(|| UnknownSurface(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What hosts were seen to say of themselves, and what each is to get.
    const SEEN: &[(&str, Surface)] = &[
        ("mcp-inspector", Surface::Direct),
        ("inspector-client", Surface::Direct),
        ("inspector-cli", Surface::Direct),
        ("Postman-Client", Surface::Direct),
        ("claude-code", Surface::Cash),
        ("claude-code (via mcp-remote 0.1.37)", Surface::Cash),
        ("claude-ai", Surface::Cash),
        ("claude-ai (via mcp-remote 0.1.37)", Surface::Cash),
        ("Anthropic/ClaudeAI", Surface::Cash),
        ("codex-mcp-client", Surface::Cash),
        ("github-copilot-developer", Surface::Cash),
        ("opencode", Surface::Cash),
        ("openai-mcp", Surface::Cash),
        ("ChatGPT", Surface::Cash),
        ("cursor-vscode", Surface::Cash),
        ("Cursor", Surface::Cash),
        ("Visual Studio Code", Surface::Cash),
        ("Visual-Studio-Code", Surface::Cash),
        ("Visual Studio Code - Insiders", Surface::Cash),
        ("windsurf-client", Surface::Cash),
        ("antigravity-client", Surface::Cash),
        ("gemini-cli-mcp-client", Surface::Cash),
        ("qwen-cli-mcp-client", Surface::Cash),
        ("qwen-cli-mcp-client-gatelet", Surface::Cash),
        ("Q CLI", Surface::Cash),
        ("Q DEV CLI", Surface::Cash),
        ("Zed", Surface::Cash),
        ("goose", Surface::Cash),
        ("Cline", Surface::Cash),
    ];

    #[test]
    fn every_host_gets_the_surface_that_suits_it() {
        for (name, surface) in SEEN {
            let host = find_host(name).unwrap_or_else(|| panic!("{name} is not in the table"));
            assert_eq!(host.surface, *surface, "{name}");
            assert_eq!(choose(&Client::named(name, "1.2.3")), *surface, "{name}");
            assert_eq!(choose(&Client::named(&name.to_uppercase(), "")), *surface, "{name}");
        }
        let seen = |host: &&Host| !SEEN.iter().any(|(name, _)| *name == host.name);
        let unseen: Vec<&str> = HOSTS.iter().filter(seen).map(|host| host.name).collect();
        assert_eq!(unseen, Vec::<&str>::new(), "no row without a host that was seen");
        for host in HOSTS {
            assert!(!host.because.is_empty() && host.as_of.len() == 7, "{}", host.name);
        }
    }

    #[test]
    fn whoever_is_not_known_gets_the_surface_that_works_everywhere() {
        for name in [
            "somebody",
            "",
            "Roo Code",
            "claude-code-open",
            "my mcp-inspector",
            "(via mcp-remote 1)",
        ] {
            assert!(find_host(name).is_none(), "{name}");
            assert_eq!(choose(&Client::named(name, "")), Surface::Cash, "{name}");
        }
    }

    #[test]
    fn a_client_may_name_a_surface_itself() {
        let wishing = |named: serde_json::Value| {
            let capabilities = json!({"experimental": {SURFACE_CAPABILITY: named}}).into();
            choose(&Client { capabilities, ..Client::named("mcp-inspector", "") })
        };
        assert_eq!(wishing(json!({"name": "gateway"})), Surface::Gateway);
        assert_eq!(wishing(json!("proxy")), Surface::Proxy);
        assert_eq!(wishing(json!("auto")), Surface::Direct);
        assert_eq!(wishing(json!({"name": 7})), Surface::Direct);
    }
}
