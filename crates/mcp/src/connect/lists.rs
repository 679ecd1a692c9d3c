//! Requests the lists of a server, page by page.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::value::RawValue;
use tool::{Failure, Finding, Json, Kind, Listing, Object, Prompt, Reply, Resource, RpcError};
use tool::{Lifetime, Lifetimes, Severity, Template, Tool};

use super::connection::Connection;
use super::headers;
use super::options::ListLimits;
use crate::aside::{LONG, aside};
use crate::revision::{code, method};

/// How many findings of one list are kept; the rest are counted.
const FINDINGS: usize = 100;

/// Why a list could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListError {
    #[error("{0}")]
    Failed(Failure),
    #[error("{} ({})", .0.message, .0.code)]
    Refused(RpcError),
}

/// The items of one list, whole and in order.
#[derive(Default)]
pub(super) struct Items {
    items: Vec<Json>,
    findings: Vec<Finding>,
    lifetime: Option<Lifetime>,
}

/// Reads one list to its end.
pub(super) async fn read(connection: &Connection, kind: Kind) -> Result<Items, ListError> {
    let mut list = Items::default();
    if connection.session.server.capabilities.member(capability(kind)).is_none() {
        return Ok(list);
    }
    let mut seen = HashSet::new();
    let mut cursor: Option<Json> = None;
    let mut n_bytes = 0;
    for _ in 0..connection.lists.pages {
        let page = match ask(connection, kind, cursor.take()).await {
            // Templates came later than resources; not every server has them.
            Err(ListError::Refused(error)) if error.code == code::METHOD_NOT_FOUND => {
                return Ok(list);
            }
            page => page?,
        };
        let limits = connection.lists;
        n_bytes += page.as_str().len();
        if limits.bytes < n_bytes {
            list.note(Severity::Warning, kind, "it is longer than is read");
            return Ok(list);
        }
        let next;
        (list, next) = aside(page.as_str().len(), move || {
            // What is listed stays; the message that it came in need not.
            let page = if LONG < page.as_str().len() { page.copied_out() } else { page };
            list.add(&page, kind, limits);
            (list, page.member("nextCursor").filter(|next| !ends(next)))
        })
        .await;
        let Some(next) = next.filter(|_| list.items.len() < limits.items) else {
            return Ok(list);
        };
        if !seen.insert(next.clone()) {
            list.note(Severity::Warning, kind, "its pages go round in a circle");
            return Ok(list);
        }
        cursor = Some(next);
    }
    list.note(Severity::Warning, kind, "it has more pages than are read");
    Ok(list)
}

/// Returns whether a cursor leads nowhere. Some servers write the last one as an
/// empty text, which would lead back to the first page.
fn ends(cursor: &Json) -> bool {
    cursor.is_null() || cursor.string_value().is_some_and(|text| text.is_empty())
}

async fn ask(connection: &Connection, kind: Kind, cursor: Option<Json>) -> Result<Json, ListError> {
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

/// Puts a list in its place in the listing of a connection.
pub(super) async fn place(connection: &Arc<Connection>, kind: Kind, list: Items) {
    let n_bytes = list.items.iter().map(|item| item.as_str().len()).sum();
    let connection = Arc::clone(connection);
    aside(n_bytes, move || {
        let is_modern_http = connection.is_modern_http();
        connection.replace(|listing| put(listing, kind, list, is_modern_http));
    })
    .await;
}

fn put(listing: &mut Listing, kind: Kind, list: Items, is_modern_http: bool) {
    let Items { items, mut findings, lifetime } = list;
    *place_of(&mut listing.lifetimes, kind) = lifetime;
    listing.findings.retain(|finding| finding.subject != subject(kind));
    listing.failed_lists.retain(|unread| *unread != kind);
    let found = &mut findings;
    match kind {
        Kind::Tools => {
            listing.tools = keep(items, Tool::parse, found);
            if is_modern_http {
                listing.tools.retain(|tool| sendable(tool, found));
            }
            same_name(listing.tools.iter().map(|tool| &tool.name), found);
        }
        Kind::Resources => {
            listing.resources = keep(items, Resource::parse, found);
            same_name(listing.resources.iter().map(|resource| &resource.uri), found);
        }
        Kind::Templates => listing.templates = keep(items, Template::parse, found),
        Kind::Prompts => {
            listing.prompts = keep(items, Prompt::parse, found);
            same_name(listing.prompts.iter().map(|prompt| &prompt.name), found);
        }
    }
    bound(&mut findings);
    for finding in &mut findings {
        finding.message = format!("{}: {}", finding.subject, finding.message);
        finding.subject = subject(kind).to_owned();
    }
    listing.findings.extend(findings);
}

/// Notes that a list could not be read, and leaves what was there.
pub(super) fn unread(listing: &mut Listing, kind: Kind, why: &ListError) {
    listing.findings.retain(|finding| finding.subject != subject(kind));
    if !listing.failed_lists.contains(&kind) {
        listing.failed_lists.push(kind);
    }
    let message = format!("cannot be read: {why}");
    listing.findings.push(Finding::new(Severity::Error, "unread-list", subject(kind), message));
}

fn place_of(lifetimes: &mut Lifetimes, kind: Kind) -> &mut Option<Lifetime> {
    match kind {
        Kind::Tools => &mut lifetimes.tools,
        Kind::Resources => &mut lifetimes.resources,
        Kind::Templates => &mut lifetimes.templates,
        Kind::Prompts => &mut lifetimes.prompts,
    }
}

/// Returns how long a page may be kept, if it says so.
fn lifetime(page: &Json) -> Option<Lifetime> {
    let milliseconds = page.member_as("ttlMs")?;
    let scope: Option<String> = page.member_as("cacheScope");
    Some(Lifetime { milliseconds, is_public: scope.as_deref() == Some("public") })
}

impl Items {
    fn add(&mut self, page: &Json, kind: Kind, limits: ListLimits) {
        self.lifetime = match (self.lifetime, lifetime(page)) {
            (Some(one), Some(other)) => Some(one.shortest(other)),
            (one, other) => one.or(other),
        };
        let Some(list) = page.member(member(kind)) else {
            self.note(Severity::Error, kind, "a page without its list");
            return;
        };
        let Ok(items) = list.parse_as::<Vec<&RawValue>>() else {
            self.note(Severity::Error, kind, "a page whose list is no array");
            return;
        };
        let n_room = limits.items.saturating_sub(self.items.len());
        if n_room < items.len() {
            self.note(Severity::Warning, kind, "it has more items than are kept");
        }
        let share = |item| list.subvalue(item);
        self.items.extend(items.into_iter().take(n_room).map(share));
    }

    fn note(&mut self, severity: Severity, kind: Kind, message: &str) {
        self.findings.push(Finding::new(severity, "odd-list", subject(kind), message));
    }
}

fn keep<T>(
    items: Vec<Json>,
    read: impl Fn(Json) -> Result<T, Finding>,
    findings: &mut Vec<Finding>,
) -> Vec<T> {
    items.into_iter().filter_map(|item| read(item).map_err(|f| findings.push(f)).ok()).collect()
}

/// Both stay listed: which one a call reaches is the server's affair.
fn same_name<'a>(names: impl Iterator<Item = &'a String>, findings: &mut Vec<Finding>) {
    let mut seen = HashSet::new();
    for name in names.filter(|name| !seen.insert(name.as_str())) {
        let message = "is listed more than once";
        findings.push(Finding::new(Severity::Warning, "duplicate-name", name.as_str(), message));
    }
}

/// The protocol forbids to use a tool whose header annotations are wrong.
fn sendable(tool: &Tool, findings: &mut Vec<Finding>) -> bool {
    match headers::annotations(&tool.input_schema) {
        Ok(_) => true,
        Err(reason) => {
            let message = format!("left out: {reason}");
            findings.push(Finding::new(Severity::Error, "header-annotation", &tool.name, message));
            false
        }
    }
}

fn bound(findings: &mut Vec<Finding>) {
    let n_over = findings.len().saturating_sub(FINDINGS);
    if n_over != 0 {
        findings.truncate(FINDINGS);
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

fn member(kind: Kind) -> &'static str {
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
