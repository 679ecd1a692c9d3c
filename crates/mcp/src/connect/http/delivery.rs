//! One message that is posted beside the requests.

use bytes::Bytes;
use tokio::time::Duration;
use tool::{Json, Reply};

use crate::message;

/// How many may wait to be sent.
pub(super) const WAITING: usize = 4096;

/// How long the server may take to say that it has one.
pub(super) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(20);

/// A message, and what it answers.
pub(super) struct Delivery {
    pub(super) body: Bytes,
    pub(super) answers: Option<Answered>,
}

/// A question that the server waits to be answered.
pub(super) struct Answered {
    pub(super) id: Json,
    pub(super) with: Reply,
}

impl Delivery {
    pub(super) fn answer(id: Json, reply: Reply) -> Delivery {
        let mut body = String::new();
        message::write_response(&mut body, id.as_str(), &reply);
        Delivery { body: body.into(), answers: Some(Answered { id, with: reply }) }
    }

    pub(super) fn news(method: &str, params: Option<&Json>) -> Delivery {
        let mut body = String::new();
        message::write_notification(&mut body, method, params);
        Delivery { body: body.into(), answers: None }
    }
}
