//! `gatelet content token`: makes, lists and revokes personal access tokens of a CMS site.

use std::collections::BTreeSet;
use std::time::Duration;

use content::http::{NewToken, State, Token};

use super::super::output::Output;
use super::site::state_file;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::{DIM, GOOD, out, paint, say};
use crate::time::since_epoch;

const SCOPES: [&str; 5] = ["mcp:read", "mcp:call", "mcp:write", "mcp:admin", "*"];

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Make a token and print it, once: only its hash is kept
    Create {
        /// What the token is for
        name: String,
        /// The id of the CMS user it acts for; private documents then follow that user's rights
        #[arg(long, value_name = "ID")]
        owner: Option<i64>,
        /// What its holder may do
        #[arg(
            long,
            value_name = "SCOPES",
            value_delimiter = ',',
            default_value = "mcp:read,mcp:call"
        )]
        scopes: Vec<String>,
        /// How many days it is good for; for ever without
        #[arg(long, value_name = "DAYS")]
        expires: Option<u32>,
    },
    /// List the tokens, without their secrets
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Make a token useless from now on
    Revoke {
        /// Its id, as `list` shows it
        id: i64,
    },
}

pub(super) async fn run(action: &Action, paths: &Paths) -> anyhow::Result<Done> {
    let state = State::open(&state_file(paths)?).await?;
    match action {
        Action::Create { name, owner, scopes, expires } => {
            let scopes: BTreeSet<String> = scopes.iter().map(|one| one.trim().to_owned()).collect();
            if let Some(odd) = scopes.iter().find(|scope| !SCOPES.contains(&scope.as_str())) {
                let message = format!("`{odd}` is no scope; there are {}", SCOPES.join(", "));
                return Err(CliError::Usage(message).into());
            }
            if name.is_empty() || name.len() > 100 {
                let message = "a token's name has 1 to 100 bytes".to_owned();
                return Err(CliError::Usage(message).into());
            }
            if owner.is_some_and(|owner| owner < 1) {
                let message = "`--owner` takes the id of a user of the site, from 1 up; leave it \
                               out for a token without an owner";
                return Err(CliError::Usage(message.to_owned()).into());
            }
            if *expires == Some(0) {
                let message = "`--expires` takes a number of days, at least one day; leave it out \
                               for a token that is good for ever";
                return Err(CliError::Usage(message.to_owned()).into());
            }
            let expires = expires.map(|days| Duration::from_secs(u64::from(days) * 86_400));
            let new = NewToken { name: name.clone(), user_id: *owner, scopes, expires };
            let (text, token) = state.create_token(&new, since_epoch()).await?;
            out(&text);
            let note = format!(
                "Token {}. Keep it now: it cannot be shown again. A running server knows it already.",
                token.id
            );
            say(&paint(DIM, note));
        }
        Action::List { output } => {
            let tokens = state.list_tokens().await?;
            if output.is_json() {
                let all: Vec<_> = tokens.iter().map(as_json).collect();
                out(&crate::terminal::json_text(&all)?);
            } else if tokens.is_empty() {
                let none = "no tokens: make one with `gatelet content token create NAME`";
                say(&paint(DIM, none));
            } else {
                out(&table(&tokens));
            }
        }
        Action::Revoke { id } => {
            if !state.revoke_token(*id, since_epoch()).await? {
                return Err(CliError::Usage(format!("there is no token {id} to revoke")).into());
            }
            say(&format!("{} token {id}", paint(GOOD, "revoked")));
        }
    }
    Ok(Done::Fine)
}

fn as_json(token: &Token) -> serde_json::Value {
    serde_json::json!({
        "id": token.id,
        "name": token.name,
        "prefix": token.prefix,
        "owner": token.user_id,
        "scopes": token.scopes,
        "created": time(Some(token.created_at)),
        "last_used": time(token.last_used_at),
        "expires": time(token.expires_at),
        "revoked": time(token.revoked_at),
    })
}

fn table(tokens: &[Token]) -> String {
    let row = |token: &Token| {
        let scopes: Vec<&str> = token.scopes.iter().map(String::as_str).collect();
        let owner = token.user_id.map_or_else(|| "-".to_owned(), |id| id.to_string());
        let state = match (token.revoked_at, token.expires_at) {
            (Some(_), _) => "revoked".to_owned(),
            (None, Some(at)) => format!("until {}", time(Some(at)).unwrap_or_default()),
            (None, None) => "good".to_owned(),
        };
        format!(
            "{:>4}  {:16}  {}…  owner {owner:>4}  {}  {state}",
            token.id,
            token.name,
            token.prefix,
            scopes.join(",")
        )
    };
    tokens.iter().map(row).collect::<Vec<_>>().join("\n")
}

fn time(seconds: Option<i64>) -> Option<String> {
    jiff::Timestamp::from_second(seconds?).ok().map(|time| time.to_string())
}
