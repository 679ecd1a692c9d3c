//! The pages of artifacts: stored answers that were too long, shown in parts.

use std::sync::Arc;

use artifacts::view::{Body, Budget, Selector, View, view};
use artifacts::{Artifact, Owner};
use maud::{Markup, html};
use serde_json::{Value, json};
use tool::context::CONNECTION_PREFIX;
use tool::{Context, Identity, Json};

use crate::backend::{AuthedRequest, Backend, PageError};
use crate::calls::LoggedCall;
use crate::layout::{Page, Section, empty};
use crate::readable;
use crate::request::encode;

/// Renders the list of artifacts of the logged calls, or the artifact whose handle the
/// query has.
pub(crate) async fn list(backend: &Backend, authed: &AuthedRequest<'_>) -> Result<Page, PageError> {
    let handle = authed.request.query.get("handle").trim();
    if !handle.is_empty() {
        return one(backend, authed, handle).await;
    }
    let calls = backend.calls.recent();
    let stored: Vec<_> =
        calls.iter().filter_map(|call| Some((call, call.artifact.as_ref()?))).take(200).collect();
    let now = backend.clock.unix_millis();
    let content = html! {
        h1 { "Artifacts" }
        p.lead { "Answers that were longer than the gate lets through: stored whole, for who made the call. Those of \
                  the calls that were noted are listed here; any other can be opened by its handle." }
        form.filter method="get" action="/console/artifacts" {
            div { label for="handle" { "Handle" } input type="text" id="handle" name="handle" required; }
            div { label for="caller" { "Whose" } input type="text" id="caller" name="caller" placeholder="key:ann, or nobody known"; }
            div { button.primary { "Open" } }
        }
        div id="artifacts" data-live {
            @if stored.is_empty() { (empty("Nothing is stored", "Long answers appear here by themselves from now on.")) }
            @else {
                div.panel.scroll { table {
                    thead { tr { th { "Handle" } th { "Tool" } th { "Caller" } th.right { "Characters" } th { "When" } } }
                    tbody { @for (call, artifact) in &stored { tr {
                        td { a href={ "/console/artifacts/" (encode(&artifact.handle)) } { code { (artifact.handle) } } }
                        td { code { (call.upstream) "/" (call.tool) } }
                        td { (caller_name(call)) }
                        td.right { (readable::number(artifact.chars as u64)) }
                        td.nowrap.soft { (readable::relative_time(now, call.at)) }
                    } } }
                } }
            }
        }
    };
    let (title, section) = ("Artifacts".to_owned(), Some(Section::Artifacts));
    Ok(Page { title, section, topics: "calls", content })
}

/// Finds an artifact by its handle. A store gives it only to its owner: who is known by the
/// call that was noted, is named in the query, or has a key, or only a connection is known of
/// them.
async fn find(
    backend: &Backend,
    authed: &AuthedRequest<'_>,
    handle: &str,
) -> Result<Arc<Artifact>, PageError> {
    let calls = backend.calls.recent();
    let mut logged = calls.iter().filter_map(|call| call.artifact.as_ref());
    let logged = logged.find(|artifact| artifact.handle == handle);
    let keys = backend.control.keys().into_iter().map(|key| format!("key:{}", key.name));
    let named = authed.request.query.get("caller").trim().to_owned();
    let subjects = std::iter::once(named).chain(keys).filter(|subject| !subject.is_empty());
    let identified = subjects.map(|subject| owner(&subject, ""));
    let unknown = ["", CONNECTION_PREFIX].map(|session| owner("", session));
    let owners = logged.map(|logged| logged.owner.clone()).into_iter();
    for owner in owners.chain(identified).chain(unknown) {
        let found = backend.gateway.artifacts().get(&owner, handle).await;
        if let Some(found) = found.map_err(|away| PageError::Invalid(away.to_string()))? {
            return Ok(found);
        }
    }
    Err(PageError::NotFound)
}

/// The owner of what an identity, or an anonymous caller with this session, gets.
fn owner(subject: &str, session: &str) -> Owner {
    let caller = Identity { subject: subject.to_owned(), ..Identity::default() };
    let context =
        Context { caller: Arc::new(caller), session: session.into(), ..Context::anonymous() };
    Owner::from_context(&context)
}

/// Renders a part of one artifact.
pub(crate) async fn one(
    backend: &Backend,
    authed: &AuthedRequest<'_>,
    handle: &str,
) -> Result<Page, PageError> {
    let artifact = find(backend, authed, handle).await?;
    let query = &authed.request.query;
    let title = format!("{}/{}", artifact.upstream, artifact.tool);
    let (by, value) = (query.get("by"), query.get("value"));
    let piece = match selector(by, value) {
        Ok(selector) => select_part(&artifact, selector).await,
        Err(why) => Err(why),
    };
    let content = html! {
        h1 { (title) }
        p.lead { (readable::number(artifact.chars as u64)) " characters, stored as " code { (handle) } }
        (selector_form(handle, query.get("caller"), by, value))
        section.panel {
            @match &piece {
                Ok(view) => {
                    p.soft { (view.note) }
                    pre tabindex="0" { (body_text(view)) }
                }
                Err(why) => { p.notice role="alert" { (why) } }
            }
        }
    };
    Ok(Page { title, section: Some(Section::Artifacts), topics: "", content })
}

fn selector_form(handle: &str, caller: &str, by: &str, value: &str) -> Markup {
    let kinds = [
        ("head", "characters from the beginning"),
        ("tail", "characters at the end"),
        ("lines", "lines, such as 10-40"),
        ("grep", "lines that match"),
        ("jq", "a jq filter"),
    ];
    html! {
        form.filter method="get" action={ "/console/artifacts/" (encode(handle)) } {
            @if !caller.is_empty() { input type="hidden" name="caller" value=(caller); }
            div {
                label for="by" { "Show" }
                select id="by" name="by" { @for (kind, word) in kinds { option value=(kind) selected[kind == by] { (word) } } }
            }
            div.wide { label for="value" { "Which" } input type="text" id="value" name="value" value=(value); }
            div { button.primary { "Show" } }
        }
    }
}

/// Builds a selector from the fields of the form: `by` is its kind, `value` its parameter.
fn selector(by: &str, value: &str) -> Result<Selector, String> {
    let number = |usual: i64| value.trim().parse::<i64>().unwrap_or(usual);
    let wanted = match by {
        "tail" => json!({"type": "tail", "chars": number(4000)}),
        "lines" => {
            let (first, last) = value.split_once('-').unwrap_or((value, ""));
            let first: i64 = first.trim().parse().unwrap_or(1);
            let last: i64 = last.trim().parse().unwrap_or(first + 40);
            json!({"type": "lines", "start": first - 1, "end": last.max(first)})
        }
        "grep" => json!({"type": "grep", "pattern": value}),
        "jq" => json!({"type": "jq", "filter": value}),
        _ => json!({"type": "head", "chars": number(4000)}),
    };
    Selector::parse(&Json::from(wanted)).map_err(|error| error.to_string())
}

async fn select_part(artifact: &Artifact, selector: Selector) -> Result<View, String> {
    let text = artifact.text();
    let viewed = offload::run(move |stop| {
        let is_json = serde_json::from_str::<Value>(&text).is_ok();
        let media_type = if is_json { "application/json" } else { "text/plain" };
        view(
            text.as_bytes(),
            media_type,
            &selector,
            &Budget { first_line: 1, ..Budget::default() },
            stop,
        )
    });
    match viewed.await {
        Ok(Ok(view)) => Ok(view),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn body_text(view: &View) -> String {
    match &view.body {
        Body::Text(text) => text.clone(),
        Body::Image { media_type, .. } | Body::Audio { media_type, .. } => {
            format!("({media_type})")
        }
    }
}

fn caller_name(call: &LoggedCall) -> &str {
    if call.caller.is_empty() { "anonymous" } else { &call.caller }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_look_is_a_selector() {
        for (by, value) in [
            ("", ""),
            ("head", "100"),
            ("tail", "x"),
            ("lines", "10-40"),
            ("lines", ""),
            ("grep", "a.*b"),
            ("jq", ".a"),
        ] {
            assert!(selector(by, value).is_ok(), "{by} {value}");
        }
    }
}
