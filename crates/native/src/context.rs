//! The context of a call: the caller, and the handle that reaches the client while
//! the tool runs.

use std::ops::Deref;

use serde_json::json;
use tool::{Json, Notification, Object};

/// The context of one call: [`tool::Context`] with the call's progress token.
#[derive(Clone, Debug)]
pub struct Context {
    asked: tool::Context,
    progress_token: Option<Json>,
}

impl Context {
    pub(crate) fn new(asked: &tool::Context, rest: &Object) -> Context {
        let progress_token = rest.get("_meta").and_then(|meta| meta.member("progressToken"));
        Context { asked: asked.clone(), progress_token }
    }

    /// Says how far the call is. Does nothing when the caller did not ask.
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        let Some(token) = &self.progress_token else { return };
        let mut params = Object::new();
        params.push("progressToken", token.clone());
        params.push("progress", json!(done).into());
        if let Some(total) = total {
            params.push("total", json!(total).into());
        }
        params.push("message", Json::encode(message));
        self.asked
            .client_handle
            .notify(Notification { method: "notifications/progress".to_owned(), params });
    }
}

impl Deref for Context {
    type Target = tool::Context;

    fn deref(&self) -> &tool::Context {
        &self.asked
    }
}
