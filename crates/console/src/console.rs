//! Who gets in, and which page answers what.

use std::sync::Arc;

use bytes::Bytes;
use gateway::Gateway;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use maud::html;
use tool::Identity;
use tool::clock::Clock;

use crate::backend::{Asked, Backend, NoPage, Strangers};
use crate::calls::CallLog;
use crate::layout::{self, Frame, Page};
use crate::operator::{Operator, may_enter};
use crate::request::PageRequest;
use crate::response::{self, Content, see};
use crate::session::{KeyLogin, Session, Sessions};
use crate::{assets, live, page};

/// How the console is reached.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Hosts beside this machine's own names by which the console may be asked.
    pub hosts: Vec<String>,
}

/// What is known of who asks before they say anything.
pub struct Visitor<'a> {
    /// Whether the connection comes from this machine.
    pub is_local: bool,
    /// Who holds a key or a token.
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
        operator: Arc<dyn Operator>,
        calls: Arc<CallLog>,
        clock: Arc<dyn Clock>,
        config: Config,
    ) -> Console {
        let sessions = Sessions::new(Arc::clone(&clock));
        let streams = live::Streams::default();
        let strangers = Strangers::default();
        let backend = Backend { gateway, operator, clock, calls, strangers };
        Console { backend, sessions, streams, config }
    }

    /// A link that logs in once; `address` is where the console is.
    pub fn login_link(&self, address: &str) -> String {
        format!("{address}/login?code={}", self.sessions.link())
    }

    /// Answers one request.
    pub async fn respond(
        &self,
        request: Request<Bytes>,
        visitor: &Visitor<'_>,
    ) -> Response<Content> {
        let request = PageRequest::new(request);
        if !self.is_our_host(&request) {
            return refused(StatusCode::FORBIDDEN, "Wrong host", WRONG_HOST);
        }
        // What a browser keeps must not travel where others can read it.
        let stays_here = visitor.is_local && request.is_for_loopback();
        if !(self.config.tls || stays_here) {
            return refused(StatusCode::FORBIDDEN, "HTTPS only", NEEDS_TLS);
        }
        if let ["assets", name] = parts(&request)[..] {
            return assets::find(name).unwrap_or_else(not_found);
        }
        if parts(&request) == ["login"] {
            return self.login(&request, visitor).await;
        }
        if parts(&request) == ["decisions"] && request.method == Method::POST {
            return page::approvals::decided_elsewhere(&self.backend, &request).await;
        }
        let key = request.cookie(self.cookie_name()).unwrap_or_default();
        match self.sessions.find(key).filter(|session| self.is_still_good(key, session, visitor)) {
            Some(session) => self.enter(&Asked { request: &request, session: &session, key }).await,
            None if request.method == Method::GET && parts(&request) != ["events"] => {
                page::login::page(StatusCode::UNAUTHORIZED, &next(&request), None)
            }
            None => refused(StatusCode::UNAUTHORIZED, "Logged out", "Log in again."),
        }
    }

    /// Returns whether the key or token of a session would still let its holder
    /// in, and ends the session where it would not.
    fn is_still_good(&self, key: &str, session: &Session, visitor: &Visitor<'_>) -> bool {
        let Some(login) = &session.login else { return true };
        let is_good =
            (visitor.identify)(&login.credential).is_some_and(|identity| may_enter(&identity));
        if !is_good {
            self.sessions.end(key);
        }
        is_good
    }

    /// What somebody who is logged in gets.
    async fn enter(&self, asked: &Asked<'_>) -> Response<Content> {
        let request = asked.request;
        match request.method {
            Method::GET | Method::HEAD if parts(request) == ["events"] => {
                match self.streams.open(&self.backend) {
                    Some(stream) => response::events(stream),
                    None => refused(StatusCode::TOO_MANY_REQUESTS, "Too many pages", "Close some."),
                }
            }
            Method::GET | Method::HEAD => self.page(asked).await,
            Method::POST if !is_own_form(asked, &self.config) => {
                let text =
                    "This form is of another session. Go back, load the page again, and retry.";
                refused(StatusCode::FORBIDDEN, "Not our form", text)
            }
            Method::POST if parts(request) == ["logout"] => self.logout(asked).await,
            Method::POST => self.act(asked).await,
            _ => refused(
                StatusCode::METHOD_NOT_ALLOWED,
                "Not allowed",
                "Pages are read and forms are sent.",
            ),
        }
    }

    async fn page(&self, asked: &Asked<'_>) -> Response<Content> {
        let found = match parts(asked.request)[..] {
            [] => Ok(page::overview::page(&self.backend).await),
            ["approvals"] => Ok(page::approvals::list(&self.backend, asked).await),
            ["approvals", number] => page::approvals::one(&self.backend, asked, number).await,
            ["upstreams"] => Ok(page::upstreams::list(&self.backend, asked).await),
            ["upstreams", label] => page::upstreams::one(&self.backend, asked, label).await,
            ["tools"] => Ok(page::tools::search(&self.backend, asked)),
            ["tools", id] => page::tools::one(&self.backend, asked, id),
            ["calls"] => Ok(page::calls::list(&self.backend, asked)),
            ["calls", number] => page::calls::one(&self.backend, number),
            ["artifacts"] => Ok(page::artifacts::list(&self.backend)),
            ["artifacts", handle] => page::artifacts::one(&self.backend, asked, handle).await,
            ["callers"] => Ok(page::callers::page(&self.backend, asked).await),
            ["findings"] => Ok(page::findings::list(&self.backend)),
            ["config"] => Ok(page::config::page(&self.backend, asked)),
            _ => Err(NoPage::NotFound),
        };
        let (status, page) = match found {
            Ok(page) => (StatusCode::OK, page),
            Err(NoPage::NotFound) => (StatusCode::NOT_FOUND, page::missing()),
            Err(NoPage::Bad(why)) => (StatusCode::BAD_REQUEST, page::bad(&why)),
        };
        let is_live = asked.request.headers.contains_key(LIVE);
        // What is said once is not said to a page that only renews a part.
        let notice = if is_live { None } else { self.sessions.take_notice(asked.key) };
        self.framed(status, &page, asked, notice).await
    }

    async fn framed(
        &self,
        status: StatusCode,
        page: &Page,
        asked: &Asked<'_>,
        notice: Option<String>,
    ) -> Response<Content> {
        let waiting = self.backend.gateway.approvals().list().await.unwrap_or_default();
        let frame = Frame {
            who: &asked.session.who,
            form_token: &asked.session.form_token,
            notice,
            n_waiting: waiting.iter().filter(|request| request.is_waiting()).count(),
        };
        response::page(status, frame.around(page))
    }

    /// Does what a form asks for, then shows a page again.
    async fn act(&self, asked: &Asked<'_>) -> Response<Content> {
        let done = match parts(asked.request)[..] {
            ["approvals", number] => page::approvals::decide(&self.backend, asked, number).await,
            ["upstreams", label, "restart"] => {
                page::upstreams::restart(&self.backend, asked, label).await
            }
            ["upstreams", label, "enabled"] => {
                page::upstreams::switch(&self.backend, asked, label).await
            }
            ["upstreams", label, "login"] => {
                let begun = page::upstreams::login(&self.backend, asked, label).await;
                return self.shown(begun, asked).await;
            }
            ["tools", id, "accept"] => page::tools::accept(&self.backend, asked, id).await,
            ["tools", id, "call"] => {
                return self.shown(page::tools::call(&self.backend, asked, id).await, asked).await;
            }
            ["config", "review"] => {
                return self.shown(page::config::review(&self.backend, asked), asked).await;
            }
            ["config", "save"] => page::config::save(&self.backend, asked).await,
            _ => Err(NoPage::NotFound),
        };
        match done {
            Ok((path, notice)) => self.said(asked, &path, notice),
            Err(NoPage::NotFound) => not_found(),
            Err(NoPage::Bad(why)) => self.said(asked, "", why),
        }
    }

    /// A page that answers a form.
    async fn shown(&self, page: Result<Page, NoPage>, asked: &Asked<'_>) -> Response<Content> {
        match page {
            Ok(page) => self.framed(StatusCode::OK, &page, asked, None).await,
            Err(NoPage::NotFound) => not_found(),
            Err(NoPage::Bad(why)) => self.said(asked, "", why),
        }
    }

    /// Shows a page, with something said on it.
    fn said(&self, asked: &Asked<'_>, path: &str, notice: String) -> Response<Content> {
        self.sessions.notice(asked.key, notice);
        see(path)
    }

    /// Logs in by a link or by a key.
    async fn login(&self, request: &PageRequest, visitor: &Visitor<'_>) -> Response<Content> {
        let next = local_path(match request.method == Method::POST {
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
                match known.filter(|identity| may_enter(identity)) {
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
                let mut response = see(next);
                self.set_cookie(&mut response, &self.sessions.begin(&who, login), "");
                response
            }
            Err(why) => {
                self.backend.audit_stranger("somebody", "console.login", "", why).await;
                page::login::page(StatusCode::FORBIDDEN, next, Some(why))
            }
        }
    }

    async fn logout(&self, asked: &Asked<'_>) -> Response<Content> {
        self.sessions.end(asked.key);
        self.backend.audit(&asked.session.who, "console.logout", "", &Ok(())).await;
        let mut response = see("/login");
        self.set_cookie(&mut response, "", "; Max-Age=0");
        response
    }

    /// The cookie's name says how it may travel, and browsers hold it to that.
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

    /// Whether we are asked by a name of ours: a page elsewhere can make its own
    /// name mean this machine.
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

fn parts(request: &PageRequest) -> Vec<&str> {
    request.path.iter().map(String::as_str).collect()
}

/// Where to go on after the login.
fn next(request: &PageRequest) -> String {
    request.path.iter().map(|part| format!("/{}", crate::request::encode(part))).collect()
}

/// A path below the console, or its beginning where somebody wrote another.
fn local_path(path: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.%~".contains(&byte);
    let is_local = path.starts_with('/') && !path.starts_with("//") && path.bytes().all(is_plain);
    if is_local { path } else { "" }
}

/// Whether a form was made for this session and sent from a page of ours.
fn is_own_form(asked: &Asked<'_>, config: &Config) -> bool {
    is_same_origin(asked.request, config)
        && asked.session.made(asked.request.form.get("form_token"))
}

/// Whether a request comes from a page of ours. Browsers say so with every form.
fn is_same_origin(request: &PageRequest, config: &Config) -> bool {
    let site = request.header("sec-fetch-site");
    let scheme = if config.tls { "https" } else { "http" };
    let own = format!("{scheme}://{}", request.header(header::HOST).unwrap_or_default());
    let origin = request.header(header::ORIGIN);
    site.is_none_or(|site| site == "same-origin") && origin.is_none_or(|origin| origin == own)
}

fn not_found() -> Response<Content> {
    refused(StatusCode::NOT_FOUND, "Nothing here", "There is no such page.")
}

fn refused(status: StatusCode, title: &str, text: &str) -> Response<Content> {
    let content =
        html! { h1 { (title) } p.lead { (text) } p { a href="/console" { "To the console" } } };
    response::page(status, layout::bare(title, &content))
}

#[cfg(test)]
mod tests;
