//! `[artifacts]`: where long results are kept, and for how long.

use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use document::tree::Path;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problems;
use super::text::{self, Environment};

/// Where results that were too long to go out are kept, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Artifacts")]
pub(crate) struct Raw {
    /// `disk` (the default): they outlive the process; `memory`: they do not; `valkey`: in the store of `[state]`, where
    /// every replica finds them. `valkey` is the default where `[state]` has a `url`.
    store: Option<Kind>,
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
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Disk,
    Memory,
    Valkey,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifacts {
    pub location: Location,
    pub bounds: artifacts::Config,
    pub raw: artifacts::Raw,
}

/// Where results are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    Memory,
    /// In the store that replicas share.
    Shared,
    /// In the state directory.
    State,
    Directory(PathBuf),
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
        true => Kind::Valkey,
        false => Kind::default(),
    };
    let location = match (raw.store.unwrap_or(usual), raw.directory) {
        (Kind::Valkey, None) if is_shared => Location::Shared,
        (Kind::Valkey, directory) => {
            let hint = match directory {
                Some(_) => "leave out `directory`, or say `store = \"disk\"`",
                None => "write where the store is: `url` under `[state]`",
            };
            problems.error(&path.key("store"), "there is no such store here", Some(hint));
            Location::Memory
        }
        (Kind::Memory, None) => Location::Memory,
        (Kind::Memory, Some(_)) => {
            let hint = "leave out `directory`, or say `store = \"disk\"`";
            problems.error(&path.key("directory"), "memory has no directory", Some(hint));
            Location::Memory
        }
        (Kind::Disk, None) => Location::State,
        (Kind::Disk, Some(directory)) => {
            Location::Directory(text::place(directory, base, environment))
        }
    };
    let usual = artifacts::Config::default();
    let life: Option<Duration> =
        raw.life.and_then(|life| problems.parse(&path.key("life"), &life, text::duration));
    let bytes = |megabytes: usize| megabytes.saturating_mul(1 << 20);
    let bounds = artifacts::Config {
        ttl: life.unwrap_or(usual.ttl),
        owner_bytes: raw.owner_megabytes.map_or(usual.owner_bytes, bytes),
        total_bytes: raw.total_megabytes.map_or(usual.total_bytes, bytes),
    };
    let raw = if raw.raw { artifacts::Raw::Kept } else { artifacts::Raw::Dropped };
    Artifacts { location, bounds, raw }
}
