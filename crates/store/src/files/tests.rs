use bytes::Bytes;
use futures::future::{Either, select};
use tool::clock::Fake;

use super::*;
use crate::conformance;
use crate::state::{Blobs, Documents, Expiring, Leases, Lines, SingleUse, StateError, wait};

const TIMEOUT: Duration = Duration::from_secs(5);

/// A directory, and a clock for whoever opens it.
struct Place {
    directory: tempfile::TempDir,
    clock: Arc<Fake>,
}

impl Place {
    fn new() -> Place {
        Place { directory: tempfile::tempdir().unwrap(), clock: Arc::new(Fake::default()) }
    }

    /// One more process, as far as can be told from inside one.
    fn open(&self) -> Arc<Files> {
        let limits = Limits { poll: Duration::from_millis(1), ..Limits::default() };
        Arc::new(Files::new(self.directory.path(), Arc::clone(&self.clock) as _, limits))
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn lock(&self, file: &str) -> Lock {
        Lock::try_beside(&self.directory.path().join(file)).unwrap().unwrap()
    }
}

#[tokio::test]
async fn files_keep_documents() {
    let place = Place::new();
    conformance::documents(&|| place.open()).await;
    conformance::documents_changed_at_once(&|| place.open()).await;
    conformance::documents_watched(&|| place.open()).await;
}

#[tokio::test]
async fn files_keep_what_may_be_used_once() {
    let place = Place::new();
    conformance::single_use(&|| place.open(), &|by| place.advance(by)).await;
    conformance::single_use_taken_at_once(&|| place.open()).await;
}

#[tokio::test]
async fn files_keep_what_expires() {
    let place = Place::new();
    conformance::expiring(&|| place.open(), &|by| place.advance(by)).await;
    conformance::expiring_appended_at_once(&|| place.open()).await;
}

#[tokio::test]
async fn files_count() {
    let place = Place::new();
    conformance::counters(&*place.open(), &|by| place.advance(by)).await;
    conformance::counters_spent_at_once(&*place.open()).await;
}

#[tokio::test]
async fn files_keep_blobs() {
    let place = Place::new();
    conformance::blobs(&|| place.open()).await;
}

#[tokio::test]
async fn files_lease() {
    let place = Place::new();
    conformance::leases(&|| place.open(), &|by| place.advance(by)).await;
    conformance::leases_acquired_at_once(&|| place.open()).await;
}

#[tokio::test]
async fn files_carry_messages_within_a_process() {
    let place = Place::new();
    let files = place.open();
    let open = || Arc::clone(&files) as Arc<dyn Messages>;
    conformance::messages(&open, &|by| place.advance(by)).await;
}

#[tokio::test]
async fn files_log() {
    let place = Place::new();
    conformance::lines(&|| place.open()).await;
}

#[tokio::test]
async fn a_lease_whose_holder_died_is_free_at_once() {
    let place = Place::new();
    let holder = place.open();
    let first = holder.acquire("l", TIMEOUT, TIMEOUT).await.unwrap();
    // The system lets go of the locks of a process that dies.
    drop(holder);
    let second = place.open().acquire("l", TIMEOUT, TIMEOUT).await.unwrap();
    assert!(first.fence < second.fence);
}

#[test]
fn outside_of_a_runtime_everything_is_done_at_once() {
    let place = Place::new();
    let files = place.open();
    assert_eq!(
        wait(files.swap("a", None, Some(Bytes::from_static(b"1")), TIMEOUT)).map(drop),
        Ok(())
    );
    assert_eq!(wait(files.read("a", TIMEOUT)).unwrap().unwrap().bytes, "1");
}

#[tokio::test]
async fn code_that_is_not_async_can_wait_on_a_runtime_too() {
    let place = Place::new();
    assert_eq!(wait(place.open().read("a", TIMEOUT)), Ok(None));
}

/// The time stands still except for who sleeps, so this takes none.
#[tokio::test(start_paused = true)]
async fn a_lock_that_another_process_holds_stops_nobody_else_and_nothing_for_ever() {
    let place = Place::new();
    let (files, lock) = (place.open(), place.lock("a.json"));
    let swap = files.swap("a.json", None, Some(Bytes::from_static(b"1")), TIMEOUT);
    let mut n_pings = 0;
    let pings = Box::pin(async {
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            n_pings += 1;
        }
    });
    let ended = match select(swap, pings).await {
        Either::Left((ended, _)) => ended,
        Either::Right((never, _)) => never,
    };
    assert!(matches!(ended, Err(StateError::Unavailable { .. })), "{ended:?}");
    assert!(50 < n_pings, "others go on meanwhile: {n_pings}");
    assert_eq!(files.read("a.json", TIMEOUT).await, Ok(None), "who reads does not wait");
    drop(lock);
    assert!(files.swap("a.json", None, Some(Bytes::from_static(b"1")), TIMEOUT).await.is_ok());
}

#[tokio::test]
async fn what_a_process_that_died_left_is_in_nobodys_way() {
    let place = Place::new();
    let files = place.open();
    let root = place.directory.path();
    SingleUse::put(&*files, "k", Bytes::from_static(b"v"), TIMEOUT, TIMEOUT).await.unwrap();
    Blobs::put(&*files, "o", "b", Bytes::from_static(b"v"), TIMEOUT).await.unwrap();
    files.swap("d.json", None, Some(Bytes::from_static(b"v")), TIMEOUT).await.unwrap();
    files.append("log", Bytes::from_static(b"whole"), TIMEOUT).await.unwrap();
    for directory in ["", "single-use", "expiring", "blobs"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
        std::fs::write(root.join(directory).join(".d.json.1.new"), "ha").unwrap();
        std::fs::write(root.join(directory).join("d.lock"), "").unwrap();
    }
    let half = std::fs::read_to_string(root.join("log")).unwrap() + "ha";
    std::fs::write(root.join("log"), half).unwrap();
    let next = place.open();
    assert_eq!(next.read("d.json", TIMEOUT).await.unwrap().unwrap().bytes, "v");
    assert_eq!(next.take("k", TIMEOUT).await, Ok(Some(Bytes::from_static(b"v"))));
    assert_eq!(next.list("o", TIMEOUT).await.unwrap().len(), 1);
    assert_eq!(next.last("log", 9, TIMEOUT).await, Ok(vec![Bytes::from_static(b"whole")]));
}

#[tokio::test]
async fn a_file_that_is_no_value_is_none() {
    let place = Place::new();
    let files = place.open();
    Expiring::put(&*files, "k", Bytes::from_static(b"v"), TIMEOUT, TIMEOUT).await.unwrap();
    let directory = place.directory.path().join("expiring");
    for entry in std::fs::read_dir(directory).unwrap() {
        std::fs::write(entry.unwrap().path(), "damaged").unwrap();
    }
    assert_eq!(Expiring::get(&*files, "k", TIMEOUT).await, Ok(None));
}

#[tokio::test]
async fn lives_go_on_over_a_restart() {
    let place = Place::new();
    let life = Duration::from_secs(60);
    Expiring::put(&*place.open(), "k", Bytes::from_static(b"v"), life, TIMEOUT).await.unwrap();
    place.advance(life / 2);
    assert!(Expiring::get(&*place.open(), "k", TIMEOUT).await.unwrap().is_some());
    place.advance(life / 2);
    assert_eq!(Expiring::get(&*place.open(), "k", TIMEOUT).await, Ok(None));
}

#[tokio::test]
async fn what_is_over_is_taken_away_in_time() {
    let place = Place::new();
    let files = place.open();
    let (life, value) = (Duration::from_secs(1), Bytes::from_static(b"v"));
    for n in 0..5 {
        SingleUse::put(&*files, &n.to_string(), value.clone(), life, TIMEOUT).await.unwrap();
    }
    place.advance(Duration::from_secs(120));
    SingleUse::put(&*files, "last", value, life, TIMEOUT).await.unwrap();
    let left = std::fs::read_dir(place.directory.path().join("single-use")).unwrap();
    assert_eq!(left.count(), 1);
}

#[tokio::test]
async fn a_log_keeps_its_newest_lines_and_stays_short() {
    let place = Place::new();
    let limits = Limits { log_bytes: 100, ..Limits::default() };
    let files = Files::new(place.directory.path(), Arc::clone(&place.clock) as _, limits);
    for n in 0..100 {
        files.append("log", format!("line {n}").into(), TIMEOUT).await.unwrap();
    }
    let last = files.last("log", 5, TIMEOUT).await.unwrap();
    assert_eq!(last.last().unwrap(), "line 99");
    let n_bytes = |name: &str| std::fs::metadata(place.directory.path().join(name)).unwrap().len();
    assert!(n_bytes("log") + n_bytes("log.1") <= 120);
}

#[tokio::test]
async fn what_cannot_be_written_is_told_and_what_is_too_large_refused() {
    let place = Place::new();
    std::fs::write(place.directory.path().join("taken"), "").unwrap();
    let below = place.directory.path().join("taken/below");
    let files = Files::new(&below, Arc::clone(&place.clock) as _, Limits::default());
    let told = files.swap("a", None, Some(Bytes::new()), TIMEOUT).await.unwrap_err().to_string();
    assert!(told.contains("cannot create") && told.contains("taken/below"), "{told}");
    let limits = Limits { value_bytes: 3, ..Limits::default() };
    let files = Files::new(place.directory.path(), Arc::clone(&place.clock) as _, limits);
    let large = files.swap("a", None, Some(Bytes::from_static(b"four")), TIMEOUT).await;
    assert_eq!(large, Err(StateError::TooLarge { limit: 3 }));
    std::fs::write(place.directory.path().join("large"), "four").unwrap();
    assert_eq!(files.read("large", TIMEOUT).await, Err(StateError::TooLarge { limit: 3 }));
    for name in ["../a", "/a", "", "a//b", "a/../b", ".hidden"] {
        assert!(files.read(name, TIMEOUT).await.is_err(), "{name}");
    }
}
