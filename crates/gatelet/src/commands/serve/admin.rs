//! What operators on this machine may ask of a running gatelet.

use async_trait::async_trait;
use gateway::Gateway;
use http::{Method, StatusCode};
use roster::Phase;
use serde_json::{Value, json};
use web::site::admin::Admin;

use crate::mounts::MountError;
use crate::wire::Wiring;

/// Mounts and unmounts.
pub(super) struct AdminApi {
    pub(super) wiring: Wiring,
    pub(super) gateway: Gateway,
}

#[async_trait]
impl Admin for AdminApi {
    async fn answer(
        &self,
        method: &Method,
        path: &str,
        _: &str,
        body: &[u8],
    ) -> (StatusCode, Value) {
        if path != "/mounts" {
            return message(StatusCode::NOT_FOUND, "there is `/admin/mounts`");
        }
        let mounts = &self.wiring.mounts;
        match method.as_str() {
            "GET" => (StatusCode::OK, self.shown()),
            "POST" => match serde_json::from_slice(body) {
                Ok(raw) => self.done(StatusCode::CREATED, mounts.mount(raw).await),
                Err(error) => {
                    message(StatusCode::BAD_REQUEST, &format!("this is no mount: {error}"))
                }
            },
            "DELETE" => {
                let wish: Value = serde_json::from_slice(body).unwrap_or_default();
                match wish["mount"].as_str() {
                    Some(which) => self.done(StatusCode::OK, mounts.unmount(which).await),
                    None => message(StatusCode::BAD_REQUEST, "say which: {\"mount\": \"label\"}"),
                }
            }
            _ => message(StatusCode::METHOD_NOT_ALLOWED, "use GET, POST or DELETE"),
        }
    }
}

impl AdminApi {
    /// Every mount and how it fares, also since its manifest was read.
    fn shown(&self) -> Value {
        let mut body = self.wiring.mounts.to_json();
        for place in body.as_array_mut().into_iter().flatten() {
            let reason = place["label"].as_str().and_then(|label| self.down(label));
            if let Some(reason) = reason {
                place["state"] = json!("unavailable");
                place["problem"] = json!(reason);
            }
        }
        body
    }

    /// Why a server does not answer. Clients that differ have upstreams that
    /// differ, and whoever tried last knows best.
    fn down(&self, label: &str) -> Option<String> {
        let pools = self.gateway.roster().pools();
        let mut upstreams = pools.iter().flat_map(|pool| pool.snapshot().upstreams().to_vec());
        upstreams.find_map(|upstream| match upstream.status() {
            status if status.label != label => None,
            status => match status.phase {
                Phase::Down { reason, .. } => Some(reason),
                Phase::Asleep | Phase::Starting | Phase::Up => None,
            },
        })
    }

    /// Has gatelet take up what is different now.
    fn done(&self, status: StatusCode, done: Result<Value, MountError>) -> (StatusCode, Value) {
        match done {
            Ok(body) => {
                self.wiring.remount(&self.gateway);
                (status, body)
            }
            Err(wrong) => {
                let status = StatusCode::from_u16(wrong.status());
                message(status.unwrap_or(StatusCode::BAD_REQUEST), &wrong.to_string())
            }
        }
    }
}

fn message(status: StatusCode, message: &str) -> (StatusCode, Value) {
    (status, json!({"error": message}))
}
