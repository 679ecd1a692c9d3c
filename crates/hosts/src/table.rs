//! The table of all supported hosts. To add one, add a row here and its files under
//! `tests/cases`.
//!
//! Claude Code and Copilot CLI hide tools until they are searched for; the entries for
//! these hosts set the switches that keep gatelet's tools visible to the model.

use document::Format;
use serde_json::{Value, json};

use crate::host::{
    ConfigLocation, FileChoice, Host, IfMissing, Layout, LocationsByPlatform, Reach, entry,
};

const fn location(marker: &'static str, file: &'static str) -> ConfigLocation {
    ConfigLocation { marker, file }
}

const fn table(table: &'static [&'static str], entry: fn(&Reach) -> Option<Value>) -> Layout {
    Layout { when: &[], table, entry }
}

/// The defaults of a row.
const COMMON: Host = Host {
    id: "",
    name: "",
    programs: &[],
    locations: LocationsByPlatform::everywhere(&[]),
    file_choice: FileChoice::First,
    project: None,
    format: Format::Json,
    layouts: &[table(&["mcpServers"], plain)],
    if_missing: IfMissing::Create,
    allowed: None,
    switches: None,
    bearer: None,
    reload: "restart it",
};

/// Every host, in the order in which they are listed.
pub const HOSTS: &[Host] = &[
    Host {
        id: "claude-code",
        name: "Claude Code",
        programs: &["claude"],
        locations: LocationsByPlatform::everywhere(&[location(
            "{CLAUDE_CONFIG_DIR|~/.claude}",
            "{CLAUDE_CONFIG_DIR|~}/.claude.json",
        )]),
        project: Some(".mcp.json"),
        layouts: &[table(&["mcpServers"], claude_code)],
        bearer: Some(|entry, name| authorization(entry, &format!("${{{name}}}"))),
        reload: "start a new session, or `/mcp` in a running one",
        ..COMMON
    },
    Host {
        id: "claude-desktop",
        name: "Claude Desktop",
        locations: LocationsByPlatform {
            linux: &[location(
                "{XDG_CONFIG_HOME|~/.config}/Claude",
                "{XDG_CONFIG_HOME|~/.config}/Claude/claude_desktop_config.json",
            )],
            macos: &[location(
                "~/Library/Application Support/Claude",
                "~/Library/Application Support/Claude/claude_desktop_config.json",
            )],
            // The newer installer keeps its files in a package of its own.
            windows: &[
                location(
                    "{LOCALAPPDATA|~/AppData/Local}/Packages/Claude_*/LocalCache/Roaming/Claude",
                    "{LOCALAPPDATA|~/AppData/Local}/Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json",
                ),
                location(
                    "{APPDATA|~/AppData/Roaming}/Claude",
                    "{APPDATA|~/AppData/Roaming}/Claude/claude_desktop_config.json",
                ),
            ],
        },
        file_choice: FileChoice::Every,
        layouts: &[table(&["mcpServers"], program_only)],
        reload: "quit it and start it again",
        ..COMMON
    },
    Host {
        id: "cursor",
        name: "Cursor",
        programs: &["cursor"],
        locations: LocationsByPlatform::everywhere(&[location("~/.cursor", "~/.cursor/mcp.json")]),
        project: Some(".cursor/mcp.json"),
        bearer: Some(|entry, name| authorization(entry, &format!("${{env:{name}}}"))),
        reload: "restart it, or switch gatelet on under Settings, MCP",
        ..COMMON
    },
    Host {
        id: "vscode",
        name: "VS Code",
        programs: &["code"],
        locations: LocationsByPlatform {
            linux: &[location(
                "{XDG_CONFIG_HOME|~/.config}/Code/User",
                "{XDG_CONFIG_HOME|~/.config}/Code/User/mcp.json",
            )],
            macos: &[location(
                "~/Library/Application Support/Code/User",
                "~/Library/Application Support/Code/User/mcp.json",
            )],
            windows: &[location(
                "{APPDATA|~/AppData/Roaming}/Code/User",
                "{APPDATA|~/AppData/Roaming}/Code/User/mcp.json",
            )],
        },
        project: Some(".vscode/mcp.json"),
        layouts: &[table(&["servers"], typed)],
        reload: "`MCP: List Servers` in the command palette starts it",
        ..COMMON
    },
    Host {
        id: "vscode-insiders",
        name: "VS Code Insiders",
        programs: &["code-insiders"],
        locations: LocationsByPlatform {
            linux: &[location(
                "{XDG_CONFIG_HOME|~/.config}/Code - Insiders/User",
                "{XDG_CONFIG_HOME|~/.config}/Code - Insiders/User/mcp.json",
            )],
            macos: &[location(
                "~/Library/Application Support/Code - Insiders/User",
                "~/Library/Application Support/Code - Insiders/User/mcp.json",
            )],
            windows: &[location(
                "{APPDATA|~/AppData/Roaming}/Code - Insiders/User",
                "{APPDATA|~/AppData/Roaming}/Code - Insiders/User/mcp.json",
            )],
        },
        project: Some(".vscode/mcp.json"),
        layouts: &[table(&["servers"], typed)],
        reload: "`MCP: List Servers` in the command palette starts it",
        ..COMMON
    },
    Host {
        id: "codex",
        name: "Codex",
        programs: &["codex"],
        locations: LocationsByPlatform::everywhere(&[location(
            "{CODEX_HOME|~/.codex}",
            "{CODEX_HOME|~/.codex}/config.toml",
        )]),
        project: Some(".codex/config.toml"),
        format: Format::Toml,
        layouts: &[table(&["mcp_servers"], codex)],
        bearer: Some(|entry, name| entry["bearer_token_env_var"] = json!(name)),
        reload: "start a new session",
        ..COMMON
    },
    Host {
        id: "opencode",
        name: "opencode",
        programs: &["opencode"],
        locations: LocationsByPlatform {
            linux: OPENCODE,
            macos: OPENCODE,
            windows: &[
                location("~/.config/opencode", "~/.config/opencode/opencode.jsonc"),
                location("~/.config/opencode", "~/.config/opencode/opencode.json"),
                location(
                    "{LOCALAPPDATA|~/AppData/Local}/opencode",
                    "{LOCALAPPDATA|~/AppData/Local}/opencode/opencode.jsonc",
                ),
                location(
                    "{LOCALAPPDATA|~/AppData/Local}/opencode",
                    "{LOCALAPPDATA|~/AppData/Local}/opencode/opencode.json",
                ),
            ],
        },
        project: Some("opencode.json"),
        layouts: &[
            Layout { when: &["mcp", "servers"], table: &["mcp", "servers"], entry: opencode_2 },
            table(&["mcp"], opencode),
        ],
        bearer: Some(|entry, name| authorization(entry, &format!("{{env:{name}}}"))),
        if_missing: IfMissing::Refuse(
            "its versions want different files: start opencode once, or write `{\"$schema\": \
             \"https://opencode.ai/config.json\"}` to it, and try again",
        ),
        reload: "start a new session",
        ..COMMON
    },
    Host {
        id: "gemini",
        name: "Gemini CLI",
        programs: &["gemini"],
        locations: LocationsByPlatform::everywhere(&[location(
            "~/.gemini/settings.json",
            "~/.gemini/settings.json",
        )]),
        project: Some(".gemini/settings.json"),
        layouts: &[table(&["mcpServers"], gemini)],
        allowed: Some(&["mcp", "allowed"]),
        switches: Some("~/.gemini/mcp-server-enablement.json"),
        bearer: Some(|entry, name| authorization(entry, &format!("${{{name}}}"))),
        ..COMMON
    },
    Host {
        id: "antigravity",
        name: "Antigravity",
        programs: &["agy", "antigravity"],
        locations: LocationsByPlatform::everywhere(&[
            location("~/.gemini/config", "~/.gemini/config/mcp_config.json"),
            location("~/.gemini/antigravity", "~/.gemini/antigravity/mcp_config.json"),
            location("~/.gemini/antigravity-cli", "~/.gemini/antigravity-cli/mcp_config.json"),
        ]),
        project: Some(".agents/mcp_config.json"),
        layouts: &[table(&["mcpServers"], server_url)],
        ..COMMON
    },
    Host {
        id: "devin",
        name: "Devin",
        programs: &["devin"],
        locations: LocationsByPlatform {
            linux: DEVIN,
            macos: DEVIN,
            windows: &[location(
                "{APPDATA|~/AppData/Roaming}/devin",
                "{APPDATA|~/AppData/Roaming}/devin/mcp_config.json",
            )],
        },
        project: Some(".devin/config.json"),
        layouts: &[table(&["mcpServers"], devin)],
        reload: "press refresh in its list of MCP servers",
        ..COMMON
    },
    Host {
        id: "windsurf",
        name: "Windsurf",
        programs: &["windsurf"],
        locations: LocationsByPlatform::everywhere(&[location(
            "~/.codeium/windsurf",
            "~/.codeium/windsurf/mcp_config.json",
        )]),
        project: Some(".windsurf/mcp_config.json"),
        layouts: &[table(&["mcpServers"], server_url)],
        reload: "press refresh in its list of MCP servers",
        ..COMMON
    },
    Host {
        id: "zed",
        name: "Zed",
        programs: &["zed", "zeditor"],
        locations: LocationsByPlatform {
            linux: &[location(
                "{FLATPAK_XDG_CONFIG_HOME|XDG_CONFIG_HOME|~/.config}/zed",
                "{FLATPAK_XDG_CONFIG_HOME|XDG_CONFIG_HOME|~/.config}/zed/settings.json",
            )],
            macos: &[location("~/.config/zed", "~/.config/zed/settings.json")],
            windows: &[location(
                "{APPDATA|~/AppData/Roaming}/Zed",
                "{APPDATA|~/AppData/Roaming}/Zed/settings.json",
            )],
        },
        project: Some(".zed/settings.json"),
        layouts: &[table(&["context_servers"], plain)],
        reload: "it watches its settings",
        ..COMMON
    },
    Host {
        id: "copilot",
        name: "Copilot CLI",
        programs: &["copilot"],
        locations: LocationsByPlatform::everywhere(&[location(
            "{COPILOT_HOME|~/.copilot}",
            "{COPILOT_HOME|~/.copilot}/mcp-config.json",
        )]),
        project: Some(".mcp.json"),
        layouts: &[table(&["mcpServers"], copilot)],
        reload: "`/restart`, or start a new session",
        ..COMMON
    },
    Host {
        id: "goose",
        name: "Goose",
        programs: &["goose"],
        locations: LocationsByPlatform {
            linux: GOOSE,
            macos: GOOSE,
            windows: &[location(
                "{APPDATA|~/AppData/Roaming}/Block/goose/config",
                "{APPDATA|~/AppData/Roaming}/Block/goose/config/config.yaml",
            )],
        },
        format: Format::Yaml,
        layouts: &[table(&["extensions"], goose)],
        reload: "start a new session",
        ..COMMON
    },
    Host {
        id: "cline",
        name: "Cline",
        programs: &["cline"],
        locations: LocationsByPlatform {
            linux: &[
                location(
                    "{XDG_CONFIG_HOME|~/.config}/Code/User/globalStorage/saoudrizwan.claude-dev",
                    "{XDG_CONFIG_HOME|~/.config}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                ),
                CLINE_CLI,
            ],
            macos: &[
                location(
                    "~/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev",
                    "~/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                ),
                CLINE_CLI,
            ],
            windows: &[
                location(
                    "{APPDATA|~/AppData/Roaming}/Code/User/globalStorage/saoudrizwan.claude-dev",
                    "{APPDATA|~/AppData/Roaming}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                ),
                CLINE_CLI,
            ],
        },
        file_choice: FileChoice::Every,
        layouts: &[table(&["mcpServers"], cline)],
        reload: "it watches the file; start a new task",
        ..COMMON
    },
    Host {
        id: "kiro",
        name: "Kiro",
        programs: &["kiro", "kiro-cli"],
        locations: LocationsByPlatform::everywhere(&[location(
            "~/.kiro",
            "~/.kiro/settings/mcp.json",
        )]),
        project: Some(".kiro/settings/mcp.json"),
        ..COMMON
    },
    Host {
        id: "junie",
        name: "Junie",
        programs: &["junie"],
        locations: LocationsByPlatform::everywhere(&[location(
            "~/.junie",
            "~/.junie/mcp/mcp.json",
        )]),
        project: Some(".junie/mcp/mcp.json"),
        layouts: &[table(&["mcpServers"], program_only)],
        ..COMMON
    },
    Host {
        id: "lmstudio",
        name: "LM Studio",
        programs: &["lms"],
        locations: LocationsByPlatform::everywhere(&[location(
            "~/.lmstudio",
            "~/.lmstudio/mcp.json",
        )]),
        ..COMMON
    },
    Host {
        id: "qwen",
        name: "Qwen Code",
        programs: &["qwen"],
        locations: LocationsByPlatform::everywhere(&[location("~/.qwen", "~/.qwen/settings.json")]),
        project: Some(".qwen/settings.json"),
        layouts: &[table(&["mcpServers"], gemini)],
        allowed: Some(&["mcp", "allowed"]),
        bearer: Some(|entry, name| authorization(entry, &format!("${{{name}}}"))),
        ..COMMON
    },
    Host {
        id: "amp",
        name: "Amp",
        programs: &["amp"],
        locations: LocationsByPlatform {
            linux: AMP,
            macos: AMP,
            windows: &[location(
                "{APPDATA|~/AppData/Roaming}/amp",
                "{APPDATA|~/AppData/Roaming}/amp/settings.json",
            )],
        },
        project: Some(".amp/settings.json"),
        layouts: &[table(&["amp.mcpServers"], plain)],
        ..COMMON
    },
];

impl Host {
    /// Returns the host with this id or product name, ignoring case and punctuation.
    pub fn named(name: &str) -> Option<&'static Host> {
        let plain = |text: &str| {
            let letters = text.chars().filter(|c| c.is_ascii_alphanumeric());
            letters.collect::<String>().to_ascii_lowercase()
        };
        let is_it = |host: &&Host| plain(host.id) == plain(name) || plain(host.name) == plain(name);
        HOSTS.iter().find(is_it)
    }
}

const OPENCODE: &[ConfigLocation] = &[
    location(
        "{XDG_CONFIG_HOME|~/.config}/opencode",
        "{XDG_CONFIG_HOME|~/.config}/opencode/opencode.jsonc",
    ),
    location(
        "{XDG_CONFIG_HOME|~/.config}/opencode",
        "{XDG_CONFIG_HOME|~/.config}/opencode/opencode.json",
    ),
];

const DEVIN: &[ConfigLocation] = &[location(
    "{XDG_CONFIG_HOME|~/.config}/devin",
    "{XDG_CONFIG_HOME|~/.config}/devin/mcp_config.json",
)];

const GOOSE: &[ConfigLocation] = &[location(
    "{XDG_CONFIG_HOME|~/.config}/goose",
    "{XDG_CONFIG_HOME|~/.config}/goose/config.yaml",
)];

const AMP: &[ConfigLocation] =
    &[location("{XDG_CONFIG_HOME|~/.config}/amp", "{XDG_CONFIG_HOME|~/.config}/amp/settings.json")];

const CLINE_CLI: ConfigLocation =
    location("{CLINE_DIR|~/.cline}", "{CLINE_DIR|~/.cline}/data/settings/cline_mcp_settings.json");

/// Sets the `Authorization` header of an entry to a reference to a variable.
fn authorization(entry: &mut Value, variable: &str) {
    entry["headers"]["Authorization"] = json!(format!("Bearer {variable}"));
}

/// Builds an entry for Cursor, Zed, Kiro, LM Studio and Amp.
fn plain(reach: &Reach) -> Option<Value> {
    Some(entry(reach, json!({}), "url", json!({})))
}

fn program_only(reach: &Reach) -> Option<Value> {
    matches!(reach, Reach::Program { .. }).then(|| entry(reach, json!({}), "url", json!({})))
}

fn claude_code(reach: &Reach) -> Option<Value> {
    let mut entry = entry(reach, json!({"type": "stdio"}), "url", json!({"type": "http"}));
    entry["alwaysLoad"] = json!(true);
    Some(entry)
}

/// Builds an entry with a `type`, for VS Code.
fn typed(reach: &Reach) -> Option<Value> {
    Some(entry(reach, json!({"type": "stdio"}), "url", json!({"type": "http"})))
}

fn codex(reach: &Reach) -> Option<Value> {
    let mut entry = entry(reach, json!({}), "url", json!({}));
    if let Some(headers) = entry.as_object_mut().and_then(|entry| entry.shift_remove("headers")) {
        entry["http_headers"] = headers;
    }
    Some(entry)
}

fn opencode(reach: &Reach) -> Option<Value> {
    let mut entry = opencode_reach(reach);
    entry["enabled"] = json!(true);
    Some(entry)
}

/// Builds an entry for opencode 2 and switches off its code mode, which would wrap gatelet's.
fn opencode_2(reach: &Reach) -> Option<Value> {
    let mut entry = opencode_reach(reach);
    entry["codemode"] = json!(false);
    Some(entry)
}

fn opencode_reach(reach: &Reach) -> Value {
    match reach {
        Reach::Program { command, args } => {
            let words: Vec<&String> = std::iter::once(command).chain(args).collect();
            json!({"type": "local", "command": words})
        }
        Reach::Http { .. } => entry(reach, json!({}), "url", json!({"type": "remote"})),
    }
}

/// Builds an entry for Gemini CLI and Qwen Code, whose `url` is for the older SSE transport.
fn gemini(reach: &Reach) -> Option<Value> {
    Some(entry(reach, json!({}), "httpUrl", json!({})))
}

/// Builds an entry for Antigravity and Windsurf.
fn server_url(reach: &Reach) -> Option<Value> {
    Some(entry(reach, json!({}), "serverUrl", json!({})))
}

fn devin(reach: &Reach) -> Option<Value> {
    Some(entry(reach, json!({}), "url", json!({"transport": "http"})))
}

fn copilot(reach: &Reach) -> Option<Value> {
    let mut entry = entry(reach, json!({"type": "local"}), "url", json!({"type": "http"}));
    entry["tools"] = json!(["*"]);
    entry["deferTools"] = json!("never");
    Some(entry)
}

fn goose(reach: &Reach) -> Option<Value> {
    let mut entry = match reach {
        Reach::Program { command, args } => {
            json!({"enabled": true, "type": "stdio", "name": "gatelet", "cmd": command, "args": args})
        }
        Reach::Http { url, headers, .. } => json!({
            "enabled": true, "type": "streamable_http", "name": "gatelet", "uri": url, "headers": headers,
        }),
    };
    entry["timeout"] = json!(300);
    Some(entry)
}

fn cline(reach: &Reach) -> Option<Value> {
    let mut entry = entry(reach, json!({}), "url", json!({"type": "streamableHttp"}));
    entry["disabled"] = json!(false);
    Some(entry)
}
