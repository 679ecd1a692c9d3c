//! The pages of upstreams: state, tools and log of each, and actions to restart it, log
//! in to it or switch it off.

use maud::{Markup, html};
use roster::{Phase, Status};
use tool::CredentialHealth;

use crate::backend::{AuthedRequest, Backend, PageError};
use crate::layout::{Page, Section, badge, empty, hidden};
use crate::readable;
use crate::request::encode;

/// Renders the list of upstreams.
pub(crate) async fn list(backend: &Backend, authed: &AuthedRequest<'_>) -> Page {
    let mut statuses = statuses(backend);
    let is_down = |status: &Status| matches!(status.phase, Phase::Down { .. });
    let n_down = statuses.iter().filter(|status| is_down(status)).count();
    // Those that need attention come first.
    statuses.sort_by_key(|status| !is_down(status) && !needs_login(status));
    let costs = backend.control.overview().await.definitions_by_upstream;
    let switched_off = backend.control.switched_off();
    let content = html! {
        h1 { "Upstreams" }
        p.lead { (statuses.len()) " servers behind this gate" @if n_down != 0 { ", " (n_down) " of them down" } "." }
        @if statuses.is_empty() {
            (empty("No servers yet", "`gatelet add NAME` adds one; the gate takes it up at once."))
        } @else {
            div.panel.scroll id="upstreams" data-live { table {
                thead { tr {
                    th { "Upstream" } th { "State" } th { "Server" } th.right { "Tools" } th.right { "Tokens" }
                    th.right { "Start" } th.right { "Calls" } th.right { "Mean" } th { span.skip { "Actions" } }
                } }
                tbody { @for status in &statuses { (row(status, costs.get(&status.label).copied(), authed)) } }
            } }
            p.soft.small { "Tokens: what the definitions of its tools would cost a model that reads them all." }
        }
        @if !switched_off.is_empty() {
            section.panel { h2 { "Switched off" } (switched_off_list(&switched_off, authed)) }
        }
    };
    let section = Some(Section::Upstreams);
    Page { title: "Upstreams".to_owned(), section, topics: "upstreams", content }
}

/// Renders the page of one upstream.
pub(crate) async fn one(
    backend: &Backend,
    authed: &AuthedRequest<'_>,
    label: &str,
) -> Result<Page, PageError> {
    let statuses = statuses(backend);
    let status = statuses.iter().find(|status| status.label == label).ok_or(PageError::NotFound)?;
    let cost = backend.control.overview().await.definitions_by_upstream.get(label).copied();
    let log = backend.control.log_of(label, 60);
    let lines: Vec<String> = log.iter().filter_map(|line| strip_label(line, label)).collect();
    let content = html! {
        h1 { (label) }
        @if !status.listing.server.name.is_empty() {
            p.lead { (status.listing.server.name) " " (status.listing.server.version) }
        }
        div id="upstream" data-live { (details(status, cost, authed)) }
        (tools(status))
        div.panel {
            h2 { "Last lines of the log about it" }
            div id="log" data-live {
                @if lines.is_empty() { p.soft { "It wrote nothing lately." } }
                @else { pre tabindex="0" { (lines.join("\n")) } }
            }
        }
    };
    let section = Some(Section::Upstreams);
    Ok(Page { title: label.to_owned(), section, topics: "upstreams", content })
}

/// Returns a line of the log without its label, if it is about this upstream. The text
/// that an upstream writes comes before the label, so it cannot forge one.
fn strip_label(line: &str, label: &str) -> Option<String> {
    const FIELD: &str = " upstream=";
    let (before, after) = line.rsplit_once(FIELD)?;
    let rest = after.strip_prefix(&format!("{label:?}"))?;
    Some(format!("{before}{rest}"))
}

/// Renders the state of an upstream and the buttons for it.
fn details(status: &Status, cost: Option<u64>, authed: &AuthedRequest<'_>) -> Markup {
    let (label, listing) = (&status.label, &status.listing);
    html! {
            div.panel {
                dl.pairs {
                    dt { "State" } dd { (state_badge(status)) }
                    @if let Phase::Down { reason, failures } = &status.phase {
                        dt { "Why" } dd { (reason) @if *failures != 0 { " (" (failures) " starts failed)" } }
                    }
                    @if let Some(health) = &status.credential {
                        dt { "Credentials" } dd { (health.as_str()) }
                    }
                    @if !listing.server.protocol.is_empty() {
                        dt { "Protocol" } dd { (listing.server.protocol) }
                    }
                    dt { "Last start" } dd { (start_time(status)) @if status.restarts != 0 { ", " (readable::number(status.restarts)) " restarts" } }
                    dt { "Offers" } dd {
                        (listing.tools.len()) " tools, " (listing.resources.len() + listing.templates.len()) " resources, "
                        (listing.prompts.len()) " prompts"
                    }
                    @if let Some(cost) = cost {
                        dt { "Definitions" } dd { (readable::number(cost)) " tokens, if a model read them all" }
                    }
                    dt { "Calls" } dd {
                        (readable::number(status.calls)) @if status.calls != 0 { ", " (mean_time(status)) " on average" }
                    }
                }
                div.actions {
                    @if needs_login(status) && authed.request.is_for_loopback() { (login_button(label, authed)) }
                    (restart_button(label, authed))
                    form.inline method="post" action={ "/console/upstreams/" (encode(label)) "/enabled" }
                        data-confirm={ "Switch " (label) " off? Its tools are gone until it is switched on again." } {
                        (hidden(&authed.session.form_token))
                        input type="hidden" name="enabled" value="false";
                        button.quiet.danger aria-label={ "Switch off " (label) } { "Switch off" }
                    }
                }
                @if needs_login(status) && !authed.request.is_for_loopback() {
                    p.hint { "A login leads back to the machine that gatelet runs on: log in there, with "
                        code { "gatelet login " (label) } "." }
                }
            }
        @if !listing.findings.is_empty() {
            div.panel {
                h2 { "Findings" }
                ul { @for finding in &listing.findings { li { (finding.to_string()) } } }
            }
        }
    }
}

fn tools(status: &Status) -> Markup {
    let listing = &status.listing;
    html! {
        div.panel {
            h2 { "Tools" }
            @if listing.tools.is_empty() { p.soft { "None are known." } }
            ul {
                @for tool in listing.tools.iter().take(MAX_TOOLS) {
                    li {
                        a href={ "/console/tools?q=" (encode(&tool.name)) } { code { (tool.name) } }
                        @if let Some(about) = &tool.description { span.soft.small { " " (catalog::summary::sentence(about, 100)) } }
                    }
                }
            }
            @if MAX_TOOLS < listing.tools.len() {
                p.soft { "and " (listing.tools.len() - MAX_TOOLS) " more; search them under Tools" }
            }
        }
    }
}

/// Renders the upstreams that are switched off, each with a button to switch it on.
fn switched_off_list(labels: &[String], authed: &AuthedRequest<'_>) -> Markup {
    html! {
        ul.rows { @for label in labels { li {
            strong { (label) }
            form.inline method="post" action={ "/console/upstreams/" (encode(label)) "/enabled" } {
                (hidden(&authed.session.form_token))
                input type="hidden" name="enabled" value="true";
                button.quiet aria-label={ "Switch on " (label) } { "Switch on" }
            }
        } } }
    }
}

/// How many tools are listed on the page of an upstream.
const MAX_TOOLS: usize = 200;

/// Restarts an upstream; returns the path to go to and a notice.
pub(crate) async fn restart(
    backend: &Backend,
    authed: &AuthedRequest<'_>,
    label: &str,
) -> Result<(String, String), PageError> {
    let done = backend.control.restart(label).await;
    backend.audit(&authed.session.who, "upstreams.restart", label, &done).await;
    let notice = match done {
        Ok(()) => format!("{label} is restarted."),
        Err(why) => format!("{label} was not restarted: {why}."),
    };
    Ok(("/upstreams".to_owned(), notice))
}

/// Begins a login, and renders the page that links to the upstream's login page.
pub(crate) async fn login(
    backend: &Backend,
    authed: &AuthedRequest<'_>,
    label: &str,
) -> Result<Page, PageError> {
    let who = &authed.session.who;
    let begun = match authed.request.is_for_loopback() {
        true => backend.control.begin_login(label, who).await,
        false => Err("a login leads back to the machine that gatelet runs on".to_owned()),
    };
    backend
        .audit(who, "upstreams.login", label, &begun.as_ref().map(drop).map_err(Clone::clone))
        .await;
    let back = format!("/console/upstreams/{}", encode(label));
    let content = html! {
        h1 { "Log in to " (label) }
        section.panel {
            @match &begun {
                Ok(address) => {
                    p { "Its server asks who you are, on a page of its own:" }
                    p { code { (address.split('?').next().unwrap_or_default()) } }
                    div.actions {
                        // The page behind it learns nothing of this one.
                        a.button.primary href=(address) target="_blank" rel="noopener noreferrer" { "Go on to its login page" }
                        a.button href=(back) { "Back to " (label) }
                    }
                    p.hint { "It leads back to this machine within ten minutes; the upstream is then started again." }
                }
                Err(why) => {
                    p.notice role="alert" { "It cannot be begun: " (why) }
                    div.actions { a.button href=(back) { "Back to " (label) } }
                }
            }
        }
    };
    let section = Some(Section::Upstreams);
    Ok(Page { title: format!("Log in to {label}"), section, topics: "", content })
}

/// Switches an upstream on or off in the configuration; returns the path to go to and a
/// notice.
pub(crate) async fn switch(
    backend: &Backend,
    authed: &AuthedRequest<'_>,
    label: &str,
) -> Result<(String, String), PageError> {
    let enabled = authed.request.form.get("enabled") == "true";
    let done = backend.control.set_enabled(label, enabled).await;
    let action = if enabled { "upstreams.enable" } else { "upstreams.disable" };
    backend.audit(&authed.session.who, action, label, &done).await;
    let notice = match (done, enabled) {
        (Ok(()), true) => format!("{label} is switched on."),
        (Ok(()), false) => {
            format!(
                "{label} is switched off. It stands below the others and can be switched on again."
            )
        }
        (Err(why), _) => format!("Nothing was changed: {why}"),
    };
    Ok(("/upstreams".to_owned(), notice))
}

/// Returns the status of every upstream.
pub(crate) fn statuses(backend: &Backend) -> Vec<Status> {
    let snapshot = backend.gateway.roster().default_pool().snapshot();
    snapshot.upstreams().iter().map(|upstream| upstream.status()).collect()
}

fn row(status: &Status, cost: Option<u64>, authed: &AuthedRequest<'_>) -> Markup {
    let listing = &status.listing;
    html! {
        tr {
            td { a href={ "/console/upstreams/" (encode(&status.label)) } { strong { (status.label) } } }
            td {
                (state_badge(status))
                @if needs_login(status) { " " (badge("warn", "needs a login")) }
                @if let Phase::Down { reason, .. } = &status.phase {
                    div.soft.small { (catalog::summary::sentence(reason, 120)) }
                }
            }
            td.soft { (listing.server.name) " " (listing.server.version) }
            td.right { (readable::number(listing.tools.len() as u64)) }
            td.right { (cost.map_or("–".to_owned(), readable::number)) }
            td.right { (start_time(status)) }
            td.right { (readable::number(status.calls)) }
            td.right { (mean_time(status)) }
            td.right {
                @if needs_login(status) && authed.request.is_for_loopback() { (login_button(&status.label, authed)) " " }
                (restart_button(&status.label, authed))
            }
        }
    }
}

fn restart_button(label: &str, authed: &AuthedRequest<'_>) -> Markup {
    html! {
        form.inline method="post" action={ "/console/upstreams/" (encode(label)) "/restart" } {
            (hidden(&authed.session.form_token))
            button.quiet aria-label={ "Restart " (label) } { "Restart" }
        }
    }
}

fn login_button(label: &str, authed: &AuthedRequest<'_>) -> Markup {
    html! {
        form.inline method="post" action={ "/console/upstreams/" (encode(label)) "/login" } {
            (hidden(&authed.session.form_token))
            button.quiet.primary aria-label={ "Log in to " (label) } { "Log in" }
        }
    }
}

/// Returns whether somebody has to log in, or to log in again.
fn needs_login(status: &Status) -> bool {
    let Some(health) = &status.credential else { return false };
    match health {
        CredentialHealth::NeedsHuman { .. } | CredentialHealth::Broken { .. } => true,
        CredentialHealth::Fine | CredentialHealth::Refreshing => false,
    }
}

/// Renders how long the last start took.
fn start_time(status: &Status) -> String {
    status.start_up.map_or("–".to_owned(), |took| readable::millis(took.as_secs_f64() * 1000.0))
}

fn mean_time(status: &Status) -> String {
    match status.calls {
        0 => "–".to_owned(),
        _ => readable::millis(status.mean.as_secs_f64() * 1000.0),
    }
}

pub(crate) fn state_badge(status: &Status) -> Markup {
    match &status.phase {
        Phase::Up if 3 <= status.unanswered => badge("warn", "silent"),
        Phase::Up => badge("good", "up"),
        Phase::Starting => badge("info", "starting"),
        // The next call starts it; `gatelet upstreams` says `ready`, too.
        Phase::Asleep => badge("", "ready"),
        Phase::Down { .. } => badge("bad", "down"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_belongs_to_the_upstream_that_wrote_it() {
        let line = r#"10:00 INFO ready upstream="files""#;
        assert_eq!(strip_label(line, "files").as_deref(), Some("10:00 INFO ready"));
        assert_eq!(strip_label(line, "file"), None);
        let forged = r#"10:00 INFO I am upstream="files" upstream="evil""#;
        assert_eq!(strip_label(forged, "files"), None);
        assert!(strip_label(forged, "evil").is_some());
        let more = r#"10:00 WARN it is gone upstream="files" reason="it said upstream=\"evil\"""#;
        assert_eq!(strip_label(more, "evil"), None);
    }
}
