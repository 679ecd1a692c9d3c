//! A pool of worker processes that run scripts.
//!
//! A worker serves only one owner, so that no data of one caller is in a process that
//! runs another's script. If a worker dies or exceeds its time, only its own script
//! fails. Dropping the future of a script ends its worker and cancels its calls.

mod config;
mod driver;
mod host;
mod process;

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use fair::{Priority, Semaphore};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::journal::Journal;
use crate::limits::Limits;
use crate::protocol::Start;
use process::Worker;

pub use config::Config;
pub use host::{Ended, Host, NotStored, Verdict};

/// Why a script was not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    #[error("too many scripts of this session wait already; run fewer at once")]
    Full,
    #[error("no process can be started for it: {0}; the operator has to help")]
    NoWorker(String),
}

/// A pool of workers.
pub struct Pool {
    config: Config,
    turns: Semaphore,
    idle: Arc<Mutex<VecDeque<Idle>>>,
}

/// A worker without a script, and its owner if it has run one before.
struct Idle {
    owner: Option<String>,
    worker: Worker,
    since: Instant,
}

impl Pool {
    pub fn new(config: Config) -> Pool {
        let limits = fair::Limits {
            permits: config.workers.max(1),
            reserved: config.workers / 4,
            waiting: config.waiting,
        };
        Pool { turns: Semaphore::new(limits), config, idle: Arc::default() }
    }

    /// Returns the limits of one script.
    pub fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Starts a worker without an owner, unless there is one.
    pub fn warm(&self) {
        if self.idle.lock().iter().any(|idle| idle.owner.is_none()) {
            return;
        }
        let (config, idle) = (self.config.clone(), Arc::clone(&self.idle));
        tokio::spawn(async move {
            match Worker::start(&config).await {
                Ok(worker) => {
                    let since = Instant::now();
                    idle.lock().push_back(Idle { owner: None, worker, since });
                }
                Err(why) => tracing::warn!(%why, "no worker for scripts can be started"),
            }
        });
    }

    /// Runs the script of a journal, from its start or from where it paused.
    pub async fn run(
        &self,
        owner: &str,
        journal: &mut Journal,
        host: &dyn Host,
    ) -> Result<Ended, PoolError> {
        let key = self.turns.key(owner, owner);
        let _turn = self.turns.acquire(key, Priority::Normal).await.map_err(|_| PoolError::Full)?;
        let mut worker = self.take(owner).await?;
        let limits = self.config.limits.clone();
        let start = Start { code: journal.code.clone(), inputs: journal.inputs.clone(), limits };
        let ended = driver::run(&mut worker, start, journal, host).await;
        if let Ended::Finished(_) = &ended {
            self.give_back(owner, worker);
        }
        Ok(ended)
    }

    /// Returns a worker of this owner, or one without an owner.
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

    /// Keeps a worker for the next script of its owner. If there are too many, the
    /// oldest are ended.
    fn give_back(&self, owner: &str, worker: Worker) {
        let mut idle = self.idle.lock();
        let is_first = idle.iter().all(|one| one.owner.is_none());
        idle.push_back(Idle { owner: Some(owner.to_owned()), worker, since: Instant::now() });
        while self.config.workers < idle.len() {
            idle.pop_front();
        }
        drop(idle);
        if is_first {
            tokio::spawn(end_idle(Arc::downgrade(&self.idle), self.config.idle));
        }
    }
}

/// Ends workers that nobody used for a while, until none has an owner.
async fn end_idle(pool: Weak<Mutex<VecDeque<Idle>>>, after: Duration) {
    let mut next = Instant::now() + after;
    loop {
        tokio::time::sleep_until(next).await;
        let Some(idle) = pool.upgrade() else { return };
        let mut idle = idle.lock();
        let is_used = |one: &Idle| one.owner.is_none() || one.since.elapsed() < after;
        idle.retain(is_used);
        let oldest = idle.iter().filter(|one| one.owner.is_some()).map(|one| one.since).min();
        let Some(oldest) = oldest else { return };
        next = oldest + after;
    }
}

#[cfg(test)]
mod tests;
