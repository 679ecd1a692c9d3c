//! The session of a legacy client, which begins with `initialize`.
//!
//! A session holds the client, its provider, its log level, its subscriptions and the open
//! questions to it. It does not depend on the transport.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tool::{
    Client, ClientHandle, Context, Event, Failure, Identity, Json, Kind, Notification, Object,
    Provider, Reply, RpcError,
};

use super::caller::{Caller, CallerKey, CountedSlot, PerCallerLimit};
use super::subscriptions;
use crate::level::Level;
use crate::message::Response;
use crate::peer::Peer;
use crate::revision::{Revision, code, method};

/// The maximum number of open questions to one client.
pub(crate) const MAX_QUESTIONS: usize = 64;

/// The position of the replica's tag in the id of a question, in bits. Tag and number
/// together fit a number that JavaScript represents exactly.
const TAG_SHIFT: u32 = 20;

/// Returns the tag of the replica that asked the question with this id; 0 if there is only
/// one replica.
pub(crate) fn replica_of_question(number: u64) -> u32 {
    u32::try_from(number >> TAG_SHIFT).unwrap_or(0)
}

/// The session of one client of a legacy revision.
pub(crate) struct Session {
    pub(crate) id: Arc<str>,
    pub(crate) revision: Revision,
    pub(crate) client: Arc<Client>,
    pub(crate) caller: Arc<Identity>,
    pub(crate) provider: Arc<dyn Provider>,
    /// The pipe to the client; `None` over HTTP.
    pub(crate) peer: Option<Peer>,
    level: AtomicU8,
    caller_key: CallerKey,
    subscriptions: Mutex<BTreeMap<String, CountedSlot>>,
    asked: Mutex<HashMap<u64, oneshot::Sender<Reply>>>,
    next: AtomicU64,
    /// The task that notifies the provider of changed roots.
    roots_task: Mutex<Option<AbortHandle>>,
}

/// A question to the client that waits for its answer.
pub(crate) struct PendingQuestion<'a> {
    session: &'a Session,
    number: u64,
    answer: oneshot::Receiver<Reply>,
}

impl Session {
    pub(crate) fn new(
        id: Arc<str>,
        revision: Revision,
        client: Arc<Client>,
        caller: &Caller,
        provider: Arc<dyn Provider>,
        peer: Option<Peer>,
    ) -> Session {
        Session {
            id,
            revision,
            client,
            caller: Arc::clone(&caller.identity),
            caller_key: caller.key(),
            provider,
            peer,
            level: AtomicU8::new(Level::pack(None)),
            subscriptions: Mutex::default(),
            asked: Mutex::default(),
            next: AtomicU64::new(1),
            roots_task: Mutex::default(),
        }
    }

    /// Puts the tag of a replica into the ids of questions, so that their answers find it.
    pub(crate) fn with_replica_tag(self, tag: u32) -> Session {
        Session { next: AtomicU64::new((u64::from(tag) << TAG_SHIFT) + 1), ..self }
    }

    /// Returns the tag of this replica; 0 if there is only one.
    pub(crate) fn replica_tag(&self) -> u32 {
        replica_of_question(self.next.load(Ordering::Relaxed))
    }

    /// Spawns the task that notifies the provider of changed roots. It replaces an earlier
    /// one: only the latest change counts.
    pub(crate) fn run_roots_task(&self, roots_task: impl Future<Output = ()> + Send + 'static) {
        let task = tokio::spawn(roots_task).abort_handle();
        if let Some(before) = self.roots_task.lock().replace(task) {
            before.abort();
        }
    }

    /// Aborts that task, when the session ends.
    pub(crate) fn stop_forwarding(&self) {
        if let Some(roots_task) = self.roots_task.lock().take() {
            roots_task.abort();
        }
    }

    pub(crate) fn context(&self, client_handle: Arc<dyn ClientHandle>) -> Context {
        Context {
            client: Arc::clone(&self.client),
            caller: Arc::clone(&self.caller),
            session: Arc::clone(&self.id),
            timeout: None,
            client_handle,
            trace: None,
        }
    }

    /// Returns the minimum level of the log lines that the client wants; `None` for all.
    pub(crate) fn level(&self) -> Option<Level> {
        Level::unpack(self.level.load(Ordering::Relaxed))
    }

    pub(crate) fn set_level(&self, level: Level) {
        self.level.store(Level::pack(Some(level)), Ordering::Relaxed);
    }

    /// Returns the key by which the caller is counted.
    pub(crate) fn caller_key(&self) -> &CallerKey {
        &self.caller_key
    }

    /// Adds a subscription, unless there are too many; returns `false` if it existed.
    pub(crate) fn subscribe(
        &self,
        uri: &str,
        limit: &Arc<PerCallerLimit>,
    ) -> Result<bool, RpcError> {
        subscriptions::check(uri)?;
        let mut known = self.subscriptions.lock();
        if known.contains_key(uri) {
            return Ok(false);
        }
        if subscriptions::PER_SESSION <= known.len() {
            return Err(subscriptions::too_many());
        }
        known.insert(uri.to_owned(), limit.acquire(&self.caller_key)?);
        Ok(true)
    }

    /// Removes a subscription; returns `false` if there was none.
    pub(crate) fn unsubscribe(&self, uri: &str) -> bool {
        self.subscriptions.lock().remove(uri).is_some()
    }

    /// Returns the URIs of all subscriptions.
    pub(crate) fn subscriptions(&self) -> BTreeSet<String> {
        self.subscriptions.lock().keys().cloned().collect()
    }

    /// Removes and returns all subscriptions, when the session ends.
    pub(crate) fn take_subscriptions(&self) -> impl Iterator<Item = String> + use<> {
        std::mem::take(&mut *self.subscriptions.lock()).into_keys()
    }

    /// Returns the notification for an event, if the client wants it.
    pub(crate) fn notification_for(&self, event: Event) -> Option<Notification> {
        match event {
            Event::Changed(kind) => Some(Notification {
                method: list_changed_method(kind).to_owned(),
                params: <_>::default(),
            }),
            Event::Updated { uri, notification: note } => {
                let wants = |wanted: &String| uri == *wanted || is_below(&uri, wanted);
                self.subscriptions.lock().keys().any(wants).then_some(note)
            }
            Event::Notification(note) if note.method == method::MESSAGE => {
                let at = Level::from_params(&note.params, "level");
                let wants = self.level().is_none_or(|least| at.is_none_or(|at| least <= at));
                wants.then_some(note)
            }
            Event::Notification(note) => Some(note),
            Event::Gone { .. } => None,
        }
    }

    /// Registers a new question to the client.
    pub(crate) fn register_question(&self) -> Result<PendingQuestion<'_>, Failure> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        let mut asked = self.asked.lock();
        if MAX_QUESTIONS <= asked.len() {
            let reason = format!("the client has {MAX_QUESTIONS} questions to answer already");
            return Err(Failure::Unavailable { reason });
        }
        asked.insert(number, sender);
        drop(asked);
        Ok(PendingQuestion { session: self, number, answer })
    }

    /// Completes a question with the client's response.
    pub(crate) fn complete_question(&self, response: Response) {
        let number = response.id.parse_as::<u64>().ok();
        if let Some(sender) = number.and_then(|number| self.asked.lock().remove(&number)) {
            // Fails if the provider stopped waiting.
            drop(sender.send(response.reply));
        }
    }
}

impl PendingQuestion<'_> {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the JSON-RPC id of the question, as JSON text.
    pub(crate) fn id(&self) -> String {
        self.number.to_string()
    }

    /// Waits for the answer. Calls `cancel` with a reason after the timeout, or when the
    /// future is dropped.
    pub(crate) async fn answer(
        mut self,
        timeout: Duration,
        cancel: impl FnOnce(&str),
    ) -> Result<Reply, Failure> {
        let mut cancel_on_drop = CancelOnDrop(Some(cancel));
        let answer = tokio::time::timeout(timeout, &mut self.answer).await;
        let cancel = cancel_on_drop.0.take();
        match answer {
            Ok(answer) => answer.map_err(|_| Failure::Cancelled),
            Err(_) => {
                if let Some(cancel) = cancel {
                    cancel("no answer in time");
                }
                Err(Failure::Timeout { after: timeout })
            }
        }
    }
}

/// Calls the function when dropped, unless it was taken out.
struct CancelOnDrop<F: FnOnce(&str)>(Option<F>);

impl<F: FnOnce(&str)> Drop for CancelOnDrop<F> {
    fn drop(&mut self) {
        if let Some(cancel) = self.0.take() {
            cancel("no longer wanted");
        }
    }
}

impl Drop for PendingQuestion<'_> {
    fn drop(&mut self) {
        self.session.asked.lock().remove(&self.number);
    }
}

/// Returns the method of the notification that a list changed.
pub(crate) fn list_changed_method(kind: Kind) -> &'static str {
    match kind {
        Kind::Tools => method::TOOLS_CHANGED,
        Kind::Resources | Kind::Templates => method::RESOURCES_CHANGED,
        Kind::Prompts => method::PROMPTS_CHANGED,
    }
}

/// Returns whether `uri` is below `parent`: servers may report updates of parts of a
/// subscribed resource.
pub(crate) fn is_below(uri: &str, parent: &str) -> bool {
    uri.strip_prefix(parent.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

/// The limits of what a client says about itself, in bytes: a name or version, the whole
/// `clientInfo`, and the capabilities.
const NAME_BYTES: usize = 1 << 10;
const INFO_BYTES: usize = 16 << 10;
const CAPABILITY_BYTES: usize = 64 << 10;

/// Parses the client from the params of `initialize`.
pub(crate) fn parse_client(params: Option<&Json>, revision: Revision) -> Result<Client, RpcError> {
    let member = |key: &str| params.and_then(|params| params.member(key));
    let client = build_client(member("clientInfo"), member("capabilities"), revision)?;
    // Copied, because the session would otherwise keep the whole first request alive.
    let copy = |json: &Json| Json::from_trusted(json.as_str().to_owned());
    Ok(Client { raw: copy(&client.raw), capabilities: copy(&client.capabilities), ..client })
}

/// Builds the client description. Refuses names and capabilities that are too long; of a
/// `clientInfo` that is too long, most likely because of icons, keeps only the names.
pub(crate) fn build_client(
    client_info: Option<Json>,
    capabilities: Option<Json>,
    revision: Revision,
) -> Result<Client, RpcError> {
    let client_info = client_info.filter(Json::is_object);
    let text = |key: &str| {
        let part = client_info.as_ref().and_then(|client_info| client_info.member(key));
        let part = part.map(|part| check_length(part, key, NAME_BYTES)).transpose()?;
        Ok(part.as_ref().and_then(Json::string_value))
    };
    let (name, version, title) = (text("name")?, text("version")?, text("title")?);
    let raw = match client_info {
        Some(client_info) if client_info.as_str().len() <= INFO_BYTES => client_info,
        Some(_) => {
            let said = [("name", &name), ("title", &title), ("version", &version)];
            let said = said.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?)));
            let said = said.map(|(key, text)| (key.to_owned(), Json::encode(text)));
            Object::from_iter(said).to_json()
        }
        None => Json::empty_object(),
    };
    let capabilities = capabilities.filter(Json::is_object);
    let capabilities = capabilities.unwrap_or_else(Json::empty_object);
    Ok(Client {
        name: name.unwrap_or_default(),
        version: version.unwrap_or_default(),
        raw,
        capabilities: check_length(capabilities, "capabilities", CAPABILITY_BYTES)?,
        protocol: revision.as_str().to_owned(),
    })
}

fn check_length(part: Json, what: &str, limit: usize) -> Result<Json, RpcError> {
    if part.as_str().len() <= limit {
        return Ok(part);
    }
    let message = format!("the client's `{what}` may have at most {limit} bytes");
    Err(RpcError::new(code::INVALID_PARAMS, message))
}
