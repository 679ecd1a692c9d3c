//! Looks up servers in an MCP registry over HTTP, with a cache on disk that also bridges
//! outages.

use std::path::{Path, PathBuf};

use packages::registry::{self as answers, Entry, OFFICIAL, Page};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use store::file::{Safety, replace};

use crate::exit::CliError;
use crate::fetch;
use crate::terminal::{WARNING, foreign, paint, say};
use crate::time::unix_seconds;

/// The flag that chooses the registry.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RegistryArgs {
    /// The registry in which servers are looked up
    #[arg(long, value_name = "URL", env = "GATELET_REGISTRY", default_value = OFFICIAL)]
    registry: Url,
}

/// How long a cached answer is used without asking again.
const FRESH_SECONDS: u64 = 3600;
/// The longest answer.
const MAX_BYTES: usize = 8 << 20;
/// How many pages of a search are requested.
const MAX_PAGES: usize = 3;
/// How many answers are cached.
const MAX_CACHED: usize = 200;

/// A registry with a cache.
pub(super) struct Registry {
    base: Url,
    /// The directory of the cache.
    cache: PathBuf,
}

/// A cached answer, and when it came in seconds since 1970.
#[derive(Serialize, Deserialize)]
struct CachedAnswer {
    url: String,
    at: u64,
    body: String,
}

impl Registry {
    pub(super) fn new(args: &RegistryArgs, state: &Path) -> Registry {
        Registry { base: args.registry.clone(), cache: state.join("registry") }
    }

    /// The servers that match the words, the best first.
    pub(super) async fn search(&self, words: &[String]) -> anyhow::Result<Vec<Entry>> {
        let whole = words.join(" ");
        let mut found = match self.pages(&whole).await {
            Ok(found) => found,
            Err(error) => match self.cached_search_results() {
                entries if entries.is_empty() => return Err(error),
                entries => {
                    say(&paint(
                        WARNING,
                        foreign(&format!("{error}; looking in what was found before")),
                    ));
                    let fits = |entry: &Entry| {
                        let text = format!("{} {}", entry.name, entry.description).to_lowercase();
                        words.iter().any(|word| text.contains(&word.to_lowercase()))
                    };
                    entries.into_iter().filter(fits).collect()
                }
            },
        };
        // The registry searches for the whole text, so each word is tried too.
        if found.is_empty() && 1 < words.len() {
            for word in words.iter().filter(|word| 2 < word.len()).take(4) {
                found.extend(self.pages(word).await.unwrap_or_default());
            }
        }
        Ok(answers::rank(found, words))
    }

    /// Looks up one server, in the given version or the latest.
    pub(super) async fn server(&self, name: &str, version: Option<&str>) -> anyhow::Result<Entry> {
        let url = answers::version_url(&self.base, name, version);
        let body = self.get(&url).await?;
        let entry = answers::parse_server(&body).ok().flatten();
        let missing = || {
            CliError::Usage(format!("the registry has no server `{name}`; see `gatelet search`"))
        };
        Ok(entry.ok_or_else(missing)?)
    }

    async fn pages(&self, text: &str) -> anyhow::Result<Vec<Entry>> {
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..MAX_PAGES {
            let url = answers::search_url(&self.base, text, cursor.as_deref());
            let body = self.get(&url).await?;
            let Page { entries, next } = answers::parse_page(&body).map_err(|_| {
                CliError::NoAnswer(format!("{} is no registry of servers", self.base))
            })?;
            found.extend(entries);
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        Ok(found)
    }

    /// The answer at a URL: from the cache while it is fresh or the registry does not answer.
    async fn get(&self, url: &Url) -> anyhow::Result<String> {
        let cached = self.cached(url);
        let is_fresh =
            |cached: &&CachedAnswer| unix_seconds().saturating_sub(cached.at) < FRESH_SECONDS;
        if let Some(cached) = cached.as_ref().filter(is_fresh) {
            return Ok(cached.body.clone());
        }
        let fetched = fetch::get(url, "application/json", MAX_BYTES, None).await;
        let why = match fetched {
            Ok(fetched) if fetched.status == 200 => {
                self.store(url, &fetched.body);
                return Ok(fetched.body);
            }
            Ok(fetched) if fetched.status == 404 => {
                return Err(CliError::Usage(format!(
                    "the registry {} does not have that",
                    self.base
                ))
                .into());
            }
            Ok(fetched) => format!("it answers with status {}", fetched.status),
            Err(error) => format!("{error:#}"),
        };
        match cached {
            Some(cached) => {
                let hours = unix_seconds().saturating_sub(cached.at) / 3600;
                let note = format!("the registry cannot be asked ({why}): this is {hours} hours old");
                say(&paint(WARNING, foreign(&note)));
                Ok(cached.body)
            }
            None => Err(CliError::NoAnswer(format!(
                "the registry {} cannot be asked: {why}. Servers can be added without it: see `gatelet add --help`",
                self.base
            ))
            .into()),
        }
    }

    fn file(&self, url: &Url) -> PathBuf {
        let digest = packages::bundle::digest(url.as_str().as_bytes());
        self.cache.join(format!("{}.json", &digest[..24]))
    }

    fn cached(&self, url: &Url) -> Option<CachedAnswer> {
        let cached: CachedAnswer =
            serde_json::from_slice(&std::fs::read(self.file(url)).ok()?).ok()?;
        (cached.url == url.as_str()).then_some(cached)
    }

    fn store(&self, url: &Url, body: &str) {
        let cached =
            CachedAnswer { url: url.to_string(), at: unix_seconds(), body: body.to_owned() };
        let Ok(bytes) = serde_json::to_vec(&cached) else { return };
        self.remove_oldest();
        if let Err(error) = replace(&self.file(url), &bytes, Safety::Unsynced) {
            tracing::warn!(%error, "the registry's answer is not kept");
        }
    }

    fn remove_oldest(&self) {
        let entries = std::fs::read_dir(&self.cache).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort();
        let n_gone = files.len().saturating_sub(MAX_CACHED - 1);
        for (_, path) in &files[..n_gone] {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Every server in the cached search results of this registry.
    fn cached_search_results(&self) -> Vec<Entry> {
        let entries = std::fs::read_dir(&self.cache).into_iter().flatten().flatten();
        let bodies = entries.filter_map(|entry| {
            let cached: CachedAnswer =
                serde_json::from_slice(&std::fs::read(entry.path()).ok()?).ok()?;
            cached.url.starts_with(self.base.as_str()).then_some(cached.body)
        });
        bodies
            .filter_map(|body| answers::parse_page(&body).ok())
            .flat_map(|page| page.entries)
            .collect()
    }
}
