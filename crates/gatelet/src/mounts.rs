//! Servers that are mounted by their manifests: which there are, what their
//! manifests said last, and when to look again.
//!
//! What the configuration lists comes first, then what was mounted while
//! serving, in that order; both keep their labels over restarts. A manifest
//! that cannot be fetched changes nothing but what is said about it; one that
//! must not be believed takes its server away.

mod memory;
mod place;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use store::document::JsonDocument;
use tokio::sync::Notify;
use web::aggregate::label;

use crate::config::{Config, Mount, Process, RawMount, meant};
use crate::fetch;
use crate::time::unix_seconds as now;
use memory::{Known, Memory};

pub(crate) use place::{Origin, Place};

/// All mounts of a gate.
pub(crate) struct Mounts {
    /// Where the state directory is; what is mounted by command is relative to it.
    base: PathBuf,
    document: JsonDocument<Memory>,
    places: Mutex<Vec<Place>>,
    /// Labels of everything that is not mounted.
    taken: Mutex<Vec<String>>,
    /// Where this gate itself is reached, once it is known.
    own: Mutex<Option<String>>,
    wake: Notify,
}

/// Why something is not mounted or unmounted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Wrong {
    #[error("`{key}`: {message}")]
    Wish { key: &'static str, message: String },
    #[error("`{0}` is mounted already")]
    There(String),
    #[error("`{0}` is this gate itself: it cannot stand behind itself")]
    Itself(String),
    #[error("the manifest is not believed: {0}")]
    Refused(String),
    #[error("nothing is mounted as `{0}`")]
    Unknown(String),
    #[error("`{0}` stands in the configuration: take it out there")]
    Configured(String),
}

impl Wrong {
    /// The HTTP status that says so.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Wrong::Wish { .. } | Wrong::Itself(_) => 400,
            Wrong::Unknown(_) => 404,
            Wrong::There(_) | Wrong::Configured(_) => 409,
            Wrong::Refused(_) => 422,
        }
    }
}

/// The labels that are not there for mounts: of our own tools and of upstreams.
pub(crate) fn taken(config: &Config) -> Vec<String> {
    let own = config.builtin_labels().into_iter().map(|(label, _)| label);
    let upstreams = config.upstreams.iter().map(|upstream| upstream.label.clone());
    own.chain(upstreams).chain([gateway::roster::BUILTIN.to_owned()]).collect()
}

/// How long the keeper sleeps at most, so that a clock that is set does not
/// make it oversleep.
const NAP: Duration = Duration::from_secs(60);

impl Mounts {
    /// The mounts of a configuration, and those that are remembered.
    pub(crate) fn open(state: &Path, configured: &[Mount]) -> Mounts {
        let document = memory::document(state);
        let memory = memory::load(&document);
        let mut places: Vec<Place> = Vec::new();
        for mount in configured {
            places.push(Place::new(mount.clone(), Origin::Configured, &memory));
        }
        for raw in &memory.mounts {
            match meant(raw, state, &Process) {
                Ok(mount) if !places.iter().any(|place| place.is_at(&mount)) => {
                    places.push(Place::new(mount, Origin::Command, &memory));
                }
                Ok(_) => {}
                Err((key, message)) => tracing::warn!("a mount is left out: `{key}` {message}"),
            }
        }
        let (taken, own) = (Mutex::default(), Mutex::default());
        let (base, places) = (state.to_owned(), Mutex::new(places));
        Mounts { base, document, places, taken, own, wake: Notify::new() }
    }

    /// Says where this gate itself is reached; nothing there is mounted.
    pub(crate) fn served_at(&self, endpoint: &str) {
        *self.own.lock().unwrap_or_else(PoisonError::into_inner) = Some(endpoint.to_owned());
    }

    fn is_own(&self, endpoint: &str) -> bool {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).as_deref() == Some(endpoint)
    }

    /// Takes up a changed configuration.
    pub(crate) fn reconfigure(&self, configured: &[Mount]) {
        let memory = memory::load(&self.document);
        let mut places = self.places();
        let before = std::mem::take(&mut *places);
        let (commanded, mut known): (Vec<Place>, Vec<Place>) =
            before.into_iter().partition(|place| place.origin == Origin::Command);
        for mount in configured {
            let same = known.iter().position(|place| place.mount == *mount);
            places.push(match same {
                Some(at) => known.remove(at),
                None => Place::new(mount.clone(), Origin::Configured, &memory),
            });
        }
        places.extend(commanded);
        drop(places);
        self.wake.notify_one();
    }

    /// Every mount with the label that it has beside those that are `taken`.
    pub(crate) fn settled(&self, taken: Vec<String>) -> Vec<Place> {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = taken;
        let mut places = self.places();
        self.settle(&mut places);
        places.clone()
    }

    fn settle(&self, places: &mut [Place]) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let servers: Vec<label::Server<'_>> = places.iter().map(Place::server).collect();
        let labels = label::assign(&taken, &servers);
        for (place, label) in places.iter_mut().zip(labels) {
            // A label is kept once there is something to call by it.
            place.kept = place.manifest.as_ref().map(|_| label.clone()).or(place.kept.take());
            place.label = label;
        }
    }

    /// Looks at manifests when their time has come, for ever; says when
    /// something is different.
    pub(crate) async fn keep(self: Arc<Self>, changed: impl Fn() + Send + 'static) {
        loop {
            let due: Vec<Mount> = {
                let places = self.places();
                let now = now();
                let due = places.iter().filter(|place| place.looks.due() <= now);
                due.map(|place| place.mount.clone()).collect()
            };
            let looks = due.iter().map(|mount| self.look(mount));
            let news = futures::future::join_all(looks).await;
            if news.into_iter().any(|news| news) {
                self.save(|_| ()).await;
                changed();
            }
            let next = self.places().iter().map(|place| place.looks.due()).min();
            let pause = next.map_or(NAP, |next| Duration::from_secs(next.saturating_sub(now())));
            tokio::select! {
                () = tokio::time::sleep(pause.clamp(Duration::from_millis(200), NAP)) => {}
                () = self.wake.notified() => {}
            }
        }
    }

    /// Looks at one manifest; whether something is different now.
    async fn look(&self, mount: &Mount) -> bool {
        let fetched = fetch::manifest(&mount.source, mount.authority.as_deref()).await;
        let seen = fetched.and_then(|text| Ok(mount.source.accept(&text)?));
        let mut places = self.places();
        let Some(place) = places.iter_mut().find(|place| place.mount == *mount) else {
            return false;
        };
        place.take(seen, now())
    }

    /// Mounts a server while serving. Its manifest is fetched at once: what is
    /// refused is not mounted, what cannot be reached is tried again.
    pub(crate) async fn mount(&self, raw: RawMount) -> Result<Value, Wrong> {
        let mount = meant(&raw, &self.base, &Process)
            .map_err(|(key, message)| Wrong::Wish { key, message })?;
        if self.places().iter().any(|place| place.is_at(&mount)) {
            return Err(Wrong::There(mount.source.manifest.to_string()));
        }
        let fetched = fetch::manifest(&mount.source, mount.authority.as_deref()).await;
        let seen = fetched.and_then(|text| Ok(mount.source.accept(&text)?));
        if let Err(why) = &seen
            && why.is_final()
        {
            return Err(Wrong::Refused(why.to_string()));
        }
        if let Ok((_, endpoint)) = &seen
            && self.is_own(endpoint.as_str())
        {
            return Err(Wrong::Itself(endpoint.to_string()));
        }
        let manifest = mount.source.manifest.clone();
        let known = self.document.read().await.unwrap_or_default();
        let mut place = Place::new(mount, Origin::Command, &known);
        place.take(seen, now());
        let told = self.add(place)?;
        self.save(|memory| memory.add(raw.clone(), &manifest)).await;
        Ok(told)
    }

    /// Takes a place in, unless somebody mounted the same while its manifest
    /// was on the way.
    fn add(&self, place: Place) -> Result<Value, Wrong> {
        let mut places = self.places();
        if places.iter().any(|known| known.is_at(&place.mount)) {
            return Err(Wrong::There(place.mount.source.manifest.to_string()));
        }
        places.push(place);
        self.settle(&mut places);
        Ok(places.last().map(Place::told).unwrap_or_default())
    }

    /// Takes away what was mounted while serving, by its label or manifest.
    pub(crate) async fn unmount(&self, which: &str) -> Result<Value, Wrong> {
        let gone = self.remove(which)?;
        let manifest = &gone.mount.source.manifest;
        self.save(|memory| {
            memory.remove(manifest);
            memory.known.remove(manifest.as_str());
        })
        .await;
        Ok(gone.told())
    }

    fn remove(&self, which: &str) -> Result<Place, Wrong> {
        let mut places = self.places();
        let is_it = |place: &Place| {
            catalog::name::same(&place.label, which)
                || place.mount.source.manifest.as_str() == which
        };
        let at = places.iter().position(is_it).ok_or_else(|| Wrong::Unknown(which.to_owned()))?;
        match places[at].origin {
            Origin::Configured => Err(Wrong::Configured(which.to_owned())),
            Origin::Command => Ok(places.remove(at)),
        }
    }

    /// Every mount and how it fares.
    pub(crate) fn told(&self) -> Value {
        self.places().iter().map(Place::told).collect()
    }

    /// Remembers every place as it is called now, and makes one more change.
    /// What another gate with the same state remembers is left as it is.
    async fn save(&self, mut change: impl FnMut(&mut Memory) + Send) {
        let known: Vec<(String, Option<Known>)> = {
            let mut places = self.places();
            self.settle(&mut places);
            let url = |place: &Place| place.mount.source.manifest.to_string();
            places.iter().map(|place| (url(place), place.known())).collect()
        };
        let saved = self.document.change(|memory| {
            for (url, known) in &known {
                match known {
                    Some(known) => drop(memory.known.insert(url.clone(), known.clone())),
                    None => drop(memory.known.remove(url)),
                }
            }
            change(memory);
        });
        if let Err(error) = saved.await {
            tracing::error!("the mounts cannot be remembered: {error}");
        }
    }

    fn places(&self) -> MutexGuard<'_, Vec<Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
