//! Fetches the lists of a server (tools, resources, templates, prompts), page by page.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::value::RawValue;
use tool::{Failure, Finding, Json, Kind, Listing, Object, Prompt, Reply, Resource, RpcError};
use tool::{Lifetime, Lifetimes, Severity, Template, Tool};

use super::connection::Connection;
use super::headers;
use super::options::ListLimits;
use crate::off_thread::{LONG_MESSAGE, off_thread};
use crate::revision::{code, method};

/// The maximum number of findings per list; the rest are only counted.
const MAX_FINDINGS: usize = 100;

/// Why a list could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListError {
    #[error("{0}")]
    Failed(Failure),
    #[error("{} ({})", .0.message, .0.code)]
    Refused(RpcError),
}

/// The unparsed items of one list, in order.
#[derive(Default)]
pub(super) struct ListItems {
    items: Vec<Json>,
    findings: Vec<Finding>,
    lifetime: Option<Lifetime>,
}

/// Fetches all pages of one list. Empty if the server does not have it.
pub(super) async fn fetch(connection: &Connection, kind: Kind) -> Result<ListItems, ListError> {
    let mut list = ListItems::default();
    if connection.session.server.capabilities.member(capability(kind)).is_none() {
        return Ok(list);
    }
    let mut seen = HashSet::new();
    let mut cursor: Option<Json> = None;
    let mut n_bytes = 0;
    for _ in 0..connection.list_limits.pages {
        let page = match fetch_page(connection, kind, cursor.take()).await {
            // Templates came later than resources; not every server has them.
            Err(ListError::Refused(error)) if error.code == code::METHOD_NOT_FOUND => {
                return Ok(list);
            }
            page => page?,
        };
        let limits = connection.list_limits;
        n_bytes += page.as_str().len();
        if limits.bytes < n_bytes {
            list.note_finding(Severity::Warning, kind, "it is longer than is read");
            return Ok(list);
        }
        let next;
        (list, next) = off_thread(page.as_str().len(), move || {
            // Copy the items out, so that a long message is not kept alive.
            let page = if LONG_MESSAGE < page.as_str().len() { page.copied_out() } else { page };
            list.add_page(&page, kind, limits);
            (list, page.member("nextCursor").filter(|next| !is_last_cursor(next)))
        })
        .await;
        let Some(next) = next.filter(|_| list.items.len() < limits.items) else {
            return Ok(list);
        };
        if !seen.insert(next.clone()) {
            list.note_finding(Severity::Warning, kind, "its pages go round in a circle");
            return Ok(list);
        }
        cursor = Some(next);
    }
    list.note_finding(Severity::Warning, kind, "it has more pages than are read");
    Ok(list)
}

/// Returns whether a cursor marks the last page: null, or the empty text of some servers,
/// which would lead back to the first page.
fn is_last_cursor(cursor: &Json) -> bool {
    cursor.is_null() || cursor.string_value().is_some_and(|text| text.is_empty())
}

async fn fetch_page(
    connection: &Connection,
    kind: Kind,
    cursor: Option<Json>,
) -> Result<Json, ListError> {
    let mut params = Object::new();
    if let Some(cursor) = cursor {
        params.push("cursor", cursor);
    }
    match connection.request_internal(list_method(kind), params).await {
        Ok(Reply::Result(page)) => Ok(page),
        Ok(Reply::Error(error)) => Err(ListError::Refused(error)),
        Err(failure) => Err(ListError::Failed(failure)),
    }
}

/// Parses a fetched list and stores it in the listing of the connection.
pub(super) async fn store(connection: &Arc<Connection>, kind: Kind, list: ListItems) {
    let n_bytes = list.items.iter().map(|item| item.as_str().len()).sum();
    let connection = Arc::clone(connection);
    off_thread(n_bytes, move || {
        let is_modern_http = connection.is_modern_http();
        connection.update_listing(|listing| store_in(listing, kind, list, is_modern_http));
    })
    .await;
}

fn store_in(listing: &mut Listing, kind: Kind, list: ListItems, is_modern_http: bool) {
    let ListItems { items, mut findings, lifetime } = list;
    *lifetime_slot(&mut listing.lifetimes, kind) = lifetime;
    listing.findings.retain(|finding| finding.subject != subject(kind));
    listing.failed_lists.retain(|failed| *failed != kind);
    let found = &mut findings;
    match kind {
        Kind::Tools => {
            listing.tools = parse_items(items, Tool::parse, found);
            if is_modern_http {
                listing.tools.retain(|tool| has_valid_annotations(tool, found));
            }
            report_duplicates(listing.tools.iter().map(|tool| &tool.name), found);
        }
        Kind::Resources => {
            listing.resources = parse_items(items, Resource::parse, found);
            report_duplicates(listing.resources.iter().map(|resource| &resource.uri), found);
        }
        Kind::Templates => listing.templates = parse_items(items, Template::parse, found),
        Kind::Prompts => {
            listing.prompts = parse_items(items, Prompt::parse, found);
            report_duplicates(listing.prompts.iter().map(|prompt| &prompt.name), found);
        }
    }
    truncate_findings(&mut findings);
    for finding in &mut findings {
        finding.message = format!("{}: {}", finding.subject, finding.message);
        finding.subject = subject(kind).to_owned();
    }
    listing.findings.extend(findings);
}

/// Records that a list could not be fetched; its old items stay.
pub(super) fn mark_failed(listing: &mut Listing, kind: Kind, why: &ListError) {
    listing.findings.retain(|finding| finding.subject != subject(kind));
    if !listing.failed_lists.contains(&kind) {
        listing.failed_lists.push(kind);
    }
    let message = format!("cannot be read: {why}");
    listing.findings.push(Finding::new(Severity::Error, "unread-list", subject(kind), message));
}

fn lifetime_slot(lifetimes: &mut Lifetimes, kind: Kind) -> &mut Option<Lifetime> {
    match kind {
        Kind::Tools => &mut lifetimes.tools,
        Kind::Resources => &mut lifetimes.resources,
        Kind::Templates => &mut lifetimes.templates,
        Kind::Prompts => &mut lifetimes.prompts,
    }
}

/// Returns how long a page may be cached, if it says so.
fn lifetime(page: &Json) -> Option<Lifetime> {
    let milliseconds = page.member_as("ttlMs")?;
    let scope: Option<String> = page.member_as("cacheScope");
    Some(Lifetime { milliseconds, is_public: scope.as_deref() == Some("public") })
}

impl ListItems {
    fn add_page(&mut self, page: &Json, kind: Kind, limits: ListLimits) {
        self.lifetime = match (self.lifetime, lifetime(page)) {
            (Some(one), Some(other)) => Some(one.shortest(other)),
            (one, other) => one.or(other),
        };
        let Some(list) = page.member(result_member(kind)) else {
            self.note_finding(Severity::Error, kind, "a page without its list");
            return;
        };
        let Ok(items) = list.parse_as::<Vec<&RawValue>>() else {
            self.note_finding(Severity::Error, kind, "a page whose list is no array");
            return;
        };
        let n_room = limits.items.saturating_sub(self.items.len());
        if n_room < items.len() {
            self.note_finding(Severity::Warning, kind, "it has more items than are kept");
        }
        let share = |item| list.subvalue(item);
        self.items.extend(items.into_iter().take(n_room).map(share));
    }

    fn note_finding(&mut self, severity: Severity, kind: Kind, message: &str) {
        self.findings.push(Finding::new(severity, "odd-list", subject(kind), message));
    }
}

fn parse_items<T>(
    items: Vec<Json>,
    parse: impl Fn(Json) -> Result<T, Finding>,
    findings: &mut Vec<Finding>,
) -> Vec<T> {
    items.into_iter().filter_map(|item| parse(item).map_err(|f| findings.push(f)).ok()).collect()
}

/// Reports names that are listed twice. Both stay: the server decides which one a call
/// reaches.
fn report_duplicates<'a>(names: impl Iterator<Item = &'a String>, findings: &mut Vec<Finding>) {
    let mut seen = HashSet::new();
    for name in names.filter(|name| !seen.insert(name.as_str())) {
        let message = "is listed more than once";
        findings.push(Finding::new(Severity::Warning, "duplicate-name", name.as_str(), message));
    }
}

/// Returns whether the header annotations of a tool are valid; otherwise reports it. The
/// protocol forbids to use such a tool.
fn has_valid_annotations(tool: &Tool, findings: &mut Vec<Finding>) -> bool {
    match headers::annotations(&tool.input_schema) {
        Ok(_) => true,
        Err(reason) => {
            let message = format!("left out: {reason}");
            findings.push(Finding::new(Severity::Error, "header-annotation", &tool.name, message));
            false
        }
    }
}

fn truncate_findings(findings: &mut Vec<Finding>) {
    let n_over = findings.len().saturating_sub(MAX_FINDINGS);
    if n_over != 0 {
        findings.truncate(MAX_FINDINGS);
        let message = format!("{n_over} more findings like these");
        findings.push(Finding::new(Severity::Warning, "more-findings", "list", message));
    }
}

pub(super) fn list_method(kind: Kind) -> &'static str {
    match kind {
        Kind::Tools => method::TOOLS_LIST,
        Kind::Resources => method::RESOURCES_LIST,
        Kind::Templates => method::TEMPLATES_LIST,
        Kind::Prompts => method::PROMPTS_LIST,
    }
}

fn result_member(kind: Kind) -> &'static str {
    match kind {
        Kind::Tools => "tools",
        Kind::Resources => "resources",
        Kind::Templates => "resourceTemplates",
        Kind::Prompts => "prompts",
    }
}

fn capability(kind: Kind) -> &'static str {
    match kind {
        Kind::Tools => "tools",
        Kind::Resources | Kind::Templates => "resources",
        Kind::Prompts => "prompts",
    }
}

fn subject(kind: Kind) -> &'static str {
    list_method(kind)
}
