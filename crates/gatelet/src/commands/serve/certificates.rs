//! The certificates that clients are shown, read again when their files change.

use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ServerConfig;
use store::file::{Stamp, stamp};
use web::listen::TlsConfigs;

use config::Tls;

struct Loaded {
    stamps: Vec<Stamp>,
    config: Arc<ServerConfig>,
}

/// What the files make now, and whenever they have changed since.
///
/// Files that do not belong together, because only one of them has been
/// replaced yet, change nothing: the next connection looks again.
pub(super) fn tls_configs(tls: &Tls) -> Result<TlsConfigs, String> {
    let shown = Mutex::new(Loaded { stamps: stamps(tls), config: tls.server()? });
    let tls = tls.clone();
    Ok(Arc::new(move || {
        let mut shown = shown.lock();
        let stamps = stamps(&tls);
        if shown.stamps != stamps {
            shown.stamps = stamps;
            match tls.server() {
                Ok(config) => {
                    shown.config = config;
                    tracing::info!("new certificates are shown from now on");
                }
                Err(unfit) => tracing::error!("the old certificates stay: {unfit}"),
            }
        }
        Arc::clone(&shown.config)
    }))
}

fn stamps(tls: &Tls) -> Vec<Stamp> {
    let files = [Some(tls.cert.as_path()), Some(&tls.key), tls.client_ca.as_deref()];
    files.into_iter().flatten().map(stamp).collect()
}
