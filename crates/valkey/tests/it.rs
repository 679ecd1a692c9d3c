//! The engine against a real server: the tests that every store passes, and what
//! only a server can do to its users.

#[path = "it/cut.rs"]
mod cut;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use store::conformance;
use store::state::{Claim, Counters, Documents, Expiring, Leases, SingleUse, Spending, StateError};
use testkit::tls::Authority;
use testkit::valkey::Server;
use testkit::valkey::sentinel::Sentinel;
use valkey::address::Address;
use valkey::{Config, EpochDocuments, EpochValues, Eviction, Limits, OpenError, Valkey};

const TIMEOUT: Duration = Duration::from_secs(5);
const LIFE: Duration = Duration::from_secs(60);

fn config(url: &str) -> Config {
    let address = Address::parse(url).expect("an address");
    let (prefix, eviction) = ("t:".to_owned(), Eviction::Refuse);
    Config { address, prefix, eviction, limits: Limits::default() }
}

fn open(server: &Server) -> Valkey {
    Valkey::new(config(&server.url()))
}

#[tokio::test]
async fn a_server_does_what_every_store_does() {
    testkit::needs!(Valkey);
    let server = Server::with_clock(&[]);
    let advance = |by| server.advance(by);
    macro_rules! user {
        () => {
            &|| Arc::new(open(&server)) as _
        };
    }
    conformance::documents(user!()).await;
    conformance::documents_changed_at_once(user!()).await;
    let of_epoch = || Arc::new(EpochDocuments(open(&server))) as Arc<dyn Documents>;
    conformance::documents(&of_epoch).await;
    conformance::documents_changed_at_once(&of_epoch).await;
    conformance::single_use(user!(), &advance).await;
    conformance::single_use_taken_at_once(user!()).await;
    conformance::expiring(user!(), &advance).await;
    conformance::expiring_appended_at_once(user!()).await;
    let bound = || Arc::new(EpochValues(open(&server))) as Arc<dyn Expiring>;
    conformance::expiring(&bound, &advance).await;
    conformance::expiring_appended_at_once(&bound).await;
    conformance::counters(&open(&server), &advance).await;
    conformance::counters_spent_at_once(&open(&server)).await;
    conformance::blobs(user!()).await;
    conformance::leases(user!(), &advance).await;
    conformance::leases_acquired_at_once(user!()).await;
    conformance::lines(user!()).await;
    conformance::messages(user!(), &advance).await;
}

#[tokio::test]
async fn who_watches_a_document_hears_of_the_changes_of_others() {
    testkit::needs!(Valkey);
    let server = Server::start(&[]);
    let listening = open(&server);
    let heard = async {
        let users = || Arc::new(listening.clone()) as Arc<dyn Documents>;
        conformance::documents_watched(&users).await;
        let of_epoch = || Arc::new(EpochDocuments(listening.clone())) as Arc<dyn Documents>;
        conformance::documents_watched(&of_epoch).await;
        // The change of another process, which only the server can tell of.
        let mut watched = listening.watch("theirs");
        let other = open(&server);
        other.swap("theirs", None, Some(Bytes::from_static(b"1")), TIMEOUT).await.unwrap();
        futures::StreamExt::next(&mut watched).await
    };
    tokio::select! {
        () = listening.listen() => unreachable!("it listens for ever"),
        heard = heard => assert_eq!(heard, Some(())),
    }
}

#[tokio::test]
async fn limits_are_counted_once_over_all_replicas() {
    testkit::needs!(Valkey);
    let server = Server::start(&[]);
    let replicas = [open(&server), open(&server), open(&server)];
    let claims = [Claim { key: "ann/calls", amount: 1, limit: 20, window: Some(LIFE) }];
    let spends = (0..60).map(|n| replicas[n % 3].spend(&claims, TIMEOUT));
    let spends = futures::future::join_all(spends).await;
    assert_eq!(spends.iter().filter(|spent| **spent == Ok(Spending::Granted)).count(), 20);
}

#[tokio::test]
async fn what_may_be_used_once_is_void_after_a_failover() {
    testkit::needs!(Valkey);
    let (primary, replica) = (Server::start(&[]), Server::start(&[]));
    let port = primary.port().to_string();
    replica.cli(&["REPLICAOF", "127.0.0.1", &port]).unwrap();
    let store = open(&primary);
    SingleUse::put(&store, "token", Bytes::from_static(b"yes"), LIFE, TIMEOUT).await.unwrap();
    Expiring::put(&store, "value", Bytes::from_static(b"v"), LIFE, TIMEOUT).await.unwrap();
    primary.wait_for_replica();
    // Taken at the primary after the replica was cut off from it.
    replica.cli(&["REPLICAOF", "NO", "ONE"]).unwrap();
    assert_eq!(store.take("token", TIMEOUT).await, Ok(Some(Bytes::from_static(b"yes"))));
    primary.kill();
    let store = open(&replica);
    let value = Expiring::get(&store, "value", TIMEOUT).await;
    assert_eq!(value, Ok(Some(Bytes::from_static(b"v"))), "what may be read twice is there");
    let again = store.take("token", TIMEOUT).await;
    assert_eq!(again, Err(StateError::Gone), "nobody knows whether it was taken");
    SingleUse::put(&store, "next", Bytes::from_static(b"x"), LIFE, TIMEOUT).await.unwrap();
    assert_eq!(store.take("next", TIMEOUT).await, Ok(Some(Bytes::from_static(b"x"))));
}

#[tokio::test]
async fn a_document_of_an_epoch_is_gone_after_a_failover_instead_of_older() {
    testkit::needs!(Valkey);
    let (primary, replica) = (Server::start(&[]), Server::start(&[]));
    let port = primary.port().to_string();
    replica.cli(&["REPLICAOF", "127.0.0.1", &port]).unwrap();
    let (before, after) = (EpochDocuments(open(&primary)), EpochDocuments(open(&replica)));
    let allowed = before.swap("queue", None, Some("allowed".into()), TIMEOUT).await.unwrap();
    primary.wait_for_replica();
    replica.cli(&["REPLICAOF", "NO", "ONE"]).unwrap();
    // The replica that takes over has not heard of this.
    before.swap("queue", allowed.clone(), Some("used".into()), TIMEOUT).await.unwrap();
    primary.kill();
    assert_eq!(after.read("queue", TIMEOUT).await, Ok(None));
    let late = after.swap("queue", allowed, Some("used".into()), TIMEOUT).await;
    assert_eq!(late, Err(StateError::Conflict), "by who read it before the failover");
    let anew = after.swap("queue", None, Some("anew".into()), TIMEOUT).await;
    assert!(matches!(anew, Ok(Some(_))), "{anew:?}");
    let read = after.read("queue", TIMEOUT).await.unwrap().map(|read| read.bytes);
    assert_eq!(read, Some(Bytes::from_static(b"anew")));
}

#[tokio::test]
async fn a_value_of_an_epoch_is_void_after_a_failover_instead_of_shorter() {
    testkit::needs!(Valkey);
    let (primary, replica) = (Server::start(&[]), Server::start(&[]));
    let port = primary.port().to_string();
    replica.cli(&["REPLICAOF", "127.0.0.1", &port]).unwrap();
    let (before, after) = (EpochValues(open(&primary)), EpochValues(open(&replica)));
    let text = Bytes::from_static;
    before.put("log", text(b""), LIFE, TIMEOUT).await.unwrap();
    before.put("begun", text(b""), LIFE, TIMEOUT).await.unwrap();
    before.append_at("log", 0, text(b"first"), LIFE, TIMEOUT).await.unwrap();
    primary.wait_for_replica();
    replica.cli(&["REPLICAOF", "NO", "ONE"]).unwrap();
    // The replica that takes over has not heard of this.
    before.append_at("log", 5, text(b"second"), LIFE, TIMEOUT).await.unwrap();
    primary.kill();
    for name in ["log", "begun"] {
        assert_eq!(after.get(name, TIMEOUT).await, Err(StateError::Gone), "{name}");
        let tries = [
            after.append_at(name, 5, text(b"x"), LIFE, TIMEOUT).await,
            after.append_at(name, 0, text(b"x"), LIFE, TIMEOUT).await,
            after.replace(name, Some(text(b"first")), text(b"x"), LIFE, TIMEOUT).await,
            after.replace(name, None, text(b"x"), LIFE, TIMEOUT).await,
        ];
        assert_eq!(tries, [const { Err(StateError::Gone) }; 4], "{name}");
    }
    after.put("log", text(b"anew"), LIFE, TIMEOUT).await.unwrap();
    assert_eq!(after.get("log", TIMEOUT).await, Ok(Some(text(b"anew"))));
}

#[tokio::test]
async fn fences_grow_although_a_failover_loses_leases() {
    testkit::needs!(Valkey);
    let (primary, replica) = (Server::start(&[]), Server::start(&[]));
    let port = primary.port().to_string();
    replica.cli(&["REPLICAOF", "127.0.0.1", &port]).unwrap();
    primary.wait_for_replica();
    replica.cli(&["REPLICAOF", "NO", "ONE"]).unwrap();
    let lost = open(&primary).acquire("work", LIFE, TIMEOUT).await.unwrap();
    primary.kill();
    let next = open(&replica).acquire("work", LIFE, TIMEOUT).await.unwrap();
    assert!(lost.fence < next.fence, "{} {}", lost.fence, next.fence);
    assert_eq!(open(&replica).renew(&lost, LIFE, TIMEOUT).await, Err(StateError::Gone));
}

#[tokio::test]
async fn a_server_that_is_away_fails_at_once_and_comes_back_by_itself() {
    testkit::needs!(Valkey);
    let server = Server::start(&[]);
    let store = open(&server);
    Expiring::put(&store, "k", Bytes::from_static(b"v"), LIFE, TIMEOUT).await.unwrap();
    server.kill();
    for _ in 0..3 {
        let away = Expiring::get(&store, "k", TIMEOUT).await;
        assert!(matches!(away, Err(StateError::Unavailable { .. })), "{away:?}");
    }
    server.resume();
    let mut answer = Expiring::get(&store, "k", TIMEOUT).await;
    while answer.is_err() {
        tokio::task::yield_now().await;
        answer = Expiring::get(&store, "k", TIMEOUT).await;
    }
    assert_eq!(answer, Ok(None), "this server kept nothing");
}

#[tokio::test]
async fn a_link_that_is_cut_holds_nobody_longer_than_they_wait() {
    testkit::needs!(Valkey);
    let server = Server::start(&[]);
    let store = open(&server);
    store.check(TIMEOUT).await.unwrap();
    server.signal("STOP");
    let short = Duration::from_millis(50);
    let cut = Expiring::get(&store, "k", short).await;
    assert!(matches!(cut, Err(StateError::Unavailable { .. })), "{cut:?}");
    server.signal("CONT");
    let mut answer = Expiring::get(&store, "k", TIMEOUT).await;
    while answer.is_err() {
        answer = Expiring::get(&store, "k", TIMEOUT).await;
    }
    assert_eq!(answer, Ok(None));
}

#[tokio::test]
async fn a_server_that_drops_keys_is_refused_unless_told() {
    testkit::needs!(Valkey);
    let server = Server::start(&["--maxmemory-policy allkeys-lru"]);
    let refused = open(&server).check(TIMEOUT).await;
    assert!(
        matches!(&refused, Err(OpenError::Unfit(why)) if why.contains("allkeys-lru")),
        "{refused:?}"
    );
    let used = Expiring::get(&open(&server), "k", TIMEOUT).await;
    assert!(matches!(used, Err(StateError::Unavailable { .. })), "it is not used either");
    let accepted = Config { eviction: Eviction::Accept, ..config(&server.url()) };
    assert_eq!(Valkey::new(accepted).check(TIMEOUT).await, Ok(()));
}

#[tokio::test]
async fn a_full_server_says_so_and_loses_nothing() {
    testkit::needs!(Valkey);
    let server = Server::start(&["--maxmemory 3mb"]);
    let store = open(&server);
    let value = Bytes::from(vec![b'x'; 100_000]);
    let mut refused = None;
    for n in 0..100 {
        let put = Expiring::put(&store, &n.to_string(), value.clone(), LIFE, TIMEOUT).await;
        if let Err(error) = put {
            refused = Some(error.to_string());
            break;
        }
    }
    assert!(refused.as_deref().is_some_and(|why| why.contains("full")), "{refused:?}");
    assert_eq!(Expiring::get(&store, "0", TIMEOUT).await, Ok(Some(value)));
}

#[tokio::test]
async fn a_password_is_asked_for_and_never_told() {
    testkit::needs!(Valkey);
    let server = Server::start(&["--requirepass secret-word"]);
    let without = open(&server).check(TIMEOUT).await;
    assert!(matches!(without, Err(OpenError::Away(_))), "{without:?}");
    let config = config(&server.url());
    let address = config.address.clone().with_password(Some("wrong-word".to_owned()));
    let wrong = Valkey::new(Config { address, ..config.clone() }).check(TIMEOUT).await;
    assert!(!format!("{wrong:?}").contains("wrong-word") && wrong.is_err(), "{wrong:?}");
    let address = config.address.clone().with_password(Some("secret-word".to_owned()));
    assert_eq!(Valkey::new(Config { address, ..config }).check(TIMEOUT).await, Ok(()));
}

/// Asks again until there is an answer.
async fn answered<T>(mut ask: impl AsyncFnMut() -> Result<T, StateError>) -> T {
    loop {
        match decided(&mut ask).await {
            Ok(answer) => return answer,
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Asks again while the store cannot be used, which it may be for a moment more
/// than once while its primary changes.
async fn decided<T>(mut ask: impl AsyncFnMut() -> Result<T, StateError>) -> Result<T, StateError> {
    loop {
        match ask().await {
            Err(StateError::Unavailable { .. }) => tokio::task::yield_now().await,
            decided => return decided,
        }
    }
}

#[tokio::test]
async fn after_a_failover_by_sentinel_values_are_there_and_single_uses_are_void() {
    testkit::needs!(Valkey);
    let (primary, replica) = (Server::start(&[]), Server::start(&[]));
    replica.cli(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]).unwrap();
    let sentinel = Sentinel::start(&primary);
    let store = Valkey::new(config(&sentinel.url()));
    store.check(TIMEOUT).await.unwrap();
    SingleUse::put(&store, "token", Bytes::from_static(b"yes"), LIFE, TIMEOUT).await.unwrap();
    Expiring::put(&store, "value", Bytes::from_static(b"v"), LIFE, TIMEOUT).await.unwrap();
    let lease = store.acquire("work", LIFE, TIMEOUT).await.unwrap();
    primary.wait_for_replica();
    primary.kill();
    let value = answered(async || Expiring::get(&store, "value", TIMEOUT).await).await;
    assert_eq!(value, Some(Bytes::from_static(b"v")));
    let token = decided(async || store.take("token", TIMEOUT).await).await;
    assert_eq!(token, Err(StateError::Gone));
    // The new primary takes writes a moment after it answers.
    let next = decided(async || {
        SingleUse::put(&store, "next", Bytes::from_static(b"x"), LIFE, TIMEOUT).await?;
        store.take("next", TIMEOUT).await
    });
    assert_eq!(next.await, Ok(Some(Bytes::from_static(b"x"))));
    let renewed = decided(async || store.renew(&lease, LIFE, TIMEOUT).await).await;
    assert!(matches!(renewed, Ok(()) | Err(StateError::Gone)), "{renewed:?}");
}

#[tokio::test]
async fn a_cluster_does_what_one_server_does_and_is_found_although_a_node_is_down() {
    testkit::needs!(Valkey);
    let nodes: [Server; 3] = Server::cluster();
    let places: Vec<String> = nodes.iter().map(|n| format!("127.0.0.1:{}", n.port())).collect();
    let url = format!("valkey+cluster://{}", places.join(","));
    macro_rules! user {
        () => {
            &|| Arc::new(Valkey::new(config(&url))) as _
        };
    }
    conformance::documents(user!()).await;
    conformance::documents_changed_at_once(user!()).await;
    conformance::single_use_taken_at_once(user!()).await;
    conformance::counters_spent_at_once(&Valkey::new(config(&url))).await;
    conformance::blobs(user!()).await;
    conformance::leases_acquired_at_once(user!()).await;
    conformance::lines(user!()).await;
    conformance::expiring_appended_at_once(user!()).await;
    let of_epoch = || Arc::new(EpochDocuments(Valkey::new(config(&url)))) as Arc<dyn Documents>;
    conformance::documents(&of_epoch).await;
    conformance::documents_changed_at_once(&of_epoch).await;
    let of_epoch = || Arc::new(EpochValues(Valkey::new(config(&url)))) as Arc<dyn Expiring>;
    conformance::expiring_appended_at_once(&of_epoch).await;
    let listening = Valkey::new(config(&url));
    let users = || Arc::new(listening.clone()) as Arc<dyn Documents>;
    let watching = conformance::documents_watched(&users);
    tokio::select! {
        () = listening.listen() => unreachable!("it listens for ever"),
        () = watching => {}
    }
    let spread = nodes.iter().filter(|node| node.cli(&["DBSIZE"]).as_deref() != Some("0"));
    assert!(1 < spread.count(), "the keys lie on several nodes");
    let missing = testkit::valkey::Server::start(&[]);
    let port = missing.port();
    missing.kill();
    let url = format!("valkey+cluster://127.0.0.1:{port},{}", places[1]);
    assert_eq!(Valkey::new(config(&url)).check(TIMEOUT).await, Ok(()));
}

#[tokio::test]
async fn a_cluster_lets_things_expire_as_one_server_does() {
    testkit::needs!(Valkey);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bus = format!("--cluster-port {}", free.local_addr().unwrap().port());
    drop(free);
    let node = Server::with_clock(&["--cluster-enabled yes", &bus]);
    node.cli(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).unwrap();
    let url = format!("valkey+cluster://127.0.0.1:{}", node.port());
    let open = || Valkey::new(config(&url));
    let advance = |by| node.advance(by);
    // A node counts as one of the cluster a moment after it started.
    answered(async || {
        node.advance(Duration::from_secs(1));
        Expiring::get(&open(), "k", TIMEOUT).await
    })
    .await;
    conformance::single_use(&|| Arc::new(open()) as _, &advance).await;
    conformance::expiring(&|| Arc::new(open()) as _, &advance).await;
    let of_epoch = || Arc::new(EpochValues(open())) as Arc<dyn Expiring>;
    conformance::expiring(&of_epoch, &advance).await;
    conformance::counters(&open(), &advance).await;
    conformance::leases(&|| Arc::new(open()) as _, &advance).await;
    conformance::messages(&|| Arc::new(open()) as _, &advance).await;
}

#[tokio::test]
async fn a_store_behind_tls_is_used_by_who_trusts_its_certificate_alone() {
    testkit::needs!(Valkey);
    rustls::crypto::ring::default_provider().install_default().ok();
    let authority = Authority::fresh();
    let server = Server::with_tls(&authority);
    let config = config(&format!("rediss://localhost:{}", server.port()));
    let trusting = |pem: &str| {
        let address = config.address.clone().with_authority(Some(pem.as_bytes().to_vec()));
        Valkey::new(Config { address, ..config.clone() })
    };
    let store = trusting(&authority.pem);
    Expiring::put(&store, "k", Bytes::from_static(b"v"), LIFE, TIMEOUT).await.unwrap();
    assert_eq!(Expiring::get(&store, "k", TIMEOUT).await, Ok(Some(Bytes::from_static(b"v"))));
    let stranger = trusting(&Authority::fresh().pem).check(TIMEOUT).await;
    assert!(
        matches!(&stranger, Err(OpenError::Away(why)) if why.contains("ertificate")),
        "{stranger:?}"
    );
    let plain = open(&server).check(TIMEOUT).await;
    assert!(matches!(plain, Err(OpenError::Away(_))), "{plain:?}");
}
