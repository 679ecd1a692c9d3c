//! The gateways of the benchmark: the surfaces of gatelet, and other products.
//!
//! Each is described by how it is started in front of servers, and by which of its tools
//! does what a recorded agent did. A tool that no search has shown is looked up before it
//! is called, as a model would have to do.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::recording::Recording;

/// A gateway in front of the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gateway {
    Gatelet {
        program: PathBuf,
        surface: Surface,
    },
    /// Another gateway, installed in `directory`. `bridge` is a program that runs
    /// [`crate::bridge`], for gateways that would try to log in over HTTP.
    Other {
        peer: OtherGateway,
        directory: PathBuf,
        bridge: PathBuf,
    },
}

/// The surfaces of gatelet that are replayed. `direct` lists what servers list, so its cost
/// is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    Cash,
    Gateway,
    Proxy,
}

/// Other gateways, with their default settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherGateway {
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

/// The tool that a recorded agent called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolRef<'a> {
    pub(crate) label: &'a str,
    pub(crate) tool: &'a str,
    /// Its name in the gateway's listing, if that lists every tool.
    pub(crate) listed: Option<&'a str>,
}

impl OtherGateway {
    pub const ALL: [OtherGateway; 4] = [
        OtherGateway::Compressor,
        OtherGateway::FastMcpSearch,
        OtherGateway::FastMcpCode,
        OtherGateway::ContextWeaver,
    ];

    /// Returns the name of the directory in which it is installed.
    pub fn directory(self) -> &'static str {
        match self {
            OtherGateway::Compressor => "compressor",
            OtherGateway::FastMcpSearch | OtherGateway::FastMcpCode => "fastmcp",
            OtherGateway::ContextWeaver => "contextweaver",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            OtherGateway::Compressor => "mcp-compressor",
            OtherGateway::FastMcpSearch => "FastMCP search",
            OtherGateway::FastMcpCode => "FastMCP code mode",
            OtherGateway::ContextWeaver => "contextweaver",
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

/// The first argument of a bridge program; the URL follows.
pub const BRIDGE: &str = "__bridge";

/// The file with the standard error of the gateway.
pub(crate) const STDERR: &str = "stderr";

/// A Python program that starts FastMCP as a proxy of the servers in a file, with one of
/// its transforms: `search` or `code`.
pub const FASTMCP: &str = r#"import json, sys
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

impl Gateway {
    pub fn name(&self) -> String {
        match self {
            Gateway::Gatelet { surface, .. } => format!("gatelet `{}`", surface.flag()),
            Gateway::Other { peer, .. } => peer.name().to_owned(),
        }
    }

    /// Builds the command that starts the gateway in front of these servers, given as label
    /// and URL. `scratch` is a directory for its files.
    pub(crate) fn command(
        &self,
        upstreams: &[(String, String)],
        scratch: &Path,
    ) -> io::Result<Command> {
        let mut command = match self {
            Gateway::Gatelet { program, surface } => {
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
            Gateway::Other { peer, directory, bridge } => {
                peer.command(directory, bridge, upstreams, scratch)?
            }
        };
        command.current_dir(scratch).env("HOME", scratch);
        command.stderr(std::fs::File::create(scratch.join(STDERR))?);
        Ok(command)
    }

    /// Returns the call that searches for a tool; `None` when the definitions name every
    /// tool.
    pub(crate) fn search(&self, query: &str) -> Option<Request> {
        let (tool, arguments) = match self {
            Gateway::Gatelet { surface: Surface::Cash, .. } => {
                ("help", json!({"kwargs": {"query": query}}))
            }
            Gateway::Gatelet { surface: Surface::Gateway, .. }
            | Gateway::Other { peer: OtherGateway::ContextWeaver, .. } => {
                ("tool_browse", json!({"query": query}))
            }
            Gateway::Other { peer: OtherGateway::FastMcpSearch, .. } => {
                ("search_tools", json!({"query": query}))
            }
            Gateway::Other { peer: OtherGateway::FastMcpCode, .. } => {
                ("search", json!({"query": query, "detail": "detailed"}))
            }
            Gateway::Gatelet { surface: Surface::Proxy, .. }
            | Gateway::Other { peer: OtherGateway::Compressor, .. } => return None,
        };
        Some(Request { tool: tool.to_owned(), arguments })
    }

    /// Returns the call that shows a tool that no search has shown.
    pub(crate) fn look_up(&self, tool_ref: ToolRef<'_>) -> Request {
        let ToolRef { label, tool, listed } = tool_ref;
        let (name, arguments) = match self {
            Gateway::Gatelet { surface: Surface::Cash, .. } => {
                ("help".to_owned(), json!({"namespace": label, "function": tool}))
            }
            Gateway::Gatelet { surface: Surface::Gateway, .. } => {
                ("tool_browse".to_owned(), json!({"path": format!("/{label}"), "top_k": 50}))
            }
            Gateway::Gatelet { surface: Surface::Proxy, .. } => {
                ("tool_hydrate".to_owned(), json!({"tool_id": listed.unwrap_or(tool)}))
            }
            Gateway::Other { peer: OtherGateway::Compressor, .. } => {
                (format!("{label}_get_tool_schema"), json!({"tool_name": tool}))
            }
            Gateway::Other { peer: OtherGateway::FastMcpSearch, .. } => {
                ("search_tools".to_owned(), json!({"query": format!("{label} {tool}")}))
            }
            Gateway::Other { peer: OtherGateway::FastMcpCode, .. } => {
                ("get_schema".to_owned(), json!({"tools": [format!("{label}_{tool}")]}))
            }
            Gateway::Other { peer: OtherGateway::ContextWeaver, .. } => {
                ("tool_browse".to_owned(), json!({"query": format!("{label} {tool}"), "top_k": 50}))
            }
        };
        Request { tool: name, arguments }
    }

    /// Returns the call of a tool. `id` is the id under which the gateway showed the tool.
    pub(crate) fn call(
        &self,
        tool_ref: ToolRef<'_>,
        id: Option<&str>,
        arguments: &Value,
    ) -> Request {
        let ToolRef { label, tool, listed } = tool_ref;
        let (name, arguments) = match self {
            Gateway::Gatelet { surface: Surface::Proxy, .. } => {
                (listed.unwrap_or(tool).to_owned(), arguments.clone())
            }
            Gateway::Gatelet { surface: Surface::Cash, .. } => (
                "call".to_owned(),
                json!({"namespace": label, "function": tool, "kwargs": arguments}),
            ),
            Gateway::Gatelet { surface: Surface::Gateway, .. }
            | Gateway::Other { peer: OtherGateway::ContextWeaver, .. } => {
                let id = id.map_or_else(|| format!("{label}:{tool}"), str::to_owned);
                ("tool_execute".to_owned(), json!({"tool_id": id, "args": arguments}))
            }
            Gateway::Other { peer: OtherGateway::Compressor, .. } => (
                format!("{label}_invoke_tool"),
                json!({"tool_name": tool, "tool_input": arguments}),
            ),
            Gateway::Other { peer: OtherGateway::FastMcpSearch, .. } => (
                "call_tool".to_owned(),
                json!({"name": format!("{label}_{tool}"), "arguments": arguments}),
            ),
            Gateway::Other { peer: OtherGateway::FastMcpCode, .. } => {
                let name = format!("{label}_{tool}");
                let code =
                    format!("return await call_tool({}, {})", json!(name), to_python(arguments));
                ("execute".to_owned(), json!({"code": code}))
            }
        };
        Request { tool: name, arguments }
    }

    /// Returns the call that fetches a part of a stored result, if the reply says how.
    pub(crate) fn request_stored_part(&self, reply: &str, part: &str) -> Option<Request> {
        let handle = |start: &str| {
            let (_, rest) = reply.split_once(start)?;
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_' && c != ':')?;
            Some(rest[..end].to_owned())
        };
        match self {
            Gateway::Gatelet { surface: Surface::Cash, .. } => {
                let handle = handle("is kept as `")?;
                let kwargs = json!({"handle": handle, "grep": escape_regex(part)});
                let arguments =
                    json!({"namespace": "gatelet", "function": "view", "kwargs": kwargs});
                Some(Request { tool: "call".to_owned(), arguments })
            }
            Gateway::Gatelet { surface: Surface::Gateway | Surface::Proxy, .. } => {
                let handle = handle("\"handle\":\"").or_else(|| handle("handle: "))?;
                let selector = json!({"type": "grep", "pattern": escape_regex(part)});
                let arguments = json!({"handle": handle, "selector": selector});
                Some(Request { tool: "tool_view".to_owned(), arguments })
            }
            // It can show heads and lines, but not search.
            Gateway::Other { peer: OtherGateway::ContextWeaver, .. } => {
                let handle = handle("\"handle\": \"")?;
                let selector = json!({"type": "head", "chars": 100_000});
                let arguments = json!({"handle": handle, "selector": selector});
                Some(Request { tool: "tool_view".to_owned(), arguments })
            }
            Gateway::Other {
                peer:
                    OtherGateway::Compressor | OtherGateway::FastMcpSearch | OtherGateway::FastMcpCode,
                ..
            } => None,
        }
    }

    /// Returns the id of a tool in a reply, if the reply shows the tool.
    pub(crate) fn tool_id_in(&self, text: &str, tool_ref: ToolRef<'_>) -> Option<String> {
        let ToolRef { label, tool, .. } = tool_ref;
        let plain = plain_name(tool);
        match self {
            Gateway::Gatelet { surface: Surface::Cash, .. } => {
                let is_shown = |line: &str| {
                    let rest = line.trim().strip_prefix(label).unwrap_or_default();
                    let rest = rest.trim_start_matches([' ', '/', '.']);
                    let names = [tool, plain.as_str()].map(|name| rest.strip_prefix(name));
                    names.into_iter().flatten().any(|rest| rest.starts_with('('))
                };
                text.lines().any(is_shown).then(|| format!("{label}.{tool}"))
            }
            Gateway::Gatelet { surface: Surface::Gateway, .. } => {
                id_with_hash(text, &format!("{label}:{tool}#"))
                    .or_else(|| id_with_hash(text, &format!("{label}:{plain}#")))
            }
            // It chooses its own namespaces, so only the name is compared.
            Gateway::Other { peer: OtherGateway::ContextWeaver, .. } => {
                id_with_hash(text, &format!("{label}:{tool}#")).or_else(|| {
                    let at = text.find(&format!(":{tool}#"))?;
                    let start = text[..at].rfind('"')? + 1;
                    id_with_hash(&text[start..], &text[start..=at + tool.len() + 1])
                })
            }
            Gateway::Other {
                peer: OtherGateway::FastMcpSearch | OtherGateway::FastMcpCode,
                ..
            } => {
                let name = format!("{label}_{tool}");
                let ends = ["\"", ":", "`", " ", "\n"].map(|end| format!("{name}{end}"));
                ends.iter().any(|end| text.contains(end)).then_some(name)
            }
            Gateway::Gatelet { surface: Surface::Proxy, .. }
            | Gateway::Other { peer: OtherGateway::Compressor, .. } => None,
        }
    }

    /// Returns whether the gateway lists every server with every request, so that nobody has
    /// to wait until it knows all tools.
    pub(crate) fn lists_servers_per_request(&self) -> bool {
        matches!(
            self,
            Gateway::Other { peer: OtherGateway::FastMcpSearch | OtherGateway::FastMcpCode, .. }
        )
    }

    /// Returns how many definitions the gateway has at least once it knows every server.
    pub(crate) fn n_expected_definitions(&self, recording: &Recording) -> usize {
        match self {
            // `tool_hydrate`, `tool_execute` and `tool_view` come first.
            Gateway::Gatelet { surface: Surface::Proxy, .. } => recording.n_tools() + 3,
            Gateway::Other { peer: OtherGateway::Compressor, .. } => 2 * recording.servers.len(),
            Gateway::Gatelet { surface: Surface::Cash | Surface::Gateway, .. }
            | Gateway::Other {
                peer:
                    OtherGateway::FastMcpSearch
                    | OtherGateway::FastMcpCode
                    | OtherGateway::ContextWeaver,
                ..
            } => 1,
        }
    }

    /// Returns the name under which the gateway lists a tool, among `names`.
    pub(crate) fn listed<'a>(
        &self,
        names: &'a [String],
        label: &str,
        tool: &str,
    ) -> Option<&'a str> {
        let Gateway::Gatelet { surface: Surface::Proxy, .. } = self else { return None };
        let starts =
            [tool.replace('-', "--"), plain_name(tool)].map(|tool| format!("{label}-_{tool}-h"));
        let is_it = |name: &&String| starts.iter().any(|start| name.starts_with(start));
        names.iter().find(is_it).map(String::as_str)
    }
}

/// Replaces everything but letters and digits in a name by `_`.
pub(crate) fn plain_name(name: &str) -> String {
    name.replace(|c: char| !c.is_alphanumeric(), "_")
}

impl OtherGateway {
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
                    OtherGateway::Compressor
                    | OtherGateway::FastMcpSearch
                    | OtherGateway::FastMcpCode => {
                        json!({"command": bridge, "args": [BRIDGE, url]})
                    }
                    OtherGateway::ContextWeaver => {
                        json!({"type": "http", "url": url, "namespace": label})
                    }
                };
                (label.clone(), entry)
            })
            .collect();
        let key = if self == OtherGateway::ContextWeaver { "upstreams" } else { "mcpServers" };
        let file = scratch.join("servers.json");
        std::fs::write(&file, json!({key: servers}).to_string())?;
        let fastmcp = |mode: &str| -> io::Result<Command> {
            std::fs::write(scratch.join("peer.py"), FASTMCP)?;
            let mut command = program("python");
            command.arg(scratch.join("peer.py")).arg(&file).arg(mode);
            Ok(command)
        };
        Ok(match self {
            OtherGateway::Compressor => {
                let mut command = program("mcp-compressor");
                command.arg("--config").arg(&file);
                command
            }
            OtherGateway::FastMcpSearch => fastmcp("search")?,
            OtherGateway::FastMcpCode => fastmcp("code")?,
            OtherGateway::ContextWeaver => {
                let mut command = program("contextweaver");
                command.args(["mcp", "serve", "--gateway", "--quiet", "--config"]).arg(&file);
                command
            }
        })
    }
}

/// Returns the id in a text that begins with `start` and goes on with a hexadecimal hash.
fn id_with_hash(text: &str, start: &str) -> Option<String> {
    let at = text.find(start)?;
    let rest = &text[at + start.len()..];
    let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    Some(format!("{start}{}", &rest[..end]))
}

/// Escapes a text so that it is a regular expression for itself.
fn escape_regex(text: &str) -> String {
    let special = |c: char| "\\.+*?()|[]{}^$#&-~".contains(c);
    let escaped = text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c]));
    escaped.collect()
}

/// Renders a JSON value as a Python literal.
fn to_python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(to_python).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let member =
                |(key, value): (&String, &Value)| format!("{}: {}", json!(key), to_python(value));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_out_of_what_gateways_show() {
        let gatelet = |surface| Gateway::Gatelet { program: "x".into(), surface };
        let peer = |peer| Gateway::Other { peer, directory: "x".into(), bridge: "x".into() };
        let tool_ref = ToolRef { label: "a-b", tool: "go", listed: None };
        let shown = "namespace / function(kwargs) — what it does\na-b / gone(x)\na-b / go(x: string) — Goes";
        assert!(gatelet(Surface::Cash).tool_id_in(shown, tool_ref).is_some());
        assert!(gatelet(Surface::Cash).tool_id_in("a-b / gone(x)", tool_ref).is_none());
        let id =
            gatelet(Surface::Gateway).tool_id_in("a-b:gone#11 x\na-b:go#8ef6fcb2 Goes", tool_ref);
        assert_eq!(id.as_deref(), Some("a-b:go#8ef6fcb2"));
        let id = peer(OtherGateway::ContextWeaver)
            .tool_id_in(r#"[{"id": "mcp:go#3bb73c9b", "name"#, tool_ref);
        assert_eq!(id.as_deref(), Some("mcp:go#3bb73c9b"));
        assert!(
            peer(OtherGateway::FastMcpSearch)
                .tool_id_in(r#"{"name":"a-b_go","x":1}"#, tool_ref)
                .is_some()
        );
        assert!(
            peer(OtherGateway::FastMcpSearch)
                .tool_id_in(r#"{"name":"a-b_gone"}"#, tool_ref)
                .is_none()
        );
        assert_eq!(
            to_python(&json!({"a": [true, null, "x\"y"]})),
            r#"{"a": [True, None, "x\"y"]}"#
        );
    }
}
