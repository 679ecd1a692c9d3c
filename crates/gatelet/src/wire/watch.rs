//! Reloads the configuration while serving, when its files change or on SIGHUP.

mod watched_paths;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use gateway::Gateway;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::Wiring;
use crate::config_loader;
use crate::paths::Paths;
use config::{LoadError, Loaded};
use watched_paths::WatchedPaths;

/// How long to wait after a change for further ones: editors write in several steps.
const SETTLE_TIME: Duration = Duration::from_millis(200);

/// Where a gatelet read its configuration, and what it read.
pub(crate) struct WatchedConfig {
    pub(crate) paths: Paths,
    /// The address of `--listen`, if it was given.
    pub(crate) listen: Option<SocketAddr>,
    /// The configuration of the file, without the flags of the command line.
    pub(crate) written: Loaded,
}

/// Reloads the configuration whenever it, a skill or a recipe changes, and on SIGHUP,
/// until dropped.
///
/// A configuration that is wrong is logged and changes nothing.
pub(crate) async fn watch(wiring: Wiring, gateway: Gateway, watched: WatchedConfig) {
    let Ok(mut hang_ups) = signal(SignalKind::hangup()) else { return };
    let WatchedConfig { paths, listen, written: mut current } = watched;
    loop {
        let mut files = FileWatch::new(&current);
        // Files may have changed before the watch began, so they are read once at first.
        let mut is_first = true;
        loop {
            let config = current.file.clone().or_else(|| paths.config.clone());
            let named = Paths { config, ..paths.clone() };
            let read =
                tokio::task::spawn_blocking(move || config_loader::load_for(&named, listen)).await;
            match read {
                Ok(Ok(loaded)) => {
                    if !is_first || !wiring.has_applied(&loaded.config) {
                        wiring.reload(&gateway, &loaded.config);
                        announce(&current, &loaded);
                        wiring.log_unmatched(&gateway);
                    }
                    current = loaded;
                }
                Ok(Err(error)) => report(&error),
                Err(error) => tracing::error!(%error, "reading the configuration broke off"),
            }
            // A link may lead elsewhere now, or a directory may have been replaced: then
            // other paths have to be watched.
            if WatchedPaths::for_configuration(&current) != files.paths {
                break;
            }
            is_first = false;
            tokio::select! {
                () = files.changed() => {}
                _ = hang_ups.recv() => tracing::info!("SIGHUP came: reading the configuration"),
            }
        }
    }
}

impl WatchedPaths {
    /// The files and directories of a configuration; none for the embedded one.
    fn for_configuration(loaded: &Loaded) -> WatchedPaths {
        let file = loaded.file.as_deref();
        let mut directories = loaded.config.skills.directories.clone();
        let scripts = &loaded.config.scripts;
        directories.extend(scripts.enabled.then(|| scripts.recipes.clone()));
        file.map_or_else(WatchedPaths::default, |file| WatchedPaths::new(file, &directories))
    }
}

/// Logs that the configuration was reloaded, and which changes need a restart.
fn announce(before: &Loaded, after: &Loaded) {
    let sections = before.config.sections_needing_restart(&after.config);
    if !sections.is_empty() {
        tracing::warn!("changes of {} need a restart", sections.join(", "));
    }
    tracing::info!(upstreams = after.config.upstreams.len(), "configuration reloaded");
}

fn report(error: &LoadError) {
    let problems = match error {
        LoadError::Wrong(problems) => problems.summary(),
        LoadError::Unreadable { .. } | LoadError::NoServers(_) => error.to_string(),
    };
    tracing::error!("the configuration changed and is wrong, so the old one stays: {problems}");
}

/// Watches the files of a configuration.
struct FileWatch {
    paths: WatchedPaths,
    /// Receives a message per change, while the watcher lives; `None` where there is
    /// nothing to watch, or no way to.
    changes: Option<(RecommendedWatcher, mpsc::Receiver<()>)>,
}

impl FileWatch {
    /// Watches from now on.
    fn new(loaded: &Loaded) -> FileWatch {
        let paths = WatchedPaths::for_configuration(loaded);
        let Some(file) = &loaded.file else { return FileWatch { paths, changes: None } };
        let changes = start_watcher(&paths).ok();
        if changes.is_none() {
            tracing::warn!(
                file = %file.display(),
                "cannot watch the configuration for changes: SIGHUP has it read"
            );
        }
        FileWatch { paths, changes }
    }

    /// Waits for a change, and until there were no more for a moment.
    async fn changed(&mut self) {
        let Some((_, changes)) = &mut self.changes else { return std::future::pending().await };
        if changes.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(SETTLE_TIME).await;
        while changes.try_recv().is_ok() {}
    }
}

/// Starts to watch these paths; the receiver gets a message when one changes.
fn start_watcher(paths: &WatchedPaths) -> notify::Result<(RecommendedWatcher, mpsc::Receiver<()>)> {
    let (sender, receiver) = mpsc::channel(1);
    let watched = paths.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let matters = !matches!(event.kind, EventKind::Access(_));
        if matters && event.paths.iter().any(|path| watched.is_affected_by(path)) {
            // A full channel holds a message that has not been received yet.
            let _ = sender.try_send(());
        }
    })?;
    let mut parents: Vec<PathBuf> = paths.parents();
    parents.dedup();
    for (at, directory) in parents.iter().enumerate() {
        match watcher.watch(directory, RecursiveMode::NonRecursive) {
            Err(error) if at == 0 => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    for directory in paths.trees() {
        let _ = watcher.watch(directory, RecursiveMode::Recursive);
    }
    Ok((watcher, receiver))
}
