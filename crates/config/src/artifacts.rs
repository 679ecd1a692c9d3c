//! `[artifacts]`: where long results are kept, and for how long.

use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use document::tree::Path;
use objects::BucketPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::problem::Problems;
use super::text::{self, Environment};

/// Where results that were too long to go out are kept, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Artifacts")]
pub(crate) struct Raw {
    /// `disk` (the default): they outlive the process; `memory`: they do not; `valkey`: in the store of `[state]`, where
    /// every replica finds them; `s3://bucket/prefix`: in an object store, for many or large ones (`[artifacts.s3]`);
    /// `dir:/path`: in a directory that replicas share. `valkey` is the default where `[state]` has a `url`.
    store: Option<String>,
    /// The directory on disk, relative to this file. `artifacts` in the state directory when left out.
    directory: Option<PathBuf>,
    /// How long a result is kept. `1h` when left out.
    life: Option<String>,
    /// How much is kept for one caller; the least recently used goes first. 64 when left out.
    #[schemars(range(min = 1))]
    owner_megabytes: Option<usize>,
    /// How much is kept in all. 256 when left out.
    #[schemars(range(min = 1))]
    total_megabytes: Option<usize>,
    /// Whether results are kept as they came, too, beside what may be looked at with secrets masked. Off
    /// when left out. Nobody reads them through gatelet: they stand in the files of `disk`, under `raw`.
    #[serde(default)]
    raw: bool,
    /// How the object store is reached that `store` names.
    s3: Option<RawObjects>,
}

/// How an object store is reached. Amazon's own, with what its programs find in the environment, when left out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ObjectStore")]
struct RawObjects {
    /// Where it listens, such as `https://minio.example:9000`.
    endpoint: Option<String>,
    /// `us-east-1` when left out.
    region: Option<String>,
    /// Whether the bucket stands in the path of an address and not in its host. On where there is an `endpoint`.
    path_style: Option<bool>,
    /// The access key, such as `${env:S3_KEY}`. May hold `${keyring:NAME}` and the like, as the others.
    access_key: Option<String>,
    secret_key: Option<String>,
    /// For keys that are good for a while.
    session_token: Option<String>,
    /// Who vouches for its certificate, as a PEM file relative to this one.
    ca: Option<PathBuf>,
}

/// The parsed `store` key.
enum StoreKind {
    Disk,
    Memory,
    Valkey,
    Objects(BucketPath),
    SharedDirectory(PathBuf),
}

impl StoreKind {
    fn parse(text: &str) -> Result<StoreKind, String> {
        match text {
            "disk" => Ok(StoreKind::Disk),
            "memory" => Ok(StoreKind::Memory),
            "valkey" => Ok(StoreKind::Valkey),
            _ if text.starts_with("s3:") => {
                BucketPath::parse(text).map(StoreKind::Objects).map_err(|error| error.to_string())
            }
            _ => match text.strip_prefix("dir:") {
                Some(path) if !path.is_empty() => Ok(StoreKind::SharedDirectory(path.into())),
                Some(_) | None => Err(format!(
                    "`{text}` is no store: write `disk`, `memory`, `valkey`, `s3://bucket/prefix` or \
                     `dir:/path`"
                )),
            },
        }
    }
}

/// The validated `[artifacts]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifacts {
    pub location: Location,
    /// How long and how much is stored.
    pub bounds: artifacts::Config,
    /// Whether unmasked results are stored, too.
    pub raw: artifacts::RawResults,
}

/// Where results are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    Memory,
    /// In the store of `[state]` that replicas share.
    Shared,
    /// In the state directory.
    State,
    Directory(PathBuf),
    /// In a directory that other replicas use as well.
    SharedDirectory(PathBuf),
    Objects(Box<ObjectStore>),
}

/// An object store and the certificates, in PEM, that may have signed its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectStore {
    pub config: objects::Config,
    pub authority: Option<Vec<u8>>,
}

pub(crate) fn parse(
    raw: Raw,
    is_shared: bool,
    base: &FilePath,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Artifacts {
    let path = Path::default().key("artifacts");
    let usual = match is_shared && raw.directory.is_none() {
        true => StoreKind::Valkey,
        false => StoreKind::Disk,
    };
    let kind = raw.store.map(|store| problems.parse(&path.key("store"), &store, StoreKind::parse));
    let kind = kind.map_or(Some(usual), |kind| kind).unwrap_or(StoreKind::Memory);
    if !matches!(kind, StoreKind::Objects(_)) && raw.s3.is_some() {
        let hint = "say `store = \"s3://bucket/prefix\"`, or leave it out";
        problems.error(&path.key("s3"), "there is no object store here", Some(hint));
    }
    if !matches!(kind, StoreKind::Disk) && raw.directory.is_some() {
        let hint = "leave out `directory`, or say `store = \"disk\"`";
        problems.error(&path.key("directory"), "this store has no directory", Some(hint));
    }
    let location = match kind {
        StoreKind::Valkey if is_shared => Location::Shared,
        StoreKind::Valkey => {
            let hint = "write where the store is: `url` under `[state]`";
            problems.error(&path.key("store"), "there is no such store here", Some(hint));
            Location::Memory
        }
        StoreKind::Memory => Location::Memory,
        StoreKind::Disk => match raw.directory {
            None => Location::State,
            Some(directory) => {
                Location::Directory(text::resolve_path(directory, base, environment))
            }
        },
        StoreKind::SharedDirectory(directory) => {
            Location::SharedDirectory(text::resolve_path(directory, base, environment))
        }
        StoreKind::Objects(place) => {
            let raw = raw.s3.unwrap_or_default();
            let store = object_store(place, raw, base, environment, problems);
            store.map_or(Location::Memory, |store| Location::Objects(Box::new(store)))
        }
    };
    let usual = artifacts::Config::default();
    let life: Option<Duration> =
        raw.life.and_then(|life| problems.parse(&path.key("life"), &life, text::parse_duration));
    let bytes = |megabytes: usize| megabytes.saturating_mul(1 << 20);
    let bounds = artifacts::Config {
        ttl: life.unwrap_or(usual.ttl),
        owner_bytes: raw.owner_megabytes.map_or(usual.owner_bytes, bytes),
        total_bytes: raw.total_megabytes.map_or(usual.total_bytes, bytes),
    };
    let raw = if raw.raw { artifacts::RawResults::Kept } else { artifacts::RawResults::Dropped };
    Artifacts { location, bounds, raw }
}

/// Parses `[artifacts.s3]`.
fn object_store(
    place: BucketPath,
    raw: RawObjects,
    base: &FilePath,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Option<ObjectStore> {
    let path = Path::default().key("artifacts").key("s3");
    let mut fill = |key: &str, text: Option<String>| {
        let fill = |text: &str| text::fill_placeholders(text, base, environment);
        text.map(|text| problems.parse(&path.key(key), &text, fill))
    };
    let endpoint = fill("endpoint", raw.endpoint);
    let region = fill("region", raw.region);
    let key = fill("access_key", raw.access_key);
    let secret = fill("secret_key", raw.secret_key);
    let token = fill("session_token", raw.session_token);
    let credentials = match (key, secret) {
        (None, None) => None,
        (Some(key), Some(secret)) => {
            let token = token.map_or(Some(None), |token| token.map(Some))?;
            Some(objects::Credentials { key: key?, secret: secret?, token })
        }
        (Some(_), None) | (None, Some(_)) => {
            let hint = "write both, or leave out both to take them from the environment";
            problems.error(&path, "needs `access_key` and `secret_key`", Some(hint));
            return None;
        }
    };
    let endpoint = match endpoint {
        None => None,
        Some(text) => Some(problems.parse(&path.key("endpoint"), &text?, endpoint_url)?),
    };
    let authority = match raw.ca.map(|file| text::resolve_path(file, base, environment)) {
        None => None,
        Some(file) => Some(problems.parse(&path.key("ca"), "", |_| text::read_pem(&file))?),
    };
    let is_path = raw.path_style.unwrap_or(endpoint.is_some());
    let style = if is_path { objects::Style::Path } else { objects::Style::Host };
    let region = region.map_or(Some(objects::Config::REGION.to_owned()), |region| region)?;
    let limit = objects::Config::LIMIT;
    let config = objects::Config { place, region, endpoint, style, credentials, limit };
    Some(ObjectStore { config, authority })
}

fn endpoint_url(text: &str) -> Result<Url, String> {
    let wrong = || format!("`{text}` is no endpoint: write it like `https://minio.example:9000`");
    let url = Url::parse(text).map_err(|_| wrong())?;
    let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
    let is_bare = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if is_http && is_bare { Ok(url) } else { Err(wrong()) }
}
