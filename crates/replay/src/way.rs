//! The ways to tools: the surfaces of gatelet, and other gateways.
//!
//! A way says how a gateway is started in front of servers, and which of its tools
//! does what a recorded agent did. Where an agent calls a tool that no search has
//! shown, it looks the tool up first, as a model would have to.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::recording::Recording;

/// A gateway in front of the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    Gatelet {
        program: PathBuf,
        surface: Surface,
    },
    /// `bridge` is a program that runs [`crate::bridge`] with the address behind its
    /// first argument, for gateways that log in wherever they speak HTTP.
    Peer {
        peer: Peer,
        directory: PathBuf,
        bridge: PathBuf,
    },
}

/// The surfaces of gatelet that are replayed. What `direct` lists is what servers
/// list, and is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    Cash,
    Gateway,
    Proxy,
}

/// Other gateways, as they are when they are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Compressor,
    FastMcpSearch,
    FastMcpCode,
    ContextWeaver,
}

/// A call of one of the gateway's tools.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

/// The tool that an agent means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meant<'a> {
    pub(crate) label: &'a str,
    pub(crate) tool: &'a str,
    /// How the gateway's own listing calls it, where it lists every tool.
    pub(crate) listed: Option<&'a str>,
}

impl Peer {
    pub const ALL: [Peer; 4] =
        [Peer::Compressor, Peer::FastMcpSearch, Peer::FastMcpCode, Peer::ContextWeaver];

    /// The directory in which it is installed, among those of the peers.
    pub fn directory(self) -> &'static str {
        match self {
            Peer::Compressor => "compressor",
            Peer::FastMcpSearch | Peer::FastMcpCode => "fastmcp",
            Peer::ContextWeaver => "contextweaver",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Peer::Compressor => "mcp-compressor",
            Peer::FastMcpSearch => "FastMCP search",
            Peer::FastMcpCode => "FastMCP code mode",
            Peer::ContextWeaver => "contextweaver",
        }
    }
}

impl Surface {
    pub const ALL: [Surface; 3] = [Surface::Cash, Surface::Gateway, Surface::Proxy];

    fn flag(self) -> &'static str {
        match self {
            Surface::Cash => "cash",
            Surface::Gateway => "gateway",
            Surface::Proxy => "proxy",
        }
    }
}

/// The first argument of a bridge.
pub const BRIDGE: &str = "__bridge";

/// The file with what the gateway wrote to its standard error.
pub(crate) const STDERR: &str = "stderr";

/// Starts FastMCP as a proxy of the servers in a file, with one of its transforms.
const FASTMCP: &str = r#"import json, sys
from fastmcp.server import create_proxy
server = create_proxy(json.load(open(sys.argv[1])), name="peer")
if sys.argv[2] == "search":
    from fastmcp.server.transforms.search import BM25SearchTransform
    server.add_transform(BM25SearchTransform())
else:
    from fastmcp.experimental.transforms.code_mode import CodeMode
    server.add_transform(CodeMode())
server.run(show_banner=False)
"#;

impl Way {
    pub fn name(&self) -> String {
        match self {
            Way::Gatelet { surface, .. } => format!("gatelet `{}`", surface.flag()),
            Way::Peer { peer, .. } => peer.name().to_owned(),
        }
    }

    /// The program in front of these servers. `scratch` is for its files.
    pub(crate) fn command(
        &self,
        upstreams: &[(String, String)],
        scratch: &Path,
    ) -> io::Result<Command> {
        let mut command = match self {
            Way::Gatelet { program, surface } => {
                let mut text = String::new();
                for (label, url) in upstreams {
                    text += &format!("[[upstream]]\nlabel = {label:?}\nurl = {url:?}\n");
                }
                std::fs::write(scratch.join("gatelet.toml"), text)?;
                let mut command = Command::new(program);
                command.args(["serve", "--stdio", "--surface", surface.flag(), "--config"]);
                command.arg(scratch.join("gatelet.toml")).arg("--state").arg(scratch.join("state"));
                command
            }
            Way::Peer { peer, directory, bridge } => {
                peer.command(directory, bridge, upstreams, scratch)?
            }
        };
        command.current_dir(scratch).env("HOME", scratch);
        command.stderr(std::fs::File::create(scratch.join(STDERR))?);
        Ok(command)
    }

    /// The search for a tool; `None` where definitions name every tool.
    pub(crate) fn search(&self, query: &str) -> Option<Request> {
        let (tool, arguments) = match self {
            Way::Gatelet { surface: Surface::Cash, .. } => {
                ("help", json!({"kwargs": {"query": query}}))
            }
            Way::Gatelet { surface: Surface::Gateway, .. }
            | Way::Peer { peer: Peer::ContextWeaver, .. } => {
                ("tool_browse", json!({"query": query}))
            }
            Way::Peer { peer: Peer::FastMcpSearch, .. } => {
                ("search_tools", json!({"query": query}))
            }
            Way::Peer { peer: Peer::FastMcpCode, .. } => {
                ("search", json!({"query": query, "detail": "detailed"}))
            }
            Way::Gatelet { surface: Surface::Proxy, .. }
            | Way::Peer { peer: Peer::Compressor, .. } => return None,
        };
        Some(Request { tool: tool.to_owned(), arguments })
    }

    /// What shows a tool that no search has shown.
    pub(crate) fn look_up(&self, meant: Meant<'_>) -> Request {
        let Meant { label, tool, listed } = meant;
        let (name, arguments) = match self {
            Way::Gatelet { surface: Surface::Cash, .. } => {
                ("help".to_owned(), json!({"namespace": label, "function": tool}))
            }
            Way::Gatelet { surface: Surface::Gateway, .. } => {
                ("tool_browse".to_owned(), json!({"path": format!("/{label}"), "top_k": 50}))
            }
            Way::Gatelet { surface: Surface::Proxy, .. } => {
                ("tool_hydrate".to_owned(), json!({"tool_id": listed.unwrap_or(tool)}))
            }
            Way::Peer { peer: Peer::Compressor, .. } => {
                (format!("{label}_get_tool_schema"), json!({"tool_name": tool}))
            }
            Way::Peer { peer: Peer::FastMcpSearch, .. } => {
                ("search_tools".to_owned(), json!({"query": format!("{label} {tool}")}))
            }
            Way::Peer { peer: Peer::FastMcpCode, .. } => {
                ("get_schema".to_owned(), json!({"tools": [format!("{label}_{tool}")]}))
            }
            Way::Peer { peer: Peer::ContextWeaver, .. } => {
                ("tool_browse".to_owned(), json!({"query": format!("{label} {tool}"), "top_k": 50}))
            }
        };
        Request { tool: name, arguments }
    }

    /// The call. `id` is how the gateway called the tool when it showed it.
    pub(crate) fn call(&self, meant: Meant<'_>, id: Option<&str>, arguments: &Value) -> Request {
        let Meant { label, tool, listed } = meant;
        let (name, arguments) = match self {
            Way::Gatelet { surface: Surface::Proxy, .. } => {
                (listed.unwrap_or(tool).to_owned(), arguments.clone())
            }
            Way::Gatelet { surface: Surface::Cash, .. } => (
                "call".to_owned(),
                json!({"namespace": label, "function": tool, "kwargs": arguments}),
            ),
            Way::Gatelet { surface: Surface::Gateway, .. }
            | Way::Peer { peer: Peer::ContextWeaver, .. } => {
                let id = id.map_or_else(|| format!("{label}:{tool}"), str::to_owned);
                ("tool_execute".to_owned(), json!({"tool_id": id, "args": arguments}))
            }
            Way::Peer { peer: Peer::Compressor, .. } => (
                format!("{label}_invoke_tool"),
                json!({"tool_name": tool, "tool_input": arguments}),
            ),
            Way::Peer { peer: Peer::FastMcpSearch, .. } => (
                "call_tool".to_owned(),
                json!({"name": format!("{label}_{tool}"), "arguments": arguments}),
            ),
            Way::Peer { peer: Peer::FastMcpCode, .. } => {
                let name = format!("{label}_{tool}");
                let code =
                    format!("return await call_tool({}, {})", json!(name), python(arguments));
                ("execute".to_owned(), json!({"code": code}))
            }
        };
        Request { tool: name, arguments }
    }

    /// The question that brings back a part of a result that was kept, where the reply
    /// says how.
    pub(crate) fn find_in_kept(&self, reply: &str, part: &str) -> Option<Request> {
        let handle = |start: &str| {
            let (_, rest) = reply.split_once(start)?;
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_' && c != ':')?;
            Some(rest[..end].to_owned())
        };
        match self {
            Way::Gatelet { surface: Surface::Cash, .. } => {
                let handle = handle("is kept as `")?;
                let kwargs = json!({"handle": handle, "grep": literal(part)});
                let arguments =
                    json!({"namespace": "gatelet", "function": "view", "kwargs": kwargs});
                Some(Request { tool: "call".to_owned(), arguments })
            }
            Way::Gatelet { surface: Surface::Gateway | Surface::Proxy, .. } => {
                let handle = handle("\"handle\":\"").or_else(|| handle("handle: "))?;
                let selector = json!({"type": "grep", "pattern": literal(part)});
                let arguments = json!({"handle": handle, "selector": selector});
                Some(Request { tool: "tool_view".to_owned(), arguments })
            }
            // It has heads and lines to show, and nothing that searches.
            Way::Peer { peer: Peer::ContextWeaver, .. } => {
                let handle = handle("\"handle\": \"")?;
                let selector = json!({"type": "head", "chars": 100_000});
                let arguments = json!({"handle": handle, "selector": selector});
                Some(Request { tool: "tool_view".to_owned(), arguments })
            }
            Way::Peer {
                peer: Peer::Compressor | Peer::FastMcpSearch | Peer::FastMcpCode, ..
            } => None,
        }
    }

    /// How a reply calls a tool, if it shows it.
    pub(crate) fn id_in(&self, text: &str, meant: Meant<'_>) -> Option<String> {
        let Meant { label, tool, .. } = meant;
        let plain = plain(tool);
        match self {
            Way::Gatelet { surface: Surface::Cash, .. } => {
                let is_shown = |line: &str| {
                    let rest = line.trim().strip_prefix(label).unwrap_or_default();
                    let rest = rest.trim_start_matches([' ', '/', '.']);
                    let names = [tool, plain.as_str()].map(|name| rest.strip_prefix(name));
                    names.into_iter().flatten().any(|rest| rest.starts_with('('))
                };
                text.lines().any(is_shown).then(|| format!("{label}.{tool}"))
            }
            Way::Gatelet { surface: Surface::Gateway, .. } => {
                hashed(text, &format!("{label}:{tool}#"))
                    .or_else(|| hashed(text, &format!("{label}:{plain}#")))
            }
            // Its namespaces are its own: the name has to do.
            Way::Peer { peer: Peer::ContextWeaver, .. } => {
                hashed(text, &format!("{label}:{tool}#")).or_else(|| {
                    let at = text.find(&format!(":{tool}#"))?;
                    let start = text[..at].rfind('"')? + 1;
                    hashed(&text[start..], &text[start..=at + tool.len() + 1])
                })
            }
            Way::Peer { peer: Peer::FastMcpSearch | Peer::FastMcpCode, .. } => {
                let name = format!("{label}_{tool}");
                let ends = ["\"", ":", "`", " ", "\n"].map(|end| format!("{name}{end}"));
                ends.iter().any(|end| text.contains(end)).then_some(name)
            }
            Way::Gatelet { surface: Surface::Proxy, .. }
            | Way::Peer { peer: Peer::Compressor, .. } => None,
        }
    }

    /// Whether the gateway asks every server for its tools with every request, so that
    /// it need not get to know them first.
    pub(crate) fn asks_servers_anew(&self) -> bool {
        matches!(self, Way::Peer { peer: Peer::FastMcpSearch | Peer::FastMcpCode, .. })
    }

    /// How many definitions the gateway has once it knows every server.
    pub(crate) fn n_listed(&self, recording: &Recording) -> usize {
        match self {
            Way::Gatelet { surface: Surface::Proxy, .. } => recording.n_tools(),
            Way::Peer { peer: Peer::Compressor, .. } => 2 * recording.servers.len(),
            Way::Gatelet { surface: Surface::Cash | Surface::Gateway, .. }
            | Way::Peer {
                peer: Peer::FastMcpSearch | Peer::FastMcpCode | Peer::ContextWeaver,
                ..
            } => 1,
        }
    }

    /// The name under which the gateway lists a tool, among these.
    pub(crate) fn listed<'a>(
        &self,
        names: &'a [String],
        label: &str,
        tool: &str,
    ) -> Option<&'a str> {
        let Way::Gatelet { surface: Surface::Proxy, .. } = self else { return None };
        let starts =
            [tool.replace('-', "--"), plain(tool)].map(|tool| format!("{label}-_{tool}-h"));
        let is_it = |name: &&String| starts.iter().any(|start| name.starts_with(start));
        names.iter().find(is_it).map(String::as_str)
    }
}

/// A name with nothing but letters, digits and `_`.
fn plain(name: &str) -> String {
    name.replace(|c: char| !c.is_alphanumeric(), "_")
}

impl Peer {
    fn command(
        self,
        directory: &Path,
        bridge: &Path,
        upstreams: &[(String, String)],
        scratch: &Path,
    ) -> io::Result<Command> {
        let program = |name: &str| Command::new(directory.join("bin").join(name));
        let servers: Map<String, Value> = upstreams
            .iter()
            .map(|(label, url)| {
                let entry = match self {
                    Peer::Compressor | Peer::FastMcpSearch | Peer::FastMcpCode => {
                        json!({"command": bridge, "args": [BRIDGE, url]})
                    }
                    Peer::ContextWeaver => json!({"type": "http", "url": url, "namespace": label}),
                };
                (label.clone(), entry)
            })
            .collect();
        let key = if self == Peer::ContextWeaver { "upstreams" } else { "mcpServers" };
        let file = scratch.join("servers.json");
        std::fs::write(&file, json!({key: servers}).to_string())?;
        let fastmcp = |mode: &str| -> io::Result<Command> {
            std::fs::write(scratch.join("peer.py"), FASTMCP)?;
            let mut command = program("python");
            command.arg(scratch.join("peer.py")).arg(&file).arg(mode);
            Ok(command)
        };
        Ok(match self {
            Peer::Compressor => {
                let mut command = program("mcp-compressor");
                command.arg("--config").arg(&file);
                command
            }
            Peer::FastMcpSearch => fastmcp("search")?,
            Peer::FastMcpCode => fastmcp("code")?,
            Peer::ContextWeaver => {
                let mut command = program("contextweaver");
                command.args(["mcp", "serve", "--gateway", "--quiet", "--config"]).arg(&file);
                command
            }
        })
    }
}

/// The id that begins with `start`: what follows are digits of a hash.
fn hashed(text: &str, start: &str) -> Option<String> {
    let at = text.find(start)?;
    let rest = &text[at + start.len()..];
    let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    Some(format!("{start}{}", &rest[..end]))
}

/// A pattern that fits only this text.
fn literal(text: &str) -> String {
    let special = |c: char| "\\.+*?()|[]{}^$#&-~".contains(c);
    let escaped = text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c]));
    escaped.collect()
}

/// A JSON value as Python writes it.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let member =
                |(key, value): (&String, &Value)| format!("{}: {}", json!(key), python(value));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_out_of_what_gateways_show() {
        let gatelet = |surface| Way::Gatelet { program: "x".into(), surface };
        let peer = |peer| Way::Peer { peer, directory: "x".into(), bridge: "x".into() };
        let meant = Meant { label: "a-b", tool: "go", listed: None };
        let shown = "namespace / function(kwargs) — what it does\na-b / gone(x)\na-b / go(x: string) — Goes";
        assert!(gatelet(Surface::Cash).id_in(shown, meant).is_some());
        assert!(gatelet(Surface::Cash).id_in("a-b / gone(x)", meant).is_none());
        let id = gatelet(Surface::Gateway).id_in("a-b:gone#11 x\na-b:go#8ef6fcb2 Goes", meant);
        assert_eq!(id.as_deref(), Some("a-b:go#8ef6fcb2"));
        let id = peer(Peer::ContextWeaver).id_in(r#"[{"id": "mcp:go#3bb73c9b", "name"#, meant);
        assert_eq!(id.as_deref(), Some("mcp:go#3bb73c9b"));
        assert!(peer(Peer::FastMcpSearch).id_in(r#"{"name":"a-b_go","x":1}"#, meant).is_some());
        assert!(peer(Peer::FastMcpSearch).id_in(r#"{"name":"a-b_gone"}"#, meant).is_none());
        assert_eq!(python(&json!({"a": [true, null, "x\"y"]})), r#"{"a": [True, None, "x\"y"]}"#);
    }
}
