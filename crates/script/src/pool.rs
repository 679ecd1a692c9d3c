//! Workers that are kept ready, and the script that one of them runs.
//!
//! A worker serves one owner for good: nothing of one caller is in a process
//! that runs another's script. A worker that dies, or whose script is not over
//! in time, takes its script with it and nothing else. Dropping the future of a
//! script ends its worker and cancels its calls.

mod config;
mod driver;
mod host;
mod process;

use std::collections::VecDeque;
use std::sync::Arc;

use fair::{Semaphore, Urgency};
use parking_lot::Mutex;

use crate::journal::Journal;
use crate::limits::Limits;
use crate::protocol::Start;
use process::Worker;

pub use config::Config;
pub use host::{Ended, Host, Verdict};

/// Why a script was not begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    #[error("too many scripts of this session wait already; run fewer at once")]
    Full,
    #[error("no process can be started for it: {0}; the operator has to help")]
    NoWorker(String),
}

/// Keeps workers.
pub struct Pool {
    config: Config,
    turns: Semaphore,
    idle: Arc<Mutex<VecDeque<Idle>>>,
}

/// A worker without a script, and whose it is if it had one.
struct Idle {
    owner: Option<String>,
    worker: Worker,
}

impl Pool {
    pub fn new(config: Config) -> Pool {
        let limits = fair::Limits {
            permits: config.workers.max(1),
            reserve: config.workers / 4,
            waiting: config.waiting,
        };
        Pool { turns: Semaphore::new(limits), config, idle: Arc::default() }
    }

    /// What one script may use.
    pub fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Starts a worker that is nobody's yet, unless there is one.
    pub fn warm(&self) {
        if self.idle.lock().iter().any(|idle| idle.owner.is_none()) {
            return;
        }
        let (config, idle) = (self.config.clone(), Arc::clone(&self.idle));
        tokio::spawn(async move {
            match Worker::start(&config).await {
                Ok(worker) => idle.lock().push_back(Idle { owner: None, worker }),
                Err(why) => tracing::warn!(%why, "no worker for scripts can be started"),
            }
        });
    }

    /// Runs the script of a journal, from its start or from where it stopped.
    pub async fn run(
        &self,
        owner: &str,
        journal: &mut Journal,
        host: &dyn Host,
    ) -> Result<Ended, PoolError> {
        let key = self.turns.key(owner, owner);
        let _turn =
            self.turns.acquire(key, Urgency::Ordinary).await.map_err(|_| PoolError::Full)?;
        let mut worker = self.take(owner).await?;
        let limits = self.config.limits.clone();
        let start = Start { code: journal.code.clone(), inputs: journal.inputs.clone(), limits };
        let ended = driver::run(&mut worker, start, journal, host).await;
        if let Ended::Finished(_) = &ended {
            self.give_back(owner, worker);
        }
        Ok(ended)
    }

    /// A worker of this owner, or one that is nobody's yet.
    async fn take(&self, owner: &str) -> Result<Worker, PoolError> {
        let found = {
            let mut idle = self.idle.lock();
            let own = idle.iter().rposition(|one| one.owner.as_deref() == Some(owner));
            let free = || idle.iter().position(|one| one.owner.is_none());
            own.or_else(free).and_then(|at| idle.remove(at))
        };
        self.warm();
        if let Some(Idle { mut worker, .. }) = found
            && worker.is_alive()
        {
            return Ok(worker);
        }
        let started = Worker::start(&self.config).await;
        started.map_err(|error| PoolError::NoWorker(error.to_string()))
    }

    /// Keeps a worker for the next script of its owner. The oldest go first.
    fn give_back(&self, owner: &str, worker: Worker) {
        let mut idle = self.idle.lock();
        idle.push_back(Idle { owner: Some(owner.to_owned()), worker });
        while self.config.workers < idle.len() {
            idle.pop_front();
        }
    }
}
