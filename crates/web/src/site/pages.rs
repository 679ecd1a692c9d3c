//! Pages for people, such as the console, under a path of their own.
//!
//! Who they are is the pages' own business: a browser shows no key. A connection
//! that is not from this machine is told apart.

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

/// The longest form.
const LONGEST: usize = 1 << 20;

/// How long a form may take to come.
const TO_COME: Duration = Duration::from_secs(10);

/// Who answers below a path.
#[async_trait]
pub trait Pages: Send + Sync {
    /// The path, such as `/console`.
    fn path(&self) -> &str;

    async fn answer(&self, request: Request<Bytes>, visitor: Visitor) -> Response<Body>;
}

/// Finds who holds a key or a token.
pub type Identify = Arc<dyn Fn(&str) -> Option<Arc<Identity>> + Send + Sync>;

/// What is known of who asks.
pub struct Visitor {
    /// Whether the connection comes from this machine.
    pub is_local: bool,
    pub identify: Identify,
}

/// Returns whether a path is one of the pages'.
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
    let body = Limited::new(body.map_err(|error| error.to_string()), LONGEST);
    let body = match timeout(TO_COME, body.collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            let message = format!("the form is over {LONGEST} bytes or broke off");
            return json_error(StatusCode::PAYLOAD_TOO_LARGE, &message);
        }
        Err(_) => return json_error(StatusCode::REQUEST_TIMEOUT, "the form did not come"),
    };
    pages.answer(Request::from_parts(head, body), Visitor { is_local, identify }).await
}
