//! The connected clients of the HTTP+SSE transport (revision 2024-11-05).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tool::{Json, Reply};

use super::answer_memory::AnswerRoom;
use super::resumable::ResumableStream;
use super::sessions::HttpSession;
use crate::serve::caller::{Caller, CountedSlot};

/// The connected clients, by id.
#[derive(Default)]
pub(super) struct SseClients(pub(super) Mutex<HashMap<String, Arc<SseClient>>>);

/// A connected client; it ends with its stream. `session` is set by `initialize`.
pub(super) struct SseClient {
    pub(super) caller: Caller,
    pub(super) stream: Arc<ResumableStream>,
    pub(super) session: Mutex<Option<Arc<HttpSession>>>,
    pub(super) _counted: CountedSlot,
}

impl SseClients {
    /// Ends the streams of clients without open requests.
    pub(super) fn stop_listening(&self) {
        for client in self.0.lock().values() {
            let session = client.session.lock().clone();
            if session.is_none_or(|session| session.in_flight.is_empty()) {
                client.stream.close();
            }
        }
    }
}

impl SseClient {
    pub(super) fn send_answer(&self, id: &Json, reply: &Reply) {
        self.stream.push_answer(id, reply, AnswerRoom::uncounted());
    }
}
