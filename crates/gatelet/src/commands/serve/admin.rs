//! The admin API, over which an operator on this machine mounts and unmounts servers.

use async_trait::async_trait;
use gateway::Gateway;
use http::{Method, StatusCode};
use roster::Phase;
use serde_json::{Value, json};
use web::site::admin::Admin;

use crate::mounts::MountError;
use crate::wire::Wiring;

/// Answers requests for `/admin/mounts`.
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
            "GET" => (StatusCode::OK, self.list()),
            "POST" => match serde_json::from_slice(body) {
                Ok(raw) => self.apply(StatusCode::CREATED, mounts.mount(raw).await),
                Err(error) => {
                    message(StatusCode::BAD_REQUEST, &format!("this is no mount: {error}"))
                }
            },
            "DELETE" => {
                let request: Value = serde_json::from_slice(body).unwrap_or_default();
                match request["mount"].as_str() {
                    Some(name) => self.apply(StatusCode::OK, mounts.unmount(name).await),
                    None => message(StatusCode::BAD_REQUEST, "say which: {\"mount\": \"label\"}"),
                }
            }
            _ => message(StatusCode::METHOD_NOT_ALLOWED, "use GET, POST or DELETE"),
        }
    }
}

impl AdminApi {
    /// Every mounted server, with the reason if its upstream is down.
    fn list(&self) -> Value {
        let mut body = self.wiring.mounts.to_json();
        for server in body.as_array_mut().into_iter().flatten() {
            let reason = server["label"].as_str().and_then(|label| self.down_reason(label));
            if let Some(reason) = reason {
                server["state"] = json!("unavailable");
                server["problem"] = json!(reason);
            }
        }
        body
    }

    /// Why an upstream is down, in any of the pools.
    fn down_reason(&self, label: &str) -> Option<String> {
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

    /// Applies a change of the mounts to the gateway, or reports its error.
    fn apply(&self, status: StatusCode, change: Result<Value, MountError>) -> (StatusCode, Value) {
        match change {
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
