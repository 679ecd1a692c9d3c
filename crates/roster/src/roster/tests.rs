use async_trait::async_trait;
use catalog::Source;
use catalog::source::Role;
use futures::StreamExt;
use serde_json::json;
use testkit::{Scripted, listing, tool};
use tokio::sync::Semaphore;
use tool::{Ask, Call, Context, Event, Failure, Kind, Listing, Provider, Reply, Server};

use super::*;
use crate::*;
use policy::Stages;
use testkit::scripts::{Hung, Scripts, settle};

fn provider(names: &[&str]) -> Arc<Scripted> {
    let tools = names.iter().map(|name| tool(name, "It.", &json!({}))).collect();
    Scripted::new(listing(tools), |_| Ok(Reply::text("done")))
}

fn roster(upstreams: Vec<Upstream>, listing_store: &Arc<listing_store::InMemory>) -> Roster {
    roster_with(Config::default(), upstreams, listing_store)
}

fn roster_with(
    config: Config,
    upstreams: Vec<Upstream>,
    listing_store: &Arc<listing_store::InMemory>,
) -> Roster {
    let Stages { scrubber, listings: check, .. } = Stages::default();
    let listing_checker = ListingChecker { config: ArcSwap::default(), scrubber, check };
    let collaborators = Collaborators {
        listings: Arc::clone(listing_store) as _,
        builtin: Arc::new(Nothing),
        listing_checker: Arc::new(listing_checker),
        observer: Arc::new(Nothing),
        clock: Arc::new(store::clock::System::start()),
    };
    Roster::new(upstreams, config, collaborators)
}

#[async_trait]
impl Connector for Scripts {
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        self.open(client)
    }
}

/// A built-in namespace without functions.
struct Nothing;

#[async_trait]
impl Builtin for Nothing {
    fn source(&self) -> Source {
        Source { role: Role::Builtin, ..Source::new(BUILTIN, Arc::default()) }
    }

    async fn ask(&self, _: Ask, _: &Snapshot, _: &Context) -> Result<Reply, Failure> {
        Ok(Reply::text("nothing"))
    }
}

impl Observer for Nothing {
    fn published(&self, _: &Snapshot) {}
}

fn client(capabilities: serde_json::Value) -> Client {
    Client { capabilities: capabilities.into(), ..Client::named("c", "") }
}

/// The functions and state of every upstream, such as `a[x y] up`.
fn described(pool: &UpstreamPool) -> String {
    let snapshot = pool.snapshot();
    let upstream = |upstream: &Arc<SupervisedUpstream>| {
        let names: Vec<String> = upstream.listing().tools.iter().map(|t| t.name.clone()).collect();
        let phase = match upstream.status().phase {
            Phase::Asleep => "asleep".to_owned(),
            Phase::Starting => "starting".to_owned(),
            Phase::Up => "up".to_owned(),
            Phase::Down { reason, .. } => format!("down: {reason}"),
        };
        format!("{}[{}] {phase}", upstream.label(), names.join(" "))
    };
    snapshot.upstreams().iter().map(upstream).collect::<Vec<_>>().join(", ")
}

async fn call(pool: &UpstreamPool, source: usize) -> Result<String, Failure> {
    let ask = Ask::Call(Call::new("x", json!({}).into()));
    let reply = pool.snapshot().upstream(source).unwrap().ask(ask, &Context::anonymous()).await?;
    Ok(reply.tool_result().unwrap().text())
}

/// Connects after a while, or never.
struct Slow(Option<Duration>, Arc<Scripted>);

#[async_trait]
impl Connector for Slow {
    async fn connect(&self, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
        match self.0 {
            Some(after) => tokio::time::sleep(after).await,
            None => std::future::pending().await,
        }
        Ok(Arc::clone(&self.1) as _)
    }
}

#[tokio::test(start_paused = true)]
async fn upstreams_start_a_few_at_a_time_and_none_is_late_for_having_waited() {
    let slow = || Arc::new(Slow(Some(Duration::from_secs(20)), provider(&["x"])));
    let upstreams = ["a", "b", "c", "d", "e"].map(|label| Upstream::new(label, slow()));
    let config = Config { start_permits: Arc::new(Semaphore::new(2)), ..Config::default() };
    let roster = roster_with(config, upstreams.into(), &Arc::default());
    let (pool, began) = (roster.default_pool(), tokio::time::Instant::now());
    let n_up = || described(&pool).matches("] up").count();
    for (seconds, expected) in [(19, 0), (21, 2), (26, 4), (31, 5)] {
        let since_start = Duration::from_secs(seconds);
        tokio::time::sleep_until(began + since_start).await;
        settle().await;
        assert_eq!(n_up(), expected, "after {seconds} s: {}", described(&pool));
    }
    assert!(!described(&pool).contains("down"), "{}", described(&pool));
}

#[tokio::test(start_paused = true)]
async fn a_start_is_timed_from_its_turn() {
    let slow = || Arc::new(Slow(Some(Duration::from_secs(20)), provider(&["x"])));
    let upstreams = ["a", "b", "c"].map(|label| Upstream::new(label, slow()));
    let config = Config { start_permits: Arc::new(Semaphore::new(2)), ..Config::default() };
    let roster = roster_with(config, upstreams.into(), &Arc::default());
    let pool = roster.default_pool();
    let seconds = || {
        let snapshot = pool.snapshot();
        let statuses = snapshot.upstreams().iter().map(|upstream| upstream.status().starting_for);
        statuses.map(|time| time.map(|time| time.as_secs())).collect::<Vec<_>>()
    };
    settle().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(seconds(), [Some(3), Some(3), None]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(seconds(), [None; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_upstream_does_not_delay_the_others_and_appears_when_it_is_ready() {
    let slow = Slow(Some(Duration::from_secs(5)), provider(&["y"]));
    let upstreams = vec![
        Upstream::new("slow", Arc::new(slow)),
        Upstream::new("fast", Scripts::of(provider(&["x"]))),
        Upstream::new("hung", Arc::new(Slow(None, provider(&[])))),
    ];
    let roster = roster(upstreams, &Arc::default());
    let pool = roster.default_pool();
    let mut events = pool.events();
    settle().await;
    assert_eq!(described(&pool), "slow[] starting, fast[x] up, hung[] starting");
    assert_eq!(events.next().await, Some(Event::Changed(Kind::Tools)));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(described(&pool), "slow[y] up, fast[x] up, hung[] starting");
    assert_eq!(events.next().await, Some(Event::Changed(Kind::Tools)));
    tokio::time::sleep(Duration::from_secs(26)).await;
    assert!(
        described(&pool).contains("hung[] down: did not start within 30 s (`start_timeout`)"),
        "{}",
        described(&pool)
    );
}

#[tokio::test(start_paused = true)]
async fn a_large_catalog_is_used_when_its_index_is_there_and_not_before() {
    let names: Vec<String> = (0..2000).map(|n| format!("read_file_number_{n}")).collect();
    let many = provider(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let config = Config { indexing: Indexing::Ahead, ..Config::default() };
    let roster = roster_with(config, vec![Upstream::new("a", Scripts::of(many))], &Arc::default());
    let pool = roster.default_pool();
    let mut events = pool.events();
    while pool.snapshot().catalog.functions().is_empty() {
        events.next().await;
    }
    assert!(pool.snapshot().catalog.is_warm(), "whoever asks first would wait, and all others");
}

#[tokio::test(start_paused = true)]
async fn with_indexing_ahead_the_index_is_built_before_anybody_searches() {
    for (indexing, expected) in [(Indexing::Ahead, true), (Indexing::WhenNeeded, false)] {
        let config = Config { indexing, ..Config::default() };
        let upstreams = vec![Upstream::new("a", Scripts::of(provider(&["x"])))];
        let roster = roster_with(config, upstreams, &Arc::default());
        let pool = roster.default_pool();
        settle().await;
        let catalog = Arc::clone(&pool.snapshot().catalog);
        assert_eq!((described(&pool).as_str(), catalog.is_warm()), ("a[x] up", expected));
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_dies_keeps_its_place_and_comes_back() {
    let first = provider(&["x"]);
    let dying = Arc::clone(&first);
    let scripts = Scripts::new(move |before, _| match before {
        0 => Ok(Arc::clone(&first) as _),
        1 | 2 => Err(Failure::Unavailable { reason: "not yet".into() }),
        _ => Ok(provider(&["x", "z"]) as _),
    });
    let roster = roster(vec![Upstream::new("a", Arc::clone(&scripts) as _)], &Arc::default());
    let pool = roster.default_pool();
    settle().await;
    dying.tell(Event::Gone { reason: "exit status 1\nsomewhere".into() });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let snapshot = pool.snapshot();
    let source = &snapshot.catalog.sources()[1];
    assert_eq!(source.unavailable(), Some("exit status 1 somewhere"));
    assert_eq!(source.listing.tools.len(), 1);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(described(&pool), "a[x z] up");
    assert_eq!(scripts.opened(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_call_to_one_that_has_just_died_waits_for_the_restart() {
    let first = provider(&["x"]);
    let dying = Arc::clone(&first);
    let scripts = Scripts::new(move |before, _| match before {
        0 => Ok(Arc::clone(&first) as _),
        _ => Ok(provider(&["x"]) as _),
    });
    let roster = roster(vec![Upstream::new("a", scripts)], &Arc::default());
    let pool = roster.default_pool();
    settle().await;
    dying.tell(Event::Gone { reason: "gone".into() });
    tokio::task::yield_now().await;
    assert_eq!(call(&pool, 1).await.unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn everything_is_listed_from_memory_before_anything_starts() {
    let listing_store = Arc::new(listing_store::InMemory::default());
    let on_demand =
        |scripts: Arc<Scripts>| Upstream { start: Start::OnDemand, ..Upstream::new("a", scripts) };
    // The first time it has to be started to know what it has.
    let scripts = Scripts::of(provider(&["x"]));
    let before = roster(vec![on_demand(Arc::clone(&scripts))], &listing_store);
    before.default_pool();
    settle().await;
    assert_eq!(scripts.opened(), 1);
    drop(before);
    let scripts = Scripts::of(provider(&["x", "y"]));
    let roster = roster(vec![on_demand(Arc::clone(&scripts))], &listing_store);
    let pool = roster.default_pool();
    assert_eq!(described(&pool), "a[x] asleep");
    assert_eq!(pool.snapshot().catalog.sources()[1].state, catalog::State::Remembered);
    settle().await;
    assert_eq!(scripts.opened(), 0);
    assert_eq!(call(&pool, 1).await.unwrap(), "done");
    settle().await;
    assert_eq!(described(&pool), "a[x y] up");
    assert_eq!(pool.snapshot().catalog.sources()[1].state, catalog::State::Available);
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_of_another_command_is_not_believed() {
    let listing_store = Arc::new(listing_store::InMemory::default());
    let upstream = |fingerprint: &str| Upstream {
        start: Start::OnDemand,
        fingerprint: fingerprint.to_owned(),
        ..Upstream::new("a", Scripts::of(provider(&["x"])))
    };
    roster(vec![upstream("one")], &listing_store).default_pool();
    settle().await;
    assert_eq!(
        described(&roster(vec![upstream("two")], &listing_store).default_pool()),
        "a[] asleep"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_changed_while_its_server_was_away_is_not_called_unseen() {
    let listing_store = Arc::new(listing_store::InMemory::default());
    let saying = |words: &str| {
        let tools = vec![tool("x", words, &json!({})), tool("y", "It.", &json!({}))];
        Scripts::of(Scripted::new(listing(tools), |_| Ok(Reply::text("done"))))
    };
    let on_demand =
        |scripts| Upstream { start: Start::OnDemand, ..Upstream::new("a", scripts as _) };
    let first = roster(vec![on_demand(saying("It."))], &listing_store);
    let pool = first.default_pool();
    settle().await;
    call(&pool, 1).await.unwrap();
    for (words, expected) in [("It.", true), ("It, and more.", false)] {
        let again = roster(vec![on_demand(saying(words))], &listing_store);
        let pool = again.default_pool();
        settle().await;
        assert_eq!(described(&pool), "a[x y] asleep");
        let outcome = call(&pool, 1).await;
        assert_eq!(outcome.is_ok(), expected, "{outcome:?}");
        // Whoever calls again calls what is listed now.
        settle().await;
        call(&pool, 1).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_upstream_is_stopped_and_started_again_by_a_call() {
    let scripts = Scripts::of(provider(&["x"]));
    let upstream = Upstream {
        idle_stop: Some(Duration::from_secs(60)),
        ..Upstream::new("a", Arc::clone(&scripts) as _)
    };
    let roster = roster(vec![upstream], &Arc::default());
    let pool = roster.default_pool();
    settle().await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    call(&pool, 1).await.unwrap();
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(described(&pool), "a[x] up");
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(described(&pool), "a[x] asleep");
    assert!(pool.snapshot().catalog.sources()[1].unavailable().is_none());
    call(&pool, 1).await.unwrap();
    assert_eq!((described(&pool).as_str(), scripts.opened()), ("a[x] up", 2));
}

#[tokio::test(start_paused = true)]
async fn many_changes_at_once_are_one_and_the_last_is_never_lost() {
    let source = provider(&["x"]);
    let roster =
        roster(vec![Upstream::new("a", Scripts::of(Arc::clone(&source)))], &Arc::default());
    let pool = roster.default_pool();
    settle().await;
    let generation = pool.snapshot().generation;
    for n in 0..40 {
        source.relist(listing(vec![tool(&format!("t{n}"), "", &json!({}))]));
        tokio::task::yield_now().await;
    }
    settle().await;
    assert_eq!(described(&pool), "a[t39] up");
    assert!(pool.snapshot().generation <= generation + 3, "{}", pool.snapshot().generation);
}

#[tokio::test(start_paused = true)]
async fn sessions_are_opened_with_what_the_client_can_do() {
    let scripts = Scripts::new(|_, client| {
        Ok(if client.has_capability("sampling") {
            provider(&["x", "ask_model"])
        } else {
            provider(&["x"])
        } as _)
    });
    let roster = roster(vec![Upstream::new("a", Arc::clone(&scripts) as _)], &Arc::default());
    let (plain, able) =
        (roster.default_pool(), roster.pool(&client(json!({"sampling": {}, "roots": {}}))));
    settle().await;
    assert_eq!(described(&plain), "a[x] up");
    assert_eq!(described(&able), "a[x ask_model] up");
    let same = roster.pool(&client(json!({"roots": {"listChanged": true}, "sampling": {}})));
    assert!(Arc::ptr_eq(&able, &same));
    assert_eq!(scripts.opened(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_modern_session_serves_clients_of_every_kind() {
    let listed = Listing {
        server: Server { protocol: "2026-07-28".into(), ..Server::default() },
        ..listing(vec![tool("x", "", &json!({}))])
    };
    let modern = Scripted::new(listed, |_| Ok(Reply::text("done")));
    let scripts = Scripts::of(modern);
    let roster = roster(vec![Upstream::new("a", Arc::clone(&scripts) as _)], &Arc::default());
    roster.default_pool();
    settle().await;
    let able = roster.pool(&client(json!({"sampling": {}})));
    settle().await;
    assert_eq!((described(&able).as_str(), scripts.opened()), ("a[x] up", 1));
    assert_eq!(call(&able, 1).await.unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn there_are_never_too_many_pools() {
    let roster = roster(vec![], &Arc::default());
    let mut kinds = kinds();
    let mut next = || roster.pool(&client(kinds.next().unwrap()));
    let kept: Vec<Arc<UpstreamPool>> = (0..7).map(|_| next()).collect();
    assert_eq!(roster.pools().len(), 8);
    let ninth = next();
    assert!(Arc::ptr_eq(&ninth, &roster.default_pool()), "all are in use: the default serves");
    drop((kept, ninth));
    assert!(Arc::ptr_eq(&next(), &roster.default_pool()), "all were in use just now");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!Arc::ptr_eq(&next(), &roster.default_pool()), "one gave way");
    assert_eq!(roster.pools().len(), 8);
}

/// Capabilities that differ from one another.
fn kinds() -> impl Iterator<Item = serde_json::Value> {
    let some = |n: usize, at: usize, names: &[&str]| {
        let chosen = names.iter().enumerate().filter(move |(bit, _)| n >> (at + bit) & 1 == 1);
        chosen.map(|(_, name)| ((*name).to_owned(), json!({}))).collect::<serde_json::Value>()
    };
    (1..16).map(move |n| {
        json!({
            "elicitation": some(n, 0, &["form", "url"]),
            "sampling": some(n, 2, &["context", "tools"]),
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_something_else_every_time_starts_little() {
    let scripts = Scripts::of(provider(&["x"]));
    let roster = roster(vec![Upstream::new("a", Arc::clone(&scripts) as _)], &Arc::default());
    roster.default_pool();
    settle().await;
    for _ in 0..20 {
        for kind in kinds() {
            roster.pool(&client(kind));
            settle().await;
        }
    }
    // A minute of requests: every kind was listed once at most.
    assert!(scripts.opened() <= 16, "{}", scripts.opened());
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_opened_again_starts_nothing_until_somebody_calls() {
    let scripts = Scripts::of(provider(&["x"]));
    let roster = roster(vec![Upstream::new("a", Arc::clone(&scripts) as _)], &Arc::default());
    roster.default_pool();
    let first = kinds().next().unwrap();
    for kind in kinds().take(8) {
        roster.pool(&client(kind));
        tokio::time::sleep(Duration::from_secs(61)).await;
    }
    assert_eq!(scripts.opened(), 9);
    let again = roster.pool(&client(first));
    settle().await;
    assert_eq!((described(&again).as_str(), scripts.opened()), ("a[x] asleep", 9));
    assert_eq!(call(&again, 1).await.unwrap(), "done");
    assert_eq!(scripts.opened(), 10);
}

#[tokio::test(start_paused = true)]
async fn the_only_pool_starts_eager_upstreams_though_they_are_remembered() {
    let listing_store = Arc::new(listing_store::InMemory::default());
    for _ in 0..2 {
        let scripts = Scripts::of(provider(&["x"]));
        let roster = roster(vec![Upstream::new("a", Arc::clone(&scripts) as _)], &listing_store);
        roster.pool(&client(json!({"sampling": {}})));
        settle().await;
        assert_eq!(scripts.opened(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_dies_at_once_is_started_less_and_less_often() {
    let scripts = Scripts::new(|_, _| {
        let short = provider(&["x"]);
        let dying = Arc::clone(&short);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            dying.tell(Event::Gone { reason: "exit status 1".into() });
        });
        Ok(short as _)
    });
    let roster = roster(vec![Upstream::new("a", Arc::clone(&scripts) as _)], &Arc::default());
    let pool = roster.default_pool();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(scripts.opened() < 30, "{} starts in ten minutes", scripts.opened());
    assert_eq!(described(&pool), "a[x] down: exit status 1");
    // Who calls has it started, and finds it well while it lasts.
    assert_eq!(call(&pool, 1).await.unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_the_pause_of_one_that_is_well_again() {
    let n_failing = 9;
    let scripts = Scripts::new(move |before, _| match before < n_failing {
        true => Err(Failure::Unavailable { reason: "not yet".to_owned() }),
        false => Ok(provider(&["x"]) as _),
    });
    let known = Arc::new(listing(vec![tool("x", "It.", &json!({}))]));
    let upstream = Upstream::new("up", Arc::clone(&scripts) as _);
    let roster = roster(vec![Upstream { fixed_listing: Some(known), ..upstream }], &Arc::default());
    let pool = roster.default_pool();
    call(&pool, 1).await.unwrap_err();
    // Nobody calls any more: the pauses grow to a minute.
    while scripts.opened() < n_failing {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // It is well now, and nobody has looked: the call does.
    let began = tokio::time::Instant::now();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(call(&pool, 1).await.unwrap(), "done");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn calls_do_not_start_one_that_crashes_more_than_once_a_second() {
    let scripts = Scripts::new(|_, _| Err(Failure::Unavailable { reason: "crashed".to_owned() }));
    let upstream = Upstream::new("up", Arc::clone(&scripts) as _);
    let known = Arc::new(listing(vec![tool("x", "It.", &json!({}))]));
    let roster = roster(vec![Upstream { fixed_listing: Some(known), ..upstream }], &Arc::default());
    let (pool, began) = (roster.default_pool(), tokio::time::Instant::now());
    while began.elapsed() < Duration::from_secs(60) {
        let failure = call(&pool, 1).await.unwrap_err();
        assert!(failure.to_string().contains("crashed"), "{failure}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!((50..=64).contains(&scripts.opened()), "{} starts", scripts.opened());
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_when_it_starts_does_not_hold_every_call() {
    let slow = Slow(None, provider(&["x"]));
    let known = Arc::new(listing(vec![tool("x", "It.", &json!({}))]));
    let upstream = Upstream { fixed_listing: Some(known), ..Upstream::new("up", Arc::new(slow)) };
    let roster = roster(vec![upstream], &Arc::default());
    let pool = roster.default_pool();
    call(&pool, 1).await.unwrap_err();
    let began = tokio::time::Instant::now();
    for _ in 0..100 {
        call(&pool, 1).await.unwrap_err();
    }
    assert_eq!(began.elapsed(), Duration::ZERO, "it was told at once that it is down");
}

#[tokio::test(start_paused = true)]
async fn one_that_stops_answering_is_known_not_to_after_the_first_timeouts() {
    let hangs = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let hung = Arc::clone(&hangs);
    let sometimes = Sometimes(provider(&["x"]), hung);
    let sometimes: Arc<dyn Provider> = Arc::new(sometimes);
    let scripts = Scripts::new(move |_, _| Ok(Arc::clone(&sometimes)));
    let roster = roster(vec![Upstream::new("up", scripts)], &Arc::default());
    let pool = roster.default_pool();
    settle().await;
    let unanswered = || pool.snapshot().upstreams()[0].status().unanswered;
    assert_eq!(unanswered(), 0);
    for n in 1..=3 {
        assert!(matches!(call(&pool, 1).await, Err(Failure::Timeout { .. })));
        assert_eq!(unanswered(), n);
    }
    hangs.store(false, std::sync::atomic::Ordering::SeqCst);
    call(&pool, 1).await.unwrap();
    assert_eq!(unanswered(), 0, "it answers again");
}

/// Answers only while it is not told to hang, like a process that was stopped.
struct Sometimes(Arc<Scripted>, Arc<std::sync::atomic::AtomicBool>);

#[async_trait]
impl Provider for Sometimes {
    fn listing(&self) -> Arc<Listing> {
        self.0.listing()
    }

    fn events(&self) -> futures::stream::BoxStream<'static, Event> {
        self.0.events()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        match self.1.load(std::sync::atomic::Ordering::SeqCst) {
            true => std::future::pending().await,
            false => self.0.ask(ask, context).await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_dies_after_a_while_is_back_at_once_every_time() {
    let scripts = Scripts::new(|_, _| {
        let long = provider(&["x"]);
        let dying = Arc::clone(&long);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(20)).await;
            dying.tell(Event::Gone { reason: "exit status 1".into() });
        });
        Ok(long as _)
    });
    let roster = roster(vec![Upstream::new("a", Arc::clone(&scripts) as _)], &Arc::default());
    roster.default_pool();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(28 <= scripts.opened(), "{} starts in ten minutes", scripts.opened());
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_is_told_that_everything_may_have_changed() {
    let source = provider(&["x"]);
    let upstreams = vec![Upstream::new("a", Scripts::of(Arc::clone(&source)))];
    let roster = roster(upstreams, &Arc::default());
    let pool = roster.default_pool();
    settle().await;
    let events = pool.events();
    for n in 0..300 {
        let note = tool::Notification { method: format!("n{n}"), params: tool::Object::new() };
        source.tell(Event::Notification(note));
        tokio::task::yield_now().await;
    }
    let changed: Vec<Event> = events.take(4).collect().await;
    assert_eq!(changed, Kind::ALL.map(Event::Changed));
}

#[tokio::test(start_paused = true)]
async fn secrets_in_log_lines_and_progress_reach_no_client() {
    let source = Arc::new(Chatty(provider(&["x"])));
    let connect = Arc::clone(&source);
    let scripts = Scripts::new(move |_, _| Ok(Arc::clone(&connect) as _));
    let roster = roster(vec![Upstream::new("a", scripts)], &Arc::default());
    let pool = roster.default_pool();
    settle().await;
    let heard = Arc::new(Heard::default());
    let context = Context { client_handle: Arc::clone(&heard) as _, ..Context::anonymous() };
    let ask = Ask::Call(Call::new("x", json!({}).into()));
    pool.snapshot().upstream(1).unwrap().ask(ask, &context).await.unwrap();
    assert_eq!(*heard.0.lock(), [r#"{"data":"[REDACTED-SECRET]"}"#]);
    let mut events = pool.events();
    source.0.tell(Event::Notification(leak()));
    let Some(Event::Notification(note)) = events.next().await else { panic!() };
    assert_eq!(note.params.to_json().as_str(), r#"{"data":"[REDACTED-SECRET]"}"#);
}

fn leak() -> tool::Notification {
    let params = json!({"data": "sk-proj-bbbbbbbbbbbbbbbbbbbbbbbb"}).into();
    tool::Notification { method: "log".to_owned(), params: tool::Object::parse(&params).unwrap() }
}

/// Tells a secret during every call.
struct Chatty(Arc<Scripted>);

#[async_trait]
impl Provider for Chatty {
    fn listing(&self) -> Arc<Listing> {
        self.0.listing()
    }

    fn events(&self) -> futures::stream::BoxStream<'static, Event> {
        self.0.events()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        context.client_handle.notify(leak());
        self.0.ask(ask, context).await
    }
}

/// A client that notes what it is told.
#[derive(Default)]
struct Heard(parking_lot::Mutex<Vec<String>>);

#[async_trait]
impl tool::ClientHandle for Heard {
    fn notify(&self, note: tool::Notification) {
        self.0.lock().push(note.params.to_json().to_string());
    }

    async fn request(&self, method: &str, _: tool::Json) -> Result<Reply, Failure> {
        panic!("nobody asks `{method}`");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reload_restarts_only_what_is_not_the_same() {
    let (stays, goes, comes) = (
        Scripts::of(provider(&["x"])),
        Scripts::of(provider(&["y"])),
        Scripts::of(provider(&["z"])),
    );
    let upstream =
        |label: &str, scripts: &Arc<Scripts>| Upstream::new(label, Arc::clone(scripts) as _);
    let roster = roster(vec![upstream("stays", &stays), upstream("goes", &goes)], &Arc::default());
    let pool = roster.default_pool();
    settle().await;
    roster.reload(vec![upstream("comes", &comes), upstream("stays", &stays)]);
    settle().await;
    assert_eq!(described(&pool), "comes[z] up, stays[x] up");
    assert_eq!((stays.opened(), goes.opened(), comes.opened()), (1, 1, 1));
}

fn other(method: &str, params: serde_json::Value) -> Ask {
    let params = tool::Object::parse(&params.into()).unwrap();
    Ask::Other { method: method.to_owned(), params }
}

/// A provider that logs and has a resource to watch.
fn watchable() -> Arc<Scripted> {
    let capabilities = json!({"logging": {}, "resources": {"subscribe": true}});
    let server = Server::new("s", "1", capabilities.into());
    let tools = vec![tool("x", "It.", &json!({}))];
    Scripted::new(Listing { server, ..listing(tools) }, |_| {
        Ok(Reply::Result(tool::Json::empty_object()))
    })
}

#[tokio::test(start_paused = true)]
async fn subscriptions_and_log_levels_are_requested_of_the_next_session_too() {
    let sessions = [watchable(), watchable(), watchable()];
    let each = sessions.clone();
    let scripts = Scripts::new(move |n, _| Ok(Arc::clone(&each[n]) as _));
    let upstream = Upstream { start: Start::OnDemand, ..Upstream::new("a", scripts) };
    let roster = roster(vec![upstream], &Arc::default());
    let pool = roster.default_pool();
    let level = other("logging/setLevel", json!({"level": "debug"}));
    let context = Context { session: "s".into(), ..Context::anonymous() };
    // Nothing is up yet; it is told when it is.
    pool.set_log_level(&level, &context);
    settle().await;
    assert_eq!(sessions[0].asked(), std::slice::from_ref(&level));
    let watch = other("resources/subscribe", json!({"uri": "a://b"}));
    pool.snapshot().upstream(1).unwrap().ask(watch.clone(), &context).await.unwrap();
    sessions[0].tell(Event::Gone { reason: "it died".to_owned() });
    // What dies is not started again at once.
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(sessions[1].asked(), [level.clone(), watch]);
    let unwatch = other("resources/unsubscribe", json!({"uri": "a://b"}));
    pool.snapshot().upstream(1).unwrap().ask(unwatch, &context).await.unwrap();
    sessions[1].tell(Event::Gone { reason: "it died".to_owned() });
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(sessions[2].asked(), [level]);
}

#[tokio::test(start_paused = true)]
async fn an_upstream_with_a_subscriber_is_not_stopped_when_idle() {
    let scripts = Scripts::of(watchable());
    let idle_stop = Some(Duration::from_secs(60));
    let upstream = Upstream { idle_stop, ..Upstream::new("a", Arc::clone(&scripts) as _) };
    let roster = roster(vec![upstream], &Arc::default());
    let pool = roster.default_pool();
    settle().await;
    let ask = |method: &str| other(method, json!({"uri": "a://b"}));
    let context = Context { session: "s".into(), ..Context::anonymous() };
    pool.snapshot().upstream(1).unwrap().ask(ask("resources/subscribe"), &context).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(described(&pool), "a[x] up");
    pool.snapshot().upstream(1).unwrap().ask(ask("resources/unsubscribe"), &context).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(described(&pool), "a[x] asleep");
    pool.snapshot().upstream(1).unwrap().ask(ask("resources/unsubscribe"), &context).await.unwrap();
    assert_eq!((described(&pool).as_str(), scripts.opened()), ("a[x] asleep", 1));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_read_is_as_it_was_remembered() {
    let listing_store = Arc::new(listing_store::InMemory::default());
    let known = || Upstream::new("a", Scripts::of(provider(&["x", "y"])));
    let first = roster(vec![known()], &listing_store);
    let pool = first.default_pool();
    settle().await;
    assert_eq!(described(&pool), "a[x y] up");
    let unread = Listing { failed_lists: vec![Kind::Tools], ..listing(Vec::new()) };
    let refusing = || Scripted::new(unread.clone(), |_| Ok(Reply::text("done")));
    for _ in 0..2 {
        let again = roster(vec![Upstream::new("a", Scripts::of(refusing()))], &listing_store);
        let pool = again.default_pool();
        settle().await;
        assert_eq!(described(&pool), "a[x y] up");
        assert_eq!(pool.snapshot().upstreams()[0].source().state, catalog::State::Remembered);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_ends() {
    let scripts = Scripts::new(|_, _| Ok(Arc::new(Hung(provider(&["x"]))) as _));
    let upstream = Upstream { call_timeout: Duration::from_secs(7), ..Upstream::new("a", scripts) };
    let roster = roster(vec![upstream], &Arc::default());
    let pool = roster.default_pool();
    settle().await;
    let failure = call(&pool, 1).await.unwrap_err();
    assert_eq!(failure, Failure::Timeout { after: Duration::from_secs(7) });
}

#[tokio::test(start_paused = true)]
async fn twenty_thousand_tools_and_duplicates_are_listed_without_harm() {
    let names: Vec<String> = (0..20_000).map(|n| format!("t{}", n % 19_999)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let upstreams = vec![
        Upstream::new("big", Scripts::of(provider(&names))),
        Upstream::new("small", Scripts::of(provider(&["x"]))),
    ];
    let roster = roster(upstreams, &Arc::default());
    let pool = roster.default_pool();
    settle().await;
    let snapshot = pool.snapshot();
    assert_eq!(snapshot.catalog.functions().len(), 19_999 + 1);
    assert!(snapshot.findings.iter().any(|finding| finding.code == "duplicate-tool"));
    assert_eq!(call(&pool, 2).await.unwrap(), "done");
}

/// The listing of another gatelet, through which these instances are reached.
fn gatelet(names: &[&str], ids: &[&str]) -> Listing {
    let capabilities = json!({"experimental": {"gatelet/gates": {"ids": ids}}});
    let tools = names.iter().map(|name| tool(name, "It.", &json!({}))).collect();
    Listing { server: Server::new("gatelet", "1", capabilities.into()), ..listing(tools) }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_behind_which_this_gatelet_comes_to_be_is_given_up() {
    let now = Arc::new(parking_lot::Mutex::new(vec!["theirs"]));
    let says = Arc::clone(&now);
    // Who it is is told once, when the session is opened.
    let other = Scripted::new(gatelet(&["x"], &["theirs"]), move |ask| {
        assert_eq!(ask.method(), "server/discover");
        let ids = says.lock().clone();
        let capabilities = gatelet(&[], &ids).server.capabilities;
        Ok(Reply::Result(tool::Json::encode(&json!({"capabilities": capabilities}))))
    });
    let listing_store = Arc::default();
    let config = Config { gatelet_id: "ours".into(), ..Config::default() };
    let upstream = Upstream::new("other", Scripts::of(Arc::clone(&other)));
    let roster = roster_with(config, vec![upstream], &listing_store);
    let pool = roster.default_pool();
    settle().await;
    other.relist(gatelet(&["x", "y"], &["theirs"]));
    settle().await;
    assert_eq!(described(&pool), "other[x y] up");
    *now.lock() = vec!["theirs", "ours"];
    other.relist(gatelet(&["x", "y", "ours_other_x"], &["theirs"]));
    // Not for long: a client that comes again is listed the same as before.
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        if described(&pool).starts_with("other[] down: this gatelet is behind it") {
            return;
        }
    }
    panic!("it is still there: {}", described(&pool));
}

#[tokio::test(start_paused = true)]
async fn upstreams_log_at_the_lowest_level_of_all_sessions_while_those_last() {
    let provider = watchable();
    let upstream = Upstream::new("a", Scripts::of(Arc::clone(&provider)));
    let roster = roster(vec![upstream], &Arc::default());
    let pool = roster.default_pool();
    settle().await;
    let wants = async |level: &str, context: &Context| {
        let ask = other("logging/setLevel", json!({"level": level}));
        pool.set_log_level(&ask, context);
        pool.snapshot().upstreams()[0].notify(ask, context, Duration::from_secs(1)).await;
    };
    let levels = || {
        let levels =
            provider.asked().into_iter().map(|ask| ask.other_params().get("level").cloned());
        levels.map(|level| level.unwrap().string_value().unwrap()).collect::<Vec<_>>()
    };
    let [verbose, terse] = ["verbose", "terse"].map(|session| Context {
        session: session.into(),
        client: Arc::new(Client::named(session, "")),
        ..Context::anonymous()
    });
    wants("debug", &verbose).await;
    wants("error", &terse).await;
    assert_eq!(levels(), ["debug", "debug"]);
    // Something else keeps in mind what the session was called.
    let (_name, n_before) = (Arc::clone(&verbose.session), levels().len());
    drop(verbose);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(levels()[n_before..], ["error"]);
    wants("info", &terse).await;
    assert_eq!(levels().last().unwrap(), "info", "it is the only one now");
}
