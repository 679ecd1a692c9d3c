//! What every store has to do, as tests that any of them can be put through.
//!
//! Each function takes a way to open the store: every time it is called it gives
//! another user of the same state, as another process or replica would be.
//! Where lives and windows matter, the time is moved by hand. A store that does
//! not do what it should makes the function panic.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;

use crate::state::{
    self, BlobInfo, Blobs, Change, Claim, Counters, Documents, Expiring, Leases, Lines, Messages,
    SingleUse, Spending, StateError,
};

/// Opens one more user of the same state.
pub type Open<'a, S> = &'a (dyn Fn() -> Arc<S> + Sync);
/// Moves the time that the store goes by.
pub type Advance<'a> = &'a (dyn Fn(Duration) + Sync);

const WITHIN: Duration = Duration::from_secs(20);
const LIFE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub async fn documents(open: Open<'_, dyn Documents>) {
    let (one, other) = (open(), open());
    assert_eq!(one.read("a.json", WITHIN).await, Ok(None));
    let first = one.swap("a.json", None, Some(text("1")), WITHIN).await.unwrap_or_default();
    let read = other.read("a.json", WITHIN).await.unwrap_or_default();
    assert_eq!(read.map(|read| (read.bytes, Some(read.version))), Some((text("1"), first.clone())));
    let refused = other.swap("a.json", None, Some(text("2")), WITHIN).await;
    assert_eq!(refused, Err(StateError::Conflict), "it is there already");
    let second = other.swap("a.json", first.clone(), Some(text("2")), WITHIN).await;
    assert!(matches!(second, Ok(Some(_))), "{second:?}");
    let late = one.swap("a.json", first, None, WITHIN).await;
    assert_eq!(late, Err(StateError::Conflict), "it has changed since");
    let removed = one.swap("a.json", second.unwrap_or_default(), None, WITHIN).await;
    assert_eq!(removed, Ok(None));
    assert_eq!(other.read("a.json", WITHIN).await, Ok(None));
    assert_eq!(one.swap("a.json", None, None, WITHIN).await, Ok(None), "nothing stays nothing");
    let elsewhere = one.read("below/b.json", WITHIN).await;
    assert_eq!(elsewhere, Ok(None), "a name may have parts");
}

/// Nothing is lost, however many change a document at once.
pub async fn documents_changed_at_once(open: Open<'_, dyn Documents>) {
    let add = |bytes: Option<&[u8]>| -> Result<Change, StateError> {
        let before = bytes.map_or("0", |bytes| std::str::from_utf8(bytes).unwrap_or_default());
        let next = before.parse::<u32>().map_err(StateError::unavailable)? + 1;
        Ok(Change::Replace(text(&next.to_string())))
    };
    let users: Vec<_> = (0..8).map(|_| open()).collect();
    let each = users.iter().map(|user| async {
        for _ in 0..10 {
            let changed = state::change(&**user, "n.json", WITHIN, add).await;
            assert!(changed.is_ok(), "{changed:?}");
        }
    });
    join_all(each).await;
    let read = open().read("n.json", WITHIN).await.unwrap_or_default();
    assert_eq!(read.map(|read| read.bytes), Some(text("80")));
}

/// Who watches a document hears of a change, whoever makes it.
pub async fn documents_watched(open: Open<'_, dyn Documents>) {
    let (one, other) = (open(), open());
    let mut mine = one.watch("w.json");
    let made = one.swap("w.json", None, Some(text("1")), WITHIN).await.unwrap_or_default();
    assert_eq!(mine.next().await, Some(()));
    let mut theirs = one.watch("w.json");
    let changed = other.swap("w.json", made, Some(text("another")), WITHIN).await;
    assert!(changed.is_ok(), "{changed:?}");
    assert_eq!(theirs.next().await, Some(()));
}

pub async fn single_use(open: Open<'_, dyn SingleUse>, advance: Advance<'_>) {
    let (one, other) = (open(), open());
    assert_eq!(one.take("t", WITHIN).await, Ok(None));
    assert_eq!(one.put("t", text("yes"), LIFE, WITHIN).await, Ok(()));
    let again = other.put("t", text("no"), LIFE, WITHIN).await;
    assert_eq!(again, Err(StateError::Conflict));
    assert_eq!(other.take("t", WITHIN).await, Ok(Some(text("yes"))));
    assert_eq!(one.take("t", WITHIN).await, Ok(None), "it was used");
    assert_eq!(one.put("odd/../key \u{e9}", text("x"), LIFE, WITHIN).await, Ok(()));
    advance(LIFE.saturating_sub(SECOND));
    assert_eq!(one.put("late", text("y"), LIFE, WITHIN).await, Ok(()));
    advance(SECOND);
    assert_eq!(one.take("odd/../key \u{e9}", WITHIN).await, Ok(None), "its life is over");
    assert_eq!(other.take("late", WITHIN).await, Ok(Some(text("y"))));
    assert_eq!(one.put("over", text("1"), SECOND, WITHIN).await, Ok(()));
    advance(SECOND);
    assert_eq!(other.put("over", text("2"), SECOND, WITHIN).await, Ok(()), "what is over is gone");
    assert_eq!(one.take("over", WITHIN).await, Ok(Some(text("2"))));
}

/// Of many who take one thing at once, exactly one gets it.
pub async fn single_use_taken_at_once(open: Open<'_, dyn SingleUse>) {
    for round in 0..10 {
        let key = format!("round {round}");
        assert_eq!(open().put(&key, text("x"), LIFE, WITHIN).await, Ok(()));
        let users: Vec<_> = (0..8).map(|_| open()).collect();
        let takes = users.iter().map(|user| user.take(&key, WITHIN));
        let taken = join_all(takes).await.into_iter().filter(|taken| *taken == Ok(Some(text("x"))));
        assert_eq!(taken.count(), 1);
    }
}

pub async fn expiring(open: Open<'_, dyn Expiring>, advance: Advance<'_>) {
    let (one, other) = (open(), open());
    assert_eq!(one.get("v", WITHIN).await, Ok(None));
    assert_eq!(one.put("v", text("1"), LIFE, WITHIN).await, Ok(()));
    assert_eq!(other.put("v", text("2"), LIFE, WITHIN).await, Ok(()));
    assert_eq!(one.get("v", WITHIN).await, Ok(Some(text("2"))));
    advance(LIFE / 2);
    assert_eq!(one.touch("v", LIFE, WITHIN).await, Ok(true));
    advance(LIFE / 2);
    assert_eq!(other.get("v", WITHIN).await, Ok(Some(text("2"))), "it lives anew");
    advance(LIFE / 2);
    assert_eq!(one.get("v", WITHIN).await, Ok(None));
    assert_eq!(one.touch("v", LIFE, WITHIN).await, Ok(false), "what is over stays over");
    assert_eq!(one.put("w", text("1"), LIFE, WITHIN).await, Ok(()));
    assert_eq!(other.remove("w", WITHIN).await, Ok(true));
    assert_eq!(one.remove("w", WITHIN).await, Ok(false));
    assert_eq!(one.get("w", WITHIN).await, Ok(None));
}

/// `store` is one user: where state is embedded, each counts for itself.
pub async fn counters(store: &dyn Counters, advance: Advance<'_>) {
    let minute = Some(LIFE);
    let claim = |key: &'static str, limit: u32| Claim { key, amount: 1, limit, window: minute };
    let refused = |at: usize, seconds: u64| {
        Ok(Spending::Refused { at, retry_after: Some(Duration::from_secs(seconds)) })
    };
    let granted = Ok(Spending::Granted);
    assert_eq!(store.spend(&[claim("x/a", 2)], WITHIN).await, granted);
    advance(SECOND);
    assert_eq!(store.spend(&[claim("x/a", 2)], WITHIN).await, granted);
    assert_eq!(store.look(&[claim("x/a", 2)], WITHIN).await, refused(0, 59));
    let both = [claim("x/b", 5), claim("x/a", 2)];
    assert_eq!(store.spend(&both, WITHIN).await, refused(1, 59), "all or none");
    assert_eq!(store.look(&[Claim { amount: 5, ..both[0] }], WITHIN).await, granted);
    advance(Duration::from_secs(59));
    assert_eq!(store.spend(&[claim("x/a", 2)], WITHIN).await, granted, "the window has moved on");
    assert_eq!(store.spend(&[claim("x/a", 2)], WITHIN).await, refused(0, 1));
    assert_eq!(store.give_back(&[claim("x/a", 2)], WITHIN).await, Ok(()));
    assert_eq!(store.spend(&[claim("x/a", 2)], WITHIN).await, granted);
    let more = [Claim { amount: 3, ..claim("x/a", 2) }];
    let never = Ok(Spending::Refused { at: 0, retry_after: None });
    assert_eq!(store.spend(&more, WITHIN).await, never, "it never fits");
    let total = [Claim { key: "x/t", amount: 2, limit: 5, window: None }];
    assert_eq!(store.spend(&total, WITHIN).await, granted);
    assert_eq!(store.spend(&total, WITHIN).await, granted);
    advance(LIFE * 1000);
    assert_eq!(store.spend(&total, WITHIN).await, never);
    assert_eq!(store.give_back(&total, WITHIN).await, Ok(()));
    assert_eq!(store.spend(&total, WITHIN).await, granted);
}

/// However many spend at once, no more is spent than there is.
pub async fn counters_spent_at_once(store: &dyn Counters) {
    let claims = [Claim { key: "rush", amount: 1, limit: 10, window: Some(LIFE) }];
    let spends = join_all((0..32).map(|_| store.spend(&claims, WITHIN))).await;
    assert_eq!(spends.iter().filter(|spent| **spent == Ok(Spending::Granted)).count(), 10);
}

pub async fn blobs(open: Open<'_, dyn Blobs>) {
    let (one, other) = (open(), open());
    assert_eq!(one.get("ann", "x", 0..9, WITHIN).await, Err(StateError::Gone));
    for (owner, name, bytes) in
        [("ann", "x", "0123456789"), ("ann", "../y \u{e9}", "why"), ("bob", "x", "bob")]
    {
        assert_eq!(one.put(owner, name, text(bytes), WITHIN).await, Ok(()));
    }
    for (range, expected) in [(0..10, "0123456789"), (2..5, "234"), (8..99, "89"), (50..60, "")] {
        assert_eq!(other.get("ann", "x", range, WITHIN).await, Ok(text(expected)));
    }
    let info = |name: &str, n_bytes| BlobInfo { name: name.to_owned(), n_bytes };
    let listed = other.list("ann", WITHIN).await;
    assert_eq!(listed, Ok(vec![info("../y \u{e9}", 3), info("x", 10)]));
    assert_eq!(one.put("ann", "x", text("new"), WITHIN).await, Ok(()));
    assert_eq!(other.get("ann", "x", 0..9, WITHIN).await, Ok(text("new")));
    assert_eq!(other.delete("ann", "x", WITHIN).await, Ok(true));
    assert_eq!(one.delete("ann", "x", WITHIN).await, Ok(false));
    assert_eq!(one.get("bob", "x", 0..9, WITHIN).await, Ok(text("bob")), "another owner's");
    assert_eq!(one.list("nobody", WITHIN).await, Ok(Vec::new()));
}

pub async fn leases(open: Open<'_, dyn Leases>, advance: Advance<'_>) {
    let (one, other) = (open(), open());
    let first = one.acquire("l", LIFE, WITHIN).await;
    let first = first.unwrap_or_else(|error| panic!("a free lease is given: {error}"));
    for user in [&one, &other] {
        assert_eq!(user.acquire("l", LIFE, WITHIN).await, Err(StateError::Conflict));
    }
    assert!(other.acquire("another", LIFE, WITHIN).await.is_ok());
    advance(LIFE / 2);
    assert_eq!(one.renew(&first, LIFE, WITHIN).await, Ok(()));
    advance(LIFE / 2);
    assert_eq!(other.acquire("l", LIFE, WITHIN).await, Err(StateError::Conflict), "it was renewed");
    advance(LIFE / 2);
    let second = other.acquire("l", LIFE, WITHIN).await;
    let second = second.unwrap_or_else(|error| panic!("a life ends: {error}"));
    assert!(first.fence < second.fence);
    assert_eq!(one.renew(&first, LIFE, WITHIN).await, Err(StateError::Gone));
    assert_eq!(one.release(first, WITHIN).await, Ok(()), "nobody else's is let go");
    assert_eq!(one.acquire("l", LIFE, WITHIN).await, Err(StateError::Conflict));
    let fence = second.fence;
    assert_eq!(other.release(second, WITHIN).await, Ok(()));
    let third = one.acquire("l", LIFE, WITHIN).await.map(|lease| lease.fence);
    assert!(third.as_ref().is_ok_and(|third| fence < *third), "{third:?}");
}

/// Of many who want a lease at once, one gets it.
pub async fn leases_acquired_at_once(open: Open<'_, dyn Leases>) {
    let users: Vec<_> = (0..8).map(|_| open()).collect();
    let acquired = join_all(users.iter().map(|user| user.acquire("rush", LIFE, WITHIN))).await;
    assert_eq!(acquired.iter().filter(|acquired| acquired.is_ok()).count(), 1);
}

pub async fn lines(open: Open<'_, dyn Lines>) {
    assert_eq!(open().last("log", 5, WITHIN).await, Ok(Vec::new()));
    let users: Vec<_> = (0..4).map(|_| open()).collect();
    let each = users.iter().enumerate().map(|(at, user)| async move {
        for n in 0..10 {
            let line = text(&format!("{at} {n}"));
            assert_eq!(user.append("log", line, WITHIN).await, Ok(()));
        }
    });
    join_all(each).await;
    let all = open().last("log", 1_000, WITHIN).await.unwrap_or_default();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 40, "each line is there, whole and once");
    let of_one = all.iter().filter(|line| line.starts_with(b"2 ")).cloned();
    let in_order: Vec<Bytes> = (0..10).map(|n| text(&format!("2 {n}"))).collect();
    assert_eq!(of_one.collect::<Vec<_>>(), in_order);
    let last = open().last("log", 3, WITHIN).await;
    assert_eq!(last.as_deref(), Ok(&all[37..]));
}

/// What is sent to a mailbox is received once, in order, by whoever waits there.
pub async fn messages(open: Open<'_, dyn Messages>, advance: Advance<'_>) {
    let (one, other) = (open(), open());
    let soon = Duration::ZERO;
    assert_eq!(one.receive("box", soon).await, Ok(Vec::new()), "nothing was sent");
    for message in ["1", "2", "3"] {
        assert_eq!(other.send("box", text(message), LIFE, WITHIN).await, Ok(()));
    }
    assert_eq!(other.send("another", text("x"), LIFE, WITHIN).await, Ok(()));
    assert_eq!(one.receive("box", WITHIN).await, Ok(["1", "2", "3"].map(text).to_vec()));
    assert_eq!(one.receive("box", soon).await, Ok(Vec::new()), "each once");
    let sending = async {
        // Whoever waits is there first, as far as can be arranged.
        tokio::task::yield_now().await;
        other.send("box", text("late"), LIFE, WITHIN).await
    };
    let (received, sent) = futures::join!(one.receive("box", WITHIN), sending);
    assert_eq!((received, sent), (Ok(vec![text("late")]), Ok(())));
    advance(LIFE);
    assert_eq!(one.receive("another", soon).await, Ok(Vec::new()), "its life is over");
}
