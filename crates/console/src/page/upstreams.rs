//! The servers behind the gate: how each fares, and why.

use maud::{Markup, html};
use roster::{Phase, Status};

use crate::backend::{Asked, Backend, NoPage};
use crate::layout::{Page, Section, badge, empty, hidden};
use crate::request::encode;
use crate::when;

/// Every upstream.
pub(crate) fn list(backend: &Backend, asked: &Asked<'_>) -> Page {
    let statuses = statuses(backend);
    let n_down =
        statuses.iter().filter(|status| matches!(status.phase, Phase::Down { .. })).count();
    let content = html! {
        h1 { "Upstreams" }
        p.lead { (statuses.len()) " servers behind this gate" @if n_down != 0 { ", " (n_down) " of them down" } "." }
        @if statuses.is_empty() {
            (empty("No servers yet", "`gatelet add NAME` adds one; the gate takes it up at once."))
        } @else {
            div.panel.scroll id="upstreams" data-live { table {
                thead { tr {
                    th { "Upstream" } th { "State" } th { "Server" } th.right { "Tools" }
                    th.right { "Start" } th.right { "Calls" } th.right { "Mean" } th { span.skip { "Actions" } }
                } }
                tbody { @for status in &statuses { (row(status, asked)) } }
            } }
        }
    };
    let section = Some(Section::Upstreams);
    Page { title: "Upstreams".to_owned(), section, topics: "upstreams", content }
}

/// One upstream.
pub(crate) fn one(backend: &Backend, asked: &Asked<'_>, label: &str) -> Result<Page, NoPage> {
    let statuses = statuses(backend);
    let status = statuses.iter().find(|status| status.label == label).ok_or(NoPage::NotFound)?;
    let listing = &status.listing;
    let lines: Vec<String> =
        backend.operator.log(2000).into_iter().filter(|line| line.contains(label)).collect();
    let first = lines.len().saturating_sub(60);
    let content = html! {
        h1 { (label) }
        p.lead { (listing.server.name) " " (listing.server.version) }
        div id="upstream" data-live {
            div.panel {
                dl.pairs {
                    dt { "State" } dd { (state(status)) }
                    @if let Phase::Down { reason, failures } = &status.phase {
                        dt { "Why" } dd { (reason) @if *failures != 0 { " (" (failures) " starts failed)" } }
                    }
                    @if let Some(health) = &status.credential {
                        dt { "Credentials" } dd { (health.as_str()) }
                    }
                    dt { "Protocol" } dd { (listing.server.protocol) }
                    dt { "Last start" } dd { (start_up(status)) @if status.restarts != 0 { ", " (when::number(status.restarts)) " restarts" } }
                    dt { "Offers" } dd {
                        (listing.tools.len()) " tools, " (listing.resources.len() + listing.templates.len()) " resources, "
                        (listing.prompts.len()) " prompts"
                    }
                    dt { "Calls" } dd { (when::number(status.calls)) ", " (mean(status)) " on average" }
                }
                div.actions {
                    (restart_button(label, asked))
                    form.inline method="post" action={ "/console/upstreams/" (encode(label)) "/enabled" }
                        data-confirm={ "Switch " (label) " off? Its tools are gone until it is switched on again." } {
                        (hidden(&asked.session.form_token))
                        input type="hidden" name="enabled" value="false";
                        button.quiet.danger aria-label={ "Switch off " (label) } { "Switch off" }
                    }
                }
                @if status.credential.as_ref().is_some_and(|health| health.as_str() != "fine") {
                    p.hint { "Log in with " code { "gatelet login " (label) } "." }
                }
            }
        }
        @if !listing.findings.is_empty() {
            div.panel {
                h2 { "Findings" }
                ul { @for finding in &listing.findings { li { (finding.to_string()) } } }
            }
        }
        div.panel {
            h2 { "Tools" }
            @if listing.tools.is_empty() { p.soft { "None are known." } }
            ul {
                @for tool in listing.tools.iter().take(MOST_TOOLS) {
                    li {
                        a href={ "/console/tools?q=" (encode(&tool.name)) } { code { (tool.name) } }
                        @if let Some(about) = &tool.description { span.soft.small { " " (catalog::summary::sentence(about, 100)) } }
                    }
                }
            }
            @if MOST_TOOLS < listing.tools.len() {
                p.soft { "and " (listing.tools.len() - MOST_TOOLS) " more; search them under Tools" }
            }
        }
        div.panel {
            h2 { "Last lines of the log about it" }
            @if lines.is_empty() { p.soft { "It wrote nothing lately." } }
            @else { pre tabindex="0" { (lines[first..].join("\n")) } }
        }
    };
    let section = Some(Section::Upstreams);
    Ok(Page { title: label.to_owned(), section, topics: "upstreams", content })
}

/// How many tools are listed on the page of an upstream.
const MOST_TOOLS: usize = 200;

/// Stops one and starts it again.
pub(crate) async fn restart(
    backend: &Backend,
    asked: &Asked<'_>,
    label: &str,
) -> Result<(String, String), NoPage> {
    let done = backend.operator.restart(label).await;
    backend.audit(&asked.session.who, "upstreams.restart", label, &done).await;
    let notice = match done {
        Ok(()) => format!("{label} is restarted."),
        Err(why) => format!("{label} was not restarted: {why}."),
    };
    Ok(("/upstreams".to_owned(), notice))
}

/// Switches one on or off in the configuration.
pub(crate) async fn switch(
    backend: &Backend,
    asked: &Asked<'_>,
    label: &str,
) -> Result<(String, String), NoPage> {
    let enabled = asked.request.form.get("enabled") == "true";
    let done = backend.operator.set_enabled(label, enabled).await;
    let action = if enabled { "upstreams.enable" } else { "upstreams.disable" };
    backend.audit(&asked.session.who, action, label, &done).await;
    let notice = match (done, enabled) {
        (Ok(()), true) => format!("{label} is switched on."),
        (Ok(()), false) => {
            format!("{label} is switched off; `gatelet enable {label}` switches it on again.")
        }
        (Err(why), _) => format!("Nothing was changed: {why}"),
    };
    Ok(("/upstreams".to_owned(), notice))
}

pub(crate) fn statuses(backend: &Backend) -> Vec<Status> {
    let snapshot = backend.gateway.roster().default_pool().snapshot();
    snapshot.upstreams().iter().map(|upstream| upstream.status()).collect()
}

fn row(status: &Status, asked: &Asked<'_>) -> Markup {
    let listing = &status.listing;
    html! {
        tr {
            td { a href={ "/console/upstreams/" (encode(&status.label)) } { strong { (status.label) } } }
            td {
                (state(status))
                @if let Phase::Down { reason, .. } = &status.phase {
                    div.soft.small { (catalog::summary::sentence(reason, 120)) }
                }
            }
            td.soft { (listing.server.name) " " (listing.server.version) }
            td.right { (when::number(listing.tools.len() as u64)) }
            td.right { (start_up(status)) }
            td.right { (when::number(status.calls)) }
            td.right { (mean(status)) }
            td.right { (restart_button(&status.label, asked)) }
        }
    }
}

fn restart_button(label: &str, asked: &Asked<'_>) -> Markup {
    html! {
        form.inline method="post" action={ "/console/upstreams/" (encode(label)) "/restart" } {
            (hidden(&asked.session.form_token))
            button.quiet aria-label={ "Restart " (label) } { "Restart" }
        }
    }
}

/// How long it took to start.
fn start_up(status: &Status) -> String {
    status.start_up.map_or("–".to_owned(), |took| when::millis(took.as_secs_f64() * 1000.0))
}

fn mean(status: &Status) -> String {
    match status.calls {
        0 => "–".to_owned(),
        _ => when::millis(status.mean.as_secs_f64() * 1000.0),
    }
}

pub(crate) fn state(status: &Status) -> Markup {
    match &status.phase {
        Phase::Up if 3 <= status.unanswered => badge("warn", "silent"),
        Phase::Up => badge("good", "up"),
        Phase::Starting => badge("info", "starting"),
        Phase::Asleep => badge("", "asleep"),
        Phase::Down { .. } => badge("bad", "down"),
    }
}
