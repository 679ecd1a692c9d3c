//! Requests to the three tools of a CaSH server.

use std::sync::Arc;

use roster::Profile;
use tool::{Ask, Call, Context, Failure, Provider, Reply, RpcError};

/// The size limit that is passed to the CaSH server: in effect none. Gatelet's own gate
/// limits the result, so that no function has to run twice.
pub(crate) const NO_LIMIT: u32 = 16_000_000;

/// The longest page that is parsed. A listing that is longer has pages, and what is over
/// it is reported: a server must not keep gatelet busy with its own help.
pub(crate) const MAX_PAGE_BYTES: usize = 512 * 1024;

/// A page of help, or the beginning of a page that is too long.
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) is_cut: bool,
}

/// Requests a page, and keeps its whole lines within [`MAX_PAGE_BYTES`].
pub(crate) async fn page(
    upstream: &dyn Provider,
    tool: &str,
    arguments: serde_json::Value,
    context: &Context,
) -> Result<Result<Page, RpcError>, Failure> {
    Ok(text(upstream, tool, arguments, context).await?.map(cut))
}

fn cut(mut text: String) -> Page {
    let is_cut = MAX_PAGE_BYTES < text.len();
    if is_cut {
        let end = text.as_bytes()[..MAX_PAGE_BYTES].iter().rposition(|byte| *byte == b'\n');
        text.truncate(end.unwrap_or(0));
    }
    Page { text, is_cut }
}

/// The context of a request that gatelet makes for itself.
pub(crate) fn own_context() -> Context {
    Context { client: Arc::new(Profile::default().client()), ..Context::anonymous() }
}

/// Calls one of the three tools and returns its text, or the error that it reports.
async fn text(
    upstream: &dyn Provider,
    tool: &str,
    arguments: serde_json::Value,
    context: &Context,
) -> Result<Result<String, RpcError>, Failure> {
    let reply = upstream.ask(Ask::Call(Call::new(tool, arguments.into())), context).await?;
    let unusable = || Failure::Unusable { reason: format!("`{tool}` gave no text") };
    Ok(match reply {
        Reply::Error(error) => Err(error),
        Reply::Result(_) => {
            let result = reply.tool_result().ok_or_else(unusable)?;
            if result.is_error {
                Err(RpcError::new(-32002, result.text()))
            } else {
                Ok(result.text())
            }
        }
    })
}
