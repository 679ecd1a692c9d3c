//! Lists and reads stored answers (artifacts) as MCP resources: `artifact://handle`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use catalog::summary::echo;
use serde_json::json;
use tool::{Context, Reply, Resource, RpcError};

use crate::dispatch::Dispatcher;
use artifacts::envelope::{self, PartRef, Provenance};
use artifacts::{Artifact, ArtifactMeta, Owner, Store};
use policy::cache;

/// The scheme of an artifact's URI.
pub(crate) const SCHEME: &str = "artifact://";

/// Lists the caller's artifacts, one resource per part, the latest first.
pub(crate) async fn list(store: &dyn Store, context: &Context) -> Vec<Resource> {
    let kept = store.list(&Owner::from_context(context)).await;
    kept.into_iter().flat_map(resources).collect()
}

/// Returns where an artifact comes from, for its envelope.
pub(crate) fn provenance<'a>(artifact: &Artifact, tool_id: &'a str) -> Provenance<'a> {
    Provenance { cache_hit: cache::is_hit(&artifact.result), ..Provenance::of_tool(tool_id) }
}

fn resources(meta: ArtifactMeta) -> Vec<Resource> {
    let ArtifactMeta { upstream, tool, parts, .. } = meta;
    let resource = |part: PartRef| {
        let name = match part.label.is_empty() {
            true => format!("{upstream}/{tool}"),
            false => format!("{upstream}/{tool} {}", part.label),
        };
        let raw = json!({
            "uri": format!("{SCHEME}{}", part.handle),
            "name": name,
            "description": format!("Kept answer of {tool}"),
            "mimeType": part.media_type,
            "size": part.size_bytes,
        });
        Resource::parse(raw.into()).expect("our own resource has a URI")
    };
    parts.into_iter().map(resource).collect()
}

/// Reads an artifact for its owner. `approval_token` is the one that the caller got for
/// an approval.
pub(crate) async fn read(
    pipeline: &Dispatcher,
    uri: &str,
    approval_token: Option<&str>,
    context: &Context,
) -> Reply {
    let (handle, part) = envelope::split_handle(uri);
    let artifact = match pipeline.viewable_artifact(handle, approval_token, context).await {
        Ok(artifact) => artifact,
        Err(refusal) => return Reply::Error(RpcError::new(-32600, refusal.message)),
    };
    let own = uri.to_owned();
    let contents = match artifact {
        Some(loaded) => match offload::run(move |_| contents(&loaded.artifact, part, &own)).await {
            Ok(contents) => contents,
            Err(slow) => return Reply::Error(RpcError::new(-32603, slow.to_string())),
        },
        None => None,
    };
    contents.unwrap_or_else(|| {
        let message = format!("no artifact `{}`: it expired, or is another session's", echo(uri));
        Reply::Error(RpcError::new(-32002, message))
    })
}

fn contents(artifact: &Artifact, part: usize, uri: &str) -> Option<Reply> {
    let part = envelope::part(artifact, part)?;
    let media_type = part.media_type;
    let content = match String::from_utf8(part.bytes) {
        Ok(text) => json!({"uri": uri, "mimeType": media_type, "text": text}),
        Err(error) => {
            let blob = BASE64.encode(error.as_bytes());
            json!({"uri": uri, "mimeType": media_type, "blob": blob})
        }
    };
    Some(Reply::Result(json!({"contents": [content]}).into()))
}
