//! `[state]`: the Valkey or Redis store in which several replicas share state.

use std::path::{Path as FilePath, PathBuf};

use document::tree::Path;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::limits::OnLoss;
use valkey::address::Address;
use valkey::{Eviction, Limits};

use super::problem::Problems;
use super::text::{self, Environment};

/// Where what several replicas of gatelet share is kept. Files of this machine, for one gatelet, when left out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "State")]
pub(crate) struct Raw {
    /// A Valkey or Redis of version 7 or newer: `valkey://host:6379`, `rediss://host:6379` with TLS,
    /// `valkey+sentinel://one:26379,two:26379/service`, `valkey+cluster://one:6379,two:6379`. May hold `${env:NAME}`
    /// and the like.
    url: Option<String>,
    /// The user of the store, where it has some.
    user: Option<String>,
    /// The password, such as `${env:VALKEY_PASSWORD}` or `${keyring:valkey}`.
    password: Option<String>,
    /// Who vouches for the store's certificate, as a PEM file relative to this one. Those whom this machine trusts
    /// when left out.
    ca: Option<PathBuf>,
    /// Signs what replicas tell each other over the store, such as `${keyring:gatelet-state}`: 16 characters or more,
    /// the same at all replicas. Whoever can write to the store is believed when left out.
    key: Option<String>,
    /// What every key begins with, so that several gates may share a store. `gatelet:` when left out.
    prefix: Option<String>,
    /// What is done with a store that drops keys when it is full: `refuse` (the default) or `accept`.
    eviction: Option<RawEviction>,
    /// What becomes of limits while the store is away: `local` (the default), each replica counts alone; `refuse`:
    /// calls that have a limit are refused.
    on_loss: Option<RawOnLoss>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RawEviction {
    Refuse,
    Accept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RawOnLoss {
    Local,
    Refuse,
}

/// The validated `[state]` section: the store that replicas share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedState {
    pub store: valkey::Config,
    /// What becomes of limits while the store cannot be reached.
    pub on_loss: OnLoss,
    /// Signs the messages between replicas.
    pub key: Option<StateKey>,
}

/// The key that signs messages between replicas; never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct StateKey(pub String);

impl std::fmt::Debug for StateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateKey")
    }
}

/// The fewest characters of a key.
const KEY_LENGTH: usize = 16;

pub(crate) fn parse(
    raw: Raw,
    base: &FilePath,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Option<SharedState> {
    let path = Path::default().key("state");
    let Some(url) = &raw.url else {
        if raw != Raw::default() {
            let hint = "write where the store is, such as `url = \"valkey://localhost:6379\"`";
            problems.error(&path, "needs `url`", Some(hint));
        }
        return None;
    };
    let mut fill = |key: &str, text: &str| {
        problems
            .parse(&path.key(key), text, |text| text::fill_placeholders(text, base, environment))
    };
    let url = fill("url", url)?;
    let user = raw.user.and_then(|user| fill("user", &user));
    let password = raw.password.and_then(|password| fill("password", &password));
    let key = raw.key.and_then(|key| fill("key", &key));
    if key.as_ref().is_some_and(|key| key.len() < KEY_LENGTH) {
        let hint = "make one with `openssl rand -hex 32`";
        problems.error(&path.key("key"), "needs 16 characters or more", Some(hint));
    }
    let authority = match raw.ca.map(|file| text::resolve_path(file, base, environment)) {
        None => None,
        Some(file) => Some(problems.parse(&path.key("ca"), "", |_| text::read_pem(&file))?),
    };
    let address = problems.parse(&path.key("url"), &url, Address::parse)?;
    let address = address.with_user(user).with_password(password).with_authority(authority);
    let eviction = match raw.eviction.unwrap_or(RawEviction::Refuse) {
        RawEviction::Refuse => Eviction::Refuse,
        RawEviction::Accept => Eviction::Accept,
    };
    let on_loss = match raw.on_loss.unwrap_or(RawOnLoss::Local) {
        RawOnLoss::Local => OnLoss::Local,
        RawOnLoss::Refuse => OnLoss::Refuse,
    };
    let prefix = raw.prefix.unwrap_or_else(|| "gatelet:".to_owned());
    let store = valkey::Config { address, prefix, eviction, limits: Limits::default() };
    Some(SharedState { store, on_loss, key: key.map(StateKey) })
}
