//! The approval stage that puts calls into a queue, where a person outside of the
//! conversation decides: from a shell, in the console, or through a webhook.
//!
//! The model learns the question and the number of the request, never anything that
//! approves the call. The call waits for a while; if it is refused because nobody has
//! decided yet, the caller makes the same call again once it is allowed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::{BoxFuture, OptionFuture};
use tool::Context;

use crate::approval::approvals::{Approvals, QueueUnavailable};
use crate::approval::argument_text;
use crate::approval::elicit::{self, UserAnswer};
use crate::approval::queue::{CallStatus, NewRequest, Queue, QueueFull, Subject, Verdict};
use crate::approval::remembered::RememberedApproval;
use crate::approval::request::{Approval, ApprovalRequest, binding, caller_hash};
use crate::confirm::DO_NOT_WAIT;
use crate::question::Question;
use crate::refusal::{Refusal, RefusalCode};

/// The settings of the stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How long a call waits for a decision before it is refused.
    pub wait: Duration,
    /// Calls that need no approval any more.
    pub remembered: Vec<RememberedApproval>,
}

impl Default for Config {
    fn default() -> Config {
        Config { wait: Duration::from_secs(30), remembered: Vec::new() }
    }
}

/// Gives the URL of the page where a request, by its number, is decided.
pub type PageUrl = Arc<dyn Fn(u64) -> Option<String> + Send + Sync>;

/// The approval stage with a queue.
pub struct QueuedApproval {
    approvals: Arc<Approvals>,
    config: Config,
    page_url: PageUrl,
}

/// The name for `by` where the user of the calling client decided.
const CLIENTS_USER: &str = "the client's user";

/// Longer arguments are shortened in the queue.
const MAX_ARGUMENT_BYTES: usize = 16 << 10;

impl QueuedApproval {
    pub fn new(approvals: Arc<Approvals>, config: Config) -> QueuedApproval {
        QueuedApproval { approvals, config, page_url: Arc::new(|_| None) }
    }

    /// Sets the page to which clients send their users.
    #[must_use]
    pub fn with_page(mut self, page_url: PageUrl) -> QueuedApproval {
        self.page_url = page_url;
        self
    }

    fn is_remembered(&self, request: &ApprovalRequest<'_>) -> bool {
        let names = request.callee.names();
        let digest = request.digest.as_deref();
        self.config.remembered.iter().any(|rule| rule.matches(names, digest, request.arguments))
    }

    async fn status(&self, binding: &str) -> Result<CallStatus, QueueUnavailable> {
        Ok(self.approvals.store().read().await?.status(binding, self.approvals.now()))
    }

    /// Uses up the approval of a call, if there is one.
    async fn use_approval(&self, binding: &str) -> Result<bool, QueueUnavailable> {
        let (now, mut is_approved) = (self.approvals.now(), false);
        let mut change = |queue: &mut Queue| is_approved = queue.use_approval(binding, now);
        self.approvals.store().change(&mut change).await?;
        Ok(is_approved)
    }

    /// Puts a request into the queue and announces it. Returns its number.
    async fn enqueue(&self, new: NewRequest) -> Result<Result<u64, QueueFull>, QueueUnavailable> {
        let (now, life) = (self.approvals.now(), self.approvals.life_millis());
        let (mut number, mut is_new) = (Err(QueueFull::Everybody), false);
        let mut change = |queue: &mut Queue| {
            is_new = queue.status(&new.binding, now) == CallStatus::Unasked;
            number = queue.add(new.clone(), now, life);
        };
        let queue = self.approvals.store().change(&mut change).await?;
        if let Ok(number) = number
            && is_new
            && let Some(request) = queue.get(number, now)
        {
            let tool = format!("{}/{}", new.subject.upstream, new.subject.tool);
            tracing::info!(number, tool, "a call waits for approval: `gatelet approvals list`");
            self.approvals.announce(request);
        }
        Ok(number)
    }

    /// Waits until a request is decided, at most for `wait`. Meanwhile `user_at_page`
    /// may come back with the user's no.
    async fn wait_for_decision(
        &self,
        number: u64,
        binding: &str,
        wait: Duration,
        mut user_at_page: OptionFuture<BoxFuture<'_, UserAnswer>>,
    ) -> Result<WaitOutcome, QueueUnavailable> {
        let mut changes = self.approvals.watch();
        let deadline = tokio::time::sleep(wait);
        tokio::pin!(deadline);
        let mut is_user_open = true;
        loop {
            match self.status(binding).await? {
                CallStatus::Allowed(_) if self.use_approval(binding).await? => {
                    return Ok(WaitOutcome::Allowed);
                }
                CallStatus::Denied { number, by } => return Ok(WaitOutcome::Denied { number, by }),
                CallStatus::Waiting(_) => {}
                CallStatus::Allowed(_) | CallStatus::Unasked => return Ok(WaitOutcome::Gone),
            }
            tokio::select! {
                Some(()) = changes.next() => {}
                Some(answer) = &mut user_at_page, if is_user_open => {
                    is_user_open = false;
                    if answer == UserAnswer::No {
                        let _ = self.approvals.decide(number, Verdict::Deny, CLIENTS_USER).await;
                    }
                }
                () = &mut deadline => return Ok(WaitOutcome::Waiting),
            }
        }
    }

    /// The refusal for a call whose request waits to be decided.
    fn still_waiting(&self, question: &Question, number: u64) -> Refusal {
        let minutes = self.approvals.life().as_secs().div_ceil(60);
        let place = match (self.page_url)(number) {
            Some(page) => format!("at {page} or with `gatelet approvals`"),
            None => "with `gatelet approvals`".to_owned(),
        };
        refusal(
            RefusalCode::ApprovalRequired,
            format!(
                "{question}. Nothing was done. It waits for somebody to decide as approval request \
                 {number}, for {minutes} minutes; nothing that you can send agrees to it. Tell the user \
                 that request {number} waits: they decide {place}. Once it is allowed, make exactly \
                 the same call again"
            ),
        )
    }
}

/// The result of waiting for a decision.
enum WaitOutcome {
    Allowed,
    Denied {
        number: u64,
        by: String,
    },
    Waiting,
    /// The request expired, an identical call used it, or the store lost it.
    Gone,
}

#[async_trait]
impl Approval for QueuedApproval {
    async fn agree(
        &self,
        question: &Question,
        request: &ApprovalRequest<'_>,
        context: &Context,
    ) -> Result<(), Refusal> {
        if self.is_remembered(request) {
            return Ok(());
        }
        let queue_unavailable = |error: QueueUnavailable| {
            let message = format!(
                "{question}, and nobody can be asked: {error}. Nothing was done; ask again later"
            );
            refusal(RefusalCode::ApprovalRequired, message)
        };
        let binding = binding(context, &request.key);
        match self.status(&binding).await.map_err(queue_unavailable)? {
            CallStatus::Allowed(_)
                if self.use_approval(&binding).await.map_err(queue_unavailable)? =>
            {
                return Ok(());
            }
            CallStatus::Denied { number, by } => return Err(denied(question, number, &by)),
            CallStatus::Allowed(_) | CallStatus::Waiting(_) | CallStatus::Unasked => {}
        }
        match elicit::ask(context, &question.text, request.arguments).await {
            UserAnswer::Yes => return Ok(()),
            UserAnswer::No => {
                let message = format!("{question}, and the user did not agree");
                return Err(refusal(RefusalCode::Declined, message));
            }
            UserAnswer::NoAnswer => {}
        }
        let subject = subject(question, request, context);
        let new = NewRequest {
            binding: binding.clone(),
            caller_hash: caller_hash(&context.caller),
            subject,
        };
        let number = self.enqueue(new).await.map_err(queue_unavailable)?;
        let number = number.map_err(|full| too_many(question, full))?;
        let page = (self.page_url)(number).filter(|_| elicit::opens_pages(&context.client));
        let user_at_page = page.as_ref().map(|page| -> BoxFuture<'_, UserAnswer> {
            Box::pin(elicit::send_to_page(context, &question.text, number, page))
        });
        let wait = self.patience(request, context);
        let waiting = self.wait_for_decision(number, &binding, wait, user_at_page.into());
        let outcome = waiting.await.map_err(queue_unavailable)?;
        match outcome {
            WaitOutcome::Waiting => return Err(self.still_waiting(question, number)),
            WaitOutcome::Gone => return Err(gone(question, number)),
            WaitOutcome::Allowed | WaitOutcome::Denied { .. } if page.is_some() => {
                elicit::notify_decided(context, number);
            }
            WaitOutcome::Allowed | WaitOutcome::Denied { .. } => {}
        }
        match outcome {
            WaitOutcome::Denied { number, by } => Err(denied(question, number, &by)),
            WaitOutcome::Allowed | WaitOutcome::Waiting | WaitOutcome::Gone => Ok(()),
        }
    }
}

impl QueuedApproval {
    /// How long this call waits: not at all where the caller says so, and never longer
    /// than the caller's own timeout.
    fn patience(&self, request: &ApprovalRequest<'_>, context: &Context) -> Duration {
        if request.token == Some(DO_NOT_WAIT) {
            return Duration::ZERO;
        }
        let callers = context.timeout.map(|timeout| timeout.saturating_sub(MARGIN));
        callers.map_or(self.config.wait, |callers| callers.min(self.config.wait))
    }
}

/// The part of the caller's timeout that is left for the call itself.
const MARGIN: Duration = Duration::from_secs(2);

fn subject(question: &Question, request: &ApprovalRequest<'_>, context: &Context) -> Subject {
    let is_long = MAX_ARGUMENT_BYTES < request.arguments.len();
    Subject {
        question: question.text.clone(),
        ended_by_trust: question.ended_by_trust,
        caller: context.caller.subject.clone(),
        client: context.client.name.clone(),
        upstream: request.callee.upstream.clone(),
        tool: request.callee.tool.clone(),
        arguments: match is_long {
            true => argument_text::render(request.arguments),
            false => request.arguments.to_owned(),
        },
        arguments_cut_from: is_long.then_some(request.arguments.len()),
        digest: request.digest.clone(),
    }
}

fn denied(question: &Question, number: u64, by: &str) -> Refusal {
    let message = format!(
        "{question}, and request {number} was denied by {by}. Nothing was done; do not try it again"
    );
    refusal(RefusalCode::Declined, message)
}

fn gone(question: &Question, number: u64) -> Refusal {
    let message = format!(
        "{question}, and request {number} waits no longer: it expired, another call of the same kind \
         used it, it gave way to other callers' requests, or it was lost. Nothing was done; make the same call again to ask again"
    );
    refusal(RefusalCode::ApprovalRequired, message)
}

fn too_many(question: &Question, full: QueueFull) -> Refusal {
    let whose = match full {
        QueueFull::Caller => "too many of your requests wait for approval already",
        QueueFull::Everybody => "too many requests wait for approval already",
    };
    let message = format!(
        "{question}, and {whose}. Nothing was done. Tell the user: they decide about those that wait \
         with `gatelet approvals list`"
    );
    refusal(RefusalCode::ApprovalRequired, message)
}

fn refusal(code: RefusalCode, message: String) -> Refusal {
    Refusal { code, message, retry_after: None }
}

#[cfg(test)]
mod tests;
