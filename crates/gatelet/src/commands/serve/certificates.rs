//! Loads the TLS certificates of the server, and loads them again when their files change.

use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ServerConfig;
use store::file::{Stamp, stamp};
use web::listen::TlsConfigs;

use config::Tls;

/// The TLS configuration, and the time stamps of the files that it was loaded from.
struct Loaded {
    stamps: Vec<Stamp>,
    config: Arc<ServerConfig>,
}

/// A function that returns the TLS configuration, and reloads it when the files have changed.
///
/// While certificate and key do not fit, because only one of them was replaced, the old
/// configuration stays.
pub(super) fn tls_configs(tls: &Tls) -> Result<TlsConfigs, String> {
    let loaded = Mutex::new(Loaded { stamps: stamps(tls), config: tls.server()? });
    let tls = tls.clone();
    Ok(Arc::new(move || {
        let mut loaded = loaded.lock();
        let stamps = stamps(&tls);
        if loaded.stamps != stamps {
            loaded.stamps = stamps;
            match tls.server() {
                Ok(config) => {
                    loaded.config = config;
                    tracing::info!("new certificates are shown from now on");
                }
                Err(unfit) => tracing::error!("the old certificates stay: {unfit}"),
            }
        }
        Arc::clone(&loaded.config)
    }))
}

fn stamps(tls: &Tls) -> Vec<Stamp> {
    let files = [Some(tls.cert.as_path()), Some(&tls.key), tls.client_ca.as_deref()];
    files.into_iter().flatten().map(stamp).collect()
}
