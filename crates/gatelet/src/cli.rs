//! The command line: one command, and the flags that all commands share.
//!
//! The commands, and the flags of each, are in `commands/`.

mod groups;

use std::ffi::OsString;
use std::sync::LazyLock;

use clap::Parser;
use mcp::revision::Revision;

use crate::commands::Command;
use crate::paths::Paths;
use crate::terminal::ColorMode;

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
    help_template = HELP.as_str(),
    after_help = EXIT_CODES,
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) paths: Paths,

    /// What to log, on stderr: `warn`, `info`, `debug`, or a filter such as `gatelet=debug,mcp=trace`
    #[arg(long, global = true, value_name = "FILTER", env = "GATELET_LOG")]
    pub(crate) log: Option<String>,

    /// Colours: as the terminal allows, always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorMode,
}

impl Cli {
    /// Parses a command line. If it is wrong, prints why and ends the process.
    pub(crate) fn parse_words(words: &[OsString]) -> Cli {
        let mut cli = Cli::parse_from(words);
        // After a program, `gatelet conform` takes all options for the program's. After a
        // URL they can only be ours, so the line is parsed again with them before it.
        if let Command::Conform(args) = &cli.command
            && let Some(words) = args.options_first(words)
            && let again = Cli::try_parse_from(words).unwrap_or_else(|error| error.exit())
            && let Command::Conform(other) = &again.command
            && other.is_for_target_of(args)
        {
            cli = again;
        }
        cli.paths = cli.paths.without_empty();
        cli
    }
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 it ran, and its result is an error; 2 the command line or the
configuration is wrong; 3 no answer came; 4 the machine refused (a port, a file).";

static HELP: LazyLock<String> = LazyLock::new(groups::help_template);

static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let revisions = Revision::ALL.map(Revision::as_str).join(", ");
    format!("{}\nMCP protocol revisions: {revisions}", env!("CARGO_PKG_VERSION"))
});

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn read(line: &str) -> Cli {
        Cli::parse_words(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    fn conform(line: &str) -> Box<crate::commands::conform::Args> {
        let Command::Conform(args) = read(line).command else { panic!("conform") };
        args
    }

    #[test]
    fn options_of_a_url_may_stand_on_either_side_of_it() {
        let args = conform(
            "gatelet conform --role dynamic-aggregator http://h/mcp --trial a.b --brief --header A:b",
        );
        assert_eq!(args.target, ["http://h/mcp"]);
        assert!(
            args.brief && matches!(args.role, crate::commands::conform::RoleArg::DynamicAggregator)
        );
        assert_eq!(args.trial.unwrap().to_string(), "a.b");
        assert_eq!(args.headers, [("A".to_owned(), "b".to_owned())]);
        let more = conform("gatelet conform http://h/mcp more");
        assert_ne!(more.target.len(), 1, "a URL takes no further words");
    }

    #[test]
    fn options_after_a_program_are_its_own() {
        let args = conform("gatelet conform --brief npx -y server --format json");
        assert_eq!(args.target, ["npx", "-y", "server", "--format", "json"]);
        assert!(args.brief && !args.is_json());
    }

    #[test]
    fn an_empty_path_is_none() {
        let cli = read("gatelet --config= --state= tokens");
        assert_eq!((cli.paths.config, cli.paths.state), (None, None));
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
