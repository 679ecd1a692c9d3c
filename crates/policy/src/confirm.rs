//! Somebody agrees to one call.
//!
//! Where the client can ask its user, it is asked. Where it cannot, the call
//! is answered with a token; the same call with the token goes through, once,
//! for a while, for the same caller and the same arguments. The token travels
//! in `_meta` or beside a surface's own arguments; among a tool's it is
//! understood where the tool has no such argument, and never passed on.

mod shown;

use std::collections::HashMap;
use std::time::Duration;

use catalog::{Contract, Problem, name};
use serde_json::json;
use sha2::{Digest, Sha256};
use tool::text::plain;
use tool::{Call, Context, Json, Object, Reply, hex};

/// Under which key of `_meta` a token travels.
pub const META_KEY: &str = "gatelet/confirm";

/// The argument of a surface that carries a token.
pub const ARGUMENT: &str = "confirm";

/// How long a token is good for.
pub const LIFE: Duration = Duration::from_secs(300);

/// How many tokens wait at once; the oldest go first.
const MOST: usize = 1024;

/// What every token starts with, so that it cannot be taken for an argument.
const PREFIX: &str = "confirm-";

/// The tokens that were given out.
#[derive(Debug, Default)]
pub struct Tokens(HashMap<String, Waiting>);

#[derive(Debug)]
struct Waiting {
    binding: [u8; 32],
    until: Duration,
}

impl Tokens {
    /// Gives out a token for one call. `random` must be unpredictable.
    pub fn issue(&mut self, binding: [u8; 32], random: [u8; 16], now: Duration) -> String {
        self.0.retain(|_, waiting| now < waiting.until);
        if MOST <= self.0.len()
            && let Some(oldest) = self
                .0
                .iter()
                .min_by_key(|(_, waiting)| waiting.until)
                .map(|(token, _)| token.clone())
        {
            self.0.remove(&oldest);
        }
        let token = format!("{PREFIX}{}", hex::encode(&random));
        self.0.insert(token.clone(), Waiting { binding, until: now + LIFE });
        token
    }

    /// Takes a token back. It is spent, whether it fits or not.
    pub fn redeem(&mut self, token: &str, binding: &[u8; 32], now: Duration) -> bool {
        let waiting = self.0.remove(token);
        waiting.is_some_and(|waiting| now < waiting.until && waiting.binding == *binding)
    }
}

/// What a token is bound to: who calls, on which session, what, with which
/// arguments.
pub fn binding(context: &Context, call_key: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [context.caller.subject.as_str(), context.session_or_client(), call_key] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

/// Takes the token out of what came with a call, so that it is not passed on.
pub fn take(rest: &mut Object) -> Option<String> {
    let meta = rest.get("_meta").filter(|meta| meta.as_str().contains(META_KEY))?;
    let mut meta = Object::parse(meta).ok()?;
    let token = meta.remove(META_KEY)?;
    if meta.is_empty() {
        rest.remove("_meta");
    } else {
        rest.set("_meta", meta.to_json());
    }
    token.read().ok()
}

/// Moves a token from a surface's own arguments to `_meta`.
pub fn lift(mut call: Call) -> Call {
    if let Some(arguments) = &mut call.arguments {
        lift_out(arguments, &mut call.rest);
    }
    call
}

/// Moves a token from a tool's arguments to `_meta`, unless the tool has an
/// argument of that name.
pub fn lift_from(arguments: &mut Json, contract: &Contract, rest: &mut Object) {
    if contract.parameter(ARGUMENT).is_none() {
        lift_out(arguments, rest);
    }
}

fn lift_out(arguments: &mut Json, rest: &mut Object) {
    if !arguments.mentions(PREFIX) {
        return;
    }
    let Ok(mut members) = Object::parse(arguments) else { return };
    let Some(key) = key(&members) else { return };
    let token = members.get(&key).and_then(Json::text);
    let Some(token) = token.filter(|token| token.starts_with(PREFIX)) else { return };
    members.remove(&key);
    *arguments = members.to_json();
    let meta = rest.get("_meta").and_then(|meta| Object::parse(meta).ok());
    let mut meta = meta.unwrap_or_default();
    meta.set(META_KEY, Json::encode(&token));
    rest.set("_meta", meta.to_json());
}

fn key(members: &Object) -> Option<String> {
    members.keys().find(|key| name::same(key, ARGUMENT)).map(str::to_owned)
}

/// What is wrong with a `confirm` that is no token, once tokens are lifted.
///
/// Among a tool's arguments only a yes is: anything else may be meant for a
/// tool that does not say what it takes.
pub fn misread(arguments: &Json, contract: &Contract) -> Option<Problem> {
    if !arguments.mentions(ARGUMENT) || contract.parameter(ARGUMENT).is_some() {
        return None;
    }
    let members = Object::parse(arguments).ok()?;
    let said = members.get(&key(&members)?)?;
    let said = said.text().unwrap_or_else(|| said.to_string()).to_lowercase();
    let is_yes = ["true", "yes", "y", "ok", "1"].contains(&said.trim());
    is_yes.then(|| Problem::new(ARGUMENT, NO_TOKEN.to_owned()))
}

/// The message for a caller who writes something else in place of a token.
pub const NO_TOKEN: &str = "takes the token that was given for this call, not a yes; a call \
     without it is answered with a token if one is needed";

/// What the user said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Yes,
    No,
    /// The client cannot ask, or did not get an answer.
    Nothing,
}

/// Asks the user, where the client can.
pub async fn ask(context: &Context, question: &str, arguments: &str) -> Said {
    if !context.client.can("elicitation") {
        return Said::Nothing;
    }
    let params = json!({
        "message": format!("{}. {}\nGo on?", plain(question), shown::arguments(arguments)),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "confirm": {"type": "boolean", "title": "Run it", "description": "Run this call"},
            },
            "required": ["confirm"],
        },
    });
    match context.client_handle.request("elicitation/create", params.into()).await {
        Ok(Reply::Result(answer)) => {
            let accepted = answer.member_as::<String>("action").as_deref() == Some("accept");
            // Closing a dialog may count as accepting it, so only a yes is one.
            let content = answer.member("content");
            let agreed = content.and_then(|content| content.member_as::<bool>("confirm"));
            if accepted && agreed == Some(true) { Said::Yes } else { Said::No }
        }
        Ok(Reply::Error(_)) | Err(_) => Said::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
        let token = tokens.issue(bound, [1; 16], at(0));
        assert!(tokens.redeem(&token, &bound, at(10)));
        assert!(!tokens.redeem(&token, &bound, at(10)), "a second time");
        for other in others {
            let token = tokens.issue(bound, [2; 16], at(0));
            assert!(!tokens.redeem(&token, &other, at(1)));
            assert!(!tokens.redeem(&token, &bound, at(1)), "spent by the wrong one");
        }
        let token = tokens.issue(bound, [3; 16], at(0));
        assert!(!tokens.redeem(&token, &bound, at(301)));
        assert!(!tokens.redeem("confirm-guess", &bound, at(0)));
    }

    #[test]
    fn only_so_many_tokens_wait() {
        let mut tokens = Tokens::default();
        for n in 0..3000_u32 {
            let mut random = [0; 16];
            random[..4].copy_from_slice(&n.to_be_bytes());
            tokens.issue([0; 32], random, at(u64::from(n) / 100));
        }
        assert_eq!(tokens.0.len(), MOST);
    }

    #[test]
    fn a_token_moves_from_the_surface_to_meta_and_nothing_else_does() {
        let call = |text: &str| lift(Call::new("call", Json::parse(text.to_owned()).unwrap()));
        let mut lifted =
            call(r#"{"namespace":"n","confirm":"confirm-12","kwargs":{"confirm":"x"}}"#);
        assert_eq!(
            lifted.arguments.unwrap().as_str(),
            r#"{"namespace":"n","kwargs":{"confirm":"x"}}"#
        );
        assert_eq!(take(&mut lifted.rest).as_deref(), Some("confirm-12"));
        assert!(lifted.rest.is_empty(), "a token does not go on");
        let mut inner = Object::new();
        let mut kwargs = Json::parse(r#"{"a":1,"Confirm":"confirm-12"}"#.to_owned()).unwrap();
        lift_from(&mut kwargs, &Contract::read(&json!({}).into()), &mut inner);
        assert_eq!(kwargs.as_str(), r#"{"a":1}"#);
        assert_eq!(take(&mut inner).as_deref(), Some("confirm-12"));
        let own = Contract::read(&json!({"properties": {"confirm": {"type": "string"}}}).into());
        let mut kwargs = Json::parse(r#"{"confirm":"confirm-12"}"#.to_owned()).unwrap();
        lift_from(&mut kwargs, &own, &mut inner);
        assert_eq!(kwargs.as_str(), r#"{"confirm":"confirm-12"}"#, "the tool's own");
        let mut plain = call(r#"{"confirm":"yes"}"#);
        assert_eq!(plain.arguments.unwrap().as_str(), r#"{"confirm":"yes"}"#);
        assert_eq!(take(&mut plain.rest), None);
    }
}
