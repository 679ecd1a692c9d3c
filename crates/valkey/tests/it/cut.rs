//! A node of a cluster whose connection is lost right after it carried out a command.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use store::state::{Messages, Version};

use super::*;

/// The way to the only node of a cluster, which says that it is reached here.
struct Way {
    node: Server,
    port: u16,
    /// How many answers are still to be lost, with their connections.
    n_to_lose: Arc<AtomicUsize>,
}

impl Way {
    fn to_a_node() -> Way {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let bus = free.local_addr().unwrap().port();
        drop(free);
        let node = Server::start(&[
            &format!("--cluster-enabled yes --cluster-port {bus}"),
            &format!("--cluster-announce-ip 127.0.0.1 --cluster-announce-port {port}"),
        ]);
        node.cli(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).unwrap();
        let n_to_lose = Arc::<AtomicUsize>::default();
        let (to, lose) = (node.port(), Arc::clone(&n_to_lose));
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let (asks, answers) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                std::thread::spawn(move || pass(asks, far, &AtomicUsize::new(0)));
                let lose = Arc::clone(&lose);
                std::thread::spawn(move || pass(answers, near, &lose));
            }
        });
        Way { node, port, n_to_lose }
    }

    fn open(&self) -> Valkey {
        Valkey::new(config(&format!("valkey+cluster://127.0.0.1:{}", self.port)))
    }

    /// Carries out a request whose answer is lost.
    async fn lost<T: std::fmt::Debug>(&self, request: impl Future<Output = Result<T, StateError>>) {
        self.n_to_lose.store(1, Ordering::SeqCst);
        let answer = request.await;
        assert!(matches!(answer, Err(StateError::Unavailable { .. })), "{answer:?}");
        assert_eq!(self.n_to_lose.load(Ordering::SeqCst), 0, "an answer was lost");
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, n_to_lose: &AtomicUsize) {
    let mut bytes = [0; 16 << 10];
    while let Ok(n_read @ 1..) = from.read(&mut bytes) {
        let less = |n: usize| n.checked_sub(1);
        let is_lost = n_to_lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok();
        if is_lost || to.write_all(&bytes[..n_read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[tokio::test]
async fn what_a_node_carried_out_before_its_connection_was_lost_is_not_sent_again() {
    testkit::needs!(Valkey);
    let way = Way::to_a_node();
    let store = way.open();
    answered(async || store.send("box", Bytes::from_static(b"warm"), LIFE, TIMEOUT).await).await;
    let claims = [Claim { key: "ann/calls", amount: 1, limit: 10, window: Some(LIFE) }];
    answered(async || store.spend(&claims, TIMEOUT).await).await;
    way.lost(store.send("box", Bytes::from_static(b"once"), LIFE, TIMEOUT)).await;
    answered(async || Expiring::get(&store, "there again", TIMEOUT).await).await;
    way.lost(store.spend(&claims, TIMEOUT)).await;
    let mut received = answered(async || store.receive("box", Duration::ZERO).await).await;
    assert_eq!(received.len(), 2, "{received:?}");
    received.dedup();
    assert_eq!(received, ["warm", "once"]);
    // Two of ten are spent.
    let rest = [Claim { amount: 8, ..claims[0] }];
    let spent = answered(async || store.spend(&rest, TIMEOUT).await).await;
    assert_eq!(spent, Spending::Granted, "the lost one counts once");
    let over = answered(async || Counters::check(&store, &claims, TIMEOUT).await).await;
    assert!(matches!(over, Spending::Refused { .. }), "{over:?}");
    assert!(way.node.cli(&["PING"]).is_some());
}

#[tokio::test]
async fn what_a_node_refuses_is_sent_to_the_node_that_has_it() {
    testkit::needs!(Valkey);
    let nodes: [Server; 3] = Server::cluster();
    let store = Valkey::new(config(&format!("valkey+cluster://127.0.0.1:{}", nodes[0].port())));
    let put = async |n: usize| {
        let value = Bytes::from(n.to_string());
        Expiring::put(&store, &format!("k{n}"), value, LIFE, TIMEOUT).await
    };
    for n in 0..50 {
        assert_eq!(put(n).await, Ok(()));
    }
    // All slots of the first node go to the second, of which the store is not told.
    let id = |node: &Server| node.cli(&["CLUSTER", "MYID"]).unwrap();
    let moved = nodes[1].cli(&[
        "--cluster",
        "reshard",
        &format!("127.0.0.1:{}", nodes[0].port()),
        "--cluster-from",
        &id(&nodes[0]),
        "--cluster-to",
        &id(&nodes[1]),
        "--cluster-slots",
        "5461",
        "--cluster-yes",
    ]);
    assert!(moved.is_some(), "the slots move");
    for n in 0..50 {
        let value = Expiring::get(&store, &format!("k{n}"), TIMEOUT).await;
        assert_eq!(value, Ok(Some(Bytes::from(n.to_string()))));
        let swapped = store.swap(&format!("d{n}"), None, Some("x".into()), TIMEOUT).await;
        assert_eq!(swapped, Ok(Some(Version::of_content(b"x"))));
    }
}
