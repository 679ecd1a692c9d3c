//! A message to post that gets no reply: a response or a notification.

use bytes::Bytes;
use tokio::time::Duration;
use tool::{Json, Reply};

use crate::message;

/// The maximum number of queued deliveries.
pub(super) const MAX_QUEUED: usize = 4096;

/// How long the server may take to accept a delivery.
pub(super) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(20);

/// A serialized message, and the request of the server that it answers, if any.
pub(super) struct Delivery {
    pub(super) body: Bytes,
    pub(super) answered: Option<AnsweredRequest>,
}

/// A request of the server with our reply.
pub(super) struct AnsweredRequest {
    pub(super) id: Json,
    pub(super) reply: Reply,
}

impl Delivery {
    pub(super) fn response(id: Json, reply: Reply) -> Delivery {
        let mut body = String::new();
        message::write_response(&mut body, id.as_str(), &reply);
        Delivery { body: body.into(), answered: Some(AnsweredRequest { id, reply }) }
    }

    pub(super) fn notification(method: &str, params: Option<&Json>) -> Delivery {
        let mut body = String::new();
        message::write_notification(&mut body, method, params);
        Delivery { body: body.into(), answered: None }
    }
}
