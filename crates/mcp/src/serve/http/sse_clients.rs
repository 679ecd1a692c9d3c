//! The clients of revision 2024-11-05 that are connected.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tool::{Json, Reply};

use super::answers::AnswerMemory;
use super::resumable::ResumableStream;
use super::sessions::HttpSession;
use crate::serve::caller::{Caller, Counted};

/// The connected clients, by id.
#[derive(Default)]
pub(super) struct SseClients(pub(super) Mutex<HashMap<String, Arc<SseClient>>>);

/// A client of that revision; it is gone when its stream is.
pub(super) struct SseClient {
    pub(super) caller: Caller,
    pub(super) stream: Arc<ResumableStream>,
    pub(super) session: Mutex<Option<Arc<HttpSession>>>,
    pub(super) _counted: Counted,
}

impl SseClients {
    /// Ends the streams of clients that wait for no answer.
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
    pub(super) fn tell(&self, id: &Json, reply: &Reply) {
        self.stream.answer(id, reply, &AnswerMemory::default());
    }
}
