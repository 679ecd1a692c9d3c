//! Routes the requests of the console: checks host and session, then calls the page or
//! the form action.

use std::sync::Arc;

use bytes::Bytes;
use gateway::Gateway;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use maud::html;
use tool::Identity;
use tool::clock::Clock;

use crate::backend::{AuthedRequest, Backend, PageError, RefusalLimiter};
use crate::calls::CallLog;
use crate::control::{ProgramControl, may_use_console};
use crate::layout::{self, Frame, Page};
use crate::request::PageRequest;
use crate::response::{self, Content, redirect};
use crate::session::{KeyLogin, Session, Sessions};
use crate::{assets, live, page};

/// How the console is reached.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Host names, beside those of this machine, that requests may be addressed to.
    pub hosts: Vec<String>,
}

/// What is known of the sender of a request before login.
pub struct Visitor<'a> {
    /// Whether the connection comes from this machine.
    pub is_local: bool,
    /// Returns the identity that belongs to an API key or a token.
    pub identify: &'a (dyn Fn(&str) -> Option<Arc<Identity>> + Send + Sync),
}

/// The console of one gatelet.
pub struct Console {
    backend: Backend,
    sessions: Sessions,
    streams: live::Streams,
    config: Config,
}

impl Console {
    pub fn new(
        gateway: Gateway,
        control: Arc<dyn ProgramControl>,
        calls: Arc<CallLog>,
        clock: Arc<dyn Clock>,
        config: Config,
    ) -> Console {
        let sessions = Sessions::new(Arc::clone(&clock));
        let streams = live::Streams::default();
        let refusals = RefusalLimiter::default();
        let backend = Backend { gateway, control, clock, calls, refusals };
        Console { backend, sessions, streams, config }
    }

    /// Creates a link that logs in once; `address` is the URL of the console.
    pub fn login_link(&self, address: &str) -> String {
        format!("{address}/login?code={}", self.sessions.create_link())
    }

    /// Answers one request.
    pub async fn respond(
        &self,
        request: Request<Bytes>,
        visitor: &Visitor<'_>,
    ) -> Response<Content> {
        let request = PageRequest::new(request);
        if !self.is_our_host(&request) {
            return error_page(StatusCode::FORBIDDEN, "Wrong host", WRONG_HOST);
        }
        // Session cookies must not travel unencrypted over a network.
        let stays_here = visitor.is_local && request.is_for_loopback();
        if !(self.config.tls || stays_here) {
            return error_page(StatusCode::FORBIDDEN, "HTTPS only", NEEDS_TLS);
        }
        if let ["assets", name] = path_parts(&request)[..] {
            return assets::find(name).unwrap_or_else(not_found);
        }
        if path_parts(&request) == ["login"] {
            return self.login(&request, visitor).await;
        }
        if path_parts(&request) == ["decisions"] && request.method == Method::POST {
            return page::approvals::receive_decision(&self.backend, &request).await;
        }
        let session_key = request.cookie(self.cookie_name()).unwrap_or_default();
        match self
            .sessions
            .find(session_key)
            .and_then(|session| self.with_present_identity(session_key, session, visitor))
        {
            Some(session) => {
                self.respond_to_operator(&AuthedRequest {
                    request: &request,
                    session: &session,
                    session_key,
                })
                .await
            }
            None if request.method == Method::GET && path_parts(&request) != ["events"] => {
                page::login::page(StatusCode::UNAUTHORIZED, &next(&request), None)
            }
            None => error_page(StatusCode::UNAUTHORIZED, "Logged out", "Log in again."),
        }
    }

    /// Returns a session with the identity that its key or token has by now, whose roles may
    /// have changed. Ends the session if the key is not valid any more.
    fn with_present_identity(
        &self,
        session_key: &str,
        mut session: Session,
        visitor: &Visitor<'_>,
    ) -> Option<Session> {
        let Some(login) = &mut session.login else { return Some(session) };
        match (visitor.identify)(&login.credential).filter(|found| may_use_console(found)) {
            Some(identity) => {
                login.identity = identity;
                Some(session)
            }
            None => {
                self.sessions.end(session_key);
                None
            }
        }
    }

    /// Answers a request of somebody who is logged in.
    async fn respond_to_operator(&self, authed: &AuthedRequest<'_>) -> Response<Content> {
        let request = authed.request;
        match request.method {
            Method::GET | Method::HEAD if path_parts(request) == ["events"] => {
                match self.streams.open(&self.backend) {
                    Some(stream) => response::events(stream),
                    None => {
                        error_page(StatusCode::TOO_MANY_REQUESTS, "Too many pages", "Close some.")
                    }
                }
            }
            Method::GET | Method::HEAD => self.page(authed).await,
            Method::POST if !is_own_form(authed, &self.config) => {
                let text =
                    "This form is of another session. Go back, load the page again, and retry.";
                error_page(StatusCode::FORBIDDEN, "Not our form", text)
            }
            Method::POST if path_parts(request) == ["logout"] => self.logout(authed).await,
            Method::POST => self.submit_form(authed).await,
            _ => error_page(
                StatusCode::METHOD_NOT_ALLOWED,
                "Not allowed",
                "Pages are read and forms are sent.",
            ),
        }
    }

    async fn page(&self, authed: &AuthedRequest<'_>) -> Response<Content> {
        let found = match path_parts(authed.request)[..] {
            [] => Ok(page::overview::page(&self.backend).await),
            ["approvals"] => Ok(page::approvals::list(&self.backend, authed).await),
            ["approvals", number] => page::approvals::one(&self.backend, authed, number).await,
            ["upstreams"] => Ok(page::upstreams::list(&self.backend, authed).await),
            ["upstreams", label] => page::upstreams::one(&self.backend, authed, label).await,
            ["tools"] => Ok(page::tools::search(&self.backend, authed).await),
            ["tools", id] => page::tools::one(&self.backend, authed, id),
            ["calls"] => Ok(page::calls::list(&self.backend, authed)),
            ["calls", number] => page::calls::one(&self.backend, number),
            ["artifacts"] => page::artifacts::list(&self.backend, authed).await,
            ["artifacts", handle] => page::artifacts::one(&self.backend, authed, handle).await,
            ["callers"] => Ok(page::callers::page(&self.backend, authed).await),
            ["findings"] => Ok(page::findings::list(&self.backend)),
            ["config"] => Ok(page::config::page(&self.backend, authed)),
            _ => Err(PageError::NotFound),
        };
        let (status, page) = match found {
            Ok(page) => (StatusCode::OK, page),
            Err(PageError::NotFound) => (StatusCode::NOT_FOUND, page::missing()),
            Err(PageError::Invalid(why)) => (StatusCode::BAD_REQUEST, page::bad(&why)),
        };
        let is_live = authed.request.headers.contains_key(LIVE);
        // A notice is shown once, so a request that only refreshes a part must not take it.
        let notice = if is_live { None } else { self.sessions.take_notice(authed.session_key) };
        self.render(status, &page, authed, notice).await
    }

    async fn render(
        &self,
        status: StatusCode,
        page: &Page,
        authed: &AuthedRequest<'_>,
        notice: Option<String>,
    ) -> Response<Content> {
        let waiting = self.backend.gateway.approvals().list().await.unwrap_or_default();
        let frame = Frame {
            who: &authed.session.who,
            form_token: &authed.session.form_token,
            notice,
            n_waiting: waiting.iter().filter(|request| request.is_waiting()).count(),
        };
        response::page(status, frame.around(page))
    }

    /// Runs the action of a form, then redirects to a page with a notice.
    async fn submit_form(&self, authed: &AuthedRequest<'_>) -> Response<Content> {
        let done = match path_parts(authed.request)[..] {
            ["approvals", number] => page::approvals::decide(&self.backend, authed, number).await,
            ["upstreams", label, "restart"] => {
                page::upstreams::restart(&self.backend, authed, label).await
            }
            ["upstreams", label, "enabled"] => {
                page::upstreams::switch(&self.backend, authed, label).await
            }
            ["upstreams", label, "login"] => {
                let begun = page::upstreams::login(&self.backend, authed, label).await;
                return self.render_or_notice(begun, authed).await;
            }
            ["tools", id, "accept"] => page::tools::accept(&self.backend, authed, id).await,
            ["tools", id, "call"] => {
                return self
                    .render_or_notice(page::tools::call(&self.backend, authed, id).await, authed)
                    .await;
            }
            ["config", "review"] => {
                return self
                    .render_or_notice(page::config::review(&self.backend, authed), authed)
                    .await;
            }
            ["config", "save"] => page::config::save(&self.backend, authed).await,
            _ => Err(PageError::NotFound),
        };
        match done {
            Ok((path, notice)) => self.redirect_with_notice(authed, &path, notice),
            Err(PageError::NotFound) => not_found(),
            Err(PageError::Invalid(why)) => self.redirect_with_notice(authed, "", why),
        }
    }

    /// Renders the page that answers a form, or redirects with the error as a notice.
    async fn render_or_notice(
        &self,
        page: Result<Page, PageError>,
        authed: &AuthedRequest<'_>,
    ) -> Response<Content> {
        match page {
            Ok(page) => self.render(StatusCode::OK, &page, authed, None).await,
            Err(PageError::NotFound) => not_found(),
            Err(PageError::Invalid(why)) => self.redirect_with_notice(authed, "", why),
        }
    }

    /// Redirects to a page and shows a notice there.
    fn redirect_with_notice(
        &self,
        authed: &AuthedRequest<'_>,
        path: &str,
        notice: String,
    ) -> Response<Content> {
        self.sessions.set_notice(authed.session_key, notice);
        redirect(path)
    }

    /// Logs in with a link or a key.
    async fn login(&self, request: &PageRequest, visitor: &Visitor<'_>) -> Response<Content> {
        let next = console_path(match request.method == Method::POST {
            true => request.form.get("next"),
            false => request.query.get("next"),
        });
        let code = request.query.get("code");
        let who = match request.method {
            Method::GET if code.is_empty() => {
                return page::login::page(StatusCode::OK, next, None);
            }
            Method::GET if self.sessions.redeem(code) => Ok(("the operator".to_owned(), None)),
            Method::GET => Err("This link was used already, or is too old."),
            Method::POST if is_same_origin(request, &self.config) => {
                let credential = request.form.get("key").trim();
                let known = (visitor.identify)(credential);
                match known.filter(|identity| may_use_console(identity)) {
                    Some(identity) => {
                        let (who, credential) = (identity.subject.clone(), credential.to_owned());
                        Ok((who, Some(KeyLogin { identity, credential })))
                    }
                    None => Err("This key is not known, or lacks the role for the console."),
                }
            }
            _ => Err("Send the form of this page."),
        };
        match who {
            Ok((who, login)) => {
                self.backend.audit(&who, "console.login", "", &Ok(())).await;
                let mut response = redirect(next);
                self.set_cookie(&mut response, &self.sessions.begin(&who, login), "");
                response
            }
            Err(why) => {
                self.backend.audit_unauthenticated("somebody", "console.login", "", why).await;
                page::login::page(StatusCode::FORBIDDEN, next, Some(why))
            }
        }
    }

    async fn logout(&self, authed: &AuthedRequest<'_>) -> Response<Content> {
        self.sessions.end(authed.session_key);
        self.backend.audit(&authed.session.who, "console.logout", "", &Ok(())).await;
        let mut response = redirect("/login");
        self.set_cookie(&mut response, "", "; Max-Age=0");
        response
    }

    /// Returns the name of the session cookie. Browsers enforce `Secure` and the path for
    /// names that begin with `__Host-`.
    fn cookie_name(&self) -> &'static str {
        if self.config.tls { "__Host-gatelet" } else { "gatelet-console" }
    }

    fn set_cookie(&self, response: &mut Response<Content>, value: &str, more: &str) {
        let scope = if self.config.tls { "Path=/; Secure" } else { "Path=/console" };
        let name = self.cookie_name();
        let cookie = format!("{name}={value}; {scope}; HttpOnly; SameSite=Strict{more}");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
    }

    /// Returns whether the `Host` header is one of ours, which prevents DNS rebinding.
    fn is_our_host(&self, request: &PageRequest) -> bool {
        let host = request.host();
        let is_named = |own: &String| own.eq_ignore_ascii_case(host);
        request.is_for_loopback() || self.config.hosts.iter().any(is_named)
    }
}

const LIVE: &str = "x-console-live";

const WRONG_HOST: &str =
    "The console does not answer to this name. Use the address that `gatelet console` prints.";
const NEEDS_TLS: &str = "The console is for this machine, or for HTTPS. Give gatelet a certificate \
                         (`[serve.tls]`) to use it from elsewhere.";

fn path_parts(request: &PageRequest) -> Vec<&str> {
    request.path.iter().map(String::as_str).collect()
}

/// Returns the requested path, to go on to after the login.
fn next(request: &PageRequest) -> String {
    request.path.iter().map(|part| format!("/{}", crate::request::encode(part))).collect()
}

/// Returns a path below the console; the start page for anything else.
fn console_path(path: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.%~".contains(&byte);
    let is_local = path.starts_with('/') && !path.starts_with("//") && path.bytes().all(is_plain);
    if is_local { path } else { "" }
}

/// Returns whether a form belongs to this session and was sent from a page of the console.
fn is_own_form(authed: &AuthedRequest<'_>, config: &Config) -> bool {
    is_same_origin(authed.request, config)
        && authed.session.owns_form(authed.request.form.get("form_token"))
}

/// Returns whether a request comes from a page of the console. Browsers say so with every
/// form.
fn is_same_origin(request: &PageRequest, config: &Config) -> bool {
    let site = request.header("sec-fetch-site");
    let scheme = if config.tls { "https" } else { "http" };
    let own = format!("{scheme}://{}", request.header(header::HOST).unwrap_or_default());
    let origin = request.header(header::ORIGIN);
    site.is_none_or(|site| site == "same-origin") && origin.is_none_or(|origin| origin == own)
}

fn not_found() -> Response<Content> {
    error_page(StatusCode::NOT_FOUND, "Nothing here", "There is no such page.")
}

fn error_page(status: StatusCode, title: &str, text: &str) -> Response<Content> {
    let content =
        html! { h1 { (title) } p.lead { (text) } p { a href="/console" { "To the console" } } };
    response::page(status, layout::bare(title, &content))
}

#[cfg(test)]
mod tests;
