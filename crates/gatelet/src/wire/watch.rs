//! Taking up changes of the configuration while serving.

mod spot;

use std::path::PathBuf;
use std::time::Duration;

use gateway::Gateway;
use notify::{EventKind, RecursiveMode, Watcher};
use tokio::sync::mpsc;

use super::Wiring;
use crate::cli::Place;
use crate::config::{self, Loaded};
use crate::exit::Stop;
use spot::Spots;

/// Editors write a file in several steps.
const SETTLE: Duration = Duration::from_millis(200);

/// Reloads whenever the configuration or a skill changes, until dropped.
///
/// A configuration that is wrong is reported and changes nothing.
pub(crate) async fn watch(wiring: Wiring, gateway: Gateway, place: Place, first: Loaded) {
    let mut current = first;
    loop {
        let Some(file) = current.file.clone() else { return };
        let spots = Spots::of(&file, &current.config.skills.directories);
        let Ok((_watcher, mut changes)) = changes(&spots) else {
            tracing::warn!(file = %file.display(), "cannot watch the configuration for changes");
            return;
        };
        // What changed before the watch began is taken up at once.
        let mut is_fresh = true;
        while is_fresh || changes.recv().await.is_some() {
            if !is_fresh {
                tokio::time::sleep(SETTLE).await;
                while changes.try_recv().is_ok() {}
            }
            let named = Place { config: Some(file.clone()), ..place.clone() };
            match tokio::task::spawn_blocking(move || config::load(&named)).await {
                Ok(Ok(loaded)) => {
                    wiring.reload(&gateway, &loaded.config);
                    if !is_fresh || loaded.config != current.config {
                        announce(&current, &loaded);
                    }
                    current = loaded;
                }
                Ok(Err(error)) => report(&error),
                Err(error) => tracing::error!(%error, "reading the configuration broke off"),
            }
            is_fresh = false;
            // A link that leads elsewhere now, or a directory that is another
            // one under the old name, has to be looked at anew.
            if Spots::of(&file, &current.config.skills.directories) != spots {
                break;
            }
        }
    }
}

fn announce(before: &Loaded, after: &Loaded) {
    let sections = before.config.restart_for(&after.config);
    if !sections.is_empty() {
        tracing::warn!("changes of {} need a restart", sections.join(", "));
    }
    tracing::info!(upstreams = after.config.upstreams.len(), "configuration reloaded");
}

fn report(error: &anyhow::Error) {
    let problems = match error.downcast_ref() {
        Some(Stop::Config(problems)) => problems.summary(),
        Some(Stop::Usage(_) | Stop::NoAnswer(_)) | None => error.to_string(),
    };
    tracing::error!("the configuration changed and is wrong, so the old one stays: {problems}");
}

type Changes = (notify::RecommendedWatcher, mpsc::Receiver<()>);

/// Says when something changes at one of these places.
fn changes(spots: &Spots) -> notify::Result<Changes> {
    let (sender, receiver) = mpsc::channel(1);
    let watched = spots.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let matters = !matches!(event.kind, EventKind::Access(_));
        if matters && event.paths.iter().any(|path| watched.concern(path)) {
            // A full channel holds a change that is not yet taken up.
            let _ = sender.try_send(());
        }
    })?;
    let mut parents: Vec<PathBuf> = spots.parents();
    parents.dedup();
    for (at, directory) in parents.iter().enumerate() {
        match watcher.watch(directory, RecursiveMode::NonRecursive) {
            Err(error) if at == 0 => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    for directory in spots.trees() {
        let _ = watcher.watch(directory, RecursiveMode::Recursive);
    }
    Ok((watcher, receiver))
}
