//! The console of a gatelet that serves: what only the program can do for it.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use console::{AuditEntry, Config, Console, Content, Operator};
use gateway::Gateway;
use http::{Request, Response};
use mcp::serve::http::Body;
use policy::approval::{QueuedRequest, Remembered};
use roster::clock::System;
use store::audit::AuditLog;
use store::files::Files;
use web::site::pages::{Pages, Visitor};

use super::serving::Serving;
use crate::commands::approvals::write_rule;
use crate::logging;
use crate::paths::Paths;
use crate::wire::Wiring;
use config::write_remembered;

/// The console of what is served.
pub(super) fn console(serving: &Serving<'_>, hosts: Vec<String>) -> Arc<Console> {
    let Serving { state, wiring, gateway, loaded, paths, .. } = serving;
    let program = Program {
        wiring: wiring.clone(),
        gateway: gateway.clone(),
        // The file that was read, whatever is found later.
        paths: Paths { config: loaded.file.clone(), ..(*paths).clone() },
        audit: AuditLog::new(Arc::new(Files::at(state))),
    };
    let config = Config { tls: loaded.config.serve.tls.is_some(), hosts };
    let clock = Arc::new(System::start());
    Arc::new(Console::new(gateway.clone(), Arc::new(program), clock, config))
}

/// The program, as the console knows it.
struct Program {
    wiring: Wiring,
    gateway: Gateway,
    paths: Paths,
    audit: AuditLog,
}

#[async_trait]
impl Operator for Program {
    async fn audit(&self, entry: AuditEntry) {
        if let Err(error) = self.audit.append(&entry).await {
            tracing::error!(%error, action = entry.action, "the audit log cannot be written");
        }
    }

    fn log(&self, n_lines: usize) -> Vec<String> {
        logging::recent(n_lines)
    }

    async fn restart(&self, label: &str) -> Result<(), String> {
        let restarted = self.wiring.restart(&self.gateway, label);
        restarted.map(drop).ok_or_else(|| format!("no upstream is called `{label}`"))
    }

    fn remembered_rule(&self, request: &QueuedRequest) -> Result<String, String> {
        let rule = Remembered::from_subject(&request.subject).map_err(|why| why.to_string())?;
        Ok(write_remembered(&rule))
    }

    async fn remember(&self, request: &QueuedRequest) -> Result<(), String> {
        let (rule, paths) = (self.remembered_rule(request)?, self.paths.clone());
        let written = tokio::task::spawn_blocking(move || write_rule(&paths, &rule)).await;
        match written {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(format!("{error:#}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The console below its path.
pub(super) struct ConsolePages(pub(super) Arc<Console>);

#[async_trait]
impl Pages for ConsolePages {
    fn path(&self) -> &str {
        console::PATH
    }

    async fn answer(&self, request: Request<Bytes>, visitor: Visitor) -> Response<Body> {
        let Visitor { is_local, identify } = visitor;
        let visitor = console::Visitor { is_local, identify: &*identify };
        self.0.respond(request, &visitor).await.map(|content| match content {
            Content::Whole(bytes) => Body::whole(bytes),
            Content::Events(events) => Body::events(events),
        })
    }
}
