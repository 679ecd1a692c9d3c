//! The pages of tools: what a search tells an identity and how the tools rank, the definition of a tool, and a form to
//! call it.

use std::sync::Arc;

use catalog::index::{FEATURE_NAMES, Verdict};
use catalog::{Catalog, Slot};
use gateway::Surface;
use maud::{Markup, html};
use roster::Snapshot;
use serde_json::{Value, json};
use tool::{Ask, Call, Client, Context, Reply};

use crate::backend::{AuthedRequest, Backend, PageError};
use crate::form;
use crate::layout::{Page, Section, badge, empty, hidden};
use crate::page::look_as::{self, display_name};
use crate::readable;
use crate::request::{Fields, encode};
use crate::session::Session;

/// How many tools a search shows.
const MAX_FOUND: usize = 20;
/// How many tools a page of the list shows.
const PAGE_SIZE: usize = 100;

/// Renders the result of a search, or the list of all tools.
pub(crate) async fn search(backend: &Backend, authed: &AuthedRequest<'_>) -> Page {
    let fields = &authed.request.query;
    let identity = look_as::identity(fields);
    let told = match fields.get("q") {
        "" => String::new(),
        query => look_as::help(backend, authed, &identity, query).await,
    };
    let snapshot = snapshot(backend);
    let catalog = &snapshot.catalog;
    let (query, from) = (authed.request.query.get("q"), authed.request.query.get("from"));
    let from: usize = from.parse().unwrap_or(0);
    let content = html! {
        h1 { "Tools" }
        p.lead { (readable::number(catalog.functions().len() as u64)) " tools." }
        form.filter method="get" action="/console/tools" role="search" {
            div.wide {
                label for="q" { "What should it do?" }
                input type="search" id="q" name="q" value=(query) placeholder="read a file, create an issue, …";
            }
            (look_as::fields(fields))
            div { button.primary { "Search" } }
        }
        @if query.is_empty() { (listed_tools(catalog, from)) }
        @else {
            (search_results(catalog, query))
            section.panel id="told" {
                h2 { "What " (display_name(&identity.subject)) " is told" }
                p.hint {
                    "The answer of " code { "help" } ", word for word: only what this identity sees, preferring what was \
                     called after similar searches, tools that several servers have in one entry."
                }
                pre tabindex="0" { (told) }
            }
        }
    };
    let section = Some(Section::Tools);
    Page { title: "Tools".to_owned(), section, topics: "", content }
}

fn listed_tools(catalog: &Catalog, from: usize) -> Markup {
    let all = catalog.functions().len();
    let slots: Vec<Slot> = catalog.slots().skip(from).take(PAGE_SIZE).collect();
    html! {
        @if slots.is_empty() { (empty("No tools", "No server has listed any yet.")) }
        @else {
            div.panel.scroll { table {
                caption { (from + 1) " to " (from + slots.len()) " of " (readable::number(all as u64)) }
                thead { tr { th { "Tool" } th { "What it does" } th { "Says of itself" } } }
                tbody { @for slot in &slots { tr {
                    td { (link(catalog, *slot)) }
                    td { (catalog.summary(*slot, 140)) }
                    td { (hints(catalog, *slot)) }
                } } }
            } }
            nav.actions aria-label="More tools" {
                @if from != 0 { a.button href={ "/console/tools?from=" (from.saturating_sub(PAGE_SIZE)) } { "Before" } }
                @if from + PAGE_SIZE < all { a.button href={ "/console/tools?from=" (from + PAGE_SIZE) } { "Next" } }
            }
        }
    }
}

fn search_results(catalog: &Catalog, query: &str) -> Markup {
    let result = catalog.search(query, MAX_FOUND, &|_| true);
    let reasons = catalog.explain(query);
    let verdict = match result.verdict {
        Verdict::Relevant => "These fit.",
        Verdict::Ambiguous => "Several servers fit equally well; a model is told so.",
        Verdict::Nothing => "Nothing fits. A model is told so, and where it could look instead.",
    };
    let best = result.hits.first().map_or(1.0, |hit| hit.score.max(0.001));
    html! {
        h2 { "How all tools rank" }
        p { (verdict) " Scores are of the words alone, over all tools: "
            a href="#told" { "what an identity is told" } " may differ." }
        @if !result.hits.is_empty() {
            div.panel.scroll { table {
                caption { "Best first; scores compare within one search" }
                thead { tr { th.right { "Score" } th { "Tool" } th { "What it does" } th { "Why it ranks here" } } }
                tbody { @for hit in &result.hits { tr {
                    td.right { (format!("{:.2}", hit.score)) (bar(hit.score / best)) }
                    td { (link(catalog, hit.slot)) }
                    td { (catalog.summary(hit.slot, 140)) }
                    td.small { (score_reasons(&reasons, hit.slot)) }
                } } }
            } }
        }
        @if !result.near.is_empty() {
            div.panel { h2 { "What came nearest" } ul { @for slot in &result.near { li { (link(catalog, *slot)) } } } }
        }
    }
}

fn bar(share: f32) -> Markup {
    let width = format!("{:.0}", 60.0 * share.clamp(0.0, 1.0));
    html! { svg.plot width="60" height="4" viewBox="0 0 60 4" aria-hidden="true" { rect.bar width=(width) height="4" rx="2" {} } }
}

/// Renders the three features that add most to the score of a tool.
fn score_reasons(reasons: &[(Slot, Vec<f32>)], slot: Slot) -> String {
    let Some((_, parts)) = reasons.iter().find(|(known, _)| *known == slot) else {
        return String::new();
    };
    let mut named: Vec<(&str, f32)> =
        FEATURE_NAMES.into_iter().zip(parts.iter().copied()).collect();
    named.retain(|(_, part)| 0.05 <= part.abs());
    named.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let shown = named.iter().take(3).map(|(name, part)| format!("{name} {part:+.2}"));
    shown.collect::<Vec<_>>().join(", ")
}

/// Renders one tool, with a form to call it.
pub(crate) fn one(
    backend: &Backend,
    authed: &AuthedRequest<'_>,
    id: &str,
) -> Result<Page, PageError> {
    let snapshot = snapshot(backend);
    let slot = find(&snapshot.catalog, id)?;
    Ok(page(backend, &snapshot, slot, authed, &Fields::default(), None))
}

/// Vouches for a tool as it is now; returns the path to go to and a notice.
pub(crate) async fn accept(
    backend: &Backend,
    authed: &AuthedRequest<'_>,
    id: &str,
) -> Result<(String, String), PageError> {
    let snapshot = snapshot(backend);
    let catalog = &snapshot.catalog;
    let slot = find(catalog, id)?;
    let name = ledger_name(catalog, slot);
    let done = backend.control.accept(&name, catalog.tool(slot)).await;
    backend.audit(&authed.session.who, "tools.accept", &name, &done).await;
    let notice = match done {
        Ok(()) => format!("{name} is accepted as it is now."),
        Err(why) => format!("{name} was not accepted: {why}"),
    };
    Ok((format!("/tools/{}", encode(id)), notice))
}

/// Returns `upstream/tool`, the name of a tool in the trust ledger.
fn ledger_name(catalog: &Catalog, slot: Slot) -> String {
    format!("{}/{}", catalog.source(slot).label, catalog.tool(slot).name)
}

/// Renders what changed since somebody vouched for the tool, and a button to accept it.
fn drift(backend: &Backend, snapshot: &Snapshot, slot: Slot, authed: &AuthedRequest<'_>) -> Markup {
    let name = ledger_name(&snapshot.catalog, slot);
    let findings = snapshot.report();
    let changed = findings.iter().find(|one| one.code == "drift" && one.subject == name);
    // The finding is as old as the listing; somebody may have vouched for the tool since.
    let is_accepted = || backend.control.vouches(&name, snapshot.catalog.tool(slot));
    let changed = changed.filter(|_| !is_accepted());
    html! {
        @if let Some(changed) = changed {
            section.panel {
                h2 { "Changed since it was trusted " (badge("warn", "drift")) }
                p { (changed.message) }
                form method="post" action={ "/console/tools/" (encode(&function_path(&snapshot.catalog, slot))) "/accept" } {
                    (hidden(&authed.session.form_token))
                    button { "Accept it as it is now" }
                }
            }
        }
    }
}

/// Calls a tool with the arguments of its form, as who is logged in, and renders the
/// answer.
pub(crate) async fn call(
    backend: &Backend,
    authed: &AuthedRequest<'_>,
    id: &str,
) -> Result<Page, PageError> {
    let snapshot = snapshot(backend);
    let slot = find(&snapshot.catalog, id)?;
    let sent = &authed.request.form;
    let answer = match form::arguments(snapshot.catalog.contract(slot), sent) {
        Err(why) => CallOutcome { is_error: true, text: why },
        Ok(arguments) => {
            let path = function_path(&snapshot.catalog, slot);
            let reply = call_tool(backend, authed.session, &path, Value::Object(arguments)).await;
            let outcome =
                if reply.is_error { Err("it reports an error".to_owned()) } else { Ok(()) };
            backend.audit(&authed.session.who, "tools.call", &path, &outcome).await;
            reply
        }
    };
    Ok(page(backend, &snapshot, slot, authed, sent, Some(&answer)))
}

/// The answer to a call, as text.
struct CallOutcome {
    is_error: bool,
    text: String,
}

async fn call_tool(
    backend: &Backend,
    session: &Session,
    path: &str,
    arguments: Value,
) -> CallOutcome {
    let (namespace, function) = path.rsplit_once('.').unwrap_or(("", path));
    let call = json!({
        "namespace": namespace, "function": function, "kwargs": arguments,
        // Nobody could decide about it while this page is being loaded.
        policy::confirm::ARGUMENT: policy::confirm::DO_NOT_WAIT,
    });
    let context = Context {
        client: Arc::new(Client::named("gatelet-console", "")),
        caller: session.caller(),
        session: Arc::clone(&session.id),
        ..Context::anonymous()
    };
    let provider =
        backend.gateway.surface(Surface::Cash).provider_for(&context.client, &context.caller);
    match provider.ask(Ask::Call(Call::new("call", call.into())), &context).await {
        Ok(reply @ Reply::Result(_)) => {
            let result = reply.tool_result();
            let is_error = result.as_ref().is_none_or(|result| result.is_error);
            CallOutcome { is_error, text: result.map(|result| result.text()).unwrap_or_default() }
        }
        Ok(Reply::Error(error)) => CallOutcome { is_error: true, text: error.message },
        Err(failure) => CallOutcome { is_error: true, text: failure.to_string() },
    }
}

fn page(
    backend: &Backend,
    snapshot: &Snapshot,
    slot: Slot,
    authed: &AuthedRequest<'_>,
    sent: &Fields,
    answer: Option<&CallOutcome>,
) -> Page {
    let catalog = &snapshot.catalog;
    let tool = catalog.tool(slot);
    let path = &function_path(catalog, slot);
    let schema = pretty(tool.input_schema.as_str());
    let content = html! {
        h1 { (path) }
        p.lead { (catalog.summary(slot, 400)) }
        @if let Some(answer) = answer {
            section.panel aria-labelledby="answer" {
                h2 id="answer" { "Answer " @if answer.is_error { (badge("bad", "error")) } @else { (badge("good", "done")) } }
                pre tabindex="0" { (answer.text) }
            }
        }
        (drift(backend, snapshot, slot, authed))
        div.columns {
            section.panel {
                h2 { "Call it" }
                form method="post" action={ "/console/tools/" (encode(path)) "/call" } {
                    (hidden(&authed.session.form_token))
                    (form::fields(catalog.contract(slot), sent))
                    button.primary { "Call" }
                }
            }
            section.panel {
                h2 { "As models see it" }
                dl.pairs {
                    dt { "Signature" } dd { code { (catalog.shaped_signature(slot, 400)) } }
                    dt { "Upstream" } dd { (catalog.source(slot).label) }
                    dt { "Its own name" } dd { code { (tool.name) } }
                    dt { "Says of itself" } dd { (hints(catalog, slot)) }
                }
                h2 { "Description" }
                pre tabindex="0" { (tool.description.as_deref().unwrap_or("It has none.")) }
                h2 { "Schema of the arguments" }
                pre tabindex="0" { (schema) }
            }
        }
    };
    Page { title: path.clone(), section: Some(Section::Tools), topics: "", content }
}

fn snapshot(backend: &Backend) -> Arc<Snapshot> {
    backend.gateway.roster().default_pool().snapshot()
}

fn find(catalog: &Catalog, id: &str) -> Result<Slot, PageError> {
    let (namespace, function) = id.rsplit_once('.').unwrap_or(("", id));
    catalog.resolve(namespace, function).map_err(|_| PageError::NotFound)
}

/// Returns the namespace and the name of a function, joined by a dot.
fn function_path(catalog: &Catalog, slot: Slot) -> String {
    format!("{}.{}", catalog.path(slot), catalog.function(slot).name)
}

fn link(catalog: &Catalog, slot: Slot) -> Markup {
    let path = function_path(catalog, slot);
    html! { a href={ "/console/tools/" (encode(&path)) } { code { (path) } } }
}

fn hints(catalog: &Catalog, slot: Slot) -> Markup {
    let said = catalog.tool(slot).annotations;
    match (said.read_only, said.destructive) {
        (Some(true), _) => badge("good", "only reads"),
        (_, Some(true)) => badge("bad", "destroys"),
        (_, Some(false)) => badge("info", "adds"),
        (_, None) => badge("", "nothing"),
    }
}

fn pretty(json: &str) -> String {
    let value = serde_json::from_str::<Value>(json).ok();
    value
        .and_then(|value| serde_json::to_string_pretty(&value).ok())
        .unwrap_or_else(|| json.to_owned())
}
