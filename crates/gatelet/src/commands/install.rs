//! `gatelet install`: adds gatelet to the MCP servers of hosts such as Claude Code or Cursor.

mod adopt;
mod host_bound;
mod own_file;

use std::path::Path;

use adopt::PlainSecrets;
use hosts::Reach;
use hosts::plan;
use own_file::own_file;

use super::host_files::{
    Gatelet, HostChoice, LocalHosts, carry_out, choose_hosts, plan_each, scope, server,
};
use super::init::TEMPLATE;
use super::own_program::OwnProgram;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::secrets::Secrets;
use crate::terminal::say;

/// Put gatelet into the hosts on this machine: Claude Code, Cursor, VS Code, Codex and others
///
/// Finds the hosts, shows what would change in their files, asks, and writes. Comments, order and
/// everything else in the files stay. `gatelet undo` puts them back as they were.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: HostChoice,

    /// Hosts start gatelet themselves [default]
    #[arg(long, conflicts_with = "http")]
    stdio: bool,

    /// Hosts reach the gatelet that `gatelet serve` runs; those that only start programs do that
    #[arg(long)]
    http: bool,

    /// The environment variable in which hosts find the key that `auth.required` asks for
    #[arg(long, value_name = "NAME", default_value = "GATELET_KEY", requires = "http")]
    key_variable: String,

    /// Move the servers that a host has behind gatelet: only gatelet stays in its file
    #[arg(long)]
    adopt: bool,

    /// Leave plain secrets of adopted servers as they are, instead of moving them to the keyring or
    /// the encrypted store
    #[arg(long, requires = "adopt")]
    keep_secrets: bool,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let (here, gatelet) = (LocalHosts::new(paths)?, Gatelet::new(paths)?);
    let program = OwnProgram::find()?;
    let reach = reach(args, &program, &here, &gatelet, paths)?;
    let hosts = choose_hosts(&args.choice, &here)?;
    let scope = scope(&args.choice)?;
    let is_same = |reach: &Reach| gatelet.is_same(reach);
    let mut planned = plan_each(&args.choice, &hosts, |host| {
        let server = server(&reach, &is_same);
        plan::install(host, &server, &scope, &here.environment, &here.disk)
    })?;
    planned.program = Some(program);
    let store = Secrets::at(&paths.state_directory()?);
    if args.adopt {
        let plain = if args.keep_secrets { PlainSecrets::Keep } else { PlainSecrets::Move(&store) };
        let adopted = adopt::adopt_servers(planned.changes, &here, &gatelet, &scope, &plain)?;
        planned.changes = adopted.changes;
        planned.secrets = adopted.secrets;
    } else if !gatelet.file.exists() && !planned.changes.is_empty() {
        planned.changes.insert(0, own_file(&gatelet.file, TEMPLATE.to_owned()));
    }
    Ok(carry_out("install", &planned, args.choice.consent, &here, &store)?.0)
}

/// How hosts reach this gatelet, the preferred way first.
fn reach(
    args: &Args,
    program: &OwnProgram,
    here: &LocalHosts,
    gatelet: &Gatelet,
    paths: &Paths,
) -> anyhow::Result<Vec<Reach>> {
    let command = program.path.display().to_string();
    // Hosts start programs in the directory of a project, and a `gatelet.toml` there must
    // not be used.
    let file = gatelet.file.display().to_string();
    let mut words = vec!["connect".to_owned(), "--config".to_owned(), file];
    let state = std::path::absolute(paths.state_directory()?)?;
    if state != Path::new(&here.environment.home).join(".local/state/gatelet") {
        words.extend(["--state".to_owned(), state.display().to_string()]);
    }
    let program = Reach::Program { command, args: words };
    if args.stdio || !args.http {
        return Ok(vec![program]);
    }
    // The host's file names a variable instead of holding the key.
    let key_variable = gatelet.config.auth.required.then(|| args.key_variable.clone());
    if let Some(name) = &key_variable {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty()
            || name.starts_with(|c: char| c.is_ascii_digit())
            || !name.chars().all(legal)
        {
            return Err(CliError::Usage(format!("`{name}` is no name of a variable")).into());
        }
        say(&format!(
            "`auth.required` is set: make a key with `gatelet key create NAME`, and set {name} to it where hosts start"
        ));
    }
    let url = format!("{}/mcp", gatelet.config.serve.url()).replace("://0.0.0.0:", "://127.0.0.1:");
    Ok(vec![Reach::Http { url, headers: [].into(), key_variable }, program])
}
