//! Login links, sessions, and the form tokens that protect against cross-site requests.
//!
//! All of them are kept in memory only. A link works once and for a few minutes; a
//! session lasts for a working day.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use policy::approval::{QueuedRequest, caller_hash};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tool::clock::Clock;
use tool::{Identity, hex};

/// How long a link works.
const LINK_LIFE: Duration = Duration::from_secs(5 * 60);
/// How long a session lasts.
const SESSION_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// How many links, and how many sessions, there may be; the oldest are dropped first.
const MAX_ENTRIES: usize = 64;

/// The links and sessions of one console.
pub struct Sessions {
    clock: Arc<dyn Clock>,
    table: Mutex<SessionTable>,
}

#[derive(Default)]
struct SessionTable {
    /// When each link expires, by the hash of its code, so that a copy of the memory does
    /// not log anybody in.
    links: HashMap<String, Duration>,
    /// Sessions by the hash of their key.
    sessions: HashMap<String, Session>,
}

/// One browser of one operator.
#[derive(Clone, Debug)]
pub struct Session {
    /// Names the session in records of calls; tells nothing of its key.
    pub id: Arc<str>,
    /// The name of who is logged in.
    pub who: String,
    /// The key or token of the login; `None` for a login by link.
    pub login: Option<KeyLogin>,
    /// The secret that every form of this session contains.
    pub form_token: String,
    /// When it ends, by the clock's elapsed time.
    until: Duration,
    /// A message that is shown once, on the next page.
    notice: Option<String>,
}

/// A login by a key or a token. The session ends when that becomes invalid.
#[derive(Clone)]
pub struct KeyLogin {
    pub identity: Arc<Identity>,
    pub credential: String,
}

impl fmt::Debug for KeyLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyLogin").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Sessions {
    pub fn new(clock: Arc<dyn Clock>) -> Sessions {
        Sessions { clock, table: Mutex::default() }
    }

    /// Creates a code that logs in once.
    pub fn create_link(&self) -> String {
        let code = random_code();
        let now = self.clock.elapsed();
        let mut table = self.table.lock();
        table.links.retain(|_, until| now < *until);
        evict_oldest(&mut table.links, |until| *until);
        table.links.insert(hash(&code), now + LINK_LIFE);
        code
    }

    /// Uses up a code, and returns whether it was valid.
    pub fn redeem(&self, code: &str) -> bool {
        let now = self.clock.elapsed();
        let until = self.table.lock().links.remove(&hash(code));
        until.is_some_and(|until| now < until)
    }

    /// Begins a session and returns its key, which becomes the cookie.
    pub fn begin(&self, who: &str, login: Option<KeyLogin>) -> String {
        let session_key = random_code();
        let now = self.clock.elapsed();
        let until = now + SESSION_LIFE;
        let (who, form_token) = (who.to_owned(), random_code());
        let key_hash = hash(&session_key);
        let id = Arc::from(format!("console:{}", &key_hash[..16]));
        let session = Session { id, who, login, form_token, until, notice: None };
        let mut table = self.table.lock();
        table.sessions.retain(|_, session| now < session.until);
        evict_oldest(&mut table.sessions, |session| session.until);
        table.sessions.insert(key_hash, session);
        session_key
    }

    /// Returns the session of a key.
    pub fn find(&self, session_key: &str) -> Option<Session> {
        let now = self.clock.elapsed();
        let table = self.table.lock();
        table.sessions.get(&hash(session_key)).filter(|session| now < session.until).cloned()
    }

    pub fn end(&self, session_key: &str) {
        self.table.lock().sessions.remove(&hash(session_key));
    }

    /// Sets the message that the next page of a session shows.
    pub fn set_notice(&self, session_key: &str, text: String) {
        if let Some(session) = self.table.lock().sessions.get_mut(&hash(session_key)) {
            session.notice = Some(text);
        }
    }

    /// Takes the message out of a session.
    pub fn take_notice(&self, session_key: &str) -> Option<String> {
        self.table.lock().sessions.get_mut(&hash(session_key))?.notice.take()
    }
}

impl Session {
    /// Returns whether a waiting call was made by the identity of this session.
    ///
    /// A login by link proves access to the machine, and may approve anything. A key may
    /// also be in the hands of a model's client, which must not approve its own calls.
    pub fn made_call(&self, request: &QueuedRequest) -> bool {
        let login = self.login.as_ref();
        login.is_some_and(|login| caller_hash(&login.identity) == request.caller_hash)
    }

    /// Returns who makes the calls of this session: the identity of its key, so that rules
    /// hold and nobody agrees to a call of their own. A login by link names nobody.
    pub(crate) fn caller(&self) -> Arc<Identity> {
        self.login.as_ref().map(|login| Arc::clone(&login.identity)).unwrap_or_default()
    }

    /// Returns whether a form token belongs to this session.
    pub fn owns_form(&self, form_token: &str) -> bool {
        self.form_token.as_bytes().ct_eq(form_token.as_bytes()).into()
    }
}

/// Drops the entries that end first, until there is room for one more.
fn evict_oldest<T>(map: &mut HashMap<String, T>, until: impl Fn(&T) -> Duration) {
    while MAX_ENTRIES <= map.len() {
        let oldest = map.iter().min_by_key(|(_, value)| until(value)).map(|(key, _)| key.clone());
        let Some(oldest) = oldest else { return };
        map.remove(&oldest);
    }
}

fn random_code() -> String {
    hex::encode(&rand::random::<[u8; 32]>())
}

fn hash(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use tool::clock::Fake;

    use super::*;

    fn sessions() -> (Sessions, Arc<Fake>) {
        let clock: Arc<Fake> = Arc::default();
        (Sessions::new(Arc::clone(&clock) as _), clock)
    }

    #[test]
    fn a_link_logs_in_once_and_not_for_long() {
        let (sessions, clock) = sessions();
        let link = sessions.create_link();
        assert!(!sessions.redeem("guess"));
        assert!(sessions.redeem(&link));
        assert!(!sessions.redeem(&link), "a second time");
        let late = sessions.create_link();
        clock.advance(LINK_LIFE);
        assert!(!sessions.redeem(&late));
    }

    #[test]
    fn a_session_ends_by_itself_and_when_asked_to() {
        let (sessions, clock) = sessions();
        let session_key = sessions.begin("ann", None);
        assert_eq!(sessions.find(&session_key).unwrap().who, "ann");
        assert!(sessions.find("guess").is_none());
        sessions.end(&session_key);
        assert!(sessions.find(&session_key).is_none());
        let session_key = sessions.begin("ann", None);
        clock.advance(SESSION_LIFE);
        assert!(sessions.find(&session_key).is_none());
    }

    #[test]
    fn a_form_belongs_to_its_session() {
        let (sessions, _) = sessions();
        let one = sessions.find(&sessions.begin("ann", None)).unwrap();
        let two = sessions.find(&sessions.begin("ann", None)).unwrap();
        assert!(one.owns_form(&one.form_token));
        assert!(!one.owns_form(&two.form_token) && !one.owns_form(""));
    }

    #[test]
    fn what_nobody_uses_does_not_pile_up() {
        let (sessions, _) = sessions();
        for _ in 0..1000 {
            sessions.create_link();
            sessions.begin("ann", None);
        }
        let table = sessions.table.lock();
        assert!(table.links.len() <= MAX_ENTRIES && table.sessions.len() <= MAX_ENTRIES);
    }
}
