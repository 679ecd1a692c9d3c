//! The pages of calls: the last calls with a filter, and one call with its stages.

use std::sync::Arc;

use maud::{Markup, html};
use serde_json::Value;

use crate::backend::{AuthedRequest, Backend, PageError};
use crate::calls::{LoggedCall, Payloads};
use crate::layout::{Page, Section, badge, empty};
use crate::plot::spans;
use crate::readable;
use crate::request::{Fields, encode};

/// How many calls a page shows.
const SHOWN: usize = 100;

/// Renders the last calls that match the filter.
pub(crate) fn list(backend: &Backend, authed: &AuthedRequest<'_>) -> Page {
    let filter = Filter::from_query(&authed.request.query);
    let all = backend.calls.recent();
    let calls: Vec<&Arc<LoggedCall>> =
        all.iter().filter(|call| filter.fits(call)).take(SHOWN).collect();
    let now = backend.clock.unix_millis();
    let mut upstreams: Vec<&str> = all.iter().map(|call| call.upstream.as_str()).collect();
    upstreams.sort_unstable();
    upstreams.dedup();
    let content = html! {
        h1 { "Calls" }
        p.lead { "The last calls, latest first. They are noted while somebody looks; what was said in them only \
                  where the operator wants it kept." }
        (filters(&filter, &upstreams))
        div id="calls" data-live {
            @if calls.is_empty() {
                @if all.is_empty() { (empty("No calls yet", "Calls appear here by themselves from now on.")) }
                @else { (empty("None of them fits", "Change the filter to see others.")) }
            } @else {
                div.panel.scroll { table {
                    caption { (calls.len()) " of " (all.len()) " noted calls" }
                    thead { tr { th { "When" } th { "Tool" } th { "Caller" } th { "Ended" } th.right { "Took" } th.right { "Answer" } } }
                    tbody { @for call in &calls { (row(call, now)) } }
                } }
            }
        }
    };
    Page { title: "Calls".to_owned(), section: Some(Section::Calls), topics: "calls", content }
}

/// Renders the page of one call.
pub(crate) fn one(backend: &Backend, number: &str) -> Result<Page, PageError> {
    let number: u64 = number.parse().map_err(|_| PageError::NotFound)?;
    let calls = backend.calls.recent();
    let call = calls.iter().find(|call| call.number == number).ok_or(PageError::NotFound)?;
    let now = backend.clock.unix_millis();
    let content = html! {
        h1 { (name(call)) }
        p.lead { (readable::relative_time(now, call.at)) ", " (readable::millis(millis(call))) }
        section.panel {
            dl.pairs {
                dt { "Ended" } dd { (ending(call)) @if let Some(code) = &call.code { " " code { (code) } } }
                dt { "Caller" } dd { (caller(call)) }
                dt { "Client" } dd { (call.client) " on " code { (call.surface) } }
                @if !call.session.is_empty() { dt { "Session" } dd { code { (call.session) } } }
                dt { "Attempts" } dd { (call.attempts) }
                dt { "Arguments" } dd {
                    @if call.argument_names.is_empty() { "none" }
                    @for (at, name) in call.argument_names.iter().enumerate() { @if at != 0 { ", " } code { (name) } }
                }
                dt { "Answer" } dd { (readable::number(call.n_bytes as u64)) " bytes" }
                @if let Some(artifact) = &call.artifact {
                    dt { "Stored" } dd { a href={ "/console/artifacts/" (encode(&artifact.handle)) } { code { (artifact.handle) } } }
                }
            }
        }
        (stages(call))
        (payloads(backend, call))
    };
    Ok(Page { title: name(call), section: Some(Section::Calls), topics: "", content })
}

/// The filter of the list; an empty field matches every call.
struct Filter<'a> {
    text: &'a str,
    upstream: &'a str,
    ending: &'a str,
}

impl<'a> Filter<'a> {
    fn from_query(query: &'a Fields) -> Filter<'a> {
        Filter {
            text: query.get("q"),
            upstream: query.get("upstream"),
            ending: query.get("ending"),
        }
    }

    fn fits(&self, call: &LoggedCall) -> bool {
        let has_text = |text: &str| text.to_lowercase().contains(&self.text.to_lowercase());
        let ends_so = match self.ending {
            "" => true,
            "error" => call.is_error,
            "fine" => !call.is_error,
            other => call.ending == other,
        };
        ends_so
            && (self.upstream.is_empty() || call.upstream == self.upstream)
            && (self.text.is_empty()
                || has_text(&call.tool)
                || has_text(&call.caller)
                || has_text(&call.client))
    }
}

fn filters(filter: &Filter<'_>, upstreams: &[&str]) -> Markup {
    let endings = [
        ("", "all"),
        ("error", "with an error"),
        ("fine", "without one"),
        ("gated", "gated"),
        ("refused", "refused"),
        ("failed", "failed"),
    ];
    html! {
        form.filter method="get" action="/console/calls" data-submit {
            div.wide {
                label for="q" { "Tool, caller or client" }
                input type="search" id="q" name="q" value=(filter.text);
            }
            div {
                label for="upstream" { "Upstream" }
                select id="upstream" name="upstream" {
                    option value="" { "all" }
                    @for label in upstreams { option value=(label) selected[*label == filter.upstream] { (label) } }
                }
            }
            div {
                label for="ending" { "Ended" }
                select id="ending" name="ending" {
                    @for (value, word) in endings { option value=(value) selected[value == filter.ending] { (word) } }
                }
            }
            div { button { "Filter" } }
        }
    }
}

fn row(call: &LoggedCall, now: u64) -> Markup {
    html! {
        tr {
            td.nowrap.soft { (readable::relative_time(now, call.at)) }
            td { a href={ "/console/calls/" (call.number) } { code { (name(call)) } } }
            td { (caller(call)) span.soft.small { " " (call.client) } }
            td { (ending(call)) }
            td.right.nowrap { (readable::millis(millis(call))) }
            td.right.nowrap { (readable::number(call.n_bytes as u64)) " B" }
        }
    }
}

fn stages(call: &LoggedCall) -> Markup {
    let total = millis(call);
    let begins = call.stages.iter().map(|entry| entry.at.as_secs_f64() * 1000.0);
    let ends = begins.clone().skip(1).chain([total]);
    let rows: Vec<(&str, f64, f64)> = call
        .stages
        .iter()
        .zip(begins.zip(ends))
        .map(|(entry, (begin, end))| (entry.stage.as_str(), begin, end.max(begin)))
        .collect();
    html! {
        @if !rows.is_empty() {
            section.panel {
                h2 { "Stages" }
                (spans(total, &rows))
                div.scroll { table {
                    caption { "The same figures; the last stage is where the call ended" }
                    thead { tr { th { "Stage" } th.right { "Began after" } th.right { "Took" } } }
                    tbody { @for (name, begin, end) in &rows { tr {
                        td { (name) } td.right { (readable::millis(*begin)) } td.right { (readable::millis(end - begin)) }
                    } } }
                } }
            }
        }
    }
}

fn payloads(backend: &Backend, call: &LoggedCall) -> Markup {
    html! {
        section.panel {
            h2 { "What was said" }
            @match backend.calls.payloads() {
                Payloads::Dropped => {
                    p.soft { "It is not kept. " code { "payloads = true" } " under " code { "[console]" } " keeps it, in memory only." }
                }
                Payloads::Kept => {
                    h2 { "Arguments" }
                    pre tabindex="0" { (call.arguments.as_ref().map_or("none, or too long to be kept".to_owned(), |json| pretty(json.as_str()))) }
                    h2 { "Answer" }
                    pre tabindex="0" { (call.answer.as_ref().map_or("none, or too long to be kept".to_owned(), |json| pretty(json.as_str()))) }
                }
            }
        }
    }
}

fn name(call: &LoggedCall) -> String {
    match call.tool.is_empty() {
        true => "(nothing that is there)".to_owned(),
        false => format!("{}/{}", call.upstream, call.tool),
    }
}

fn caller(call: &LoggedCall) -> &str {
    if call.caller.is_empty() { "anonymous" } else { &call.caller }
}

fn ending(call: &LoggedCall) -> Markup {
    let class = match (call.is_error, call.ending) {
        (true, _) => "bad",
        (false, "answered") => "good",
        (false, _) => "info",
    };
    badge(class, &call.ending.replace('_', " "))
}

fn millis(call: &LoggedCall) -> f64 {
    call.took.as_secs_f64() * 1000.0
}

fn pretty(json: &str) -> String {
    let value = serde_json::from_str::<Value>(json).ok();
    value
        .and_then(|value| serde_json::to_string_pretty(&value).ok())
        .unwrap_or_else(|| json.to_owned())
}
