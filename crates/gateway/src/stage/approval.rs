//! Somebody agrees to a call, whoever wants them to: a rule that says `ask`, or
//! a tool that destroys and is not trusted enough.
//!
//! The user is asked through the client where the client can. Where it cannot,
//! the call is answered with a token that is good once, for exactly this call.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tool::Context;

use super::{Approval, Deed};
use crate::clock::Clock;
use crate::dispatch::{Refusal, Refused};
use crate::trust::confirm::{self, Said, Tokens};

/// The stage.
pub struct Consent {
    clock: Arc<dyn Clock>,
    tokens: Mutex<Tokens>,
}

impl Consent {
    pub fn new(clock: Arc<dyn Clock>) -> Consent {
        Consent { clock, tokens: Mutex::default() }
    }

    fn tokens(&self) -> std::sync::MutexGuard<'_, Tokens> {
        self.tokens.lock().expect("nothing panics while it holds this")
    }
}

#[async_trait]
impl Approval for Consent {
    async fn agree(
        &self,
        question: &str,
        deed: &Deed<'_>,
        context: &Context,
    ) -> Result<(), Refusal> {
        let binding = confirm::binding(context, &deed.key);
        let now = self.clock.elapsed();
        if let Some(token) = deed.token
            && self.tokens().redeem(token, &binding, now)
        {
            return Ok(());
        }
        let refusal = |code, message| Refusal { code, message, retry_after: None };
        match confirm::ask(context, question, deed.arguments).await {
            Said::Yes => Ok(()),
            Said::No => {
                Err(refusal(Refused::Declined, format!("{question}, and the user did not agree")))
            }
            Said::Nothing => {
                let token = self.tokens().issue(binding, rand::random(), now);
                Err(refusal(Refused::ApprovalRequired, required(question, deed, &token)))
            }
        }
    }
}

/// What has to be done for a call to go through, with the call in full.
fn required(question: &str, deed: &Deed<'_>, token: &str) -> String {
    let argument = confirm::ARGUMENT;
    let spent = match deed.token {
        Some(_) => {
            " The token that came with the call was used, is too old, or is for another call."
        }
        None => "",
    };
    let how = match deed.written.as_str() {
        "" => format!("with `{argument}: \"{token}\"` beside its other arguments"),
        written => format!("with the token: `{written}, {argument}=\"{token}\")`"),
    };
    let minutes = confirm::LIFE.as_secs() / 60;
    format!(
        "{question}. Nothing was done.{spent} Ask the user; if they agree, make exactly the same call \
         again {how} (good once, for {minutes} minutes)"
    )
}
