//! Logs once after the start how many upstreams are ready, and which names in the
//! configuration match nothing.

use std::time::Duration;

use gateway::Gateway;
use roster::{Phase, Status};

use crate::wire::Wiring;

/// How often the upstreams are checked.
const POLL: Duration = Duration::from_millis(250);

/// Waits until every upstream has come up or failed, then logs.
pub(super) async fn announce(wiring: Wiring, gateway: Gateway) {
    let pool = gateway.roster().default_pool();
    loop {
        let statuses: Vec<Status> =
            pool.snapshot().upstreams().iter().map(|upstream| upstream.status()).collect();
        if !statuses.iter().any(|status| status.phase == Phase::Starting) {
            tracing::info!("{}", summary(&statuses));
            wiring.log_unmatched(&gateway);
            return;
        }
        tokio::time::sleep(POLL).await;
    }
}

fn summary(statuses: &[Status]) -> String {
    let down = |status: &&Status| matches!(status.phase, Phase::Down { .. });
    let down: Vec<&str> = statuses.iter().filter(down).map(|status| &*status.label).collect();
    let ready = format!("{} of {} upstreams ready", statuses.len() - down.len(), statuses.len());
    match down[..] {
        [] => ready,
        _ => format!("{ready}; down: {} (`gatelet upstreams` says why)", down.join(", ")),
    }
}
