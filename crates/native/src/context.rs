//! The context that a tool is given: the caller, and progress messages to the client.

use std::ops::Deref;

use serde_json::json;
use tool::{Json, Notification, Object};

/// The context of one call: [`tool::Context`] with the call's progress token.
#[derive(Clone, Debug)]
pub struct Context {
    inner: tool::Context,
    progress_token: Option<Json>,
}

impl Context {
    /// `other_params` are the parameters of `tools/call` beside name and arguments.
    pub(crate) fn new(inner: &tool::Context, other_params: &Object) -> Context {
        let meta = other_params.get("_meta");
        let progress_token = meta.and_then(|meta| meta.member("progressToken"));
        Context { inner: inner.clone(), progress_token }
    }

    /// Sends a progress notification, if the client asked for them.
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        let Some(token) = &self.progress_token else { return };
        let mut params = Object::new();
        params.push("progressToken", token.clone());
        params.push("progress", json!(done).into());
        if let Some(total) = total {
            params.push("total", json!(total).into());
        }
        params.push("message", Json::encode(message));
        self.inner
            .client_handle
            .notify(Notification { method: "notifications/progress".to_owned(), params });
    }
}

impl Deref for Context {
    type Target = tool::Context;

    fn deref(&self) -> &tool::Context {
        &self.inner
    }
}
