//! `gatelet content`: a CMS site as tools, served alone, checked and measured.

mod answer;
mod check;
mod serve;
mod telling;
mod token;

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;

use content::{Config, Content, OpenError};

use crate::cli::Place;
use crate::config::{Ownership, Rules};
use crate::exit::{Done, Stop};
use crate::terminal::{DIM, out, paint, say};

/// Serve the content of an Evolution CMS site, read-only, to MCP clients
///
/// Without `--database` the small sample site that comes with gatelet is used.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    Serve(Box<serve::Args>),
    /// Verify an installation: connection, tables, tools, one call of each
    Check(SiteArgs),
    /// Make, list and revoke personal access tokens
    #[command(subcommand)]
    Token(token::Action),
    /// Print the indexes that would make the tools faster on this site; nothing is changed
    Indexes(SiteArgs),
    /// Write a site of any size into an empty SQLite or MariaDB database, for measuring
    BenchSite {
        /// Where to write it, such as `sqlite:/tmp/site.sqlite`
        #[arg(long, value_name = "URL")]
        database: String,
        /// How many documents it has
        #[arg(long, value_name = "N", default_value_t = 1_000)]
        documents: u64,
    },
}

/// Which site, and how it is read.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SiteArgs {
    /// The site's database: `sqlite:FILE`, `mysql://…`, `mariadb://…` or `postgres://…`
    #[arg(long, value_name = "URL", env = "GATELET_CONTENT_DATABASE", hide_env_values = true)]
    database: Option<String>,

    /// What stands before every table name; found out when left out
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,

    /// Whose eyes callers see the site with
    #[arg(long, value_name = "RULE", default_value = "honoured")]
    ownership: Ownership,
}

impl SiteArgs {
    fn config(&self) -> Config {
        let rules = Rules { ownership: Some(self.ownership), ..Rules::default() };
        self.under(&rules)
    }

    /// The site under more rules than those that every command has.
    fn under(&self, rules: &Rules) -> Config {
        rules.config(self.database.as_deref(), self.prefix.as_deref())
    }
}

pub(crate) fn run(action: &Action, place: &Place) -> anyhow::Result<Done> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match action {
            Action::Serve(args) => serve::run(args, place).await,
            Action::Check(args) => check::run(&args.config()).await,
            Action::Token(action) => token::run(action, place).await,
            Action::Indexes(args) => indexes(&args.config()).await,
            Action::BenchSite { database, documents } => {
                content::generate::site(database, *documents).await?;
                say(&format!("wrote a site of {documents} documents"));
                Ok(Done::Fine)
            }
        }
    })
}

/// Opens the site, with the exit code that fits when it cannot be.
async fn open(config: &Config) -> Result<Content, Stop> {
    Content::open(config).await.map_err(|error| match error {
        OpenError::Unreachable(_) | OpenError::Refused(_) => Stop::NoAnswer(error.to_string()),
        OpenError::Url(_) | OpenError::NoDatabase(_) | OpenError::NoSite(_) => {
            Stop::Usage(error.to_string())
        }
    })
}

async fn indexes(config: &Config) -> anyhow::Result<Done> {
    let site = open(config).await?;
    let missing = site.missing_indexes().await?;
    if missing.is_empty() {
        say("every index that the tools can use is there");
        return Ok(Done::Fine);
    }
    for (finding, statement) in missing {
        out(&format!("-- {}\n{statement}", finding.message));
    }
    say(&paint(DIM, "Run these as a user who may; gatelet only ever reads."));
    Ok(Done::Fine)
}

/// Where tokens, tasks and keys are kept.
fn state_file(place: &Place) -> anyhow::Result<PathBuf> {
    let directory = crate::config::state_directory(place)?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    Ok(directory.join("content.sqlite"))
}

/// The time since 1970.
fn now() -> Duration {
    let now = jiff::Timestamp::now().as_millisecond();
    Duration::from_millis(u64::try_from(now).unwrap_or(0))
}
