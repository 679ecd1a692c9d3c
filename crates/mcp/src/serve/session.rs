//! The session of a client that sent `initialize`.
//!
//! A session is small: who the client is, which provider it sees, its log
//! level, its subscriptions and the questions it has been asked. It knows no
//! transport.

use std::collections::{BTreeMap, HashMap};
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

use super::caller::{Caller, CallerKey, Counted, PerCaller};
use super::subscriptions;
use crate::level::Level;
use crate::message::Response;
use crate::peer::Peer;
use crate::revision::{Revision, code, method};

/// How many questions of providers one client may have to answer at once.
pub(crate) const QUESTIONS: usize = 64;

/// By how many bits the tag of a replica stands above the number of a question.
/// Both together are a number that JavaScript counts with exactly.
const TAG_SHIFT: u32 = 20;

/// The replica that asked the question with this number; 0 where there is one only.
pub(crate) fn asked_by(number: u64) -> u32 {
    u32::try_from(number >> TAG_SHIFT).unwrap_or(0)
}

/// One client of an older revision.
pub(crate) struct Session {
    pub(crate) id: Arc<str>,
    pub(crate) revision: Revision,
    pub(crate) client: Arc<Client>,
    pub(crate) caller: Arc<Identity>,
    pub(crate) provider: Arc<dyn Provider>,
    /// The pipe to the client, where there is one.
    pub(crate) peer: Option<Peer>,
    level: AtomicU8,
    caller_key: CallerKey,
    subscriptions: Mutex<BTreeMap<String, Counted>>,
    asked: Mutex<HashMap<u64, oneshot::Sender<Reply>>>,
    next: AtomicU64,
    /// The task that passes on news of the client.
    news: Mutex<Option<AbortHandle>>,
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
            news: Mutex::default(),
        }
    }

    /// The session at the replica with this tag: its questions say where their
    /// answers belong.
    pub(crate) fn asking_as(self, tag: u32) -> Session {
        Session { next: AtomicU64::new((u64::from(tag) << TAG_SHIFT) + 1), ..self }
    }

    /// Lets a task pass on news of the client, in place of the one before: only
    /// the latest news count.
    pub(crate) fn pass_on(&self, news: impl Future<Output = ()> + Send + 'static) {
        let task = tokio::spawn(news).abort_handle();
        if let Some(before) = self.news.lock().replace(task) {
            before.abort();
        }
    }

    /// Passes on no more news, when the session ends.
    pub(crate) fn stop_forwarding(&self) {
        if let Some(news) = self.news.lock().take() {
            news.abort();
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

    /// The least serious log line that the client wants; all when `None`.
    pub(crate) fn level(&self) -> Option<Level> {
        Level::unpack(self.level.load(Ordering::Relaxed))
    }

    pub(crate) fn set_level(&self, level: Level) {
        self.level.store(Level::pack(Some(level)), Ordering::Relaxed);
    }

    /// Whose session it is, where something is counted by caller.
    pub(crate) fn caller_key(&self) -> &CallerKey {
        &self.caller_key
    }

    /// Notes a subscription, unless there are too many; `false` when it was
    /// there.
    pub(crate) fn subscribe(&self, uri: &str, watched: &Arc<PerCaller>) -> Result<bool, RpcError> {
        subscriptions::check(uri)?;
        let mut known = self.subscriptions.lock();
        if known.contains_key(uri) {
            return Ok(false);
        }
        if subscriptions::PER_SESSION <= known.len() {
            return Err(subscriptions::too_many());
        }
        known.insert(uri.to_owned(), watched.count(&self.caller_key)?);
        Ok(true)
    }

    /// Forgets a subscription; `false` when there was none.
    pub(crate) fn unsubscribe(&self, uri: &str) -> bool {
        self.subscriptions.lock().remove(uri).is_some()
    }

    /// Takes all subscriptions, when the session ends.
    pub(crate) fn take_subscriptions(&self) -> impl Iterator<Item = String> + use<> {
        std::mem::take(&mut *self.subscriptions.lock()).into_keys()
    }

    /// Returns what the client is told of something that happened, if anything.
    pub(crate) fn news(&self, event: Event) -> Option<Notification> {
        match event {
            Event::Changed(kind) => {
                Some(Notification { method: changed(kind).to_owned(), params: <_>::default() })
            }
            Event::Updated { uri, notification: note } => {
                let wants = |wanted: &String| uri == *wanted || is_below(&uri, wanted);
                self.subscriptions.lock().keys().any(wants).then_some(note)
            }
            Event::Notification(note) if note.method == method::MESSAGE => {
                let at = Level::read(&note.params, "level");
                let wants = self.level().is_none_or(|least| at.is_none_or(|at| least <= at));
                wants.then_some(note)
            }
            Event::Notification(note) => Some(note),
            Event::Gone { .. } => None,
        }
    }

    /// Takes a number for a question to the client.
    pub(crate) fn ask(&self) -> Result<PendingQuestion<'_>, Failure> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        let mut asked = self.asked.lock();
        if QUESTIONS <= asked.len() {
            let reason = format!("the client has {QUESTIONS} questions to answer already");
            return Err(Failure::Unavailable { reason });
        }
        asked.insert(number, sender);
        drop(asked);
        Ok(PendingQuestion { session: self, number, answer })
    }

    /// Hands an answer of the client to whoever asked.
    pub(crate) fn complete_question(&self, response: Response) {
        let number = response.id.parse_as::<u64>().ok();
        if let Some(sender) = number.and_then(|number| self.asked.lock().remove(&number)) {
            // Whoever stopped waiting needs no answer.
            drop(sender.send(response.reply));
        }
    }
}

impl PendingQuestion<'_> {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The id under which the question travels, as JSON text.
    pub(crate) fn id(&self) -> String {
        self.number.to_string()
    }

    /// Waits for the answer; `cancel` tells the client when it takes too long,
    /// or when nobody waits for it any more.
    pub(crate) async fn answer(
        mut self,
        timeouts: Duration,
        cancel: impl FnOnce(&str),
    ) -> Result<Reply, Failure> {
        let mut withdrawal = Withdrawal(Some(cancel));
        let answer = tokio::time::timeout(timeouts, &mut self.answer).await;
        let cancel = withdrawal.0.take();
        match answer {
            Ok(answer) => answer.map_err(|_| Failure::Cancelled),
            Err(_) => {
                if let Some(cancel) = cancel {
                    cancel("no answer in time");
                }
                Err(Failure::Timeout { after: timeouts })
            }
        }
    }
}

/// Takes a question back when it is dropped before its answer.
struct Withdrawal<F: FnOnce(&str)>(Option<F>);

impl<F: FnOnce(&str)> Drop for Withdrawal<F> {
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

/// The notification that says that a list changed.
pub(crate) fn changed(kind: Kind) -> &'static str {
    match kind {
        Kind::Tools => method::TOOLS_CHANGED,
        Kind::Resources | Kind::Templates => method::RESOURCES_CHANGED,
        Kind::Prompts => method::PROMPTS_CHANGED,
    }
}

/// Returns whether a subscription to `parent` covers `uri`: servers may report a
/// part of what was subscribed to.
pub(crate) fn is_below(uri: &str, parent: &str) -> bool {
    uri.strip_prefix(parent.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

/// How much of what a client says of itself is kept: a name or a version, all
/// of `clientInfo`, and all capabilities.
const NAME_BYTES: usize = 1 << 10;
const INFO_BYTES: usize = 16 << 10;
const CAPABILITY_BYTES: usize = 64 << 10;

/// Returns what the params of `initialize` say of the client.
pub(crate) fn introduction(params: Option<&Json>, revision: Revision) -> Result<Client, RpcError> {
    let member = |key: &str| params.and_then(|params| params.member(key));
    let client = client(member("clientInfo"), member("capabilities"), revision)?;
    // Copied, because a session would keep the whole buffer of its first
    // request alive otherwise.
    let copy = |json: &Json| Json::from_trusted(json.as_str().to_owned());
    Ok(Client { raw: copy(&client.raw), capabilities: copy(&client.capabilities), ..client })
}

/// A client from what it says of itself. Names and capabilities that are too
/// long are refused; of a `clientInfo` that is too long, for the icons in it
/// most likely, only the names are kept.
pub(crate) fn client(
    about: Option<Json>,
    capabilities: Option<Json>,
    revision: Revision,
) -> Result<Client, RpcError> {
    let about = about.filter(Json::is_object);
    let text = |key: &str| {
        let part = about.as_ref().and_then(|about| about.member(key));
        let part = part.map(|part| within(part, key, NAME_BYTES)).transpose()?;
        Ok(part.as_ref().and_then(Json::string_value))
    };
    let (name, version, title) = (text("name")?, text("version")?, text("title")?);
    let raw = match about {
        Some(about) if about.as_str().len() <= INFO_BYTES => about,
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
        capabilities: within(capabilities, "capabilities", CAPABILITY_BYTES)?,
        protocol: revision.as_str().to_owned(),
    })
}

fn within(part: Json, what: &str, limit: usize) -> Result<Json, RpcError> {
    if part.as_str().len() <= limit {
        return Ok(part);
    }
    let message = format!("the client's `{what}` may have at most {limit} bytes");
    Err(RpcError::new(code::INVALID_PARAMS, message))
}
