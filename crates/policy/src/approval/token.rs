//! The approval stage with tokens: a call that needs approval is answered with a token,
//! and the same call with the token goes through. Operators have to choose it.
//!
//! The token goes to the same model that makes the call, so it only proves that the call
//! was made twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tool::clock::Clock;
use tool::{Context, hex};

use crate::approval::elicit::{self, UserAnswer};
use crate::approval::request::{Approval, ApprovalRequest, binding};
use crate::confirm::{ARGUMENT, DO_NOT_WAIT, PREFIX};
use crate::question::Question;
use crate::refusal::{Refusal, RefusalCode};

/// How long a token is valid.
const LIFE: Duration = Duration::from_secs(300);

/// The most valid tokens in memory; the oldest are dropped first.
const MAX_TOKENS: usize = 1024;

/// The store of the tokens that were issued and not used yet. While it cannot be used,
/// no call is approved.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Keeps a token for the call of this binding, for `life`.
    async fn issue(&self, token: &str, binding: &str, life: Duration) -> Result<(), TokensAway>;

    /// Whether a token is valid for this call. The token is used up in any case.
    async fn redeem(&self, token: &str, binding: &str) -> Result<bool, TokensAway>;
}

/// Tokens cannot be kept or checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("confirmation tokens cannot be kept: {0}")]
pub struct TokensAway(pub String);

/// The approval stage with tokens.
pub struct TokenApproval {
    tokens: Arc<dyn TokenStore>,
}

impl TokenApproval {
    /// The stage with tokens in memory.
    pub fn new(clock: Arc<dyn Clock>) -> TokenApproval {
        TokenApproval::with_store(Arc::new(InMemoryTokens { clock, tokens: Mutex::default() }))
    }

    pub fn with_store(tokens: Arc<dyn TokenStore>) -> TokenApproval {
        TokenApproval { tokens }
    }
}

#[async_trait]
impl Approval for TokenApproval {
    fn is_outside_of_the_model(&self) -> bool {
        false
    }

    async fn agree(
        &self,
        question: &Question,
        request: &ApprovalRequest<'_>,
        context: &Context,
    ) -> Result<(), Refusal> {
        let binding = binding(context, &request.key);
        let refusal = |code, message| Refusal { code, message, retry_after: None };
        let away = |error: TokensAway| {
            let message = format!("{question}, and {error}. Nothing was done; ask again later");
            refusal(RefusalCode::ApprovalRequired, message)
        };
        let token = request.token.filter(|token| *token != DO_NOT_WAIT);
        if let Some(token) = token
            && self.tokens.redeem(token, &binding).await.map_err(away)?
        {
            return Ok(());
        }
        match elicit::ask(context, &question.text, request.arguments).await {
            UserAnswer::Yes => Ok(()),
            UserAnswer::No => Err(refusal(
                RefusalCode::Declined,
                format!("{question}, and the user did not agree"),
            )),
            UserAnswer::NoAnswer => {
                let had_token = token.is_some();
                let token = format!("{PREFIX}{}", hex::encode(&rand::random::<[u8; 16]>()));
                self.tokens.issue(&token, &binding, LIFE).await.map_err(away)?;
                Err(refusal(
                    RefusalCode::ApprovalRequired,
                    approval_needed(question, request, &token, had_token),
                ))
            }
        }
    }
}

/// The message that tells how to repeat the call with its new token. `had_token` says
/// that the call came with a token that is not valid.
fn approval_needed(
    question: &Question,
    request: &ApprovalRequest<'_>,
    token: &str,
    had_token: bool,
) -> String {
    let rejected = match had_token {
        true => " The token that came with the call was used, is too old, or is for another call.",
        false => "",
    };
    let how = match request.call_text.as_str() {
        "" => format!("with `{ARGUMENT}: \"{token}\"` beside its other arguments"),
        written => format!("with the token: `{written}, {ARGUMENT}=\"{token}\")`"),
    };
    let minutes = LIFE.as_secs() / 60;
    format!(
        "{question}. Nothing was done.{rejected} Ask the user; if they agree, make exactly the same call \
         again {how} (good once, for {minutes} minutes)"
    )
}

/// Tokens in memory, which are lost when the process ends.
struct InMemoryTokens {
    clock: Arc<dyn Clock>,
    tokens: Mutex<Tokens>,
}

#[async_trait]
impl TokenStore for InMemoryTokens {
    async fn issue(&self, token: &str, binding: &str, life: Duration) -> Result<(), TokensAway> {
        let now = self.clock.elapsed();
        self.tokens.lock().issue(token, binding, now, now + life);
        Ok(())
    }

    async fn redeem(&self, token: &str, binding: &str) -> Result<bool, TokensAway> {
        Ok(self.tokens.lock().redeem(token, binding, self.clock.elapsed()))
    }
}

/// The tokens that were issued and not used yet.
#[derive(Debug, Default)]
struct Tokens(HashMap<String, Issued>);

/// What a token is valid for.
#[derive(Debug)]
struct Issued {
    binding: String,
    until: Duration,
}

impl Tokens {
    fn issue(&mut self, token: &str, binding: &str, now: Duration, until: Duration) {
        self.0.retain(|_, issued| now < issued.until);
        if MAX_TOKENS <= self.0.len()
            && let Some(oldest) =
                self.0.iter().min_by_key(|(_, issued)| issued.until).map(|(token, _)| token.clone())
        {
            self.0.remove(&oldest);
        }
        self.0.insert(token.to_owned(), Issued { binding: binding.to_owned(), until });
    }

    fn redeem(&mut self, token: &str, binding: &str, now: Duration) -> bool {
        let issued = self.0.remove(token);
        issued.is_some_and(|issued| now < issued.until && issued.binding == *binding)
    }
}

#[cfg(test)]
mod tests {
    use tool::Identity;

    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn caller(name: &str) -> Context {
        let caller = Identity { subject: name.to_owned(), ..Identity::default() };
        Context { caller: Arc::new(caller), ..Context::anonymous() }
    }

    #[test]
    fn a_token_is_good_once_for_its_caller_and_arguments_for_a_while() {
        let mut tokens = Tokens::default();
        let bound = binding(&caller("ann"), "call");
        let others = [binding(&caller("bob"), "call"), binding(&caller("ann"), "other call")];
        let issue = |tokens: &mut Tokens| tokens.issue("t", &bound, at(0), LIFE);
        issue(&mut tokens);
        assert!(tokens.redeem("t", &bound, at(10)));
        assert!(!tokens.redeem("t", &bound, at(10)), "a second time");
        for other in others {
            issue(&mut tokens);
            assert!(!tokens.redeem("t", &other, at(1)));
            assert!(!tokens.redeem("t", &bound, at(1)), "spent by the wrong one");
        }
        issue(&mut tokens);
        assert!(!tokens.redeem("t", &bound, at(301)));
        assert!(!tokens.redeem("confirm-guess", &bound, at(0)));
    }

    #[test]
    fn only_so_many_tokens_wait() {
        let mut tokens = Tokens::default();
        for n in 0..3000_u32 {
            let now = at(u64::from(n) / 100);
            tokens.issue(&n.to_string(), "", now, now + LIFE);
        }
        assert_eq!(tokens.0.len(), MAX_TOKENS);
    }
}
