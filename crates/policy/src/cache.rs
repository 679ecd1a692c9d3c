//! Caches the results of read-only tools.
//!
//! Off by default, because "read-only" is the upstream's own claim; an allow list
//! restricts it to tools that the operator vouches for. An entry is used for its
//! own caller only, expires, and all entries are dropped when what an upstream
//! lists changes. Errors are never cached.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use catalog::Catalog;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tool::{Annotations, Context, Json, Listing, Object, Reply, hex};

use crate::call::TargetKind;
use crate::pattern::{Names, Pattern};
use crate::validate::ValidCall;
use artifacts::Owner;
use tool::clock::Clock;

/// The cache stage: answers that need not be asked for again.
pub trait Cache: Send + Sync {
    /// The cached answer to a call, if there is one for this catalog.
    fn get(&self, call: &ValidCall, catalog: &Arc<Catalog>, context: &Context) -> Option<Reply>;

    /// The answer that another replica has cached, where replicas share what they cache and
    /// this call may be cached.
    fn get_shared<'a>(
        &'a self,
        call: &'a ValidCall,
        catalog: &'a Arc<Catalog>,
        context: &'a Context,
    ) -> Option<BoxFuture<'a, Option<Reply>>> {
        let _ = (call, catalog, context);
        None
    }

    /// Caches an answer, if it may be cached.
    fn put(&self, call: &ValidCall, catalog: &Arc<Catalog>, context: &Context, reply: &Reply);
}

/// A longer reply (in bytes) is copied out of the message that it came in.
const LONG: usize = 1 << 20;

/// A long reply is cached only if it takes at most this fraction (1/16) of the memory:
/// otherwise it would evict many others, and copying it would block other callers.
const LARGEST_SHARE: usize = 16;

/// What is cached, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether anything is cached at all.
    pub read_only: bool,
    pub life: Duration,
    /// The most entries.
    pub entries: usize,
    /// The most bytes of all entries together.
    pub bytes: usize,
    /// Only these tools are cached; all that claim to be read-only when `None`.
    pub allow: Option<Vec<Pattern>>,
}

impl Default for Config {
    fn default() -> Config {
        let life = Duration::from_secs(60);
        Config { read_only: false, life, entries: 256, bytes: 64 << 20, allow: None }
    }
}

impl Config {
    /// The bytes of the longest reply that is cached.
    fn longest(&self) -> usize {
        self.bytes.min(LONG.max(self.bytes / LARGEST_SHARE))
    }

    /// Whether answers of a tool may be cached.
    pub fn covers(&self, names: Names<'_>, annotations: &Annotations) -> bool {
        let allowed =
            |list: &Vec<Pattern>| list.iter().any(|pattern| pattern.matches_exactly(names));
        self.read_only
            && annotations.read_only == Some(true)
            && self.allow.as_ref().is_none_or(allowed)
    }
}

/// The cached replies; the least recently used one is evicted first.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    entries: HashMap<String, Entry>,
    /// Keys by the tick of their last use.
    order: BTreeMap<u64, String>,
    /// Counts uses.
    tick: u64,
    /// The bytes of all replies together.
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    reply: Reply,
    stored_at: Duration,
    last_used: u64,
}

impl Replies {
    pub fn get(&mut self, config: &Config, key: &str, now: Duration) -> Option<Reply> {
        let entry = self.entries.get(key)?;
        if config.life <= now.saturating_sub(entry.stored_at) {
            self.remove(key);
            return None;
        }
        self.touch(key);
        self.entries.get(key).map(|entry| entry.reply.clone())
    }

    /// Stores a reply, unless it is too large or reports an error.
    pub fn put(&mut self, config: &Config, key: &str, reply: &Reply, now: Duration) {
        let reply_bytes = size(reply);
        if config.entries == 0 || config.longest() < reply_bytes || !is_cacheable(reply) {
            return;
        }
        self.remove(key);
        while config.entries <= self.entries.len() || config.bytes - reply_bytes < self.bytes {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.remove(&oldest);
        }
        self.bytes += reply_bytes;
        let entry = Entry { reply: detached(reply), stored_at: now, last_used: 0 };
        self.entries.insert(key.to_owned(), entry);
        self.touch(key);
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
        self.bytes = 0;
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn touch(&mut self, key: &str) {
        self.tick += 1;
        if let Some(entry) = self.entries.get_mut(key) {
            self.order.remove(&entry.last_used);
            entry.last_used = self.tick;
            self.order.insert(self.tick, key.to_owned());
        }
    }

    fn remove(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.last_used);
            self.bytes -= size(&entry.reply);
        }
    }
}

/// The bytes of a reply.
fn size(reply: &Reply) -> usize {
    match reply {
        Reply::Result(json) => json.as_bytes().len(),
        Reply::Error(error) => error.raw.as_bytes().len(),
    }
}

/// The cache stage: each reply is cached for its own caller, until what the
/// upstream lists changes.
pub struct ReplyCache {
    config: Config,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    replies: Replies,
    /// The listing that each upstream had at its last use. The weak pointer keeps the
    /// address from being reused, so comparing addresses is safe.
    listings: HashMap<String, Weak<Listing>>,
    /// The digests of listings, by upstream.
    digests: HashMap<String, (Weak<Listing>, String)>,
}

/// How an answer is known to other replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedEntry {
    /// The same for the same call of the same caller to the same listing.
    pub key: String,
    pub life: Duration,
}

impl ReplyCache {
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> ReplyCache {
        ReplyCache { config, clock, state: Mutex::default() }
    }

    /// Runs `work` on the replies, after clearing them if the upstream of the call has
    /// a new listing. An upstream that merely reconnects keeps its listing.
    fn with_replies<T>(
        &self,
        call: &ValidCall,
        catalog: &Catalog,
        work: impl FnOnce(&mut Replies) -> T,
    ) -> T {
        let mut state = self.state.lock();
        let State { replies, listings, .. } = &mut *state;
        let current = Arc::downgrade(&catalog.sources()[call.source].listing);
        let before = listings.insert(call.callee.upstream.clone(), current.clone());
        if before.is_none_or(|before| !before.ptr_eq(&current)) {
            replies.clear();
        }
        work(replies)
    }

    /// How the answer to a call is known to other replicas; `None` if it may not be cached.
    pub fn shared_entry(
        &self,
        call: &ValidCall,
        catalog: &Catalog,
        context: &Context,
    ) -> Option<SharedEntry> {
        // A caller of whom only the connection is known comes to no other replica.
        if !self.covers(call) || (context.caller.is_anonymous() && context.is_connection_only()) {
            return None;
        }
        let listing = self.listing_digest(call, catalog);
        let key = format!("{listing} {}", ReplyCache::key(call, context));
        let key = hex::encode(&Sha256::digest(key.as_bytes()));
        let declared = declared_life(call, catalog).unwrap_or(self.config.life);
        Some(SharedEntry { key, life: self.config.life.min(declared) })
    }

    /// Whether an answer may be cached, here or elsewhere.
    pub fn may_keep(&self, reply: &Reply) -> bool {
        size(reply) <= self.config.longest() && is_cacheable(reply)
    }

    /// The digest of what the upstream of a call lists.
    fn listing_digest(&self, call: &ValidCall, catalog: &Catalog) -> String {
        let listing = &catalog.sources()[call.source].listing;
        let current = Arc::downgrade(listing);
        let known = self.state.lock().digests.get(&call.callee.upstream).cloned();
        if let Some((_, digest)) = known.filter(|(before, _)| before.ptr_eq(&current)) {
            return digest;
        }
        let listed = Json::encode(&(&listing.server, &listing.tools));
        let digest = hex::encode(&Sha256::digest(listed.as_bytes()));
        let upstream = call.callee.upstream.clone();
        self.state.lock().digests.insert(upstream, (current, digest.clone()));
        digest
    }

    fn covers(&self, call: &ValidCall) -> bool {
        // The key has only the arguments, and skills of CaSH servers differ in more.
        let is_keyed_by_arguments = !matches!(call.kind, TargetKind::Skill { .. });
        is_keyed_by_arguments
            && self.config.covers(call.callee.names(), &call.annotations)
            && !call.continues()
    }

    fn key(call: &ValidCall, context: &Context) -> String {
        let owner = Owner::from_context(context);
        let arguments = call.arguments().cloned().unwrap_or_else(Json::empty_object);
        format!("{} {}", owner.as_str(), key(&call.callee.id, &arguments))
    }
}

impl Cache for ReplyCache {
    fn get(&self, call: &ValidCall, catalog: &Arc<Catalog>, context: &Context) -> Option<Reply> {
        if !self.covers(call) {
            return None;
        }
        let (key, now) = (ReplyCache::key(call, context), self.clock.elapsed());
        let config = match declared_life(call, catalog).filter(|own| *own < self.config.life) {
            Some(life) => &Config { life, ..self.config.clone() },
            None => &self.config,
        };
        let reply = self.with_replies(call, catalog, |replies| replies.get(config, &key, now))?;
        Some(mark_as_hit(reply))
    }

    fn put(&self, call: &ValidCall, catalog: &Arc<Catalog>, context: &Context, reply: &Reply) {
        if !self.covers(call) {
            return;
        }
        let (key, now) = (ReplyCache::key(call, context), self.clock.elapsed());
        self.with_replies(call, catalog, |replies| replies.put(&self.config, &key, reply, now));
    }
}

/// The time that a tool itself allows its answers to be cached. It can only shorten
/// the operator's.
fn declared_life(call: &ValidCall, catalog: &Catalog) -> Option<Duration> {
    let raw = &catalog.tool(call.slot()?).raw;
    // Parse only where the text is there: few tools declare it.
    if !raw.as_str().contains("\"cache_ttl\"") {
        return None;
    }
    let about = raw.member("_meta")?.member("gatelet/tool")?;
    Duration::try_from_secs_f64(about.member_as("cache_ttl")?).ok()
}

/// The member of `_meta` that marks an answer from the cache.
pub const CACHE_HIT: &str = "gatelet/cache_hit";

/// Whether a result came from the cache.
pub fn is_hit(result: &Json) -> bool {
    let meta = result.member("_meta");
    meta.and_then(|meta| meta.member_as(CACHE_HIT)) == Some(true)
}

/// Marks a reply as coming from the cache.
pub fn mark_as_hit(reply: Reply) -> Reply {
    let Reply::Result(json) = &reply else { return reply };
    let Ok(mut result) = Object::parse(json) else { return reply };
    let meta = result.get("_meta").and_then(|meta| Object::parse(meta).ok());
    let mut meta = meta.unwrap_or_default();
    meta.set(CACHE_HIT, Json::encode(&true));
    result.set("_meta", meta.to_json());
    Reply::Result(result.to_json())
}

/// Copies a long reply, which otherwise keeps the memory of the whole message that it
/// came in.
fn detached(reply: &Reply) -> Reply {
    match reply {
        Reply::Result(json) if LONG < json.as_bytes().len() => Reply::Result(json.copied_out()),
        Reply::Result(_) | Reply::Error(_) => reply.clone(),
    }
}

/// Whether a reply may be cached: a finished result that reports no error.
fn is_cacheable(reply: &Reply) -> bool {
    let Reply::Result(json) = reply else { return false };
    let text = json.as_str();
    let flagged = text.contains("\"isError\"") && json.member_as("isError").unwrap_or(false);
    let unfinished = text.contains("\"resultType\"")
        && json.member_as::<String>("resultType").is_some_and(|kind| kind != "complete");
    !flagged && !unfinished
}

/// Identifies a call by its tool and its arguments, in any order.
pub fn key(tool_id: &str, arguments: &Json) -> String {
    let canonical = arguments.to_value().map_or_else(|_| arguments.to_string(), |v| canonical(&v));
    let digest = Sha256::digest(format!("{tool_id}\0{canonical}").as_bytes());
    hex::encode(&digest)
}

/// JSON with sorted keys, without white space, in ASCII.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|(key, _)| key.as_str());
            let member = |(key, part): (&String, &Value)| {
                format!("{}:{}", catalog::id::ascii_string(key), canonical(part))
            };
            format!("{{{}}}", members.into_iter().map(member).collect::<Vec<_>>().join(","))
        }
        Value::Array(elements) => {
            format!("[{}]", elements.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        Value::String(text) => catalog::id::ascii_string(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_vectors() {
        let text = include_str!("../tests/vectors/contextweaver_controls.json");
        let vectors: Value = serde_json::from_str(text).unwrap();
        for case in vectors["cache_key"].as_array().unwrap() {
            let key = key(case["tool_id"].as_str().unwrap(), &case["args"].clone().into());
            assert_eq!(key, case["key"], "{case}");
        }
    }

    #[test]
    fn a_reply_that_would_push_out_many_others_is_not_kept() {
        let reply = |bytes: usize| Reply::text(&"x".repeat(bytes));
        let mut replies = Replies::default();
        let config = Config { bytes: 64 << 20, ..on() };
        replies.put(&config, "short", &reply(100), at(0));
        replies.put(&config, "long", &reply(3 << 20), at(0));
        replies.put(&config, "too long", &reply(5 << 20), at(0));
        let kept = |replies: &mut Replies, key| replies.get(&config, key, at(1)).is_some();
        assert!(kept(&mut replies, "short") && kept(&mut replies, "long"));
        assert!(!kept(&mut replies, "too long"));
    }

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn on() -> Config {
        Config { read_only: true, life: at(60), entries: 2, ..Config::default() }
    }

    #[test]
    fn an_answer_is_kept_for_its_time_and_no_longer() {
        let mut replies = Replies::default();
        replies.put(&on(), "a", &Reply::text("1"), at(0));
        assert_eq!(replies.get(&on(), "a", at(59)), Some(Reply::text("1")));
        assert_eq!(replies.get(&on(), "a", at(60)), None);
        assert!(replies.is_empty());
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut replies = Replies::default();
        replies.put(&on(), "a", &Reply::text("1"), at(0));
        replies.put(&on(), "b", &Reply::text("2"), at(1));
        assert!(replies.get(&on(), "a", at(2)).is_some());
        replies.put(&on(), "c", &Reply::text("3"), at(3));
        assert_eq!(replies.get(&on(), "b", at(4)), None);
        assert!(
            replies.get(&on(), "a", at(4)).is_some() && replies.get(&on(), "c", at(4)).is_some()
        );
        replies.clear();
        assert_eq!(replies.len(), 0);
    }

    #[test]
    fn answers_are_kept_within_so_many_bytes() {
        let mut replies = Replies::default();
        let one = Reply::text(&"x".repeat(100));
        let config = Config { entries: 100, bytes: 2 * size(&one), ..on() };
        for key in ["a", "b", "c"] {
            replies.put(&config, key, &one, at(0));
        }
        assert_eq!(replies.len(), 2);
        assert_eq!(replies.get(&config, "a", at(1)), None);
        replies.put(&config, "long", &Reply::text(&"x".repeat(1_000)), at(1));
        assert_eq!(replies.get(&config, "long", at(1)), None);
        replies.put(&config, "b", &Reply::text("short"), at(1));
        assert!(replies.get(&config, "b", at(1)).is_some());
        assert!(replies.get(&config, "c", at(1)).is_some());
        let sizes = ["b", "c"].map(|key| size(&replies.get(&config, key, at(1)).unwrap()));
        assert_eq!(replies.bytes, sizes.iter().sum::<usize>());
    }

    #[test]
    fn errors_and_unfinished_answers_are_not_kept() {
        let mut replies = Replies::default();
        let unfinished = Json::parse(r#"{"resultType":"input_required"}"#).unwrap();
        let refusal = tool::RpcError::new(-1, "no");
        for reply in [Reply::error_text("x"), Reply::Result(unfinished), Reply::Error(refusal)] {
            replies.put(&on(), "a", &reply, at(0));
        }
        assert!(replies.is_empty());
    }

    #[test]
    fn only_read_only_tools_on_the_list_are_covered_and_only_when_switched_on() {
        let read_only = Annotations { read_only: Some(true), ..Annotations::default() };
        let exposed = crate::pattern::ExposedNameRef::UpstreamName;
        let named =
            |name: &'static str| Names { id: "up:x#12345678", upstream: "up", name, exposed };
        assert!(!Config::default().covers(named("get"), &read_only));
        assert!(on().covers(named("get"), &read_only));
        assert!(!on().covers(named("get"), &Annotations::default()));
        let listed = Config { allow: Some(vec![Pattern::new("up:list*")]), ..on() };
        assert!(!listed.covers(named("get"), &read_only));
        assert!(listed.covers(named("list_all"), &read_only));
    }
}
