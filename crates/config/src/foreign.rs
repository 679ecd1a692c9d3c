//! Converts the configuration files of other MCP clients into gatelet's upstreams.
//!
//! Claude Desktop, Claude Code, Cursor, Windsurf, Gemini CLI, Cline and their
//! kin have `mcpServers`; VS Code has `servers` and `inputs`; opencode has
//! `mcp`; Zed has `context_servers`; Codex has `mcp_servers`. Each entry
//! becomes an upstream as it would be written in gatelet's own file. A setting without
//! a counterpart is reported as a warning, never dropped in silence.

mod entry;
mod variable;

use catalog::name;
use document::tree::{Node, Path, Value};

use super::problem::Problems;
use super::raw_upstream::{Raw, UpstreamEntry};
use super::self_reference::{self, OwnAddress};
use super::text::Environment;

/// The paths of the tables that hold servers, by client.
const TABLES: &[&[&str]] = &[
    &["mcpServers"],
    &["servers"],
    &["mcp", "servers"],
    &["mcp"],
    &["context_servers"],
    &["mcp_servers"],
    &["amp.mcpServers"],
    &["extensions"],
];

/// Keys in a table of servers that are not servers.
const NOT_SERVERS: &[&str] = &["inputs"];

/// Returns whether the document is the file of another client.
pub(crate) fn is_foreign(root: &Node) -> bool {
    !server_tables(root).is_empty()
}

/// Converts every server in the file and reports settings that could not be converted.
pub(crate) fn convert(
    root: &Node,
    own_address: &OwnAddress,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Vec<UpstreamEntry> {
    let mut found: Vec<UpstreamEntry> = Vec::new();
    let scope = variable::Scope { base: &own_address.base, inputs: inputs(root) };
    for (path, table) in server_tables(root) {
        for member in table.members() {
            if NOT_SERVERS.contains(&member.key.as_str()) {
                continue;
            }
            let at = path.key(&member.key);
            let location = entry::EntryContext {
                path: &at,
                scope: &scope,
                time: timeout_unit(root, &path, own_address),
            };
            let raw = entry::convert(&member.key, &member.node, &location, problems);
            let raw =
                raw.filter(|raw| is_other_server(raw, own_address, environment, &at, problems));
            let raw = raw.map(|raw| apply_gemini_lists(root, &member.key, raw, &at, problems));
            found.extend(raw.map(|raw| UpstreamEntry { path: at, raw }));
        }
    }
    warn_of_project_servers(root, problems);
    assign_unique_labels(found, problems)
}

/// Returns whether an entry is another server than this gatelet, and warns if it is not.
fn is_other_server(
    raw: &Raw,
    own_address: &OwnAddress,
    environment: &dyn Environment,
    path: &Path,
    problems: &mut Problems,
) -> bool {
    // The client's own entry for gatelet, whatever configuration it passes.
    let itself = self_reference::runs_gatelet_serve(raw).then(String::new);
    let why =
        itself.or_else(|| Some(format!(" ({})", own_address.self_reference(raw, environment)?.1)));
    if let Some(why) = &why {
        problems.warning(path, format!("is gatelet itself and was left out{why}"), None);
    }
    why.is_none()
}

/// Returns the unit of timeouts in a client's file, judged by its table and file name.
fn timeout_unit(root: &Node, table: &Path, own_address: &OwnAddress) -> entry::TimeUnit {
    let file = own_address.file.to_string_lossy();
    let is_at = |part: &str| file.contains(part);
    let has = |key: &str| root.get(key).is_some();
    match table.to_string().as_str() {
        // Zed and Goose.
        "context_servers" | "extensions" => entry::TimeUnit::Seconds,
        // opencode.
        "mcp" | "mcp.servers" => entry::TimeUnit::Milliseconds,
        _ if is_at("cline_mcp_settings") || is_at(".roo/") || is_at("mcp_settings.json") => {
            entry::TimeUnit::Seconds
        }
        // Gemini CLI.
        _ if is_at(".gemini/") || has("mcp") => entry::TimeUnit::Milliseconds,
        _ => entry::TimeUnit::Unknown,
    }
}

/// Disables an entry that Gemini CLI's `mcp.allowed` or `mcp.excluded` switches off.
fn apply_gemini_lists(
    root: &Node,
    name: &str,
    mut raw: Raw,
    path: &Path,
    problems: &mut Problems,
) -> Raw {
    let list = |key: &str| root.get("mcp").and_then(|mcp| mcp.get(key));
    let list = |key: &str| list(key).filter(|list| matches!(list.value, Value::List(_)));
    let names = |list: &Node| list.items().iter().any(|item| item.text() == Some(name));
    let why = match (list("excluded"), list("allowed")) {
        (Some(excluded), _) if names(excluded) => "`mcp.excluded` names it",
        (_, Some(allowed)) if !names(allowed) => "`mcp.allowed` does not name it",
        (Some(_) | None, Some(_) | None) => return raw,
    };
    if !raw.disabled {
        problems.warning(path, format!("is switched off: {why}"), None);
    }
    raw.disabled = true;
    raw
}

/// Changes labels so that each is a legal namespace and unique, and warns of each change.
pub fn assign_unique_labels(
    mut found: Vec<UpstreamEntry>,
    problems: &mut Problems,
) -> Vec<UpstreamEntry> {
    let mut taken: Vec<String> = Vec::new();
    for upstream in &mut found {
        let name = upstream.raw.label.clone().unwrap_or_default();
        let label = unique_label(&legal_label(&name), &taken);
        if label != name {
            let message = format!("`{name}` becomes the namespace `{label}`");
            problems.warning(&upstream.path, message, None);
        }
        taken.push(name::canonical(&label));
        upstream.raw.label = Some(label);
    }
    found
}

/// Returns every table of servers in the document, with its path.
fn server_tables(root: &Node) -> Vec<(Path, &Node)> {
    let mut tables: Vec<(Path, &Node)> = Vec::new();
    for keys in TABLES {
        let mut node = Some(root);
        let mut path = Path::default();
        for key in *keys {
            node = node.and_then(|node| node.get(key));
            path = path.key(key);
        }
        // `mcp` is a table of servers only when it holds no table of its own,
        // and an editor's `servers` may be something else.
        let holds = |node: &&Node| node.members().iter().any(|m| looks_like_a_server(&m.node));
        // Other programs use `extensions` for other things.
        if *keys == ["extensions"] && !node.as_ref().is_some_and(holds) {
            continue;
        }
        let sure = keys.len() == 1 && !matches!(keys[0], "servers" | "mcp");
        let is = |node: &&Node| {
            holds(node) || keys.len() == 1 && is_empty(node) || sure && is_table(node)
        };
        if let Some(node) = node.filter(is) {
            tables.push((path, node));
        }
    }
    let all = root.members().iter().all(|member| looks_like_a_server(&member.node));
    // `[upstream]` is gatelet's own file with a bracket too few; `[state]` is its section
    // with the `url` of a store.
    let own = ["upstream", "state"].iter().any(|key| root.get(key).is_some());
    if tables.is_empty() && all && !own && !root.members().is_empty() {
        tables.push((Path::default(), root));
    }
    tables
}

fn is_empty(node: &Node) -> bool {
    matches!(&node.value, Value::Table(members) if members.is_empty())
}

fn is_table(node: &Node) -> bool {
    matches!(node.value, Value::Table(_))
}

fn looks_like_a_server(node: &Node) -> bool {
    ["command", "cmd", "url", "uri", "serverUrl", "httpUrl", "type", "settings"]
        .iter()
        .any(|key| node.get(key).is_some())
}

/// Returns the `inputs` that VS Code prompts its user for.
fn inputs(root: &Node) -> Vec<variable::Input> {
    let lists = [root.get("inputs"), root.get("mcp").and_then(|mcp| mcp.get("inputs"))];
    let input = |node: &Node| {
        let text = |key: &str| node.get(key).and_then(Node::text).map(str::to_owned);
        let description = text("description").unwrap_or_default();
        Some(variable::Input { id: text("id")?, description, default: text("default") })
    };
    lists.into_iter().flatten().flat_map(Node::items).filter_map(input).collect()
}

/// Warns of servers of single projects, which Claude Code keeps in the same file.
fn warn_of_project_servers(root: &Node, problems: &mut Problems) {
    let Some(projects) = root.get("projects") else { return };
    for member in projects.members() {
        let servers = member.node.get("mcpServers").map_or(0, |servers| servers.members().len());
        if servers != 0 {
            let path = Path::default().key("projects").key(&member.key).key("mcpServers");
            let message = format!("{servers} servers of this project only were left out");
            problems.warning(&path, message, Some("copy them to the top `mcpServers`"));
        }
    }
}

fn legal_label(name: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let label: String = name.chars().map(legal).take(60).collect();
    let label = label.trim_matches('-').to_owned();
    match name::canonical(&label).as_str() {
        "" => "server".to_owned(),
        "gatelet" => "gatelet-upstream".to_owned(),
        _ => label,
    }
}

fn unique_label(label: &str, taken: &[String]) -> String {
    let free = |label: &str| !taken.contains(&name::canonical(label));
    if free(label) {
        return label.to_owned();
    }
    let numbered = (2..).map(|n| format!("{label}-{n}"));
    numbered.into_iter().find(|label| free(label)).expect("there is always a free number")
}

#[cfg(test)]
mod tests;
