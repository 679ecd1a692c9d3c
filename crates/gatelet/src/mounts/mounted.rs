//! One mounted server: its mount, its last manifest, and when to fetch that again.

use reqwest::Url;
use serde_json::{Value, json};
use web::aggregate::label::Server;
use web::aggregate::refresh::RefreshSchedule;
use web::manifest::{Manifest, yaml};

use super::remembered::{RememberedManifest, RememberedMounts};
use crate::fetch::FetchError;
use config::Mount;

/// A mounted server. Without a manifest it is mounted, but cannot be used.
#[derive(Clone, Debug)]
pub(crate) struct MountedServer {
    pub(crate) mount: Mount,
    pub(crate) origin: Origin,
    pub(crate) label: String,
    /// The label that it had with its last manifest, in this run or an earlier one. It has
    /// it again, unless one that comes before it claims it.
    pub(crate) kept_label: Option<String>,
    /// The last manifest that was accepted, and its endpoint.
    pub(crate) manifest: Option<(Manifest, Url)>,
    /// Why the last fetch failed.
    pub(crate) problem: Option<String>,
    pub(crate) schedule: RefreshSchedule,
    /// When the manifest was fetched, in seconds since 1970.
    pub(crate) fetched: Option<u64>,
}

/// How a server was mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Configured,
    Command,
}

impl MountedServer {
    /// A server with its remembered manifest, if that is still accepted.
    pub(crate) fn new(mount: Mount, origin: Origin, memory: &RememberedMounts) -> MountedServer {
        let known = memory.known.get(mount.source.manifest.as_str());
        let manifest = known.and_then(|known| mount.source.accept(&known.manifest).ok());
        let fetched = known.filter(|_| manifest.is_some()).map(|known| known.fetched);
        let schedule = match (&manifest, fetched) {
            (Some((manifest, _)), Some(fetched)) => RefreshSchedule::after_fetch(manifest, fetched),
            (_, _) => RefreshSchedule::default(),
        };
        MountedServer {
            mount,
            origin,
            label: String::new(),
            kept_label: known.map(|known| known.label.clone()),
            manifest,
            problem: None,
            schedule,
            fetched,
        }
    }

    /// Whether it has the same manifest URL as another mount.
    pub(crate) fn is_at(&self, mount: &Mount) -> bool {
        self.mount.source.manifest == mount.source.manifest
    }

    /// What its label is chosen by.
    pub(crate) fn label_candidate(&self) -> Server<'_> {
        Server {
            source: &self.mount.source.manifest,
            label: self.mount.source.label.as_deref(),
            manifest: self.manifest.as_ref().map(|(manifest, _)| manifest),
            kept_label: self.kept_label.as_deref(),
        }
    }

    /// Applies the result of a fetch: the manifest and its endpoint, or an error. Returns
    /// whether something has changed. `now` is in seconds since 1970.
    pub(crate) fn update(
        &mut self,
        fetched: Result<(Manifest, Url), FetchError>,
        now: u64,
    ) -> bool {
        match fetched {
            Ok(fetched) => {
                self.schedule.succeeded(&fetched.0, now);
                self.fetched = Some(now);
                let has_changed =
                    self.manifest.as_ref() != Some(&fetched) || self.problem.is_some();
                self.manifest = Some(fetched);
                self.problem = None;
                has_changed
            }
            Err(why) => {
                self.schedule.failed(now);
                let problem = Some(why.to_string());
                tracing::warn!(manifest = %self.mount.source.manifest, "{why}");
                // After a failed fetch the last manifest stays in force; after a refusal
                // it does not.
                let is_gone = why.is_final() && self.manifest.take().is_some();
                let has_changed = is_gone || (self.manifest.is_none() && self.problem != problem);
                self.problem = problem;
                has_changed
            }
        }
    }

    /// What to remember between runs. A server without a manifest keeps only its label.
    pub(crate) fn remembered(&self) -> Option<RememberedManifest> {
        match (&self.manifest, self.fetched) {
            (Some((manifest, _)), Some(fetched)) => {
                let (label, manifest) = (self.label.clone(), yaml(&manifest.document()));
                Some(RememberedManifest { label, manifest, fetched })
            }
            (_, _) => {
                let label = self.kept_label.clone()?;
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

    /// Its state for an operator.
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
