//! The page of callers: API keys, recent callers, and a view of what an identity sees.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway::Surface;
use maud::{Markup, html};
use serde_json::json;
use tool::{Ask, Call, Client, Context, Identity};

use crate::backend::{AuthedRequest, Backend};
use crate::calls::LoggedCall;
use crate::control::KeyRow;
use crate::layout::{Page, Section, badge};
use crate::readable;
use crate::request::{Fields, encode};

/// Renders the page; the query may name an identity to look as.
pub(crate) async fn page(backend: &Backend, authed: &AuthedRequest<'_>) -> Page {
    let query = &authed.request.query;
    let identity = identity(query);
    let wish = query.get("q");
    let looks = query.has("subject") || !wish.is_empty();
    let seen = if looks { Some(help_as(backend, &identity, wish).await) } else { None };
    let keys = backend.control.keys();
    let now = backend.clock.unix_millis();
    let content = html! {
        h1 { "Callers" }
        p.lead { "Who may call, who called lately, and what each of them sees." }
        section.panel {
            h2 { "Look as" }
            p.hint { "What `help` tells an identity, by the rules in force." }
            form.filter method="get" action="/console/callers" {
                div { label for="subject" { "Identity" } input type="text" id="subject" name="subject" value=(identity.subject) placeholder="key:ann"; }
                @for (name, word, placeholder) in [("roles", "Roles", "reader, admin"), ("scopes", "Scopes", ""), ("groups", "Groups", "")] {
                    div { label for=(name) { (word) } input type="text" id=(name) name=(name) value=(query.get(name)) placeholder=(placeholder); }
                }
                div.wide { label for="q" { "Looking for" } input type="search" id="q" name="q" value=(wish); }
                div { button.primary { "Look" } }
            }
            @if let Some(seen) = &seen {
                h2 { "What " (display_name(&identity.subject)) " is told" }
                pre tabindex="0" { (seen) }
            }
        }
        div id="lately" data-live { (recent_callers(&backend.calls.recent(), now)) }
        (key_table(&keys))
    };
    Page { title: "Callers".to_owned(), section: Some(Section::Callers), topics: "calls", content }
}

/// Returns the identity that the query names.
fn identity(query: &Fields) -> Identity {
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

/// Renders a link that shows what an identity sees.
fn look_as(subject: &str, roles: &str, scopes: &str, groups: &str) -> Markup {
    let query: Vec<String> =
        [("subject", subject), ("roles", roles), ("scopes", scopes), ("groups", groups)]
            .iter()
            .map(|(name, value)| format!("{name}={}", encode(value)))
            .collect();
    html! {
        a href={ "/console/callers?" (query.join("&")) } aria-label={ "Look as " (display_name(subject)) } { "Look as" }
    }
}

fn display_name(subject: &str) -> &str {
    if subject.is_empty() { "an anonymous caller" } else { subject }
}

/// Returns the answer of `help` for an identity, word for word.
async fn help_as(backend: &Backend, identity: &Identity, wish: &str) -> String {
    let context = Context {
        client: Arc::new(Client::named("gatelet-console", "")),
        caller: Arc::new(identity.clone()),
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

/// The calls of one caller with one client.
#[derive(Default)]
struct CallerActivity<'a> {
    n_calls: u64,
    n_errors: u64,
    /// Milliseconds since 1970.
    last: u64,
    sessions: BTreeSet<&'a str>,
}

fn recent_callers(calls: &[Arc<LoggedCall>], now: u64) -> Markup {
    let mut callers: BTreeMap<(&str, &str), CallerActivity<'_>> = BTreeMap::new();
    for call in calls {
        let one = callers.entry((&call.caller, &call.client)).or_default();
        one.n_calls += 1;
        one.n_errors += u64::from(call.is_error);
        one.last = one.last.max(call.at);
        one.sessions.insert(&call.session);
    }
    html! {
        section.panel.scroll {
            h2 { "Called lately" }
            @if callers.is_empty() { p.soft { "Nobody since calls are noted." } }
            @else { table {
                thead { tr { th { "Caller" } th { "Client" } th.right { "Sessions" } th.right { "Calls" } th.right { "Errors" } th { "Last" } th { span.skip { "Actions" } } } }
                tbody { @for ((caller, client), one) in &callers { tr {
                    td { @if caller.is_empty() { "anonymous" } @else { (caller) } }
                    td { (client) }
                    td.right { (one.sessions.len()) }
                    td.right { (readable::number(one.n_calls)) }
                    td.right { (readable::number(one.n_errors)) }
                    td.soft { (readable::relative_time(now, one.last)) }
                    td.right { (look_as(caller, "", "", "")) }
                } } }
            } }
        }
    }
}

fn key_table(keys: &[KeyRow]) -> Markup {
    html! {
        section.panel.scroll {
            h2 { "Keys" }
            @if keys.is_empty() { p.soft { "There are none; " code { "gatelet key create NAME" } " makes one." } }
            @else { table {
                thead { tr { th { "Name" } th { "Roles" } th { "Scopes" } th { "Groups" } th { "State" } th { span.skip { "Actions" } } } }
                tbody { @for key in keys { tr {
                    td { strong { (key.name) } }
                    td { (key.roles.join(", ")) }
                    td { (key.scopes.join(", ")) }
                    td { (key.groups.join(", ")) }
                    td { @if key.is_good { (badge("good", "good")) } @else { (badge("bad", "revoked or expired")) } }
                    td.right { (look_as(&format!("key:{}", key.name), &key.roles.join(","), &key.scopes.join(","), &key.groups.join(","))) }
                } } }
            } }
        }
    }
}
