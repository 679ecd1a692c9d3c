//! A call that needs approval waits for somebody outside of the conversation.
//!
//! The model is told what is asked and under which number, never anything that
//! lets the call through. Somebody decides from a shell, in the console, or
//! through a webhook. The call waits for a while; whoever is refused makes the
//! same call again once it is allowed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::{BoxFuture, OptionFuture};
use tool::Context;

use crate::approval::desk::{Approvals, QueueUnavailable};
use crate::approval::elicit::{self, Said};
use crate::approval::queue::{Full, NewRequest, Queue, Standing, Subject, Verdict};
use crate::approval::remembered::Remembered;
use crate::approval::request::{Approval, ApprovalRequest, binding, caller_hash};
use crate::approval::shown;
use crate::confirm::LATER;
use crate::question::Question;
use crate::refusal::{Refusal, Refused};

/// How the stage behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How long a call waits to be decided about before it is refused.
    pub wait: Duration,
    /// What needs no approval any more.
    pub remembered: Vec<Remembered>,
}

impl Default for Config {
    fn default() -> Config {
        Config { wait: Duration::from_secs(30), remembered: Vec::new() }
    }
}

/// Where the page of a request is; `None` where there is none.
pub type Page = Arc<dyn Fn(u64) -> Option<String> + Send + Sync>;

/// The stage.
pub struct QueuedApproval {
    approvals: Arc<Approvals>,
    config: Config,
    page: Page,
}

/// Who decided, where it was the user of the client that called.
const CLIENTS_USER: &str = "the client's user";

/// No longer arguments are kept whole.
const MOST_ARGUMENT_BYTES: usize = 16 << 10;

impl QueuedApproval {
    pub fn new(approvals: Arc<Approvals>, config: Config) -> QueuedApproval {
        QueuedApproval { approvals, config, page: Arc::new(|_| None) }
    }

    /// The page to which clients send their users.
    #[must_use]
    pub fn with_page(mut self, page: Page) -> QueuedApproval {
        self.page = page;
        self
    }

    fn is_remembered(&self, request: &ApprovalRequest<'_>) -> bool {
        let named = request.callee.named();
        let digest = request.digest.as_deref();
        self.config.remembered.iter().any(|rule| rule.fits(named, digest, request.arguments))
    }

    async fn standing(&self, binding: &str) -> Result<Standing, QueueUnavailable> {
        Ok(self.approvals.store().read().await?.standing(binding, self.approvals.now()))
    }

    /// Uses an agreement, if there is one.
    async fn take(&self, binding: &str) -> Result<bool, QueueUnavailable> {
        let (now, mut taken) = (self.approvals.now(), false);
        let mut change = |queue: &mut Queue| taken = queue.take(binding, now);
        self.approvals.store().change(&mut change).await?;
        Ok(taken)
    }

    /// Puts a request into the queue and tells those who want to hear of it.
    async fn enqueue(&self, new: NewRequest) -> Result<Result<u64, Full>, QueueUnavailable> {
        let (now, life) = (self.approvals.now(), self.approvals.life_millis());
        let (mut number, mut is_new) = (Err(Full::Everybody), false);
        let mut change = |queue: &mut Queue| {
            is_new = queue.standing(&new.binding, now) == Standing::Unasked;
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

    /// Waits until a request is decided about, but not for long.
    async fn decided(
        &self,
        number: u64,
        binding: &str,
        wait: Duration,
        mut pointing: OptionFuture<BoxFuture<'_, Said>>,
    ) -> Result<Decided, QueueUnavailable> {
        let mut changes = self.approvals.watch();
        let deadline = tokio::time::sleep(wait);
        tokio::pin!(deadline);
        let mut is_pointing = true;
        loop {
            match self.standing(binding).await? {
                Standing::Allowed(_) if self.take(binding).await? => return Ok(Decided::Allowed),
                Standing::Denied { number, by } => return Ok(Decided::Denied { number, by }),
                Standing::Waiting(_) => {}
                // It expired, or an identical call used it.
                Standing::Allowed(_) | Standing::Unasked => return Ok(Decided::Waiting),
            }
            tokio::select! {
                Some(()) = changes.next() => {}
                Some(said) = &mut pointing, if is_pointing => {
                    is_pointing = false;
                    if said == Said::No {
                        let _ = self.approvals.decide(number, Verdict::Deny, CLIENTS_USER).await;
                    }
                }
                () = &mut deadline => return Ok(Decided::Waiting),
            }
        }
    }

    /// What is said to a caller whose call waits, or has to.
    fn required(&self, question: &Question, number: u64) -> Refusal {
        let minutes = self.approvals.life().as_secs().div_ceil(60);
        let place = match (self.page)(number) {
            Some(page) => format!("at {page} or with `gatelet approvals`"),
            None => "with `gatelet approvals`".to_owned(),
        };
        refusal(
            Refused::ApprovalRequired,
            format!(
                "{question}. Nothing was done. It waits for somebody to decide as approval request \
                 {number}, for {minutes} minutes; nothing that you can send agrees to it. Tell the user \
                 that request {number} waits: they decide {place}. Once it is allowed, make exactly \
                 the same call again"
            ),
        )
    }
}

/// What was decided about a request.
enum Decided {
    Allowed,
    Denied { number: u64, by: String },
    Waiting,
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
        let away = |error: QueueUnavailable| {
            let message = format!("{question}, and nobody can be asked: {error}. Nothing was done");
            refusal(Refused::ApprovalRequired, message)
        };
        let binding = binding(context, &request.key);
        match self.standing(&binding).await.map_err(away)? {
            Standing::Allowed(_) if self.take(&binding).await.map_err(away)? => return Ok(()),
            Standing::Denied { number, by } => return Err(denied(question, number, &by)),
            Standing::Allowed(_) | Standing::Waiting(_) | Standing::Unasked => {}
        }
        match elicit::ask(context, &question.text, request.arguments).await {
            Said::Yes => return Ok(()),
            Said::No => {
                let message = format!("{question}, and the user did not agree");
                return Err(refusal(Refused::Declined, message));
            }
            Said::Nothing => {}
        }
        let subject = subject(question, request, context);
        let new = NewRequest {
            binding: binding.clone(),
            caller_hash: caller_hash(&context.caller),
            subject,
        };
        let number =
            self.enqueue(new).await.map_err(away)?.map_err(|full| too_many(question, full))?;
        let page = (self.page)(number).filter(|_| elicit::opens_pages(&context.client));
        let pointing = page.as_ref().map(|page| -> BoxFuture<'_, Said> {
            Box::pin(elicit::point_to(context, &question.text, number, page))
        });
        let wait = self.patience(request, context);
        let decided = self.decided(number, &binding, wait, pointing.into()).await.map_err(away)?;
        match decided {
            Decided::Waiting => return Err(self.required(question, number)),
            Decided::Allowed | Decided::Denied { .. } if page.is_some() => {
                elicit::page_is_done(context, number);
            }
            Decided::Allowed | Decided::Denied { .. } => {}
        }
        match decided {
            Decided::Denied { number, by } => Err(denied(question, number, &by)),
            Decided::Allowed | Decided::Waiting => Ok(()),
        }
    }
}

impl QueuedApproval {
    /// How long this call waits: not at all where the caller says so, and never
    /// longer than the caller does.
    fn patience(&self, request: &ApprovalRequest<'_>, context: &Context) -> Duration {
        if request.token == Some(LATER) {
            return Duration::ZERO;
        }
        let callers = context.timeout.map(|timeout| timeout.saturating_sub(MARGIN));
        callers.map_or(self.config.wait, |callers| callers.min(self.config.wait))
    }
}

/// What is left of the caller's time for the call itself.
const MARGIN: Duration = Duration::from_secs(2);

fn subject(question: &Question, request: &ApprovalRequest<'_>, context: &Context) -> Subject {
    let is_long = MOST_ARGUMENT_BYTES < request.arguments.len();
    Subject {
        question: question.text.clone(),
        ended_by_trust: question.ended_by_trust,
        caller: context.caller.subject.clone(),
        client: context.client.name.clone(),
        upstream: request.callee.upstream.clone(),
        tool: request.callee.tool.clone(),
        arguments: match is_long {
            true => shown::arguments(request.arguments),
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
    refusal(Refused::Declined, message)
}

fn too_many(question: &Question, full: Full) -> Refusal {
    let whose = match full {
        Full::Caller => "too many of your requests wait for approval already",
        Full::Everybody => "too many requests wait for approval already",
    };
    let message = format!(
        "{question}, and {whose}. Nothing was done. Tell the user: they decide about those that wait \
         with `gatelet approvals list`"
    );
    refusal(Refused::ApprovalRequired, message)
}

fn refusal(code: Refused, message: String) -> Refusal {
    Refusal { code, message, retry_after: None }
}

#[cfg(test)]
mod tests;
