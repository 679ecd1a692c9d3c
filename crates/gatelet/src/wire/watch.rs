//! Taking up changes of the configuration while serving.

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

/// Editors write a file in several steps.
const QUIET: Duration = Duration::from_millis(200);

/// Where a gatelet reads its configuration, and what that said.
pub(crate) struct Watched {
    pub(crate) paths: Paths,
    /// Where gatelet listens, which a file that leaves it open does not say.
    pub(crate) listen: Option<SocketAddr>,
    /// What the file says, without the flags of the command line.
    pub(crate) written: Loaded,
}

/// Takes up the configuration whenever it, a skill or a recipe changes, and when SIGHUP
/// asks for it, until dropped.
///
/// A configuration that is wrong is reported and changes nothing.
pub(crate) async fn watch(wiring: Wiring, gateway: Gateway, watched: Watched) {
    let Ok(mut hang_ups) = signal(SignalKind::hangup()) else { return };
    let Watched { paths, listen, written: mut current } = watched;
    loop {
        let mut files = Files::new(&current);
        // What changed before the watch began is taken up at once.
        let mut began = true;
        loop {
            let config = current.file.clone().or_else(|| paths.config.clone());
            let named = Paths { config, ..paths.clone() };
            let read =
                tokio::task::spawn_blocking(move || config_loader::load_for(&named, listen)).await;
            match read {
                Ok(Ok(loaded)) => {
                    if !began || !wiring.has_applied(&loaded.config) {
                        wiring.reload(&gateway, &loaded.config);
                        announce(&current, &loaded);
                        wiring.log_unmatched(&gateway);
                    }
                    current = loaded;
                }
                Ok(Err(error)) => report(&error),
                Err(error) => tracing::error!(%error, "reading the configuration broke off"),
            }
            // A link that leads elsewhere now, or a directory that is another
            // one under the old name, has to be looked at anew.
            if WatchedPaths::for_configuration(&current) != files.paths {
                break;
            }
            began = false;
            tokio::select! {
                () = files.changed() => {}
                _ = hang_ups.recv() => tracing::info!("SIGHUP came: reading the configuration"),
            }
        }
    }
}

impl WatchedPaths {
    /// What to look at for a configuration; nothing for the embedded one.
    fn for_configuration(loaded: &Loaded) -> WatchedPaths {
        let file = loaded.file.as_deref();
        let mut directories = loaded.config.skills.directories.clone();
        let scripts = &loaded.config.scripts;
        directories.extend(scripts.enabled.then(|| scripts.recipes.clone()));
        file.map_or_else(WatchedPaths::default, |file| WatchedPaths::new(file, &directories))
    }
}

fn announce(before: &Loaded, after: &Loaded) {
    let sections = before.config.restart_for(&after.config);
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

/// The files of a configuration, and news of them.
struct Files {
    paths: WatchedPaths,
    /// `None` where there is nothing to watch, or no way to.
    news: Option<(RecommendedWatcher, mpsc::Receiver<()>)>,
}

impl Files {
    /// Watches from now on.
    fn new(loaded: &Loaded) -> Files {
        let paths = WatchedPaths::for_configuration(loaded);
        let Some(file) = &loaded.file else { return Files { paths, news: None } };
        let news = changes(&paths).ok();
        if news.is_none() {
            tracing::warn!(
                file = %file.display(),
                "cannot watch the configuration for changes: SIGHUP has it read"
            );
        }
        Files { paths, news }
    }

    /// Ready when something has changed, and for a moment nothing more.
    async fn changed(&mut self) {
        let Some((_, changes)) = &mut self.news else { return std::future::pending().await };
        if changes.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(QUIET).await;
        while changes.try_recv().is_ok() {}
    }
}

/// Says when something changes at one of these places.
fn changes(paths: &WatchedPaths) -> notify::Result<(RecommendedWatcher, mpsc::Receiver<()>)> {
    let (sender, receiver) = mpsc::channel(1);
    let watched = paths.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let matters = !matches!(event.kind, EventKind::Access(_));
        if matters && event.paths.iter().any(|path| watched.concern(path)) {
            // A full channel holds a change that is not yet taken up.
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
