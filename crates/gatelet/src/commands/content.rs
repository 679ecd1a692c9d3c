//! `gatelet content`: serves the content of a CMS site as tools, and checks such a site.

mod answer;
mod check;
mod named;
mod serve;
mod site;
mod token;

use content::Config;

use crate::exit::Done;
use crate::paths::Paths;
use crate::terminal::{DIM, out, paint, say};
use site::{SiteArgs, open};

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

pub(crate) fn run(action: &Action, paths: &Paths) -> anyhow::Result<Done> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match action {
            Action::Serve(args) => serve::run(args, paths).await,
            Action::Check(args) => check::run(&args.config()).await,
            Action::Token(action) => token::run(action, paths).await,
            Action::Indexes(args) => indexes(&args.config()).await,
            Action::BenchSite { database, documents } => {
                content::generate::site(database, *documents).await?;
                say(&format!("wrote a site of {documents} documents"));
                Ok(Done::Fine)
            }
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
