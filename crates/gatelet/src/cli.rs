//! The command line: every command and the flags that all of them share.
//!
//! A command's own flags live beside its code in `commands/`. To add a command,
//! add its file, a variant here and an arm in [`commands::run`](crate::commands::run).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Parser, Subcommand};
use mcp::revision::Revision;

use crate::commands;

/// A small gate to any number of MCP servers.
///
/// A client sees three tools, `call`, `help` and `skill`; behind them stands
/// everything that the configured upstreams offer.
#[derive(Debug, Parser)]
#[command(
    name = "gatelet",
    version,
    long_version = LONG_VERSION.as_str(),
    disable_help_subcommand = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = EXIT_CODES,
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) place: Place,

    /// What to log, on stderr: `warn`, `info`, `debug`, or a filter such as `gatelet=debug,mcp=trace`
    #[arg(long, global = true, value_name = "FILTER", env = "GATELET_LOG")]
    pub(crate) log: Option<String>,

    /// Colours: as the terminal allows, always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: crate::terminal::Color,
}

/// Where the configuration is read and where things are remembered.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Place {
    /// The configuration: gatelet's own TOML, or the `mcpServers` JSON of another client as it is
    ///
    /// Without it gatelet reads `gatelet.toml` in the working directory or in
    /// the user's configuration directory, and runs its built-in tools when
    /// there is neither.
    #[arg(long, short, global = true, value_name = "FILE", env = "GATELET_CONFIG",
          value_parser = path())]
    pub(crate) config: Option<PathBuf>,

    /// The directory in which listings and kept results are remembered
    #[arg(long, global = true, value_name = "DIR", env = "GATELET_STATE", value_parser = path())]
    pub(crate) state: Option<PathBuf>,

    /// Where the gate listens, where a command line says so.
    #[arg(skip)]
    pub(crate) listen: Option<SocketAddr>,
}

/// A path that may be empty, as a variable that is set to nothing is.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

impl Place {
    /// Takes what is empty for what is not given.
    pub(crate) fn settle(&mut self) {
        for path in [&mut self.config, &mut self.state] {
            *path = path.take().filter(|path| !path.as_os_str().is_empty());
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(commands::serve::Args),
    Help(commands::help::Args),
    Call(commands::call::Args),
    Skill(commands::skill::Args),
    Upstreams(commands::upstreams::Args),
    Tokens(commands::tokens::Args),
    Stats(commands::stats::Args),
    #[command(subcommand)]
    Selection(commands::selection::Action),
    Eval(commands::eval::Args),
    #[command(subcommand)]
    Habits(commands::habits::Action),
    Init(commands::init::Args),
    Import(commands::import::Args),
    Config(commands::config::Args),
    Conform(Box<commands::conform::Args>),
    #[command(subcommand)]
    Key(commands::key::Action),
    Login(commands::login::Args),
    Logout(commands::login::Out),
    #[command(subcommand)]
    Trust(commands::trust::Action),
    #[command(subcommand)]
    Spec(commands::spec::Action),
    Tools(commands::tools::Args),
    #[command(subcommand)]
    Manifest(commands::manifest::Action),
    Mount(commands::mounts::MountArgs),
    Unmount(commands::mounts::UnmountArgs),
    Mounts(commands::mounts::MountsArgs),
    #[command(subcommand)]
    Content(commands::content::Action),
    Completions(commands::completions::Args),
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 it was done and the answer is an error; 2 the command line or the
configuration is wrong; 3 no answer came; 4 the machine refused (a port, a file).";

static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let revisions = Revision::ALL.map(Revision::as_str).join(", ");
    format!("{}\nMCP protocol revisions: {revisions}", env!("CARGO_PKG_VERSION"))
});

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn an_empty_path_is_none() {
        let mut cli = Cli::parse_from(["gatelet", "--config", "", "--state", "", "tokens"]);
        cli.place.settle();
        assert_eq!((cli.place.config, cli.place.state), (None, None));
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
