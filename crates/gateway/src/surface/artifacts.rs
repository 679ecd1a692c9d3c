//! Kept answers as resources: `artifact://handle`.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;
use tool::{Context, Reply, RpcError};

use crate::artifact::Owner;
use crate::envelope;
use crate::gateway::Shared;

/// How the URI of a kept answer begins.
pub(crate) const SCHEME: &str = "artifact://";

/// The contents of a kept answer, for its owner and nobody else.
pub(crate) async fn read(shared: &Arc<Shared>, uri: &str, context: &Context) -> Reply {
    let (handle, at) = envelope::split_handle(uri);
    let owner = Owner::of(context);
    let artifact = shared.dispatcher.artifacts.get(&owner, handle).await;
    let Some(part) = artifact.and_then(|artifact| envelope::part(&artifact, at)) else {
        let message = format!("no artifact `{uri}`: it expired, or is another session's");
        return Reply::Error(RpcError::new(-32002, message));
    };
    let media_type = part.media_type;
    let content = match String::from_utf8(part.bytes) {
        Ok(text) => json!({"uri": uri, "mimeType": media_type, "text": text}),
        Err(error) => {
            let blob = BASE64.encode(error.as_bytes());
            json!({"uri": uri, "mimeType": media_type, "blob": blob})
        }
    };
    Reply::Result(json!({"contents": [content]}).into())
}
