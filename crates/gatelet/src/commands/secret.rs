//! `gatelet secret`: stores, lists and removes the secrets that `${keyring:NAME}` in the
//! configuration stands for.

use std::io::Read;

use packages::recipe::Input;
use serde_json::json;

use super::output::Output;
use super::person;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::secrets::{SecretError, SecretLocation, Secrets};
use crate::terminal::{DIM, GOOD, WARNING, out, paint, say};

/// Keep secrets out of the configuration: `${keyring:NAME}` stands for one
///
/// They are kept in the keyring of the system where there is one, else encrypted
/// in the state directory.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Keep a secret; it is asked for, or read from standard input
    Set {
        /// What it is called, such as `github/TOKEN`
        name: String,
        /// Where to keep it [default: the keyring, where there is one]
        #[arg(long = "in", value_name = "PLACE")]
        place: Option<SecretLocation>,
    },
    /// List the names of what is kept, and which upstreams use it
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Forget a secret
    #[command(alias = "remove")]
    Rm {
        name: String,
        /// Also when an upstream uses it
        #[arg(long)]
        force: bool,
    },
}

/// The longest secret.
const MAX_BYTES: u64 = 64 << 10;

pub(crate) fn run(action: &Action, paths: &Paths) -> anyhow::Result<Done> {
    let store = Secrets::at(&paths.state_directory()?);
    match action {
        Action::Set { name, place } => set(&store, name, place.unwrap_or(store.default_location())),
        Action::List { output } => list(&store, *output, paths),
        Action::Rm { name, force } => remove(&store, name, *force, paths),
    }
}

fn set(store: &Secrets, name: &str, place: SecretLocation) -> anyhow::Result<Done> {
    let secret = read_secret(name)?;
    if secret.is_empty() {
        return Err(CliError::Usage("an empty secret is none".to_owned()).into());
    }
    store.set(name, &secret, place).map_err(usage_error)?;
    let place = match place {
        SecretLocation::Keyring => "in the keyring",
        SecretLocation::File => "encrypted in the state directory",
    };
    say(&format!(
        "{} `{name}` {place}; write ${{keyring:{name}}} in the configuration",
        paint(GOOD, "kept")
    ));
    Ok(Done::Fine)
}

/// Asks the person for the secret without showing it, or reads it from stdin.
fn read_secret(name: &str) -> anyhow::Result<String> {
    if person::is_there() {
        let input = Input {
            name: name.to_owned(),
            about: "not shown while you type".to_owned(),
            is_secret: true,
            is_required: true,
            default: None,
            choices: Vec::new(),
        };
        return Ok(person::ask_for(&input).unwrap_or_default());
    }
    let mut text = String::new();
    std::io::stdin().take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Turns what the user can mend into a usage error.
fn usage_error(error: SecretError) -> anyhow::Error {
    match error {
        SecretError::BadName(_) | SecretError::Missing(_) | SecretError::NoKeyring(_) => {
            CliError::Usage(error.to_string()).into()
        }
        SecretError::Keyring(_) | SecretError::Vault(_) | SecretError::Index(_) => error.into(),
    }
}

/// Whether the configuration names a secret.
fn is_used(name: &str, paths: &Paths) -> bool {
    let text = paths.config_file().and_then(|file| std::fs::read_to_string(file).ok());
    text.is_some_and(|text| text.contains(&format!("${{keyring:{name}}}")))
}

fn list(store: &Secrets, output: Output, paths: &Paths) -> anyhow::Result<Done> {
    let names = store.list().map_err(usage_error)?;
    if output.is_json() {
        let rows = names.iter().map(
            |(name, place)| json!({"name": name, "place": place, "used": is_used(name, paths)}),
        );
        out(&crate::terminal::json_text(&rows.collect::<Vec<_>>())?);
        return Ok(Done::Fine);
    }
    for (name, place) in &names {
        let place = match place {
            SecretLocation::Keyring => "keyring",
            SecretLocation::File => "file",
        };
        let unused = if is_used(name, paths) { String::new() } else { paint(WARNING, " not used") };
        out(&format!("{name} {}{unused}", paint(DIM, place)));
    }
    if names.is_empty() {
        say(&paint(DIM, "nothing is kept; `gatelet secret set NAME` keeps a secret"));
    }
    Ok(Done::Fine)
}

fn remove(store: &Secrets, name: &str, force: bool, paths: &Paths) -> anyhow::Result<Done> {
    let is_kept = store.list().map_err(usage_error)?.contains_key(name);
    if is_kept && !force && is_used(name, paths) {
        let why = format!("the configuration uses `{name}`; --force forgets it all the same");
        return Err(CliError::Refused(why).into());
    }
    if !store.remove(name).map_err(usage_error)? {
        return Err(CliError::Usage(format!("no secret is called `{name}`")).into());
    }
    say(&format!("{} `{name}`", paint(GOOD, "forgot")));
    Ok(Done::Fine)
}
