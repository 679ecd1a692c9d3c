//! Who is logged in: single-use links, sessions, and what keeps other pages from
//! acting in an operator's name.
//!
//! All of it lasts as long as the process. A link is good once and for a few
//! minutes; a session for a working day.

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

/// How long a link is good for.
const LINK_LIFE: Duration = Duration::from_secs(5 * 60);
/// How long a session lasts.
const SESSION_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// How many links and sessions there may be; the oldest go first.
const MOST: usize = 64;

/// The links and sessions of one console.
pub struct Sessions {
    clock: Arc<dyn Clock>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// When each ends, by the hash of its code: a copy of the memory logs nobody in.
    links: HashMap<String, Duration>,
    sessions: HashMap<String, Session>,
}

/// One browser of one operator.
#[derive(Clone, Debug)]
pub struct Session {
    /// Who it is.
    pub who: String,
    /// By which key or token they came in; `None` for whoever came by a link.
    pub login: Option<KeyLogin>,
    /// What every form of this session carries.
    pub form_token: String,
    until: Duration,
    /// What is to be said on the next page, once.
    notice: Option<String>,
}

/// A login by a key or a token. The session lasts only as long as that does.
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
        Sessions { clock, held: Mutex::default() }
    }

    /// A code that logs in once.
    pub fn link(&self) -> String {
        let code = random();
        let now = self.clock.elapsed();
        let mut held = self.held.lock();
        held.links.retain(|_, until| now < *until);
        bound(&mut held.links, |until| *until);
        held.links.insert(hash(&code), now + LINK_LIFE);
        code
    }

    /// Uses a code, if it is good.
    pub fn redeem(&self, code: &str) -> bool {
        let now = self.clock.elapsed();
        let until = self.held.lock().links.remove(&hash(code));
        until.is_some_and(|until| now < until)
    }

    /// Begins a session; gives what the browser keeps.
    pub fn begin(&self, who: &str, login: Option<KeyLogin>) -> String {
        let key = random();
        let now = self.clock.elapsed();
        let until = now + SESSION_LIFE;
        let (who, form_token) = (who.to_owned(), random());
        let session = Session { who, login, form_token, until, notice: None };
        let mut held = self.held.lock();
        held.sessions.retain(|_, session| now < session.until);
        bound(&mut held.sessions, |session| session.until);
        held.sessions.insert(hash(&key), session);
        key
    }

    /// The session that a browser shows.
    pub fn find(&self, key: &str) -> Option<Session> {
        let now = self.clock.elapsed();
        let held = self.held.lock();
        held.sessions.get(&hash(key)).filter(|session| now < session.until).cloned()
    }

    pub fn end(&self, key: &str) {
        self.held.lock().sessions.remove(&hash(key));
    }

    /// Says something on the next page of a session.
    pub fn notice(&self, key: &str, text: String) {
        if let Some(session) = self.held.lock().sessions.get_mut(&hash(key)) {
            session.notice = Some(text);
        }
    }

    /// What is to be said, once.
    pub fn take_notice(&self, key: &str) -> Option<String> {
        self.held.lock().sessions.get_mut(&hash(key))?.notice.take()
    }
}

impl Session {
    /// Returns whether a call that waits was made by whoever logged in here.
    ///
    /// Whoever came by a link runs programs as gatelet's user and may decide
    /// anything. A key is also what a model's client shows, and nothing that a
    /// model is given agrees to its own call.
    pub fn made_call(&self, request: &QueuedRequest) -> bool {
        let login = self.login.as_ref();
        login.is_some_and(|login| caller_hash(&login.identity) == request.caller_hash)
    }

    /// Whether a form was made for this session.
    pub fn made(&self, form_token: &str) -> bool {
        self.form_token.as_bytes().ct_eq(form_token.as_bytes()).into()
    }
}

/// Makes room for one more.
fn bound<T>(map: &mut HashMap<String, T>, until: impl Fn(&T) -> Duration) {
    while MOST <= map.len() {
        let oldest = map.iter().min_by_key(|(_, value)| until(value)).map(|(key, _)| key.clone());
        let Some(oldest) = oldest else { return };
        map.remove(&oldest);
    }
}

fn random() -> String {
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
        let link = sessions.link();
        assert!(!sessions.redeem("guess"));
        assert!(sessions.redeem(&link));
        assert!(!sessions.redeem(&link), "a second time");
        let late = sessions.link();
        clock.advance(LINK_LIFE);
        assert!(!sessions.redeem(&late));
    }

    #[test]
    fn a_session_ends_by_itself_and_when_asked_to() {
        let (sessions, clock) = sessions();
        let key = sessions.begin("ann", None);
        assert_eq!(sessions.find(&key).unwrap().who, "ann");
        assert!(sessions.find("guess").is_none());
        sessions.end(&key);
        assert!(sessions.find(&key).is_none());
        let key = sessions.begin("ann", None);
        clock.advance(SESSION_LIFE);
        assert!(sessions.find(&key).is_none());
    }

    #[test]
    fn a_form_belongs_to_its_session() {
        let (sessions, _) = sessions();
        let one = sessions.find(&sessions.begin("ann", None)).unwrap();
        let two = sessions.find(&sessions.begin("ann", None)).unwrap();
        assert!(one.made(&one.form_token));
        assert!(!one.made(&two.form_token) && !one.made(""));
    }

    #[test]
    fn what_nobody_uses_does_not_pile_up() {
        let (sessions, _) = sessions();
        for _ in 0..1000 {
            sessions.link();
            sessions.begin("ann", None);
        }
        let held = sessions.held.lock();
        assert!(held.links.len() <= MOST && held.sessions.len() <= MOST);
    }
}
