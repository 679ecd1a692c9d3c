//! The page of findings: what was dropped, renamed or cut in the listings of upstreams,
//! or looks wrong there.

use maud::html;
use tool::Severity;

use crate::backend::Backend;
use crate::layout::{Page, Section, badge, empty};

/// Renders all findings of the current listings, the most severe first.
pub(crate) fn list(backend: &Backend) -> Page {
    let mut findings = backend.gateway.roster().default_pool().snapshot().report();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let content = html! {
        h1 { "Findings" }
        p.lead { "What gatelet dropped, renamed or cut on the way from the servers to the model, and what looks wrong." }
        div id="findings" data-live {
            @if findings.is_empty() { (empty("Nothing to report", "Every listing was taken as it is.")) }
            @else {
                div.panel.scroll { table {
                    thead { tr { th { "Weight" } th { "About" } th { "Finding" } th { "Code" } } }
                    tbody {
                        @for finding in findings.iter().take(MAX_FINDINGS) {
                            tr {
                                td { (severity_badge(finding.severity)) }
                                td { code { (finding.subject) } }
                                td { (finding.message) }
                                td.soft.small { (finding.code) }
                            }
                        }
                    }
                } }
                @if MAX_FINDINGS < findings.len() { p.soft { "and " (findings.len() - MAX_FINDINGS) " more: `gatelet upstreams --report`" } }
            }
        }
    };
    let section = Some(Section::Findings);
    Page { title: "Findings".to_owned(), section, topics: "upstreams", content }
}

/// How many findings a page shows.
const MAX_FINDINGS: usize = 500;

fn severity_badge(severity: Severity) -> maud::Markup {
    match severity {
        Severity::Error => badge("bad", "error"),
        Severity::Warning => badge("warn", "warning"),
        Severity::Info => badge("info", "info"),
    }
}
