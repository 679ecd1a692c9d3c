//! Conformance tests that every implementation of the `state` traits has to pass.
//!
//! Each function takes a function that opens the store: every call of it gives
//! another user of the same state, as another process or replica would be. Where
//! expiry and windows matter, the test moves the clock. A store that does not
//! conform makes the function panic.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;

use crate::state::{
    self, BlobMeta, Blobs, Change, Claim, Counters, Documents, Expiring, Leases, Lines, Messages,
    SingleUse, Spending, StateError,
};

/// Opens one more user of the same state.
pub type Open<'a, S> = &'a (dyn Fn() -> Arc<S> + Sync);
/// Moves the clock that the store uses.
pub type Advance<'a> = &'a (dyn Fn(Duration) + Sync);

const TIMEOUT: Duration = Duration::from_secs(20);
const LIFE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub async fn documents(open: Open<'_, dyn Documents>) {
    let (one, other) = (open(), open());
    assert_eq!(one.read("a.json", TIMEOUT).await, Ok(None));
    let first = one.swap("a.json", None, Some(text("1")), TIMEOUT).await.unwrap_or_default();
    let read = other.read("a.json", TIMEOUT).await.unwrap_or_default();
    assert_eq!(read.map(|read| (read.bytes, Some(read.version))), Some((text("1"), first.clone())));
    let refused = other.swap("a.json", None, Some(text("2")), TIMEOUT).await;
    assert_eq!(refused, Err(StateError::Conflict), "it is there already");
    let second = other.swap("a.json", first.clone(), Some(text("2")), TIMEOUT).await;
    assert!(matches!(second, Ok(Some(_))), "{second:?}");
    let late = one.swap("a.json", first, None, TIMEOUT).await;
    assert_eq!(late, Err(StateError::Conflict), "it has changed since");
    let removed = one.swap("a.json", second.unwrap_or_default(), None, TIMEOUT).await;
    assert_eq!(removed, Ok(None));
    assert_eq!(other.read("a.json", TIMEOUT).await, Ok(None));
    assert_eq!(one.swap("a.json", None, None, TIMEOUT).await, Ok(None), "nothing stays nothing");
    let elsewhere = one.read("below/b.json", TIMEOUT).await;
    assert_eq!(elsewhere, Ok(None), "a name may have parts");
}

/// Checks that no change is lost when many change a document at once.
pub async fn documents_changed_at_once(open: Open<'_, dyn Documents>) {
    let add = |bytes: Option<&[u8]>| -> Result<Change, StateError> {
        let before = bytes.map_or("0", |bytes| std::str::from_utf8(bytes).unwrap_or_default());
        let next = before.parse::<u32>().map_err(StateError::unavailable)? + 1;
        Ok(Change::Replace(text(&next.to_string())))
    };
    let users: Vec<_> = (0..8).map(|_| open()).collect();
    let each = users.iter().map(|user| async {
        for _ in 0..10 {
            let changed = state::change(&**user, "n.json", TIMEOUT, add).await;
            assert!(changed.is_ok(), "{changed:?}");
        }
    });
    join_all(each).await;
    let read = open().read("n.json", TIMEOUT).await.unwrap_or_default();
    assert_eq!(read.map(|read| read.bytes), Some(text("80")));
}

/// Checks that watchers of a document are notified, whoever changes it.
pub async fn documents_watched(open: Open<'_, dyn Documents>) {
    let (one, other) = (open(), open());
    let mut mine = one.watch("w.json");
    let made = one.swap("w.json", None, Some(text("1")), TIMEOUT).await.unwrap_or_default();
    assert_eq!(mine.next().await, Some(()));
    let mut theirs = one.watch("w.json");
    let changed = other.swap("w.json", made, Some(text("another")), TIMEOUT).await;
    assert!(changed.is_ok(), "{changed:?}");
    assert_eq!(theirs.next().await, Some(()));
}

pub async fn single_use(open: Open<'_, dyn SingleUse>, advance: Advance<'_>) {
    let (one, other) = (open(), open());
    assert_eq!(one.take("t", TIMEOUT).await, Ok(None));
    assert_eq!(one.put("t", text("yes"), LIFE, TIMEOUT).await, Ok(()));
    let again = other.put("t", text("no"), LIFE, TIMEOUT).await;
    assert_eq!(again, Err(StateError::Conflict));
    assert_eq!(other.take("t", TIMEOUT).await, Ok(Some(text("yes"))));
    assert_eq!(one.take("t", TIMEOUT).await, Ok(None), "it was used");
    assert_eq!(one.put("odd/../key \u{e9}", text("x"), LIFE, TIMEOUT).await, Ok(()));
    advance(LIFE.saturating_sub(SECOND));
    assert_eq!(one.put("late", text("y"), LIFE, TIMEOUT).await, Ok(()));
    advance(SECOND);
    assert_eq!(one.take("odd/../key \u{e9}", TIMEOUT).await, Ok(None), "its life is over");
    assert_eq!(other.take("late", TIMEOUT).await, Ok(Some(text("y"))));
    assert_eq!(one.put("over", text("1"), SECOND, TIMEOUT).await, Ok(()));
    advance(SECOND);
    assert_eq!(other.put("over", text("2"), SECOND, TIMEOUT).await, Ok(()), "what is over is gone");
    assert_eq!(one.take("over", TIMEOUT).await, Ok(Some(text("2"))));
}

/// Checks that of many who take one value at once, exactly one gets it.
pub async fn single_use_taken_at_once(open: Open<'_, dyn SingleUse>) {
    for round in 0..10 {
        let key = format!("round {round}");
        assert_eq!(open().put(&key, text("x"), LIFE, TIMEOUT).await, Ok(()));
        let users: Vec<_> = (0..8).map(|_| open()).collect();
        let takes = users.iter().map(|user| user.take(&key, TIMEOUT));
        let taken = join_all(takes).await.into_iter().filter(|taken| *taken == Ok(Some(text("x"))));
        assert_eq!(taken.count(), 1);
    }
}

pub async fn expiring(open: Open<'_, dyn Expiring>, advance: Advance<'_>) {
    let (one, other) = (open(), open());
    assert_eq!(one.get("v", TIMEOUT).await, Ok(None));
    assert_eq!(one.put("v", text("1"), LIFE, TIMEOUT).await, Ok(()));
    assert_eq!(other.put("v", text("2"), LIFE, TIMEOUT).await, Ok(()));
    assert_eq!(one.get("v", TIMEOUT).await, Ok(Some(text("2"))));
    advance(LIFE / 2);
    assert_eq!(one.touch("v", LIFE, TIMEOUT).await, Ok(true));
    advance(LIFE / 2);
    assert_eq!(other.get("v", TIMEOUT).await, Ok(Some(text("2"))), "it lives anew");
    advance(LIFE / 2);
    assert_eq!(one.get("v", TIMEOUT).await, Ok(None));
    assert_eq!(one.touch("v", LIFE, TIMEOUT).await, Ok(false), "what is over stays over");
    assert_eq!(one.put("w", text("1"), LIFE, TIMEOUT).await, Ok(()));
    assert_eq!(other.remove("w", TIMEOUT).await, Ok(true));
    assert_eq!(one.remove("w", TIMEOUT).await, Ok(false));
    assert_eq!(one.get("w", TIMEOUT).await, Ok(None));
    for (user, at, bytes) in [(&one, 0, "ab"), (&other, 2, "c"), (&one, 3, "\n\0")] {
        assert_eq!(user.append_at("log", at, text(bytes), LIFE, TIMEOUT).await, Ok(()));
        advance(LIFE / 2);
    }
    assert_eq!(one.get("log", TIMEOUT).await, Ok(Some(text("abc\n\0"))), "it lives on");
    for at in [0, 3, 6] {
        let late = other.append_at("log", at, text("x"), LIFE, TIMEOUT).await;
        assert_eq!(late, Err(StateError::Conflict), "it has another length than {at}");
    }
    advance(LIFE / 2);
    let over = one.append_at("log", 5, text("x"), LIFE, TIMEOUT).await;
    assert_eq!(over, Err(StateError::Conflict), "what is over has no length");
    assert_eq!(one.append_at("log", 0, text("new"), LIFE, TIMEOUT).await, Ok(()));
    assert_eq!(other.get("log", TIMEOUT).await, Ok(Some(text("new"))));
    expiring_replaced(&*one, &*other, advance).await;
}

async fn expiring_replaced(one: &dyn Expiring, other: &dyn Expiring, advance: Advance<'_>) {
    let conflict = Err(StateError::Conflict);
    let was = |value: &str| Some(text(value));
    assert_eq!(
        one.replace("s", was(""), text("1"), LIFE, TIMEOUT).await,
        conflict,
        "nothing is there"
    );
    assert_eq!(one.replace("s", None, text("1"), LIFE, TIMEOUT).await, Ok(()));
    assert_eq!(other.replace("s", None, text("2"), LIFE, TIMEOUT).await, conflict);
    advance(LIFE / 2);
    assert_eq!(other.replace("s", was("1"), text("2\0"), LIFE, TIMEOUT).await, Ok(()));
    assert_eq!(one.replace("s", was("1"), text("3"), LIFE, TIMEOUT).await, conflict);
    advance(LIFE / 2);
    assert_eq!(one.get("s", TIMEOUT).await, Ok(was("2\0")), "it lives anew");
    advance(LIFE / 2);
    assert_eq!(
        one.replace("s", was("2\0"), text("3"), LIFE, TIMEOUT).await,
        conflict,
        "it is over"
    );
    assert_eq!(one.replace("s", None, text("3"), LIFE, TIMEOUT).await, Ok(()));
}

/// Checks that of many who add to a value at once, one does.
pub async fn expiring_appended_at_once(open: Open<'_, dyn Expiring>) {
    let users: Vec<_> = (0..8).map(|_| open()).collect();
    for round in 0..10 {
        let adds = users.iter().map(|user| user.append_at("rush", round, text("x"), LIFE, TIMEOUT));
        let added = join_all(adds).await;
        assert_eq!(added.iter().filter(|added| **added == Ok(())).count(), 1, "{added:?}");
    }
}

/// `store` is one user: in memory and in files, each process counts for itself.
pub async fn counters(store: &dyn Counters, advance: Advance<'_>) {
    let minute = Some(LIFE);
    let claim = |key: &'static str, limit: u32| Claim { key, amount: 1, limit, window: minute };
    let refused = |claim_index: usize, seconds: u64| {
        Ok(Spending::Refused { claim_index, retry_after: Some(Duration::from_secs(seconds)) })
    };
    let granted = Ok(Spending::Granted);
    assert_eq!(store.spend(&[claim("x/a", 2)], TIMEOUT).await, granted);
    advance(SECOND);
    assert_eq!(store.spend(&[claim("x/a", 2)], TIMEOUT).await, granted);
    assert_eq!(store.check(&[claim("x/a", 2)], TIMEOUT).await, refused(0, 59));
    let both = [claim("x/b", 5), claim("x/a", 2)];
    assert_eq!(store.spend(&both, TIMEOUT).await, refused(1, 59), "all or none");
    assert_eq!(store.check(&[Claim { amount: 5, ..both[0] }], TIMEOUT).await, granted);
    advance(Duration::from_secs(59));
    assert_eq!(store.spend(&[claim("x/a", 2)], TIMEOUT).await, granted, "the window has moved on");
    assert_eq!(store.spend(&[claim("x/a", 2)], TIMEOUT).await, refused(0, 1));
    assert_eq!(store.give_back(&[claim("x/a", 2)], TIMEOUT).await, Ok(()));
    assert_eq!(store.spend(&[claim("x/a", 2)], TIMEOUT).await, granted);
    let more = [Claim { amount: 3, ..claim("x/a", 2) }];
    let never = Ok(Spending::Refused { claim_index: 0, retry_after: None });
    assert_eq!(store.spend(&more, TIMEOUT).await, never, "it never fits");
    let total = [Claim { key: "x/t", amount: 2, limit: 5, window: None }];
    assert_eq!(store.spend(&total, TIMEOUT).await, granted);
    assert_eq!(store.spend(&total, TIMEOUT).await, granted);
    advance(LIFE * 1000);
    assert_eq!(store.spend(&total, TIMEOUT).await, never);
    assert_eq!(store.give_back(&total, TIMEOUT).await, Ok(()));
    assert_eq!(store.spend(&total, TIMEOUT).await, granted);
}

/// Checks that no more than the limit is spent when many spend at once.
pub async fn counters_spent_at_once(store: &dyn Counters) {
    let claims = [Claim { key: "rush", amount: 1, limit: 10, window: Some(LIFE) }];
    let spends = join_all((0..32).map(|_| store.spend(&claims, TIMEOUT))).await;
    assert_eq!(spends.iter().filter(|spent| **spent == Ok(Spending::Granted)).count(), 10);
}

pub async fn blobs(open: Open<'_, dyn Blobs>) {
    let (one, other) = (open(), open());
    assert_eq!(one.get("ann", "x", 0..9, TIMEOUT).await, Err(StateError::Gone));
    for (owner, name, bytes) in
        [("ann", "x", "0123456789"), ("ann", "../y \u{e9}", "why"), ("bob", "x", "bob")]
    {
        assert_eq!(one.put(owner, name, text(bytes), TIMEOUT).await, Ok(()));
    }
    for (range, expected) in [(0..10, "0123456789"), (2..5, "234"), (8..99, "89"), (50..60, "")] {
        assert_eq!(other.get("ann", "x", range, TIMEOUT).await, Ok(text(expected)));
    }
    let info = |name: &str, n_bytes| BlobMeta { name: name.to_owned(), n_bytes };
    let listed = other.list("ann", TIMEOUT).await;
    assert_eq!(listed, Ok(vec![info("../y \u{e9}", 3), info("x", 10)]));
    assert_eq!(one.put("ann", "x", text("new"), TIMEOUT).await, Ok(()));
    assert_eq!(other.get("ann", "x", 0..9, TIMEOUT).await, Ok(text("new")));
    assert_eq!(other.delete("ann", "x", TIMEOUT).await, Ok(true));
    assert_eq!(one.delete("ann", "x", TIMEOUT).await, Ok(false));
    assert_eq!(one.get("bob", "x", 0..9, TIMEOUT).await, Ok(text("bob")), "another owner's");
    assert_eq!(one.list("nobody", TIMEOUT).await, Ok(Vec::new()));
}

pub async fn leases(open: Open<'_, dyn Leases>, advance: Advance<'_>) {
    let (one, other) = (open(), open());
    let first = one.acquire("l", LIFE, TIMEOUT).await;
    let first = first.unwrap_or_else(|error| panic!("a free lease is given: {error}"));
    for user in [&one, &other] {
        assert_eq!(user.acquire("l", LIFE, TIMEOUT).await, Err(StateError::Conflict));
    }
    assert!(other.acquire("another", LIFE, TIMEOUT).await.is_ok());
    advance(LIFE / 2);
    assert_eq!(one.renew(&first, LIFE, TIMEOUT).await, Ok(()));
    advance(LIFE / 2);
    assert_eq!(
        other.acquire("l", LIFE, TIMEOUT).await,
        Err(StateError::Conflict),
        "it was renewed"
    );
    advance(LIFE / 2);
    let second = other.acquire("l", LIFE, TIMEOUT).await;
    let second = second.unwrap_or_else(|error| panic!("a life ends: {error}"));
    assert!(first.fence < second.fence);
    assert_eq!(one.renew(&first, LIFE, TIMEOUT).await, Err(StateError::Gone));
    assert_eq!(one.release(first, TIMEOUT).await, Ok(()), "nobody else's is let go");
    assert_eq!(one.acquire("l", LIFE, TIMEOUT).await, Err(StateError::Conflict));
    let fence = second.fence;
    assert_eq!(other.release(second, TIMEOUT).await, Ok(()));
    let third = one.acquire("l", LIFE, TIMEOUT).await.map(|lease| lease.fence);
    assert!(third.as_ref().is_ok_and(|third| fence < *third), "{third:?}");
}

/// Checks that of many who acquire a lease at once, one gets it.
pub async fn leases_acquired_at_once(open: Open<'_, dyn Leases>) {
    let users: Vec<_> = (0..8).map(|_| open()).collect();
    let acquired = join_all(users.iter().map(|user| user.acquire("rush", LIFE, TIMEOUT))).await;
    assert_eq!(acquired.iter().filter(|acquired| acquired.is_ok()).count(), 1);
}

pub async fn lines(open: Open<'_, dyn Lines>) {
    assert_eq!(open().last("log", 5, TIMEOUT).await, Ok(Vec::new()));
    let users: Vec<_> = (0..4).map(|_| open()).collect();
    let each = users.iter().enumerate().map(|(at, user)| async move {
        for n in 0..10 {
            let line = text(&format!("{at} {n}"));
            assert_eq!(user.append("log", line, TIMEOUT).await, Ok(()));
        }
    });
    join_all(each).await;
    let all = open().last("log", 1_000, TIMEOUT).await.unwrap_or_default();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 40, "each line is there, whole and once");
    let of_one = all.iter().filter(|line| line.starts_with(b"2 ")).cloned();
    let in_order: Vec<Bytes> = (0..10).map(|n| text(&format!("2 {n}"))).collect();
    assert_eq!(of_one.collect::<Vec<_>>(), in_order);
    let last = open().last("log", 3, TIMEOUT).await;
    assert_eq!(last.as_deref(), Ok(&all[37..]));
}

/// Checks that messages are received once and in order.
pub async fn messages(open: Open<'_, dyn Messages>, advance: Advance<'_>) {
    let (one, other) = (open(), open());
    let soon = Duration::ZERO;
    assert_eq!(one.receive("box", soon).await, Ok(Vec::new()), "nothing was sent");
    for message in ["1", "2", "3"] {
        assert_eq!(other.send("box", text(message), LIFE, TIMEOUT).await, Ok(()));
    }
    assert_eq!(other.send("another", text("x"), LIFE, TIMEOUT).await, Ok(()));
    assert_eq!(one.receive("box", TIMEOUT).await, Ok(["1", "2", "3"].map(text).to_vec()));
    assert_eq!(one.receive("box", soon).await, Ok(Vec::new()), "each once");
    let sending = async {
        // Whoever waits is there first, as far as can be arranged.
        tokio::task::yield_now().await;
        other.send("box", text("late"), LIFE, TIMEOUT).await
    };
    let (received, sent) = futures::join!(one.receive("box", TIMEOUT), sending);
    assert_eq!((received, sent), (Ok(vec![text("late")]), Ok(())));
    advance(LIFE);
    assert_eq!(one.receive("another", soon).await, Ok(Vec::new()), "its life is over");
}
