//! `gatelet key`: makes, lists and revokes the API keys of callers.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use web::identity::key::{Key, KeyRing};

use super::output::Output;
use crate::exit::{CliError, Done};
use crate::key_file::{change, file, load};
use crate::paths::Paths;
use crate::secret;
use crate::terminal::{DIM, GOOD, out, paint, say};
use crate::time::unix_seconds;

/// Make, list and revoke the API keys that callers over HTTP show
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Make a key and print it, once: only its hash is kept
    Create {
        /// What the key is called: a-z, 0-9 and `-`
        name: String,
        /// A scope that its holder has; may be given several times
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<String>,
        /// A role that its holder has; may be given several times
        #[arg(long, value_name = "ROLE")]
        role: Vec<String>,
        /// A group that its holder is in; may be given several times
        #[arg(long, value_name = "GROUP")]
        group: Vec<String>,
        /// How long it is good for, such as `30d` or `12h`; for ever without
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List the keys, without their secrets
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Make a key useless from now on
    Revoke { name: String },
}

pub(crate) fn run(action: &Action, paths: &Paths) -> anyhow::Result<Done> {
    let state = paths.state_directory()?;
    let now = unix_seconds();
    match action {
        Action::Create { name, scope, role, group, expires } => {
            let lifetime = expires.as_deref().map(lifetime).transpose()?;
            let random = secret::random();
            let fresh = change(&state, |ring| {
                let fresh = ring.create(name, random, now)?;
                if let Some(key) = ring.keys.last_mut() {
                    key.scopes = scope.iter().cloned().collect();
                    key.roles = role.iter().cloned().collect();
                    key.groups = group.iter().cloned().collect();
                    key.expires = lifetime.map(|seconds| now.saturating_add(seconds));
                }
                Ok(fresh)
            })?;
            out(&fresh.secret);
            say(&paint(
                DIM,
                "Keep it now: it cannot be shown again. A running gate knows it already.",
            ));
        }
        Action::List { output } if output.is_json() => {
            out(&crate::terminal::json_text(&load(&file(&state))?.keys)?);
        }
        Action::List { .. } => {
            let ring = load(&file(&state))?;
            match ring.keys.is_empty() {
                true => say(&paint(DIM, "no keys: make one with `gatelet key create NAME`")),
                false => out(&table(&ring, now)),
            }
        }
        Action::Revoke { name } => {
            change(&state, |ring| ring.revoke(name, now))?;
            say(&format!("{} `{name}`", paint(GOOD, "revoked")));
        }
    }
    Ok(Done::Fine)
}

/// Parses a lifetime such as `30d` or `12h` into seconds.
fn lifetime(text: &str) -> Result<u64, CliError> {
    let span: Result<SignedDuration, _> = text.parse();
    let seconds = span.ok().or_else(|| days(text)).map(|span| span.as_secs());
    match seconds.and_then(|seconds| u64::try_from(seconds).ok()) {
        Some(seconds) if 0 < seconds => Ok(seconds),
        _ => Err(CliError::Usage(format!("`{text}` is no time: write `30d`, `12h` or `90m`"))),
    }
}

fn days(text: &str) -> Option<SignedDuration> {
    let n: i64 = text.strip_suffix('d')?.parse().ok()?;
    SignedDuration::try_from_hours(n.checked_mul(24)?)
}

fn table(ring: &KeyRing, now: u64) -> String {
    let row = |key: &Key| {
        let words = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
        let (scopes, roles, groups) = (words(&key.scopes), words(&key.roles), words(&key.groups));
        format!("{:<20} {:<10} {scopes:<30} {roles:<20} {groups}\n", key.name, state(key, now))
    };
    format!("{:<20} {:<10} {:<30} {:<20} {}\n", "name", "state", "scopes", "roles", "groups")
        + &ring.keys.iter().map(row).collect::<String>()
}

fn state(key: &Key, now: u64) -> &'static str {
    match key {
        Key { revoked: Some(_), .. } => "revoked",
        Key { expires: Some(end), .. } if *end <= now => "expired",
        Key { .. } => "good",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_written_in_days_hours_or_minutes() {
        assert_eq!(lifetime("30d").unwrap(), 30 * 86_400);
        assert_eq!(lifetime("12h").unwrap(), 12 * 3_600);
        assert!(lifetime("300000000000000000d").is_err());
        assert!(lifetime("soon").is_err() && lifetime("-1h").is_err() && lifetime("0d").is_err());
    }
}
