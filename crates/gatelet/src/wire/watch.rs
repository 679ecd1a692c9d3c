//! Taking up changes of the configuration while serving.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway::Gateway;
use notify::{EventKind, RecursiveMode, Watcher};
use tokio::sync::mpsc;

use super::Wiring;
use crate::cli::Place;
use crate::config::{self, Loaded};
use crate::exit::Stop;

/// Editors write a file in several steps.
const SETTLE: Duration = Duration::from_millis(200);

/// Reloads whenever the configuration or a skill changes, until dropped.
///
/// A configuration that is wrong is reported and changes nothing.
pub(crate) async fn watch(wiring: Wiring, gateway: Gateway, place: Place, first: Loaded) {
    let mut current = first;
    loop {
        let Some(file) = current.file.clone() else { return };
        let paths = watched(&file, &current);
        let Ok((_watcher, mut changes)) = changes(&paths) else {
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
            if watched(&file, &current) != paths {
                break;
            }
        }
    }
}

/// What is looked at: the file, and where its skills are.
fn watched(file: &Path, loaded: &Loaded) -> Vec<PathBuf> {
    let skills = loaded.config.skills.directories.iter().cloned();
    std::iter::once(file.to_owned()).chain(skills).collect()
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

/// Says when one of these files or something in these directories changes.
fn changes(paths: &[PathBuf]) -> notify::Result<Changes> {
    let (sender, receiver) = mpsc::channel(1);
    let watched: Vec<PathBuf> = paths.to_vec();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let matters = !matches!(event.kind, EventKind::Access(_));
        if matters && event.paths.iter().any(|path| concerns(path, &watched)) {
            // A full channel holds a change that is not yet taken up.
            let _ = sender.try_send(());
        }
    })?;
    for path in paths {
        // A file may be replaced by another of its name, so its directory is
        // what is watched.
        let directory = if path.is_dir() { path.as_path() } else { parent(path) };
        let mode =
            if path.is_dir() { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        match watcher.watch(directory, mode) {
            Err(error) if path == &paths[0] => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok((watcher, receiver))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

fn concerns(changed: &Path, watched: &[PathBuf]) -> bool {
    let is_or_is_in = |path: &PathBuf| {
        changed.starts_with(path)
            || changed.file_name() == path.file_name()
            || path.is_dir() && changed.ancestors().any(|above| above.ends_with(path))
    };
    watched.iter().any(is_or_is_in)
}
