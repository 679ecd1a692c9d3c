//! The page of callers: API keys, recent callers, and a view of what an identity sees.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use maud::{Markup, html};
use sha2::{Digest, Sha256};
use tool::hex;

use crate::backend::{AuthedRequest, Backend};
use crate::calls::LoggedCall;
use crate::control::KeyRow;
use crate::layout::{Page, Section, badge};
use crate::page::look_as::{self, display_name};
use crate::readable;
use crate::request::encode;

/// Renders the page; the query may name an identity to look as.
pub(crate) async fn page(backend: &Backend, authed: &AuthedRequest<'_>) -> Page {
    let query = &authed.request.query;
    let identity = look_as::identity(query);
    let wish = query.get("q");
    let looks = query.has("subject") || !wish.is_empty();
    let seen =
        if looks { Some(look_as::help(backend, authed, &identity, wish).await) } else { None };
    let (keys, calls) = (backend.control.keys(), backend.calls.recent());
    let now = backend.clock.unix_millis();
    let content = html! {
        h1 { "Callers" }
        p.lead { "Who may call, who called lately, and what each of them sees." }
        section.panel {
            h2 { "Look as" }
            p.hint { "What `help` tells an identity, by the rules in force." }
            form.filter method="get" action="/console/callers" {
                (look_as::fields(query))
                div.wide { label for="q" { "Looking for" } input type="search" id="q" name="q" value=(wish); }
                div { button.primary { "Look" } }
            }
            @if let Some(seen) = &seen {
                h2 { "What " (display_name(&identity.subject)) " is told" }
                pre tabindex="0" { (seen) }
            }
        }
        div id="lately" data-live {
            (recent_callers(&calls, now))
            (recent_sessions(&calls, now))
        }
        (key_table(&keys))
    };
    Page { title: "Callers".to_owned(), section: Some(Section::Callers), topics: "calls", content }
}

/// Renders a link that shows what an identity sees.
fn look_as_link(subject: &str, roles: &str, scopes: &str, groups: &str) -> Markup {
    let query: Vec<String> =
        [("subject", subject), ("roles", roles), ("scopes", scopes), ("groups", groups)]
            .iter()
            .map(|(name, value)| format!("{name}={}", encode(value)))
            .collect();
    html! {
        a href={ "/console/callers?" (query.join("&")) } aria-label={ "Look as " (display_name(subject)) } { "Look as" }
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
                    td.right { (look_as_link(caller, "", "", "")) }
                } } }
            } }
        }
    }
}

/// The calls of one session.
struct SessionActivity<'a> {
    last_call: &'a LoggedCall,
    n_calls: u64,
    n_errors: u64,
    /// Milliseconds since 1970.
    first: u64,
}

/// How many sessions are listed.
const MAX_SESSIONS: usize = 100;

/// Renders the sessions that called lately, the last one first. Whoever knows the id of a
/// session could speak in it, so only a digest is shown.
fn recent_sessions(calls: &[Arc<LoggedCall>], now: u64) -> Markup {
    let mut sessions: Vec<SessionActivity<'_>> = Vec::new();
    let mut places: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    // The latest calls come first.
    for call in calls {
        let place =
            *places.entry((&call.session, &call.caller, &call.client)).or_insert_with(|| {
                let first = call.at;
                sessions.push(SessionActivity { last_call: call, n_calls: 0, n_errors: 0, first });
                sessions.len() - 1
            });
        let session = &mut sessions[place];
        session.n_calls += 1;
        session.n_errors += u64::from(call.is_error);
        session.first = session.first.min(call.at);
    }
    let digest = |session: &str| hex::encode(&Sha256::digest(session.as_bytes()))[..8].to_owned();
    html! {
        @if !sessions.is_empty() {
            section.panel.scroll {
                h2 { "Sessions that called lately" }
                table {
                    thead { tr { th { "Session" } th { "Caller" } th { "Client" } th { "Surface" } th.right { "Calls" } th.right { "Errors" } th { "First" } th { "Last" } } }
                    tbody { @for one in sessions.iter().take(MAX_SESSIONS) { tr {
                        td { @if one.last_call.session.is_empty() { span.soft { "on a pipe" } } @else { code { (digest(&one.last_call.session)) } } }
                        td { (display_name(&one.last_call.caller)) }
                        td { (one.last_call.client) }
                        td { (one.last_call.surface) }
                        td.right { (readable::number(one.n_calls)) }
                        td.right { (readable::number(one.n_errors)) }
                        td.nowrap.soft { (readable::relative_time(now, one.first)) }
                        td.nowrap.soft { (readable::relative_time(now, one.last_call.at)) }
                    } } }
                }
                @if MAX_SESSIONS < sessions.len() { p.soft { "and " (sessions.len() - MAX_SESSIONS) " before them" } }
            }
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
                    td.right { (look_as_link(&format!("key:{}", key.name), &key.roles.join(","), &key.scopes.join(","), &key.groups.join(","))) }
                } } }
            } }
        }
    }
}
