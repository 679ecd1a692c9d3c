//! Passes requests below a path to pages for people, such as the console.
//!
//! The pages authenticate their visitors themselves, because a browser sends no key. They
//! are told whether the connection comes from this machine.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf, Bytes};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use mcp::serve::http::Body;
use tokio::time::timeout;
use tool::Identity;

use super::response::json_error;
use crate::listen::Peer;

/// The size of the largest form.
const MAX_FORM_BYTES: usize = 1 << 20;

/// How long sending a form may take.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);

/// Answers all requests below a path.
#[async_trait]
pub trait Pages: Send + Sync {
    /// The path, such as `/console`.
    fn path(&self) -> &str;

    async fn answer(&self, request: Request<Bytes>, visitor: Visitor) -> Response<Body>;
}

/// Returns the identity of the holder of a key or a token.
pub type Identify = Arc<dyn Fn(&str) -> Option<Arc<Identity>> + Send + Sync>;

/// The visitor of a page.
pub struct Visitor {
    /// Whether the connection comes from this machine.
    pub is_local: bool,
    pub identify: Identify,
}

/// Returns whether a path belongs to the pages.
pub(super) fn is_below(pages: &dyn Pages, path: &str) -> bool {
    let rest = path.strip_prefix(pages.path());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(super) async fn respond<B>(
    pages: &dyn Pages,
    request: Request<B>,
    identify: Identify,
) -> Response<Body>
where
    B: http_body::Body,
    B::Data: Buf,
    B::Error: Display,
{
    let peer = request.extensions().get::<Peer>();
    let is_local = peer.is_some_and(|peer| peer.0.ip().to_canonical().is_loopback());
    let (head, body) = request.into_parts();
    let body = Limited::new(body.map_err(|error| error.to_string()), MAX_FORM_BYTES);
    let body = match timeout(FORM_TIMEOUT, body.collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            let message = format!("the form is over {MAX_FORM_BYTES} bytes or broke off");
            return json_error(StatusCode::PAYLOAD_TOO_LARGE, &message);
        }
        Err(_) => return json_error(StatusCode::REQUEST_TIMEOUT, "the form did not come"),
    };
    pages.answer(Request::from_parts(head, body), Visitor { is_local, identify }).await
}
