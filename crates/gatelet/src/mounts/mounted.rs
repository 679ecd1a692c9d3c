//! One mount and what its manifest said last.

use reqwest::Url;
use serde_json::{Value, json};
use web::aggregate::label::Server;
use web::aggregate::refresh::RefreshSchedule;
use web::manifest::{Manifest, yaml};

use super::memory::{Memory, RememberedManifest};
use crate::fetch::FetchError;
use config::Mount;

/// One mount.
#[derive(Clone, Debug)]
pub(crate) struct MountedServer {
    pub(crate) mount: Mount,
    pub(crate) origin: Origin,
    pub(crate) label: String,
    /// What it is called for good, once it was seen.
    pub(crate) kept: Option<String>,
    pub(crate) manifest: Option<(Manifest, Url)>,
    /// What was wrong the last time.
    pub(crate) problem: Option<String>,
    pub(crate) schedule: RefreshSchedule,
    /// When the manifest came.
    pub(crate) fetched: Option<u64>,
}

/// Who wanted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Configured,
    Command,
}

impl MountedServer {
    /// A mount with what is remembered of it, as far as that is believed now.
    pub(crate) fn new(mount: Mount, origin: Origin, memory: &Memory) -> MountedServer {
        let known = memory.known.get(mount.source.manifest.as_str());
        let manifest = known.and_then(|known| mount.source.accept(&known.manifest).ok());
        let fetched = known.filter(|_| manifest.is_some()).map(|known| known.fetched);
        let schedule = match (&manifest, fetched) {
            (Some((manifest, _)), Some(fetched)) => RefreshSchedule::remembered(manifest, fetched),
            (_, _) => RefreshSchedule::default(),
        };
        let kept = known.map(|known| known.label.clone());
        let label = String::new();
        MountedServer { mount, origin, label, kept, manifest, problem: None, schedule, fetched }
    }

    pub(crate) fn is_at(&self, mount: &Mount) -> bool {
        self.mount.source.manifest == mount.source.manifest
    }

    pub(crate) fn server(&self) -> Server<'_> {
        Server {
            source: &self.mount.source.manifest,
            label: self.mount.source.label.as_deref(),
            manifest: self.manifest.as_ref().map(|(manifest, _)| manifest),
            before: self.kept.as_deref(),
        }
    }

    /// Takes in what came of a look; whether something is different now.
    pub(crate) fn take(&mut self, seen: Result<(Manifest, Url), FetchError>, now: u64) -> bool {
        match seen {
            Ok(seen) => {
                self.schedule.went_well(&seen.0, now);
                self.fetched = Some(now);
                let news = self.manifest.as_ref() != Some(&seen) || self.problem.is_some();
                self.manifest = Some(seen);
                self.problem = None;
                news
            }
            Err(why) => {
                self.schedule.failed(now);
                let why_now = Some(why.to_string());
                tracing::warn!(manifest = %self.mount.source.manifest, "{why}");
                // What was believed is believed until somebody says otherwise.
                let gone = why.is_final() && self.manifest.take().is_some();
                let news = gone || (self.manifest.is_none() && self.problem != why_now);
                self.problem = why_now;
                news
            }
        }
    }

    /// What is remembered of it. One that is not believed any more keeps its
    /// label, and nothing else.
    pub(crate) fn known(&self) -> Option<RememberedManifest> {
        match (&self.manifest, self.fetched) {
            (Some((manifest, _)), Some(fetched)) => {
                let (label, manifest) = (self.label.clone(), yaml(&manifest.document()));
                Some(RememberedManifest { label, manifest, fetched })
            }
            (_, _) => {
                let label = self.kept.clone()?;
                let fetched = self.fetched.unwrap_or(0);
                Some(RememberedManifest { label, manifest: String::new(), fetched })
            }
        }
    }

    /// One line that says what it is for.
    pub(crate) fn description(&self) -> Option<String> {
        let (manifest, _) = self.manifest.as_ref()?;
        Some(match manifest.namespaces.as_slice() {
            [only] => only.description.clone(),
            many => {
                let names: Vec<&str> = many.iter().map(|one| one.suggested.as_str()).collect();
                format!("{}: {}", manifest.publisher, names.join(", "))
            }
        })
    }

    /// For an operator.
    pub(crate) fn to_json(&self) -> Value {
        let mut json = json!({
            "manifest": self.mount.source.manifest.as_str(),
            "label": self.label,
            "state": if self.manifest.is_some() { "mounted" } else { "unavailable" },
            "from": match self.origin {
                Origin::Configured => "configuration",
                Origin::Command => "command",
            },
            "next_look": self.schedule.due(),
        });
        if let Some((manifest, endpoint)) = &self.manifest {
            json["endpoint"] = json!(endpoint.as_str());
            json["publisher"] = json!(manifest.publisher);
            json["signed_by"] = json!(manifest.signature.as_ref().map(|signature| &signature.key));
        }
        if let Some(problem) = &self.problem {
            json["problem"] = json!(problem);
        }
        json
    }
}
