//! Polls a whole future on threads for blocking work.
//!
//! A request with megabytes of data is walked over many times on its way: parsed, checked,
//! compared, shown. To move each of these steps would leave the next one that somebody
//! adds on the runtime's thread. So the future that answers such a request is polled
//! elsewhere as a whole, one poll at a time, and what it starts and waits for stays with
//! the runtime.

use std::cell::Cell;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};

use fair::{Key, Limits, Permit, Priority, Semaphore, TooManyWaiting};
use parking_lot::Mutex;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

/// The most polls at once. What they make of their data is memory that nobody counts, so
/// there are few, however many processors there are.
const MAX_POLLS: usize = 4;

/// Limits concurrent polls. One caller never has all permits.
static POLLS: LazyLock<Semaphore> = LazyLock::new(|| {
    let permits = super::processors().clamp(2, MAX_POLLS);
    // The requests of a caller are limited elsewhere.
    Semaphore::new(Limits { permits, reserved: permits / 2, waiting: usize::MAX })
});

/// Returns a future with the same output that is polled on another thread, in turns that
/// are shared fairly between callers. Dropping it drops `future`, at the latest when its
/// present poll returns.
pub fn aside<T: Send + 'static>(
    caller: impl Hash,
    future: impl Future<Output = T> + Send + 'static,
) -> Aside<T> {
    let woken = Arc::new(Woken { is_woken: AtomicBool::new(true), task: Mutex::default() });
    Aside { key: POLLS.key(caller, ()), state: State::Resting(Box::pin(future)), woken }
}

thread_local! {
    /// Whether this thread polls a future that is aside.
    static IS_ASIDE: Cell<bool> = const { Cell::new(false) };
}

/// A future that is polled on another thread. See [`aside`].
pub struct Aside<T> {
    key: Key,
    state: State<T>,
    woken: Arc<Woken>,
}

type Inner<T> = Pin<Box<dyn Future<Output = T> + Send>>;

enum State<T> {
    /// Nothing to do until it is woken.
    Resting(Inner<T>),
    /// It waits for its turn to be polled.
    Queued(Inner<T>, Pin<Box<dyn Future<Output = Result<Permit, TooManyWaiting>> + Send>>),
    /// It is being polled.
    Polling(JoinHandle<PollOutcome<T>>),
    Done,
}

enum PollOutcome<T> {
    Ready(T),
    Pending(Inner<T>),
}

/// Remembers that the inner future was woken, also while it is being polled.
struct Woken {
    is_woken: AtomicBool,
    /// The task that polls the [`Aside`].
    task: Mutex<Option<Waker>>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        let task = self.task.lock().clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl<T: Send + 'static> Future for Aside<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<T> {
        if IS_ASIDE.get() {
            return self.poll_here(task);
        }
        self.woken.set_task(task.waker());
        loop {
            let next = match std::mem::replace(&mut self.state, State::Done) {
                State::Resting(inner) => match self.woken.is_woken.swap(false, Ordering::AcqRel) {
                    true => {
                        State::Queued(inner, Box::pin(POLLS.acquire(self.key, Priority::Normal)))
                    }
                    false => return self.wait_in(State::Resting(inner)),
                },
                State::Queued(inner, mut turn) => match turn.as_mut().poll(task) {
                    // Any number may wait, so the queue is never full.
                    Poll::Ready(turn) => State::Polling(poll_elsewhere(inner, turn, &self.woken)),
                    Poll::Pending => return self.wait_in(State::Queued(inner, turn)),
                },
                State::Polling(polling) => match self.finish_poll(polling, task) {
                    Poll::Pending if matches!(self.state, State::Resting(_)) => continue,
                    polled @ (Poll::Ready(_) | Poll::Pending) => return polled,
                },
                State::Done => return Poll::Pending,
            };
            self.state = next;
        }
    }
}

impl<T: Send + 'static> Aside<T> {
    /// Polls the future on this thread, which polls another one that is aside: to wait for
    /// a turn while that one has its turn would be to wait for itself.
    fn poll_here(&mut self, task: &mut Context<'_>) -> Poll<T> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Resting(mut inner) | State::Queued(mut inner, _) => {
                let polled = inner.as_mut().poll(task);
                if polled.is_pending() {
                    // Who polls it next may have another waker, which it has to learn.
                    self.woken.is_woken.store(true, Ordering::Release);
                    self.state = State::Resting(inner);
                }
                polled
            }
            State::Polling(polling) => {
                self.woken.set_task(task.waker());
                match self.finish_poll(polling, task) {
                    Poll::Ready(output) => Poll::Ready(output),
                    Poll::Pending if matches!(self.state, State::Resting(_)) => {
                        self.poll_here(task)
                    }
                    Poll::Pending => Poll::Pending,
                }
            }
            State::Done => Poll::Pending,
        }
    }

    /// Waits for the poll on the other thread. When that one is pending, the future rests.
    fn finish_poll(
        &mut self,
        mut polling: JoinHandle<PollOutcome<T>>,
        task: &mut Context<'_>,
    ) -> Poll<T> {
        let Poll::Ready(polled) = Pin::new(&mut polling).poll(task) else {
            return self.wait_in(State::Polling(polling));
        };
        match polled.map_err(JoinError::try_into_panic) {
            Ok(PollOutcome::Ready(output)) => Poll::Ready(output),
            Ok(PollOutcome::Pending(inner)) => self.wait_in(State::Resting(inner)),
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and so is the caller.
            Err(Err(_)) => Poll::Pending,
        }
    }

    fn wait_in(&mut self, state: State<T>) -> Poll<T> {
        self.state = state;
        Poll::Pending
    }
}

impl Woken {
    fn set_task(&self, waker: &Waker) {
        let mut task = self.task.lock();
        if !task.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }
}

/// Marks a thread for as long as it polls a future that is aside.
struct AsideThread;

impl AsideThread {
    fn enter() -> AsideThread {
        IS_ASIDE.set(true);
        AsideThread
    }
}

impl Drop for AsideThread {
    fn drop(&mut self) {
        IS_ASIDE.set(false);
    }
}

/// Polls a future once on a thread for blocking work, holding a permit (`turn`) meanwhile.
fn poll_elsewhere<T: Send + 'static>(
    mut inner: Inner<T>,
    turn: Result<Permit, TooManyWaiting>,
    woken: &Arc<Woken>,
) -> JoinHandle<PollOutcome<T>> {
    let waker = Waker::from(Arc::clone(woken));
    spawn_blocking(move || {
        let _aside = AsideThread::enter();
        let outcome = match inner.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => {
                // Here, because to drop much data takes time, too.
                drop(inner);
                PollOutcome::Ready(output)
            }
            Poll::Pending => PollOutcome::Pending(inner),
        };
        drop(turn);
        outcome
    })
}

#[cfg(test)]
mod tests;
