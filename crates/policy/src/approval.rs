//! Somebody agrees to a call, whoever wants them to: a rule that says `ask`, or
//! a tool that destroys and is not trusted enough.
//!
//! The user is asked through the client where the client can. Where it cannot,
//! the call is answered with a token that is good once, for exactly this call.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tool::Context;

use crate::confirm::{self, Said, Tokens};
use crate::refusal::{Refusal, Refused};
use tool::clock::Clock;

/// How somebody is asked to agree to a call: the one way, whoever wants it.
#[async_trait]
pub trait Approval: Send + Sync {
    async fn agree(
        &self,
        question: &str,
        request: &ApprovalRequest<'_>,
        context: &Context,
    ) -> Result<(), Refusal>;
}

/// What somebody agrees to.
#[derive(Clone, Debug)]
pub struct ApprovalRequest<'a> {
    /// What identifies it: whoever agrees to one request agrees to no other.
    pub key: String,
    /// As JSON, for whoever is asked.
    pub arguments: &'a str,
    /// What whoever agreed already was given for it.
    pub token: Option<&'a str>,
    /// The call as it is written on its surface, open at the end for one more
    /// argument; empty where that is not known.
    pub call_text: String,
}

/// The stage.
pub struct Consent {
    clock: Arc<dyn Clock>,
    tokens: Mutex<Tokens>,
}

impl Consent {
    pub fn new(clock: Arc<dyn Clock>) -> Consent {
        Consent { clock, tokens: Mutex::default() }
    }

    fn tokens(&self) -> parking_lot::MutexGuard<'_, Tokens> {
        self.tokens.lock()
    }
}

#[async_trait]
impl Approval for Consent {
    async fn agree(
        &self,
        question: &str,
        request: &ApprovalRequest<'_>,
        context: &Context,
    ) -> Result<(), Refusal> {
        let binding = confirm::binding(context, &request.key);
        let now = self.clock.elapsed();
        if let Some(token) = request.token
            && self.tokens().redeem(token, &binding, now)
        {
            return Ok(());
        }
        let refusal = |code, message| Refusal { code, message, retry_after: None };
        match confirm::ask(context, question, request.arguments).await {
            Said::Yes => Ok(()),
            Said::No => {
                Err(refusal(Refused::Declined, format!("{question}, and the user did not agree")))
            }
            Said::Nothing => {
                let token = self.tokens().issue(binding, rand::random(), now);
                Err(refusal(Refused::ApprovalRequired, required(question, request, &token)))
            }
        }
    }
}

/// What has to be done for a call to go through, with the call in full.
fn required(question: &str, request: &ApprovalRequest<'_>, token: &str) -> String {
    let argument = confirm::ARGUMENT;
    let spent = match request.token {
        Some(_) => {
            " The token that came with the call was used, is too old, or is for another call."
        }
        None => "",
    };
    let how = match request.call_text.as_str() {
        "" => format!("with `{argument}: \"{token}\"` beside its other arguments"),
        written => format!("with the token: `{written}, {argument}=\"{token}\")`"),
    };
    let minutes = confirm::LIFE.as_secs() / 60;
    format!(
        "{question}. Nothing was done.{spent} Ask the user; if they agree, make exactly the same call \
         again {how} (good once, for {minutes} minutes)"
    )
}
