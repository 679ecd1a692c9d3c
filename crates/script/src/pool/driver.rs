//! Drives one script: its calls out, their answers in.

use std::collections::{HashSet, VecDeque};
use std::io;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::host::{Ended, Host, Verdict};
use super::process::Worker;
use crate::journal::{Journal, Known};
use crate::limits::Limit;
use crate::protocol::{Answer, Call, FromWorker, Start, Thrown, ToWorker};

/// A script under way.
struct Driver<'a> {
    host: &'a dyn Host,
    journal: &'a mut Journal,
    /// Calls that were answered before and that the script made again.
    seen: HashSet<u64>,
    /// How many of the answers of before were given.
    replayed: usize,
    /// How many there are.
    n_before: usize,
    /// Calls that wait for their turn.
    queue: VecDeque<Call>,
    /// Calls that may have run before, and cannot be made again.
    refused: Vec<Call>,
    in_flight: FuturesUnordered<BoxFuture<'a, (Call, Verdict)>>,
    parallel: usize,
    is_pausing: bool,
}

pub(super) async fn run(
    worker: &mut Worker,
    start: Start,
    journal: &mut Journal,
    host: &dyn Host,
) -> Ended {
    let deadline = Instant::now() + start.limits.time;
    let driver = Driver {
        n_before: journal.n_answered(),
        parallel: start.limits.parallel.max(1),
        host,
        journal,
        seen: HashSet::new(),
        replayed: 0,
        queue: VecDeque::new(),
        refused: Vec::new(),
        in_flight: FuturesUnordered::new(),
        is_pausing: false,
    };
    if let Err(error) = worker.send(&ToWorker::Run(start)) {
        return died(&error);
    }
    match tokio::time::timeout_at(deadline, driver.drive(worker)).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) => died(&error),
        Err(_) => Ended::Limit(Limit::Time),
    }
}

fn died(error: &io::Error) -> Ended {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    let is_gone = [UnexpectedEof, BrokenPipe, ConnectionReset].contains(&error.kind());
    Ended::Died(if is_gone { "its process ended".to_owned() } else { error.to_string() })
}

impl Driver<'_> {
    async fn drive(mut self, worker: &mut Worker) -> io::Result<Ended> {
        loop {
            self.replay(worker)?;
            self.begin(worker).await?;
            if self.is_pausing && self.in_flight.is_empty() {
                return Ok(Ended::Paused);
            }
            tokio::select! {
                Some((call, verdict)) = self.in_flight.next(), if !self.in_flight.is_empty() => {
                    match verdict {
                        Verdict::Answer(result) => self.answer(worker, &call, result)?,
                        Verdict::Pause => {
                            self.journal.forget(&call);
                            self.is_pausing = true;
                        }
                    }
                }
                frame = worker.frame(), if !self.is_pausing => match frame? {
                    FromWorker::Done(finished) => return Ok(Ended::Finished(finished)),
                    FromWorker::Ready { .. } => {}
                    FromWorker::Call(call) => match self.journal.known(&call) {
                        Err(diverged) => return Ok(Ended::Diverged(diverged)),
                        Ok(Known::Answered) => {
                            self.seen.insert(call.number);
                        }
                        Ok(Known::Begun) if !self.host.is_repeatable(&call) => {
                            self.refused.push(call);
                        }
                        Ok(Known::Begun | Known::New) => self.queue.push_back(call),
                    },
                },
            }
        }
    }

    /// Gives the answers of before, in the order in which they came.
    fn replay(&mut self, worker: &mut Worker) -> io::Result<()> {
        while self.replayed < self.n_before {
            let Some(answer) = self.journal.answer(self.replayed) else { break };
            if !self.seen.contains(&answer.number) {
                return Ok(());
            }
            self.replayed += 1;
            worker.send(&ToWorker::Answer(answer))?;
        }
        for call in std::mem::take(&mut self.refused) {
            self.answer(worker, &call, Err(may_have_run(&call)))?;
        }
        Ok(())
    }

    /// Makes as many calls as may run at once, when the script is where it was.
    async fn begin(&mut self, worker: &mut Worker) -> io::Result<()> {
        let is_there = self.n_before <= self.replayed;
        while is_there && !self.is_pausing && self.in_flight.len() < self.parallel {
            let Some(call) = self.queue.pop_front() else { break };
            self.journal.begin(&call);
            if !self.host.is_repeatable(&call)
                && let Err(unkept) = self.host.keep(self.journal).await
            {
                self.answer(worker, &call, Err(unkept))?;
                continue;
            }
            let host = self.host;
            self.in_flight.push(Box::pin(async move {
                let verdict = host.call(&call).await;
                (call, verdict)
            }));
        }
        Ok(())
    }

    fn answer(
        &mut self,
        worker: &mut Worker,
        call: &Call,
        result: Result<Box<RawValue>, Thrown>,
    ) -> io::Result<()> {
        self.journal.note(call, &result);
        worker.send(&ToWorker::Answer(Answer { number: call.number, result }))
    }
}

fn may_have_run(call: &Call) -> Thrown {
    let name = call.path.join(".");
    let message = format!(
        "tools.{name} may have run before the script was interrupted, and is not run again; look \
         whether it did"
    );
    Thrown { message, code: Some("MAY_HAVE_RUN".to_owned()) }
}
