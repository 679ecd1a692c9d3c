//! Who calls, and what each of them sees.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway::Surface;
use maud::{Markup, html};
use serde_json::json;
use tool::{Ask, Call, Client, Context, Identity};

use crate::backend::{Asked, Backend};
use crate::calls::NotedCall;
use crate::layout::{Page, Section, badge};
use crate::operator::KeyRow;
use crate::when;

/// Keys, who called lately, and a look through somebody's eyes.
pub(crate) async fn page(backend: &Backend, asked: &Asked<'_>) -> Page {
    let query = &asked.request.query;
    let (subject, roles, wish) = (query.get("subject"), query.get("roles"), query.get("q"));
    let looks = !subject.is_empty() || !roles.is_empty() || !wish.is_empty();
    let seen = if looks { Some(seen(backend, subject, roles, wish).await) } else { None };
    let keys = backend.operator.keys();
    let now = backend.clock.unix_millis();
    let content = html! {
        h1 { "Callers" }
        p.lead { "Who may call, who called lately, and what each of them sees." }
        section.panel {
            h2 { "Look as" }
            p.hint { "What `help` tells an identity, by the rules in force." }
            form.filter method="get" action="/console/callers" {
                div { label for="subject" { "Identity" } input type="text" id="subject" name="subject" value=(subject) placeholder="key:ann"; }
                div { label for="roles" { "Roles" } input type="text" id="roles" name="roles" value=(roles) placeholder="reader, admin"; }
                div.wide { label for="q" { "Looking for" } input type="search" id="q" name="q" value=(wish); }
                div { button.primary { "Look" } }
            }
            @if let Some(seen) = &seen { pre tabindex="0" { (seen) } }
        }
        div id="lately" data-live { (lately(&backend.calls.look(), now)) }
        (table_of(&keys))
    };
    Page { title: "Callers".to_owned(), section: Some(Section::Callers), topics: "calls", content }
}

/// What an identity is told, word for word.
async fn seen(backend: &Backend, subject: &str, roles: &str, wish: &str) -> String {
    let roles = roles.split(',').map(str::trim).filter(|role| !role.is_empty());
    let identity = Identity {
        subject: subject.to_owned(),
        roles: roles.map(str::to_owned).collect(),
        ..Identity::default()
    };
    let context = Context {
        client: Arc::new(Client::named("gatelet-console", "")),
        caller: Arc::new(identity),
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

fn lately(calls: &[Arc<NotedCall>], now: u64) -> Markup {
    let mut callers: BTreeMap<(&str, &str), (u64, u64, u64)> = BTreeMap::new();
    for call in calls {
        let one = callers.entry((&call.caller, &call.client)).or_insert((0, 0, call.at));
        one.0 += 1;
        one.1 += u64::from(call.is_error);
    }
    html! {
        section.panel.scroll {
            h2 { "Called lately" }
            @if callers.is_empty() { p.soft { "Nobody since calls are noted." } }
            @else { table {
                thead { tr { th { "Caller" } th { "Client" } th.right { "Calls" } th.right { "Errors" } th { "Last" } } }
                tbody { @for ((caller, client), (n_calls, n_errors, last)) in &callers { tr {
                    td { @if caller.is_empty() { "anonymous" } @else { (caller) } }
                    td { (client) }
                    td.right { (when::number(*n_calls)) }
                    td.right { (when::number(*n_errors)) }
                    td.soft { (when::distance(now, *last)) }
                } } }
            } }
        }
    }
}

fn table_of(keys: &[KeyRow]) -> Markup {
    html! {
        section.panel.scroll {
            h2 { "Keys" }
            @if keys.is_empty() { p.soft { "There are none; " code { "gatelet key create NAME" } " makes one." } }
            @else { table {
                thead { tr { th { "Name" } th { "Roles" } th { "Scopes" } th { "Groups" } th { "State" } } }
                tbody { @for key in keys { tr {
                    td { strong { (key.name) } }
                    td { (key.roles.join(", ")) }
                    td { (key.scopes.join(", ")) }
                    td { (key.groups.join(", ")) }
                    td { @if key.is_good { (badge("good", "good")) } @else { (badge("bad", "revoked or expired")) } }
                } } }
            } }
        }
    }
}
