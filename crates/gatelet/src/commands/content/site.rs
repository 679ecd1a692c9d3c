//! The flags that choose a CMS site, opening it, and the file of its tokens.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use config::{Ownership, Rules};
use content::{Config, Content, OpenError};

use crate::exit::CliError;
use crate::paths::Paths;

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
    #[arg(long, value_name = "RULE", default_value = "honoured", value_parser = ownership())]
    pub(super) ownership: Ownership,
}

/// Parses an ownership rule by its name in the configuration.
fn ownership() -> impl TypedValueParser<Value = Ownership> {
    let values = Ownership::ALL.map(|one| PossibleValue::new(one.name()).help(one.description()));
    PossibleValuesParser::new(values).try_map(|name| {
        let known = Ownership::ALL.into_iter().find(|one| one.name() == name);
        known.ok_or("it is one of the possible values")
    })
}

impl SiteArgs {
    pub(super) fn config(&self) -> Config {
        let rules = Rules { ownership: Some(self.ownership), ..Rules::default() };
        self.config_with(&rules)
    }

    /// The configuration of the site with these rules.
    pub(super) fn config_with(&self, rules: &Rules) -> Config {
        rules.config(self.database.as_deref(), self.prefix.as_deref())
    }
}

/// Opens the site; the error has the fitting exit code.
pub(super) async fn open(config: &Config) -> Result<Content, CliError> {
    Content::open(config).await.map_err(|error| match error {
        OpenError::Unreachable(_) | OpenError::Refused(_) => CliError::NoAnswer(error.to_string()),
        OpenError::Url(_) | OpenError::NoDatabase(_) | OpenError::NoSite(_) => {
            CliError::Usage(error.to_string())
        }
    })
}

/// The database file of tokens, tasks and keys in the state directory.
pub(super) fn state_file(paths: &Paths) -> anyhow::Result<PathBuf> {
    let directory = paths.state_directory()?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    Ok(directory.join("content.sqlite"))
}
