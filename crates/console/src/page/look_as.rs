//! What somebody else sees: an identity from the fields of a form, and the answer of `help`
//! for it.

use std::sync::Arc;

use gateway::Surface;
use maud::{Markup, html};
use serde_json::json;
use tool::{Ask, Call, Client, Context, Identity};

use crate::backend::{AuthedRequest, Backend};
use crate::request::Fields;

/// The fields beside the name of an identity: their name, word and example.
const LISTS: [(&str, &str, &str); 3] =
    [("roles", "Roles", "reader, admin"), ("scopes", "Scopes", ""), ("groups", "Groups", "")];

/// Renders the fields that name an identity, filled in with those of the query.
pub(super) fn fields(query: &Fields) -> Markup {
    html! {
        div { label for="subject" { "Identity" } input type="text" id="subject" name="subject" value=(query.get("subject")) placeholder="key:ann"; }
        @for (name, word, example) in LISTS {
            div { label for=(name) { (word) } input type="text" id=(name) name=(name) value=(query.get(name)) placeholder=(example); }
        }
    }
}

/// Returns the identity that the query names; an anonymous one when it names none.
pub(super) fn identity(query: &Fields) -> Identity {
    let words = |name: &str| {
        let words = query.get(name).split(',').map(str::trim).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    Identity {
        subject: query.get("subject").trim().to_owned(),
        roles: words("roles"),
        scopes: words("scopes"),
        groups: words("groups"),
        address: None,
    }
}

pub(super) fn display_name(subject: &str) -> &str {
    if subject.is_empty() { "an anonymous caller" } else { subject }
}

/// Returns the answer of `help` for an identity, word for word.
pub(super) async fn help(
    backend: &Backend,
    authed: &AuthedRequest<'_>,
    identity: &Identity,
    wish: &str,
) -> String {
    let context = Context {
        client: Arc::new(Client::named("gatelet-console", "")),
        caller: Arc::new(identity.clone()),
        session: Arc::clone(&authed.session.id),
        ..Context::anonymous()
    };
    let provider =
        backend.gateway.surface(Surface::Cash).provider_for(&context.client, &context.caller);
    let arguments = if wish.is_empty() { json!({}) } else { json!({"query": wish}) };
    match provider.ask(Ask::Call(Call::new("help", arguments.into())), &context).await {
        Ok(reply) => reply.tool_result().map(|result| result.text()).unwrap_or_default(),
        Err(failure) => failure.to_string(),
    }
}
