//! The pages of requests for approval, and the webhook by which a service decides about
//! them.

use http::{Response, StatusCode};
use maud::{Markup, html};
use policy::approval::{QueuedRequest, RequestState, Verdict};
use serde_json::{Value, json};
use tool::text::{escape_invisible, escape_invisible_line};

use crate::backend::{AuthedRequest, Backend, PageError};
use crate::layout::{Page, Section, badge, empty, hidden};
use crate::readable;
use crate::request::PageRequest;
use crate::response::{self, Content};

/// Renders all requests, those that are waiting first.
pub(crate) async fn list(backend: &Backend, authed: &AuthedRequest<'_>) -> Page {
    let content = match backend.gateway.approvals().list().await {
        Ok(requests) => {
            let (waiting, decided): (Vec<_>, Vec<_>) =
                requests.into_iter().partition(QueuedRequest::is_waiting);
            let now = backend.clock.unix_millis();
            html! {
                h1 { "Approvals" }
                p.lead {
                    "Calls that need somebody's approval wait here. A model hears a number and nothing that \
                     lets its call through."
                }
                div id="waiting" data-live {
                    @if waiting.is_empty() {
                        (empty("Nothing waits", "Calls that need approval appear here by themselves."))
                    }
                    @for request in &waiting { (card(request, authed, now)) }
                }
                div id="decided" data-live { (history(&decided, now)) }
            }
        }
        Err(error) => empty("The requests cannot be read", &error.to_string()),
    };
    Page {
        title: "Approvals".to_owned(),
        section: Some(Section::Approvals),
        topics: "approvals",
        content,
    }
}

/// Renders one request with all details.
pub(crate) async fn one(
    backend: &Backend,
    authed: &AuthedRequest<'_>,
    number: &str,
) -> Result<Page, PageError> {
    let request = find(backend, number).await?;
    let now = backend.clock.unix_millis();
    let rule = backend.control.remembered_rule(&request);
    let subject = &request.subject;
    let grant = format!("gatelet trust grant {}/{}", subject.upstream, subject.tool);
    let content = html! {
        h1 { "Request " (request.number) }
        p.lead { (escape_invisible_line(&subject.question)) }
        div id="request" data-live {
            div.panel {
                dl.pairs {
                    dt { "Call" } dd { code { (tool_path(&request)) } }
                    dt { "State" } dd { (state(&request.state)) }
                    dt { "Asked by" } dd { (caller_and_client(&request)) }
                    dt { "Asked" } dd { (readable::relative_time(now, request.asked_at)) }
                    dt { "Expires" } dd { (readable::relative_time(now, request.expires_at)) }
                }
                h2 { "Arguments" }
                pre tabindex="0" { (arguments(&request)) }
                @if let Some(bytes) = subject.arguments_cut_from {
                    p.hint { "Long values are shortened; all of them have " (readable::number(bytes as u64)) " bytes." }
                }
                (buttons(&request, authed))
            }
        }
        @if request.is_waiting() && !authed.session.made_call(&request) {
            div.panel {
                h2 { "Ask no more about calls like this" }
                @match &rule {
                    Ok(rule) => {
                        p { "This rule lets calls of this tool through whose arguments have the same shape. It counts \
                             only once it is in the configuration." }
                        pre tabindex="0" { (escape_invisible(rule)) }
                        form method="post" action={ "/console/approvals/" (request.number) } {
                            (hidden(&authed.session.form_token))
                            input type="hidden" name="verdict" value="remember";
                            button { "Add the rule and allow" }
                        }
                    }
                    Err(why) => { p { "This request cannot become a rule: " (why) "." } }
                }
                @if subject.ended_by_trust {
                    p.hint { "Or let every call of this tool through, as it is now: " code { (escape_invisible_line(&grant)) } }
                } @else {
                    p.hint { "A rule of the configuration asks; vouching for the tool does not end that." }
                }
            }
        }
    };
    let section = Some(Section::Approvals);
    Ok(Page { title: format!("Request {}", request.number), section, topics: "approvals", content })
}

/// Approves or denies a request, as its form says; returns the path to go to and a notice.
pub(crate) async fn decide(
    backend: &Backend,
    authed: &AuthedRequest<'_>,
    number: &str,
) -> Result<(String, String), PageError> {
    let request = find(backend, number).await?;
    let who = &authed.session.who;
    let verdict = match authed.request.form.get("verdict") {
        "allow" | "remember" => Verdict::Allow,
        "deny" => Verdict::Deny,
        _ => return Err(PageError::Invalid("Say whether to allow or to deny it.".to_owned())),
    };
    if verdict == Verdict::Allow && authed.session.made_call(&request) {
        let refused = Err("it is a call of the same identity".to_owned());
        backend.audit(who, "approvals.allow", &audit_subject(&request), &refused).await;
        return Ok((request_path(&request), format!("Nothing was decided: {OWN_CALL}")));
    }
    if authed.request.form.get("verdict") == "remember" {
        let added = backend.control.remember(&request).await;
        backend.audit(who, "approvals.remember", &audit_subject(&request), &added).await;
        if let Err(why) = added {
            return Ok((request_path(&request), format!("The rule was not added: {why}")));
        }
    }
    let by = format!("{who} in the console");
    let decided = backend.gateway.approvals().decide(request.number, verdict, &by).await;
    let outcome = decided.map(drop).map_err(|error| error.to_string());
    let action = match verdict {
        Verdict::Allow => "approvals.allow",
        Verdict::Deny => "approvals.deny",
    };
    backend.audit(who, action, &audit_subject(&request), &outcome).await;
    Ok(match (outcome, verdict) {
        (Ok(()), Verdict::Allow) => {
            ("/approvals".to_owned(), format!("Request {} may go through once.", request.number))
        }
        (Ok(()), Verdict::Deny) => {
            ("/approvals".to_owned(), format!("Request {} was denied.", request.number))
        }
        (Err(why), _) => ("/approvals".to_owned(), format!("Nothing was decided: {why}.")),
    })
}

/// Why operators cannot approve a call of their own identity.
const OWN_CALL: &str = "the identity that you logged in with made this call, and nobody agrees to \
                        their own. Somebody else decides, or you come in by `gatelet console`.";

/// Receives a decision from the team's service as a Standard Webhooks message:
/// `approval.decided` with a `number`, a `decision` and who made it.
pub(crate) async fn receive_decision(
    backend: &Backend,
    request: &PageRequest,
) -> Response<Content> {
    let header = |name: &str| request.header(name).unwrap_or_default();
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let signature = header("webhook-signature");
    let verified = backend.control.verify_message(id, timestamp, signature, &request.body).await;
    if let Err(why) = verified {
        backend.audit_unauthenticated("the webhook", "approvals.decide", id, &why).await;
        return response::json(StatusCode::UNAUTHORIZED, &json!({"error": why}));
    }
    let outcome = apply_decision(backend, &request.body).await;
    let audited = outcome.as_ref().map(drop).map_err(|(_, why)| why.clone());
    backend.audit("the webhook", "approvals.decide", id, &audited).await;
    match outcome {
        Ok(number) => response::json(StatusCode::OK, &json!({"decided": number})),
        Err((status, why)) => response::json(status, &json!({"error": why})),
    }
}

async fn apply_decision(backend: &Backend, body: &[u8]) -> Result<u64, (StatusCode, String)> {
    let bad = |why: &str| (StatusCode::BAD_REQUEST, why.to_owned());
    let message: Value = serde_json::from_slice(body).map_err(|_| bad("this is no JSON"))?;
    if message["type"] != "approval.decided" {
        return Err(bad("the type is not `approval.decided`"));
    }
    let data = &message["data"];
    let number = data["number"].as_u64().ok_or_else(|| bad("`number` is missing"))?;
    let verdict = match data["decision"].as_str() {
        Some("allow") => Verdict::Allow,
        Some("deny") => Verdict::Deny,
        Some(_) | None => return Err(bad("`decision` is `allow` or `deny`")),
    };
    let by = data["by"].as_str().map_or("the webhook".to_owned(), |by| format!("{by} by webhook"));
    let decided = backend.gateway.approvals().decide(number, verdict, &by).await;
    decided.map(|_| number).map_err(|error| (StatusCode::CONFLICT, error.to_string()))
}

async fn find(backend: &Backend, number: &str) -> Result<QueuedRequest, PageError> {
    let number: u64 = number.parse().map_err(|_| PageError::NotFound)?;
    let requests = backend.gateway.approvals().list().await;
    let requests = requests.map_err(|error| PageError::Invalid(error.to_string()))?;
    requests.into_iter().find(|request| request.number == number).ok_or(PageError::NotFound)
}

fn request_path(request: &QueuedRequest) -> String {
    format!("/approvals/{}", request.number)
}

fn audit_subject(request: &QueuedRequest) -> String {
    format!("request {}: {}", request.number, tool_path(request))
}

fn card(request: &QueuedRequest, authed: &AuthedRequest<'_>, now: u64) -> Markup {
    html! {
        article.panel.request aria-labelledby={ "request-" (request.number) } {
            div {
                h2 id={ "request-" (request.number) } {
                    a href={ "/console" (request_path(request)) } { (tool_path(request)) }
                    span.soft.small { "  #" (request.number) " · " (readable::relative_time(now, request.asked_at)) " · " (caller_and_client(request)) }
                }
                p { (escape_invisible_line(&request.subject.question)) }
            }
            (buttons(request, authed))
            pre.wide tabindex="0" { (arguments(request)) }
        }
    }
}

fn buttons(request: &QueuedRequest, authed: &AuthedRequest<'_>) -> Markup {
    let button = |verdict: &str, class: &str, word: &str| {
        html! {
            form.inline method="post" action={ "/console" (request_path(request)) } {
                (hidden(&authed.session.form_token))
                input type="hidden" name="verdict" value=(verdict);
                button class=(class) id={ (verdict) "-" (request.number) }
                    aria-label={ (word) " request " (request.number) } { (word) }
            }
        }
    };
    html! {
        div.actions {
            @match &request.state {
                RequestState::Waiting if authed.session.made_call(request) => {
                    (button("deny", "danger", "Deny"))
                    p.hint { "Only to deny: " (OWN_CALL) }
                }
                RequestState::Waiting => {
                    (button("allow", "primary", "Allow once"))
                    (button("deny", "danger", "Deny"))
                }
                RequestState::Allowed { .. } => { (button("deny", "danger", "Deny after all")) }
                RequestState::Denied { .. } if authed.session.made_call(request) => {}
                RequestState::Denied { .. } => { (button("allow", "", "Allow after all")) }
                RequestState::Used { .. } => {}
            }
        }
    }
}

fn history(decided: &[QueuedRequest], now: u64) -> Markup {
    html! {
        @if !decided.is_empty() {
            section.panel {
                h2 { "Decided" }
                div.scroll { table {
                    thead { tr { th { "Request" } th { "Call" } th { "Asked by" } th { "State" } th { "Expires" } } }
                    tbody {
                        @for request in decided.iter().rev() {
                            tr {
                                td { a href={ "/console" (request_path(request)) } { "#" (request.number) } }
                                td { code { (tool_path(request)) } }
                                td { (caller_and_client(request)) }
                                td { (state(&request.state)) }
                                td.nowrap.soft { (readable::relative_time(now, request.expires_at)) }
                            }
                        }
                    }
                } }
            }
        }
    }
}

fn state(state: &RequestState) -> Markup {
    let by = |by: &str| html! { span.soft.small { " by " (escape_invisible_line(by)) } };
    match state {
        RequestState::Waiting => badge("warn", "waiting"),
        RequestState::Allowed { by: who, .. } => {
            html! { (badge("good", "allowed, not used yet")) (by(who)) }
        }
        RequestState::Denied { by: who, .. } => html! { (badge("bad", "denied")) (by(who)) },
        RequestState::Used { by: who, .. } => {
            html! { (badge("info", "allowed and used")) (by(who)) }
        }
    }
}

fn tool_path(request: &QueuedRequest) -> String {
    let path = format!("{}/{}", request.subject.upstream, request.subject.tool);
    escape_invisible_line(&path).into_owned()
}

fn caller_and_client(request: &QueuedRequest) -> String {
    let subject = &request.subject;
    let caller = if subject.caller.is_empty() { "anonymous" } else { &subject.caller };
    escape_invisible_line(&format!("{caller} ({})", subject.client)).into_owned()
}

fn arguments(request: &QueuedRequest) -> String {
    let text = &request.subject.arguments;
    let shown = serde_json::from_str::<Value>(text).ok();
    let shown = shown.and_then(|value| serde_json::to_string_pretty(&value).ok());
    escape_invisible(shown.as_deref().unwrap_or(text)).into_owned()
}
