//! Reads the configuration files of other MCP clients.
//!
//! Claude Desktop, Claude Code, Cursor, Windsurf, Gemini CLI, Cline and their
//! kin have `mcpServers`; VS Code has `servers` and `inputs`; opencode has
//! `mcp`; Zed has `context_servers`; Codex has `mcp_servers`. Each entry
//! becomes an upstream as it would stand in our own file. What has no
//! counterpart here is reported at its place, never dropped in silence.

mod entry;
mod variable;

use catalog::name;
use document::tree::{Node, Path, Value};

use super::problem::Problems;
use super::raw_upstream::{Entry, Raw};
use super::self_reference::{self, OwnAddress};
use super::text::Environment;

/// The tables that hold servers, by the keys that lead to them.
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

/// Keys beside the servers that belong to them; everything else in such a
/// file is the client's own business.
const BESIDE: &[&str] = &["inputs"];

/// Returns whether this looks like a file of another client.
pub(crate) fn is_foreign(root: &Node) -> bool {
    !tables(root).is_empty()
}

/// Reads every server in the file, noting what could not be carried over.
pub(crate) fn read(
    root: &Node,
    here: &OwnAddress,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    let scope = variable::Scope { base: &here.base, inputs: inputs(root) };
    for (path, table) in tables(root) {
        for member in table.members() {
            if BESIDE.contains(&member.key.as_str()) {
                continue;
            }
            let at = path.key(&member.key);
            let location =
                entry::Location { path: &at, scope: &scope, time: time(root, &path, here) };
            let raw = entry::read(&member.key, &member.node, &location, problems);
            let raw = raw.filter(|raw| is_another(raw, here, environment, &at, problems));
            let raw = raw.map(|raw| switched(root, &member.key, raw, &at, problems));
            found.extend(raw.map(|raw| Entry { path: at, raw }));
        }
    }
    projects(root, problems);
    relabel(found, problems)
}

/// Returns whether an entry is another server than this gatelet. That it is not is
/// told.
fn is_another(
    raw: &Raw,
    here: &OwnAddress,
    environment: &dyn Environment,
    path: &Path,
    problems: &mut Problems,
) -> bool {
    // How the client starts gatelet, whatever it gives it to read.
    let itself = self_reference::is_a_gate(raw).then(String::new);
    let why = itself.or_else(|| Some(format!(" ({})", here.is(raw, environment)?.1)));
    if let Some(why) = &why {
        problems.warning(path, format!("is gatelet itself and was left out{why}"), None);
    }
    why.is_none()
}

/// Returns what a number without a unit means as a time.
fn time(root: &Node, table: &Path, here: &OwnAddress) -> entry::Unit {
    let file = here.file.to_string_lossy();
    let is_at = |part: &str| file.contains(part);
    let has = |key: &str| root.get(key).is_some();
    match table.to_string().as_str() {
        // Zed and Goose.
        "context_servers" | "extensions" => entry::Unit::Seconds,
        // opencode.
        "mcp" | "mcp.servers" => entry::Unit::Milliseconds,
        _ if is_at("cline_mcp_settings") || is_at(".roo/") || is_at("mcp_settings.json") => {
            entry::Unit::Seconds
        }
        // Gemini CLI.
        _ if is_at(".gemini/") || has("mcp") => entry::Unit::Milliseconds,
        _ => entry::Unit::Unknown,
    }
}

/// An entry as Gemini CLI's `mcp.allowed` and `mcp.excluded` have it.
fn switched(root: &Node, name: &str, mut raw: Raw, path: &Path, problems: &mut Problems) -> Raw {
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

/// Gives every upstream a label that a namespace can have and no other has.
pub fn relabel(mut found: Vec<Entry>, problems: &mut Problems) -> Vec<Entry> {
    let mut taken: Vec<String> = Vec::new();
    for upstream in &mut found {
        let name = upstream.raw.label.clone().unwrap_or_default();
        let label = unique(&legal(&name), &taken);
        if label != name {
            let message = format!("`{name}` becomes the namespace `{label}`");
            problems.warning(&upstream.path, message, None);
        }
        taken.push(name::canonical(&label));
        upstream.raw.label = Some(label);
    }
    found
}

/// Every table of servers in the document, and the way to it.
fn tables(root: &Node) -> Vec<(Path, &Node)> {
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
        // Extensions of other programs are many things.
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
    // `[upstream]` is our own, written with a bracket too few.
    let own = root.get("upstream").is_some();
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

/// Returns what VS Code asks its user for.
fn inputs(root: &Node) -> Vec<variable::Input> {
    let lists = [root.get("inputs"), root.get("mcp").and_then(|mcp| mcp.get("inputs"))];
    let input = |node: &Node| {
        let text = |key: &str| node.get(key).and_then(Node::text).map(str::to_owned);
        let what = text("description").unwrap_or_default();
        Some(variable::Input { id: text("id")?, what, default: text("default") })
    };
    lists.into_iter().flatten().flat_map(Node::items).filter_map(input).collect()
}

/// Claude Code keeps the servers of single projects in its own file too.
fn projects(root: &Node, problems: &mut Problems) {
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

fn legal(name: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let label: String = name.chars().map(legal).take(60).collect();
    let label = label.trim_matches('-').to_owned();
    match name::canonical(&label).as_str() {
        "" => "server".to_owned(),
        "gatelet" => "gatelet-upstream".to_owned(),
        _ => label,
    }
}

fn unique(label: &str, taken: &[String]) -> String {
    let free = |label: &str| !taken.contains(&name::canonical(label));
    if free(label) {
        return label.to_owned();
    }
    let numbered = (2..).map(|n| format!("{label}-{n}"));
    numbered.into_iter().find(|label| free(label)).expect("there is always a free number")
}

#[cfg(test)]
mod tests;
