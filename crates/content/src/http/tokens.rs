//! Personal access tokens: created, listed, revoked and looked up; stored as a hash.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::RngExt;
use rand::distr::Alphanumeric;
use sha2::{Digest, Sha256};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use tool::hex;

use super::state::{State, StateError, seconds};

/// The prefix of every personal token.
pub(super) const TOKEN_PREFIX: &str = "emcp_";

/// The number of random characters after the prefix.
const N_RANDOM: usize = 40;

/// How many characters of a token are stored, for people to recognise it by.
const N_SHOWN: usize = 12;

/// How often the time of last use is updated, in seconds.
const LAST_USED_INTERVAL: i64 = 60;

/// A token to be created.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub name: String,
    /// The CMS user it acts for.
    pub user_id: Option<i64>,
    pub scopes: BTreeSet<String>,
    /// How long the token is valid; `None` for ever.
    pub expires: Option<Duration>,
}

/// A token as it is stored, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub id: i64,
    pub user_id: Option<i64>,
    pub name: String,
    /// The beginning of its text.
    pub prefix: String,
    pub scopes: BTreeSet<String>,
    /// In seconds since 1970, as the other times.
    pub last_used_at: Option<i64>,
    pub expires_at: Option<i64>,
    pub revoked_at: Option<i64>,
    pub created_at: i64,
}

impl Token {
    /// The token's scopes and those that they imply: `mcp:call` implies `mcp:read`, and
    /// `mcp:write` implies both.
    pub(super) fn effective_scopes(&self) -> BTreeSet<String> {
        let mut scopes = self.scopes.clone();
        if scopes.contains("mcp:write") {
            scopes.insert("mcp:call".to_owned());
        }
        if scopes.contains("mcp:call") {
            scopes.insert("mcp:read".to_owned());
        }
        scopes
    }
}

impl State {
    /// Makes a token. The text is returned here and never again.
    pub async fn create_token(
        &self,
        new: &NewToken,
        now: Duration,
    ) -> Result<(String, Token), StateError> {
        let random: String =
            rand::rng().sample_iter(Alphanumeric).take(N_RANDOM).map(char::from).collect();
        let text = format!("{TOKEN_PREFIX}{random}");
        let expires_at = new.expires.map(|after| seconds(now + after));
        let scopes: Vec<&str> = new.scopes.iter().map(String::as_str).collect();
        let row = sqlx::query(
            "insert into emcp_tokens \
             (user_id, name, token_prefix, token_hash, scopes, expires_at, created_at) \
             values (?, ?, ?, ?, ?, ?, ?) returning *",
        )
        .bind(new.user_id)
        .bind(&new.name)
        .bind(&text[..N_SHOWN])
        .bind(hash(&text))
        .bind(scopes.join(","))
        .bind(expires_at)
        .bind(seconds(now))
        .fetch_one(&self.0)
        .await?;
        Ok((text, parse_row(&row)?))
    }

    /// Every token, the oldest first.
    pub async fn list_tokens(&self) -> Result<Vec<Token>, StateError> {
        let rows = sqlx::query("select * from emcp_tokens order by id").fetch_all(&self.0).await?;
        rows.iter().map(parse_row).collect()
    }

    /// Revokes a token by its id, and returns whether there was one to revoke.
    pub async fn revoke_token(&self, id: i64, now: Duration) -> Result<bool, StateError> {
        let done = sqlx::query(
            "update emcp_tokens set revoked_at = ? where id = ? and revoked_at is null",
        )
        .bind(seconds(now))
        .bind(id)
        .execute(&self.0)
        .await?;
        Ok(done.rows_affected() > 0)
    }
}

/// Finds the token with this text, unless it is expired or revoked.
pub(super) async fn find(
    state: &State,
    text: &str,
    now: Duration,
) -> Result<Option<Token>, StateError> {
    let random = text.strip_prefix(TOKEN_PREFIX).unwrap_or_default();
    if random.len() != N_RANDOM || !random.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(None);
    }
    let now = seconds(now);
    let row = sqlx::query(
        "select * from emcp_tokens where token_hash = ? and revoked_at is null \
         and (expires_at is null or expires_at > ?)",
    )
    .bind(hash(text))
    .bind(now)
    .fetch_optional(&state.0)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let token = parse_row(&row)?;
    if token.last_used_at.is_none_or(|last| now - last >= LAST_USED_INTERVAL) {
        sqlx::query("update emcp_tokens set last_used_at = ? where id = ?")
            .bind(now)
            .bind(token.id)
            .execute(&state.0)
            .await?;
    }
    Ok(Some(token))
}

fn parse_row(row: &SqliteRow) -> Result<Token, StateError> {
    let scopes: String = row.try_get("scopes")?;
    let filled = scopes.split(',').map(str::trim).filter(|scope| !scope.is_empty());
    Ok(Token {
        id: row.try_get("id")?,
        user_id: row.try_get("user_id")?,
        name: row.try_get("name")?,
        prefix: row.try_get("token_prefix")?,
        scopes: filled.map(str::to_owned).collect(),
        last_used_at: row.try_get("last_used_at")?,
        expires_at: row.try_get("expires_at")?,
        revoked_at: row.try_get("revoked_at")?,
        created_at: row.try_get("created_at")?,
    })
}

/// Returns the SHA-256 in hexadecimal. Tokens are random, so a slower hash is not needed.
pub(super) fn hash(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes()))
}
