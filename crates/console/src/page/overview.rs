//! The start page: calls, errors, latency and tokens over the last hour, and the health
//! of upstreams.

use maud::{Markup, html};
use roster::{Phase, Status};
use telemetry::figures::{Minute, Overview, UpstreamFigures};

use super::upstreams;
use crate::backend::Backend;
use crate::layout::{Page, Section, empty};
use crate::plot::{Series, abbreviate, lines};
use crate::readable;
use crate::request::encode;

/// Renders the start page.
pub(crate) async fn page(backend: &Backend) -> Page {
    let overview = backend.control.overview().await;
    let statuses = upstreams::statuses(backend);
    let waiting = backend.gateway.approvals().list().await.unwrap_or_default();
    let n_waiting = waiting.iter().filter(|request| request.is_waiting()).count();
    let content = html! {
        h1 { "Overview" }
        p.lead {
            "The last hour"
            @if overview.now.saturating_sub(overview.since) < 3_600_000 {
                ", counted from " (readable::relative_time(overview.now, overview.since)) " on"
            }
            "."
        }
        div id="tiles" data-live { (tiles(&overview, &statuses, n_waiting)) }
        div.columns id="plots" data-live {
            section.panel { h2 { "Calls per minute" } (calls(&overview)) }
            section.panel { h2 { "Latency" } (latency(&overview)) }
            section.panel { h2 { "Tokens" } (tokens(&overview)) }
            section.panel { h2 { "Tokens saved" } (saved_tokens(&overview)) }
            section.panel { h2 { "Tools that are called most" } (tools(&overview)) }
        }
        div id="health" data-live { (health(&overview, &statuses)) }
    };
    let section = Some(Section::Overview);
    Page {
        title: "Overview".to_owned(),
        section,
        topics: "calls upstreams approvals tick",
        content,
    }
}

fn tiles(overview: &Overview, statuses: &[Status], n_waiting: usize) -> Markup {
    let hour = &overview.hour;
    let n_up = statuses.iter().filter(|status| !matches!(status.phase, Phase::Down { .. })).count();
    let share = if hour.calls == 0 { 0.0 } else { 100.0 * hour.errors as f64 / hour.calls as f64 };
    html! {
        dl.tiles {
            (tile("Calls", &readable::number(hour.calls), &format!("{} searches", readable::number(hour.searches))))
            (tile("Errors", &readable::number(hour.errors), &format!("{share:.1} % of calls")))
            (tile("Latency", &hour.p50_ms.map_or("–".to_owned(), readable::millis),
                &hour.p95_ms.map_or("median".to_owned(), |p95| format!("median; 95 % within {}", readable::millis(p95)))))
            @if let Some(definitions) = overview.definitions {
                (tile("Definitions saved", &abbreviate(definitions.saved() as f64),
                    &format!("tokens a session: {} instead of {}", readable::number(definitions.exposed), readable::number(definitions.direct))))
            }
            (tile("Saved by the gate", &abbreviate(hour.tokens_saved() as f64), "tokens of answers"))
            (tile("Upstreams", &format!("{n_up} / {}", statuses.len()), "ready"))
            (tile("Approvals", &n_waiting.to_string(), "waiting"))
        }
        @if overview.lost != 0 {
            p.notice { (readable::number(overview.lost)) " calls came too fast to be counted." }
        }
    }
}

/// Returns the minutes that a plot shows: those since counting began, but at least ten.
fn shown_minutes(overview: &Overview) -> &[Minute] {
    let counted = overview.now.saturating_sub(overview.since) / 60_000 + 2;
    let n_minutes = usize::try_from(counted).unwrap_or(usize::MAX).max(10);
    &overview.minutes[overview.minutes.len().saturating_sub(n_minutes)..]
}

fn tile(name: &str, value: &str, note: &str) -> Markup {
    html! { div.tile { dt { (name) } dd { (value) p.note { (note) } } } }
}

fn calls(overview: &Overview) -> Markup {
    let per_minute = |value: fn(&telemetry::figures::Total) -> u64| {
        shown_minutes(overview).iter().map(|minute| Some(value(&minute.total) as f64)).collect()
    };
    let series = [
        Series { name: "calls", class: "a", values: per_minute(|total| total.calls) },
        Series { name: "errors", class: "b", values: per_minute(|total| total.errors) },
    ];
    lines("Calls per minute", "", &series)
}

fn latency(overview: &Overview) -> Markup {
    let minutes = shown_minutes(overview).iter();
    let series = [
        Series {
            name: "median",
            class: "a",
            values: minutes.clone().map(|minute| minute.total.p50_ms).collect(),
        },
        Series {
            name: "95 %",
            class: "c",
            values: minutes.map(|minute| minute.total.p95_ms).collect(),
        },
    ];
    lines("Latency in milliseconds", " ms", &series)
}

fn tokens(overview: &Overview) -> Markup {
    let per_minute = |value: fn(&telemetry::figures::Total) -> u64| {
        shown_minutes(overview).iter().map(|minute| Some(value(&minute.total) as f64)).collect()
    };
    let series = [
        Series {
            name: "answered by servers",
            class: "a",
            values: per_minute(|total| total.tokens_raw),
        },
        Series {
            name: "sent to models",
            class: "c",
            values: per_minute(|total| total.tokens_sent),
        },
    ];
    lines("Tokens per minute", "", &series)
}

/// Renders what models did not have to read. A session reads the definitions once, so those
/// are saved in the minute in which it is first heard of.
fn saved_tokens(overview: &Overview) -> Markup {
    let by_session = overview.definitions.map_or(0, |definitions| definitions.saved());
    let minutes = || shown_minutes(overview).iter().map(|minute| &minute.total);
    let of_definitions = minutes().map(|total| Some((total.sessions * by_session) as f64));
    let by_gate = minutes().map(|total| Some(total.tokens_saved() as f64));
    let series = [
        Series { name: "of definitions", class: "a", values: of_definitions.collect() },
        Series { name: "by the gate", class: "c", values: by_gate.collect() },
    ];
    html! {
        (lines("Tokens saved per minute", "", &series))
        p.hint {
            "Against all definitions in every session: " (readable::number(overview.hour.sessions)) " sessions came, and "
            (readable::number(by_session)) " tokens were saved in each."
        }
    }
}

fn tools(overview: &Overview) -> Markup {
    html! {
        @if overview.tools.is_empty() { p.soft { "Nothing was called yet." } }
        @else {
            div.scroll { table {
                thead { tr { th { "Tool" } th.right { "Calls" } th.right { "Errors" } } }
                tbody { @for tool in overview.tools.iter().take(8) { tr {
                    td { code { (id_without_hash(&tool.id)) } }
                    td.right { (readable::number(tool.calls)) }
                    td.right { (readable::number(tool.errors)) }
                } } }
            } }
        }
    }
}

/// Returns a tool id without its hash.
fn id_without_hash(id: &str) -> &str {
    id.rsplit_once('#').map_or(id, |(bare, _)| bare)
}

fn health(overview: &Overview, statuses: &[Status]) -> Markup {
    if statuses.is_empty() {
        return empty(
            "No servers yet",
            "`gatelet add NAME` adds one; the gate takes it up at once.",
        );
    }
    let figures = |label: &str| overview.upstreams.iter().find(|one| one.label == label);
    let mut order: Vec<&Status> = statuses.iter().collect();
    order.sort_by_key(|status| {
        let is_down = matches!(status.phase, Phase::Down { .. });
        (!is_down, std::cmp::Reverse(figures(&status.label).map_or(0, |one| one.calls)))
    });
    html! {
        section.panel.scroll {
            h2 { "Upstreams by health" }
            table {
                thead { tr { th { "Upstream" } th { "State" } th.right { "Calls" } th.right { "Errors" } th.right { "Median" } th.right { "95 %" } th { "The last hour" } } }
                tbody { @for status in order.iter().take(MAX_UPSTREAMS) { tr {
                    td { a href={ "/console/upstreams/" (encode(&status.label)) } { (status.label) } }
                    td { (upstreams::state_badge(status)) }
                    @match figures(&status.label) {
                        Some(one) => {
                            td.right { (readable::number(one.calls)) }
                            td.right { (readable::number(one.errors)) }
                            td.right { (one.p50_ms.map_or("–".to_owned(), readable::millis)) }
                            td.right { (one.p95_ms.map_or("–".to_owned(), readable::millis)) }
                            td { (sparkline(one)) }
                        }
                        None => { td.right { "0" } td.right { "0" } td.right { "–" } td.right { "–" } td {} }
                    }
                } } }
            }
            @if MAX_UPSTREAMS < statuses.len() { p.soft { a href="/console/upstreams" { "All " (statuses.len()) " upstreams" } } }
        }
    }
}

/// How many upstreams the start page shows.
const MAX_UPSTREAMS: usize = 30;

/// Renders the calls per minute as small bars.
fn sparkline(one: &UpstreamFigures) -> Markup {
    let highest = one.calls_by_minute.iter().copied().max().unwrap_or(0).max(1) as f64;
    html! {
        svg.plot width="180" height="20" viewBox="0 0 180 20" aria-hidden="true" {
            @for (at, calls) in one.calls_by_minute.iter().enumerate() {
                @if *calls != 0 {
                    @let height = (18.0 * *calls as f64 / highest).max(1.0);
                    rect.bar x=(3 * at) y=(format!("{:.1}", 20.0 - height)) width="2" height=(format!("{height:.1}")) {}
                }
            }
        }
    }
}
