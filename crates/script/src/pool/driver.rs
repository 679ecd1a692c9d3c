//! Drives one script: makes its calls and gives it their answers.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::host::{Ended, Host, NotStored, Verdict};
use super::process::Worker;
use crate::journal::{CallState, Journal};
use crate::limits::Limit;
use crate::protocol::{Answer, Call, Finished, FromWorker, Start, Thrown, ToWorker};

/// The state of a running script.
struct Driver<'a> {
    host: &'a dyn Host,
    journal: &'a mut Journal,
    /// Calls that were answered before and that the script made again.
    seen: HashSet<u64>,
    /// How many answers of the journal were given to the script again.
    replayed: usize,
    /// How many answers the journal had at the start.
    n_replayed_answers: usize,
    /// Calls that wait for their turn.
    queue: VecDeque<Call>,
    /// Calls that may have run before, and cannot be made again.
    refused: Vec<Call>,
    in_flight: FuturesUnordered<BoxFuture<'a, (Call, Verdict)>>,
    /// Calls that are made once the journal says that they were begun.
    unstored: Vec<Call>,
    /// The storing of the journal, at most one at a time, with the calls that wait for
    /// it.
    storing: FuturesUnordered<BoxFuture<'a, Stored>>,
    n_storing: usize,
    /// Whether the stored journal lacks the answer of a call that cannot be repeated.
    has_unstored_answer: bool,
    parallel: usize,
    /// Whether a call waits for somebody: the script ends its run once nothing else is
    /// left to do.
    is_pausing: bool,
    /// How the script finished, while calls that it did not wait for go on.
    finished: Option<Finished>,
    /// The number of calls under way that are not repeatable.
    n_writing: usize,
    n_answers_sent: usize,
    /// How often the script said that it waits for an answer.
    n_waits: usize,
}

/// The calls that waited for the journal, whether it was stored whole, and whether it
/// was stored.
type Stored = (Vec<Call>, bool, Result<(), NotStored>);

/// How long an answer waits to be stored together with the next call, which most
/// scripts make at once.
const ANSWER_WAITS: Duration = Duration::from_millis(5);

pub(super) async fn run(
    worker: &mut Worker,
    start: Start,
    journal: &mut Journal,
    host: &dyn Host,
) -> Ended {
    let deadline = Instant::now() + start.limits.time;
    let driver = Driver {
        n_replayed_answers: journal.n_answered(),
        parallel: start.limits.parallel.max(1),
        host,
        journal,
        seen: HashSet::new(),
        replayed: 0,
        queue: VecDeque::new(),
        refused: Vec::new(),
        in_flight: FuturesUnordered::new(),
        unstored: Vec::new(),
        storing: FuturesUnordered::new(),
        n_storing: 0,
        has_unstored_answer: false,
        is_pausing: false,
        finished: None,
        n_writing: 0,
        n_answers_sent: 0,
        n_waits: 0,
    };
    if let Err(error) = worker.send(&ToWorker::Run(start)) {
        return worker_died(&error);
    }
    match tokio::time::timeout_at(deadline, driver.drive(worker)).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) => worker_died(&error),
        Err(_) => Ended::Limit(Limit::Time),
    }
}

fn worker_died(error: &io::Error) -> Ended {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    let is_gone = [UnexpectedEof, BrokenPipe, ConnectionReset].contains(&error.kind());
    Ended::Died(if is_gone { "its process ended".to_owned() } else { error.to_string() })
}

impl Driver<'_> {
    async fn drive(mut self, worker: &mut Worker) -> io::Result<Ended> {
        loop {
            self.replay(worker)?;
            self.start_calls();
            if let Some(ended) = self.ended() {
                return Ok(ended);
            }
            tokio::select! {
                Some((call, verdict)) = self.in_flight.next(), if !self.in_flight.is_empty() => {
                    let may_write = !self.host.is_repeatable(&call);
                    self.n_writing -= usize::from(may_write);
                    match verdict {
                        Verdict::Answer(result) => {
                            self.has_unstored_answer |= may_write;
                            self.answer(worker, &call, result)?;
                        }
                        Verdict::Pause => {
                            self.journal.forget(&call);
                            self.is_pausing = true;
                        }
                    }
                }
                Some(stored) = self.storing.next(), if !self.storing.is_empty() => {
                    if let Some(ended) = self.go_on(worker, stored)? {
                        return Ok(ended);
                    }
                }
                () = tokio::time::sleep(ANSWER_WAITS), if self.answer_waits() => self.store(),
                frame = worker.next_frame(), if self.finished.is_none() => match frame? {
                    FromWorker::Done(finished) if finished.outcome.is_err() => {
                        return Ok(Ended::Finished(finished));
                    }
                    FromWorker::Done(finished) => {
                        // It may have meant the calls that it did not wait for.
                        self.queue.retain(|call| !self.host.is_repeatable(call));
                        self.finished = Some(finished);
                    }
                    FromWorker::Ready { .. } => {}
                    FromWorker::Waiting => self.n_waits += 1,
                    FromWorker::Call(call) => match self.journal.lookup(&call) {
                        Err(diverged) => return Ok(Ended::Diverged(diverged)),
                        Ok(CallState::Answered) => {
                            self.seen.insert(call.number);
                        }
                        Ok(CallState::Begun) if !self.host.is_repeatable(&call) => {
                            self.refused.push(call);
                        }
                        Ok(CallState::Begun | CallState::New) => self.queue.push_back(call),
                    },
                },
            }
        }
    }

    /// Gives the answers of the journal again, in the order in which they came.
    fn replay(&mut self, worker: &mut Worker) -> io::Result<()> {
        while self.replayed < self.n_replayed_answers {
            let Some(answer) = self.journal.answer(self.replayed) else { break };
            if !self.seen.contains(&answer.number) {
                return Ok(());
            }
            self.replayed += 1;
            self.send(worker, answer)?;
        }
        for call in std::mem::take(&mut self.refused) {
            self.answer(worker, &call, Err(may_have_run(&call)))?;
        }
        Ok(())
    }

    /// Starts as many calls as may run at once, after all answers were replayed. Calls
    /// that are not repeatable wait until the journal says that they were begun.
    fn start_calls(&mut self) {
        let is_there = self.n_replayed_answers <= self.replayed;
        let n_started = |own: &Self| own.in_flight.len() + own.unstored.len() + own.n_storing;
        while is_there && n_started(self) < self.parallel {
            let Some(call) = self.queue.pop_front() else { break };
            self.journal.record_start(&call);
            match self.host.stores_journal() && !self.host.is_repeatable(&call) {
                true => self.unstored.push(call),
                false => self.make(call),
            }
        }
        if !self.unstored.is_empty() && self.storing.is_empty() {
            self.store();
        }
    }

    fn make(&mut self, call: Call) {
        let host = self.host;
        self.n_writing += usize::from(!host.is_repeatable(&call));
        self.in_flight.push(Box::pin(async move {
            let verdict = host.call(&call).await;
            (call, verdict)
        }));
    }

    fn answer_waits(&self) -> bool {
        self.has_unstored_answer && self.storing.is_empty() && self.journal.has_lines()
    }

    /// Stores what happened, for all calls that wait for it.
    fn store(&mut self) {
        let (host, calls) = (self.host, std::mem::take(&mut self.unstored));
        let whole = (!self.journal.has_lines()).then(|| self.journal.clone());
        match whole {
            Some(_) => self.journal.start_lines(),
            None => host.add_lines(&self.journal.take_lines()),
        }
        (self.has_unstored_answer, self.n_storing) = (false, calls.len());
        let is_whole = whole.is_some();
        self.storing.push(Box::pin(async move { (calls, is_whole, host.store(whole).await) }));
    }

    /// Makes the calls that waited for the journal. Returns how the script ended, if it
    /// is not to go on.
    fn go_on(&mut self, worker: &mut Worker, stored: Stored) -> io::Result<Option<Ended>> {
        let (calls, is_whole, stored) = stored;
        self.n_storing = 0;
        match stored {
            Ok(()) => calls.into_iter().for_each(|call| self.make(call)),
            Err(NotStored::TakenOver) => return Ok(Some(Ended::TakenOver)),
            Err(NotStored::Unwritable(why)) => {
                if is_whole {
                    self.journal.stop_lines();
                }
                for call in calls {
                    self.answer(worker, &call, Err(why.clone()))?;
                }
            }
        }
        Ok(None)
    }

    fn answer(
        &mut self,
        worker: &mut Worker,
        call: &Call,
        result: Result<Box<RawValue>, Thrown>,
    ) -> io::Result<()> {
        self.journal.record_answer(call, &result);
        self.send(worker, Answer { number: call.number, result })
    }

    fn send(&mut self, worker: &mut Worker, answer: Answer) -> io::Result<()> {
        self.n_answers_sent += 1;
        worker.send(&ToWorker::Answer(answer))
    }

    /// Returns how the script ended, if it has: it finished, or can do nothing more before
    /// somebody was asked.
    fn ended(&mut self) -> Option<Ended> {
        if self.finished.is_some() {
            let is_done = self.n_writing == 0 && self.queue.is_empty() && self.unstored.is_empty();
            let finished = self.finished.take_if(|_| is_done && self.storing.is_empty())?;
            return Some(if self.is_pausing { Ended::Paused } else { Ended::Finished(finished) });
        }
        (self.is_pausing && self.is_idle()).then_some(Ended::Paused)
    }

    /// Returns whether the script waits, and for nothing that is under way: every call
    /// that it could make without the missing answers has been made.
    fn is_idle(&self) -> bool {
        let is_worker_waiting = self.n_answers_sent < self.n_waits;
        let is_nothing_begun = self.in_flight.is_empty() && self.storing.is_empty();
        is_worker_waiting && is_nothing_begun && self.queue.is_empty() && self.unstored.is_empty()
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
