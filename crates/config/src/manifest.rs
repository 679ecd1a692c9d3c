//! `[manifest]`: the public description of this gatelet at `/.well-known/cash-mcp.yaml`.

use std::path::{Path as FilePath, PathBuf};

use document::tree::Path;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::manifest::sign::SecretKey;

use super::problem::Problems;

/// What gatelet says of itself to anybody, at `/.well-known/cash-mcp.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Manifest")]
pub(crate) struct Raw {
    /// Who runs this gatelet. `gatelet` when left out.
    publisher: Option<String>,
    copyright: Option<String>,
    /// Where it is explained how to get credentials.
    docs_url: Option<String>,
    /// For how many seconds others may keep the manifest. 3600 when left out.
    cache_ttl: Option<u64>,
    /// A key made by `gatelet manifest keygen` that signs the manifest, relative to this file.
    key: Option<PathBuf>,
}

/// The validated `[manifest]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Who runs this gatelet.
    pub publisher: String,
    pub copyright: Option<String>,
    pub docs_url: Option<String>,
    /// For how many seconds others may cache the manifest.
    pub cache_ttl: Option<u64>,
    /// The secret key that signs the manifest, as text.
    pub key: Option<String>,
}

pub(crate) fn parse(raw: Raw, base: &FilePath, problems: &mut Problems) -> Manifest {
    let path = Path::default().key("manifest").key("key");
    let key = raw.key.and_then(|file| {
        let file = base.join(file);
        let shown = file.display();
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("`{shown}` cannot be read: {error}"));
        let key = text.and_then(|text| match SecretKey::parse(&text) {
            Ok(_) => Ok(text),
            Err(_) => Err(format!("`{shown}` holds no signing key")),
        });
        let hint = "make one with `gatelet manifest keygen FILE`";
        key.map_err(|message| problems.error(&path, message, Some(hint))).ok()
    });
    Manifest {
        publisher: raw.publisher.unwrap_or_else(|| "gatelet".to_owned()),
        copyright: raw.copyright,
        docs_url: raw.docs_url,
        cache_ttl: raw.cache_ttl,
        key,
    }
}
