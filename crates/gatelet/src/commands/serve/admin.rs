//! What operators on this machine may ask of a gate that runs.

use async_trait::async_trait;
use gateway::Gateway;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use web::site::admin::Admin;

use crate::mounts::Wrong;
use crate::wire::Wiring;

/// Mounts and unmounts.
pub(super) struct Desk {
    pub(super) wiring: Wiring,
    pub(super) gateway: Gateway,
}

#[async_trait]
impl Admin for Desk {
    async fn answer(
        &self,
        method: &Method,
        path: &str,
        _: &str,
        body: &[u8],
    ) -> (StatusCode, Value) {
        if path != "/mounts" {
            return told(StatusCode::NOT_FOUND, "there is `/admin/mounts`");
        }
        let mounts = &self.wiring.mounts;
        match method.as_str() {
            "GET" => (StatusCode::OK, mounts.told()),
            "POST" => match serde_json::from_slice(body) {
                Ok(raw) => self.done(StatusCode::CREATED, mounts.mount(raw).await),
                Err(error) => told(StatusCode::BAD_REQUEST, &format!("this is no mount: {error}")),
            },
            "DELETE" => {
                let wish: Value = serde_json::from_slice(body).unwrap_or_default();
                match wish["mount"].as_str() {
                    Some(which) => self.done(StatusCode::OK, mounts.unmount(which)),
                    None => told(StatusCode::BAD_REQUEST, "say which: {\"mount\": \"label\"}"),
                }
            }
            _ => told(StatusCode::METHOD_NOT_ALLOWED, "use GET, POST or DELETE"),
        }
    }
}

impl Desk {
    /// Has the gate take up what is different now.
    fn done(&self, status: StatusCode, done: Result<Value, Wrong>) -> (StatusCode, Value) {
        match done {
            Ok(told) => {
                self.wiring.remount(&self.gateway);
                (status, told)
            }
            Err(wrong) => {
                let status = StatusCode::from_u16(wrong.status());
                told(status.unwrap_or(StatusCode::BAD_REQUEST), &wrong.to_string())
            }
        }
    }
}

fn told(status: StatusCode, message: &str) -> (StatusCode, Value) {
    (status, json!({"error": message}))
}
