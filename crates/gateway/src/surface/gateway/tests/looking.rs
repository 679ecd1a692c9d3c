//! Rules are about looking at what is kept, too, and may change at any time.

use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::gateway::Controls;
use artifacts::{Artifact, ArtifactMeta, Lookup, Memory, Owner, Store, StoredIn, TooLarge};
use futures::future::join_all;
use parking_lot::Mutex;
use policy::Stages;
use policy::approval::TokenApproval;
use roster::listing_check;

fn rule(action: rules::Action, meta_tool: Option<&str>) -> rules::Rule {
    let meta_tool = meta_tool.map(str::to_owned);
    rules::Rule { meta_tool, ..rules::Rule::any(action) }
}

fn ruled(rules: Vec<rules::Rule>, clock: &Arc<Fake>) -> Stages {
    let config = rules::Config { rules, ..rules::Config::default() };
    Stages {
        checks: vec![Arc::new(rules::Rules::new(config))],
        approval: Arc::new(TokenApproval::new(Arc::clone(clock) as _)),
        ..Stages::default()
    }
}

/// A gate in which something is kept, and its handle.
async fn keeping(surface: Surface) -> (Opened, String) {
    let opened = open_on(surface, |_, _| {}).await;
    let (tool, call) = match surface == Surface::Cash {
        true => ("call", json!({"namespace": "demo", "function": "big"})),
        false => ("tool_execute", json!({"tool_id": "demo:big#"})),
    };
    opened.say(tool, call).await;
    let kept = opened.surface.resources_for(&Context::anonymous()).await;
    let handle = kept[0].uri.strip_prefix("artifact://").unwrap().to_owned();
    (opened, handle)
}

impl Opened {
    fn rule(&self, rules: Vec<rules::Rule>) {
        self.gate.control(Controls {
            stages: ruled(rules, &Arc::new(Fake::default())),
            default_picks: crate::dispatch::DefaultPicks::default(),
            gate: artifacts::gate::Config::default(),
            meta: meta::Config::default(),
            listed: listed::Config::default(),
            inspection: listing_check::Config::default(),
        });
    }

    async fn read(&self, handle: &str) -> Reply {
        let params = json!({"uri": format!("artifact://{handle}")});
        let ask = Ask::parse("resources/read", &params.into()).unwrap();
        self.surface.ask(ask, &Context::anonymous()).await.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_denied_cannot_be_looked_at_anywhere() {
    let (opened, handle) = keeping(Surface::Gateway).await;
    let look = json!({"handle": handle});
    assert!(!opened.say("tool_view", look.clone()).await.starts_with('!'));
    assert!(matches!(opened.read(&handle).await, Reply::Result(_)));
    opened.rule(vec![rule(rules::Action::Deny, Some("tool_view"))]);
    let error = opened.error("tool_view", look.clone()).await;
    assert_eq!(error["error"], "POLICY_DENIED", "{error}");
    assert_eq!(error["path"], handle);
    assert!(error["message"].as_str().unwrap().contains("demo:big#"), "{error}");
    let Reply::Error(refused) = opened.read(&handle).await else { panic!("read") };
    assert!(refused.message.contains("policy denied"), "{}", refused.message);
    // Calls are another matter.
    let call = json!({"tool_id": "demo:read_file#", "args": {"path": "x"}});
    assert!(opened.say("tool_execute", call).await.contains("hello"));
    opened.rule(Vec::new());
    assert!(!opened.say("tool_view", look).await.starts_with('!'));
}

#[tokio::test(start_paused = true)]
async fn the_gates_own_view_keeps_the_rules() {
    let (opened, handle) = keeping(Surface::Cash).await;
    let look = json!({"namespace": "gatelet", "function": "view", "kwargs": {"handle": handle}});
    assert!(!opened.say("call", look.clone()).await.starts_with('!'));
    opened.rule(vec![rule(rules::Action::Deny, Some("tool_view"))]);
    let said = opened.say("call", look).await;
    assert!(said.starts_with('!') && said.contains("policy denied"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn looking_is_asked_about_only_by_a_rule_about_looking() {
    let (opened, handle) = keeping(Surface::Gateway).await;
    let look = json!({"handle": handle});
    // Whoever agreed to the call has agreed to its answer.
    opened.rule(vec![rule(rules::Action::Ask, None)]);
    assert!(!opened.say("tool_view", look.clone()).await.starts_with('!'));
    opened.rule(vec![rule(rules::Action::Ask, Some("tool_view"))]);
    let error = opened.error("tool_view", look.clone()).await;
    assert_eq!(error["error"], "AUTH_REQUIRED", "{error}");
    let message = error["message"].as_str().unwrap();
    let at = message.find("confirm-").unwrap();
    let token: String =
        message[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let mut again = look.clone();
    again["confirm"] = json!(token);
    assert!(!opened.say("tool_view", again.clone()).await.starts_with('!'));
    assert_eq!(opened.error("tool_view", again).await["error"], "AUTH_REQUIRED");
}

#[tokio::test(start_paused = true)]
async fn limits_and_redaction_change_while_calls_are_made() {
    let opened = open().await;
    let big = json!({"tool_id": "demo:big#"});
    assert!(opened.say("tool_execute", big.clone()).await.contains("artifacts"));
    let leak = json!({"tool_id": "demo:leak#"});
    assert!(opened.say("tool_execute", leak.clone()).await.contains("REDACTED"));
    let off = redact::Config { enabled: false, known_secrets: Vec::new() };
    let scrubber = Arc::new(redact::Scrubber::new(off));
    opened.gate.control(Controls {
        stages: Stages { scrubber, ..Stages::default() },
        default_picks: crate::dispatch::DefaultPicks::default(),
        gate: artifacts::gate::Config { limit: 1_000_000, ..artifacts::gate::Config::default() },
        meta: meta::Config { top_k: 2, ..meta::Config::default() },
        listed: listed::Config::default(),
        inspection: listing_check::Config::default(),
    });
    assert!(opened.say("tool_execute", big).await.contains("\"total\":3000"));
    assert!(opened.say("tool_execute", leak).await.contains("sk-proj-"));
    let browsed = opened.say("tool_browse", json!({"query": "file", "format": "json"})).await;
    let cards: Vec<Value> = serde_json::from_str(&browsed).unwrap();
    assert_eq!(cards.len(), 2, "{browsed}");
}

/// The one thread for long work is taken, so whoever looks has to wait.
#[test]
fn while_somebody_looks_into_a_result_others_are_answered() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        for (surface, tool, jq) in [
            (Surface::Gateway, "tool_view", json!({"type": "jq", "filter": ".total"})),
            (Surface::Cash, "call", json!({"jq": ".total"})),
        ] {
            let (opened, handle) = keeping(surface).await;
            let (look, other) = match surface == Surface::Cash {
                true => {
                    let mut kwargs = jq;
                    kwargs["handle"] = handle.clone().into();
                    let look =
                        json!({"namespace": "gatelet", "function": "view", "kwargs": kwargs});
                    (look, ("help", json!({"namespace": "demo"})))
                }
                false => {
                    let look = json!({"handle": handle, "selector": jq});
                    (look, ("tool_browse", json!({"query": "file"})))
                }
            };
            let (release, wait) = std::sync::mpsc::channel::<()>();
            tokio::task::spawn_blocking(move || wait.recv());
            let mut looking = std::pin::pin!(opened.say(tool, look));
            assert!(futures::poll!(&mut looking).is_pending(), "it was looked at on this thread");
            assert!(opened.say(other.0, other.1).await.contains("file"));
            let mut reading = std::pin::pin!(opened.read(&handle));
            assert!(futures::poll!(&mut reading).is_pending(), "it was read on this thread");
            drop(release);
            assert!(looking.await.starts_with("3000"));
            assert!(matches!(reading.await, Reply::Result(_)));
        }
    });
}

/// A store from which everything is loaded anew, like a file.
struct Loading {
    kept: Memory,
    loaded: Mutex<Vec<Weak<Artifact>>>,
    /// The most that were loaded at a time.
    n_most: AtomicUsize,
}

#[async_trait]
impl Store for Loading {
    async fn put(&self, artifact: Artifact) -> Result<StoredIn, TooLarge> {
        self.kept.put(artifact).await
    }

    async fn get(&self, owner: &Owner, handle: &str) -> Lookup {
        let found = self.kept.get(owner, handle).await?;
        let loaded = found.map(|artifact| Arc::new(Artifact::clone(&artifact)));
        if let Some(artifact) = &loaded {
            let mut all = self.loaded.lock();
            all.push(Arc::downgrade(artifact));
            all.retain(|one| 0 < one.strong_count());
            self.n_most.fetch_max(all.len(), Ordering::Relaxed);
        }
        tokio::task::yield_now().await;
        Ok(loaded)
    }

    async fn find_by_call(&self, owner: &Owner, key: &str) -> Lookup {
        self.kept.find_by_call(owner, key).await
    }

    async fn forget_call(&self, owner: &Owner, handle: &str) {
        self.kept.forget_call(owner, handle).await;
    }

    async fn list(&self, owner: &Owner) -> Vec<ArtifactMeta> {
        self.kept.list(owner).await
    }
}

#[tokio::test]
async fn of_many_that_look_at_once_a_few_have_the_answer_in_memory() {
    let mut store = None;
    let opened = open_on(Surface::Gateway, |parts, clock| {
        let kept = Memory::new(artifacts::Config::default(), Arc::clone(clock) as _);
        let (loaded, n_most) = (Mutex::default(), AtomicUsize::new(0));
        let loading = Arc::new(Loading { kept, loaded, n_most });
        parts.answers.artifacts = Arc::clone(&loading) as _;
        store = Some(loading);
    })
    .await;
    opened.say("tool_execute", json!({"tool_id": "demo:big#"})).await;
    let kept = opened.surface.resources_for(&Context::anonymous()).await;
    let handle = kept[0].uri.strip_prefix("artifact://").unwrap();
    let store = store.unwrap();
    let read = join_all((0..60).map(|_| opened.read(handle))).await;
    assert!(read.iter().all(|reply| matches!(reply, Reply::Result(_))));
    let look = json!({"handle": handle});
    let seen = join_all((0..60).map(|_| opened.say("tool_view", look.clone()))).await;
    assert!(seen.iter().all(|said| !said.starts_with('!')), "{seen:?}");
    let n_most = store.n_most.load(Ordering::Relaxed);
    assert!((1..=4).contains(&n_most), "{n_most} at a time");
}
