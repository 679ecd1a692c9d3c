//! A registry of servers, asked over HTTP; its answers are kept, so that it is
//! asked little and can be away.

use std::path::{Path, PathBuf};

use packages::registry::{self as answers, Entry, OFFICIAL, Page};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use store::file::{Safety, replace};

use crate::exit::CliError;
use crate::fetch;
use crate::terminal::{WARNING, foreign, paint, say};
use crate::time::unix_seconds;

/// Where servers are looked up.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RegistryArgs {
    /// The registry in which servers are looked up
    #[arg(long, value_name = "URL", env = "GATELET_REGISTRY", default_value = OFFICIAL)]
    registry: Url,
}

/// How long an answer is taken for true without asking again.
const FRESH_SECONDS: u64 = 3600;
/// No answer is longer.
const LONGEST: usize = 8 << 20;
/// So many pages are asked for, and so many answers are kept.
const MOST_PAGES: usize = 3;
const MOST_KEPT: usize = 200;

/// A registry with a memory.
pub(super) struct Registry {
    base: Url,
    memory: PathBuf,
}

/// An answer and when it came.
#[derive(Serialize, Deserialize)]
struct Kept {
    url: String,
    at: u64,
    body: String,
}

impl Registry {
    pub(super) fn new(args: &RegistryArgs, state: &Path) -> Registry {
        Registry { base: args.registry.clone(), memory: state.join("registry") }
    }

    /// The servers that fit the words, the best first.
    pub(super) async fn search(&self, words: &[String]) -> anyhow::Result<Vec<Entry>> {
        let whole = words.join(" ");
        let mut found = match self.pages(&whole).await {
            Ok(found) => found,
            Err(error) => match self.remembered() {
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
        // The registry looks for the text as it is.
        if found.is_empty() && 1 < words.len() {
            for word in words.iter().filter(|word| 2 < word.len()).take(4) {
                found.extend(self.pages(word).await.unwrap_or_default());
            }
        }
        Ok(answers::ranked(found, words))
    }

    /// One server.
    pub(super) async fn server(&self, name: &str, version: Option<&str>) -> anyhow::Result<Entry> {
        let url = answers::version_url(&self.base, name, version);
        let body = self.get(&url).await?;
        let entry = answers::single(&body).ok().flatten();
        let missing = || {
            CliError::Usage(format!("the registry has no server `{name}`; see `gatelet search`"))
        };
        Ok(entry.ok_or_else(missing)?)
    }

    async fn pages(&self, text: &str) -> anyhow::Result<Vec<Entry>> {
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..MOST_PAGES {
            let url = answers::search_url(&self.base, text, cursor.as_deref());
            let body = self.get(&url).await?;
            let Page { entries, next } = answers::page(&body).map_err(|_| {
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

    /// What is at an address, from memory while that is fresh or nothing newer
    /// can be had.
    async fn get(&self, url: &Url) -> anyhow::Result<String> {
        let kept = self.kept(url);
        let is_fresh = |kept: &&Kept| unix_seconds().saturating_sub(kept.at) < FRESH_SECONDS;
        if let Some(kept) = kept.as_ref().filter(is_fresh) {
            return Ok(kept.body.clone());
        }
        let fetched = fetch::get(url, "application/json", LONGEST, None).await;
        let why = match fetched {
            Ok(fetched) if fetched.status == 200 => {
                self.keep(url, &fetched.body);
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
        match kept {
            Some(kept) => {
                let hours = unix_seconds().saturating_sub(kept.at) / 3600;
                let note = format!("the registry cannot be asked ({why}): this is {hours} hours old");
                say(&paint(WARNING, foreign(&note)));
                Ok(kept.body)
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
        self.memory.join(format!("{}.json", &digest[..24]))
    }

    fn kept(&self, url: &Url) -> Option<Kept> {
        let kept: Kept = serde_json::from_slice(&std::fs::read(self.file(url)).ok()?).ok()?;
        (kept.url == url.as_str()).then_some(kept)
    }

    fn keep(&self, url: &Url, body: &str) {
        let kept = Kept { url: url.to_string(), at: unix_seconds(), body: body.to_owned() };
        let Ok(bytes) = serde_json::to_vec(&kept) else { return };
        self.forget_oldest();
        if let Err(error) = replace(&self.file(url), &bytes, Safety::Unsynced) {
            tracing::warn!(%error, "the registry's answer is not kept");
        }
    }

    fn forget_oldest(&self) {
        let entries = std::fs::read_dir(&self.memory).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort();
        let n_gone = files.len().saturating_sub(MOST_KEPT - 1);
        for (_, path) in &files[..n_gone] {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Every server in what was answered before by this registry.
    fn remembered(&self) -> Vec<Entry> {
        let entries = std::fs::read_dir(&self.memory).into_iter().flatten().flatten();
        let bodies = entries.filter_map(|entry| {
            let kept: Kept = serde_json::from_slice(&std::fs::read(entry.path()).ok()?).ok()?;
            kept.url.starts_with(self.base.as_str()).then_some(kept.body)
        });
        bodies.filter_map(|body| answers::page(&body).ok()).flat_map(|page| page.entries).collect()
    }
}
