//! The ways to the servers: directly, through gatelet, through other gateways.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use replay::{Mocks, Session};
use serde_json::{Map, Value, json};

use crate::compose;
use crate::world::World;

/// How the model reaches the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The host connects to every server itself.
    Direct,
    Gatelet {
        surface: String,
    },
    FastMcp {
        mode: &'static str,
    },
    Compressor,
}

/// Which servers there are, and what is to be done with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Set {
    /// Real servers.
    Usual,
    /// Servers whose results are long.
    Compose,
}

/// Where programs are.
pub(crate) struct Programs {
    pub(crate) gatelet: PathBuf,
    /// What `cargo xtask test` installs: real servers from npm and PyPI.
    pub(crate) tools: PathBuf,
    /// What `cargo xtask bench context` installs: other gateways.
    pub(crate) peers: PathBuf,
}

/// A server that is started by a command.
struct Server {
    label: &'static str,
    command: PathBuf,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
}

/// What the model is connected to.
pub(crate) struct Connected<'a> {
    /// The servers that are not needed, when nothing stands before them.
    distractors: Option<&'a Mocks>,
    sessions: Vec<(Option<&'static str>, Session)>,
    pub(crate) definitions: Vec<Value>,
    /// Whether parts of results, several calls at once and scripts are refused.
    pub(crate) is_plain: bool,
}

impl Way {
    pub(crate) fn parse(word: &str) -> Result<Way> {
        Ok(match word.split_once(':').unwrap_or((word, "")) {
            ("direct", "") => Way::Direct,
            ("gatelet", "") => Way::Gatelet { surface: "cash".to_owned() },
            ("gatelet", surface) => Way::Gatelet { surface: surface.to_owned() },
            ("fastmcp", "" | "search") => Way::FastMcp { mode: "search" },
            ("fastmcp", "code") => Way::FastMcp { mode: "code" },
            ("compressor", "") => Way::Compressor,
            _ => bail!(
                "no way `{word}`; there are: direct, gatelet[:SURFACE], fastmcp[:code], compressor"
            ),
        })
    }

    /// Starts whatever is needed and lists what the model sees.
    pub(crate) fn connect<'a>(
        &self,
        programs: &Programs,
        world: &World,
        distractors: &'a Mocks,
        set: Set,
    ) -> Result<Connected<'a>> {
        let servers = match set {
            Set::Usual => servers(&programs.tools, world),
            Set::Compose => composed(world)?,
        };
        if *self == Way::Direct {
            return direct(&servers, distractors);
        }
        let mut command = self.command(programs, world, &servers, &distractors.upstreams())?;
        if set == Set::Compose && matches!(self, Way::Gatelet { .. }) {
            let scripts = "[scripts]\nenabled = true\ngateway = true\n";
            let file = world.path("gatelet.toml");
            std::fs::write(&file, format!("{scripts}{}", std::fs::read_to_string(&file)?))?;
        }
        command.current_dir(world.root()).env("HOME", world.root());
        command.stderr(std::fs::File::create(world.path("gateway.log"))?);
        let mut session = Session::start(command).with_context(|| format!("{self:?}"))?;
        let definitions = session.definitions()?;
        let sessions = vec![(None, session)];
        Ok(Connected { distractors: None, sessions, definitions, is_plain: false })
    }

    fn command(
        &self,
        programs: &Programs,
        world: &World,
        servers: &[Server],
        distractors: &[(String, String)],
    ) -> Result<Command> {
        let peer =
            |set: &str, name: &str| Command::new(programs.peers.join(set).join("bin").join(name));
        Ok(match self {
            Way::Direct => bail!("nothing stands in between"),
            Way::Gatelet { surface } => {
                std::fs::write(world.path("gatelet.toml"), configuration(servers, distractors))?;
                let mut command = Command::new(&programs.gatelet);
                command.args(["serve", "--stdio", "--surface", surface, "--config"]);
                command.arg(world.path("gatelet.toml")).arg("--state").arg(world.path("state"));
                command
            }
            Way::FastMcp { mode } => {
                std::fs::write(world.path("peer.py"), replay::FASTMCP)?;
                let mut command = peer("fastmcp", "python");
                command
                    .arg(world.path("peer.py"))
                    .arg(list(world, servers, distractors)?)
                    .arg(mode);
                command
            }
            Way::Compressor => {
                let mut command = peer("compressor", "mcp-compressor");
                command.arg("--config").arg(list(world, servers, distractors)?);
                command
            }
        })
    }
}

impl Connected<'_> {
    /// Makes a call, and returns what a model reads of it and whether it is an error.
    pub(crate) fn call(&mut self, name: &str, arguments: &Value) -> Result<(String, bool)> {
        if self.is_plain && is_composed(name, arguments) {
            return Ok((
                "`pick`, `calls` and scripts are not allowed in this run".to_owned(),
                true,
            ));
        }
        let direct = name.split_once("__");
        for (label, session) in &mut self.sessions {
            let tool = match (label, direct) {
                (None, _) => name,
                (Some(label), Some((server, tool))) if server == *label => tool,
                (Some(_), _) => continue,
            };
            let said = session.call(tool, arguments)?;
            return Ok((said.text, said.is_error));
        }
        let (server, tool) = direct.unwrap_or_default();
        if let Some(said) = self.distractors.and_then(|mocks| mocks.call(server, tool, arguments)) {
            return Ok((said.text, said.is_error));
        }
        Ok((format!("there is no tool `{name}`, or its server is not available"), true))
    }
}

fn direct<'a>(servers: &[Server], distractors: &'a Mocks) -> Result<Connected<'a>> {
    let mut connected = Connected {
        distractors: Some(distractors),
        sessions: Vec::new(),
        definitions: Vec::new(),
        is_plain: false,
    };
    for server in servers {
        let mut command = Command::new(&server.command);
        command.args(&server.args).envs(server.env.iter().map(|(key, value)| (key, value)));
        command.stderr(std::process::Stdio::null());
        let mut session = Session::start(command).with_context(|| server.label)?;
        connected.list(server.label, session.definitions()?);
        connected.sessions.push((Some(server.label), session));
    }
    for server in distractors.servers() {
        let tools = server.tools.iter().map(|tool| tool.definition.clone());
        connected.list(&server.label, tools.collect());
    }
    Ok(connected)
}

impl Connected<'_> {
    fn list(&mut self, label: &str, tools: Vec<Value>) {
        for mut tool in tools {
            let name = tool["name"].as_str().unwrap_or_default();
            tool["name"] = json!(format!("{label}__{name}"));
            self.definitions.push(tool);
        }
    }
}

/// Whether a call asks for a part, is several, or runs a script.
fn is_composed(name: &str, arguments: &Value) -> bool {
    let has = |key: &str| !arguments[key].is_null();
    let is_run = name == "tool_run"
        || (arguments["namespace"] == "gatelet" && arguments["function"] == "run");
    has("pick") || has("calls") || is_run
}

/// The servers whose results are long.
fn composed(world: &World) -> Result<Vec<Server>> {
    let program = world.path("compose_server.py");
    std::fs::write(&program, compose::SERVER)?;
    let server = |label: &&'static str| Server {
        label,
        command: PathBuf::from("python3"),
        args: vec![program.display().to_string(), (*label).to_owned()],
        env: Vec::new(),
    };
    Ok(compose::LABELS.iter().map(server).collect())
}

/// The real servers, in this world.
fn servers(tools: &Path, world: &World) -> Vec<Server> {
    let files = world.path("files").display().to_string();
    let npm = |label, name: &str, args: &[String], env: &[(&'static str, String)]| Server {
        label,
        command: tools.join("node/bin/node"),
        args: std::iter::once(
            tools
                .join(format!("npm/node_modules/@modelcontextprotocol/server-{name}/dist/index.js"))
                .display()
                .to_string(),
        )
        .chain(args.iter().cloned())
        .collect(),
        env: env.to_vec(),
    };
    let pypi = |label, set: &str, name: &str, args: &[String]| Server {
        label,
        command: tools.join(set).join("bin").join(name),
        args: args.to_vec(),
        env: Vec::new(),
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let memory = ("MEMORY_FILE_PATH", world.path("memory.jsonl").display().to_string());
    vec![
        npm("files", "filesystem", std::slice::from_ref(&files), &[]),
        npm("memory", "memory", &[], &[memory]),
        npm("everything", "everything", &[], &[]),
        pypi("git", "py", "mcp-server-git", &words(&["--repository", &format!("{files}/repo")])),
        pypi("time", "py", "mcp-server-time", &words(&["--local-timezone", "UTC"])),
        pypi(
            "sqlite",
            "py1",
            "mcp-server-sqlite",
            &words(&["--db-path", &world.path("shop.db").display().to_string()]),
        ),
        pypi(
            "fetch",
            "py1",
            "mcp-server-fetch",
            &words(&["--ignore-robots-txt", "--allow-private-ips"]),
        ),
    ]
}

/// A configuration of gatelet in which nothing needs agreement: nobody is there to give it.
fn configuration(servers: &[Server], distractors: &[(String, String)]) -> String {
    let mut text = "[trust]\nmode = \"off\"\n".to_owned();
    for server in servers {
        let args: Vec<String> = server.args.iter().map(|arg| json!(arg).to_string()).collect();
        let env: Vec<String> =
            server.env.iter().map(|(key, value)| format!("{key} = {}", json!(value))).collect();
        text += &format!(
            "[[upstream]]\nlabel = {:?}\ncommand = {}\nargs = [{}]\nenv = {{ {} }}\n",
            server.label,
            json!(server.command),
            args.join(", "),
            env.join(", ")
        );
    }
    for (label, url) in distractors {
        text += &format!("[[upstream]]\nlabel = {label:?}\nurl = {url:?}\n");
    }
    text
}

/// The list of servers that other gateways read.
fn list(world: &World, servers: &[Server], distractors: &[(String, String)]) -> Result<PathBuf> {
    let bridge = std::env::current_exe()?;
    let real = servers.iter().map(|server| {
        let env: Map<String, Value> =
            server.env.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        (
            server.label.to_owned(),
            json!({"command": server.command, "args": server.args, "env": env}),
        )
    });
    let others = distractors.iter().map(|(label, url)| {
        (label.clone(), json!({"command": bridge, "args": [replay::BRIDGE, url]}))
    });
    let all: Map<String, Value> = real.chain(others).collect();
    let file = world.path("servers.json");
    std::fs::write(&file, json!({"mcpServers": all}).to_string())?;
    Ok(file)
}
