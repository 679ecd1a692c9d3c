use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::value::RawValue;

use super::*;
use crate::protocol::Call;
use crate::worker;

/// The process of the tests itself, as a worker.
#[test]
#[ignore = "the pool starts it"]
fn own_worker() {
    let mut arguments = std::env::args_os().skip_while(|one| one != worker::ARGUMENT);
    if let Some(served) = worker::run_if_requested(&mut arguments) {
        served.unwrap();
    }
}

fn pool(idle: Duration) -> Pool {
    let probe = ["--ignored", "--exact", "pool::tests::own_worker", "--test-threads=1"];
    Pool::new(Config {
        program: std::env::current_exe().unwrap(),
        arguments: probe.map(Into::into).to_vec(),
        workers: 4,
        waiting: 4,
        idle,
        limits: Limits::default(),
    })
}

/// Answers calls at once: `ask` waits for somebody, `get` only reads.
#[derive(Default)]
struct Answers {
    made: AtomicUsize,
}

#[async_trait]
impl Host for Answers {
    fn is_repeatable(&self, call: &Call) -> bool {
        call.path == ["get"]
    }

    async fn call(&self, call: &Call) -> Verdict {
        if call.path == ["ask"] {
            return Verdict::Pause;
        }
        if call.path == ["never"] || call.arguments.get().contains("never") {
            return std::future::pending().await;
        }
        tokio::task::yield_now().await;
        self.made.fetch_add(1, Ordering::Relaxed);
        Verdict::Answer(Ok(RawValue::from_string("1".to_owned()).unwrap()))
    }

    fn stores_journal(&self) -> bool {
        true
    }

    fn add_lines(&self, _: &[u8]) {}

    async fn store(&self, _: Option<Journal>) -> Result<(), NotStored> {
        Ok(())
    }
}

async fn ended(pool: &Pool, code: &str, answers: &Answers) -> Ended {
    let inputs = RawValue::from_string("{}".to_owned()).unwrap();
    pool.run("ann", &mut Journal::new(code.to_owned(), inputs), answers).await.unwrap()
}

#[tokio::test]
async fn a_worker_that_nobody_uses_ends() {
    let pool = pool(Duration::from_millis(1));
    assert!(matches!(ended(&pool, "return 1", &Answers::default()).await, Ended::Finished(_)));
    while pool.idle.lock().iter().any(|idle| idle.owner.is_some()) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_script_pauses_only_once_nothing_else_is_left_to_do() {
    let (pool, answers) = (pool(Duration::from_secs(60)), Answers::default());
    let code = "await Promise.all([tools.ask({}), ...Array.from({length: 30}, async () => {\
                  await tools.get({}); await tools.put({});\
                })])";
    assert!(matches!(ended(&pool, code, &answers).await, Ended::Paused));
    assert_eq!(answers.made.load(Ordering::Relaxed), 60);
}

#[tokio::test]
async fn what_a_script_does_not_wait_for_is_made_unless_it_only_reads() {
    let (pool, answers) = (pool(Duration::from_secs(60)), Answers::default());
    let code = "tools.get({never: 1}); for (let n = 0; n < 20; n++) tools.put({}); return 1";
    assert!(matches!(ended(&pool, code, &answers).await, Ended::Finished(_)));
    assert_eq!(answers.made.load(Ordering::Relaxed), 20);
    let raced = "return await Promise.race([tools.get({}), tools.get({never: 1})])";
    assert!(matches!(ended(&pool, raced, &answers).await, Ended::Finished(_)));
}
