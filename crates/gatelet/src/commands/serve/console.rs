//! Connects the web console with this process: configuration files, logins, restarts, the
//! audit log, and approvals by webhook.

mod incoming_webhook;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use console::{
    AuditEntry, Config, ConfigCheck, ConfigText, Console, Content, KeyRow, ProgramControl,
    SettingRow,
};
use gateway::Gateway;
use http::{Request, Response};
use mcp::serve::http::Body;
use parking_lot::Mutex;
use policy::approval::{QueuedRequest, RememberedApproval};
use store::audit::AuditLog;
use store::clock::System;
use store::files::Files;
use store::state::SingleUse;
use telemetry::figures::Overview;
use tokio_util::task::AbortOnDropHandle;
use tool::Tool;
use web::site::pages::{Pages, Visitor};

use incoming_webhook::{IncomingWebhook, Message};

use super::effective_settings::{self, EffectiveConfig};
use super::serving::Serving;
use crate::commands::approvals::write_rule;
use crate::commands::login::{LoginPlan, PendingLogin};
use crate::commands::servers::config_file::ConfigFile;
use crate::config_loader;
use crate::key_file;
use crate::logging;
use crate::paths::Paths;
use crate::time;
use crate::wire::Wiring;
use config::edit::Edit;
use config::{Problems, SourceFile, write_remembered};

/// Makes the console of a gatelet that serves.
pub(super) fn console(serving: &Serving<'_>, hosts: Vec<String>) -> Arc<Console> {
    let Serving { state, wiring, gateway, loaded, paths, .. } = serving;
    // The file that was read, even if another would be found now.
    let paths = Paths { config: loaded.file.clone(), ..(*paths).clone() };
    let webhook_key = loaded.config.approvals.webhook.as_ref().map(|hook| hook.key.clone());
    let files = Files::at(state);
    let seen: Arc<dyn SingleUse> = match wiring.cluster() {
        Some(cluster) => Arc::new(cluster.store().clone()),
        None => Arc::new(files.clone()),
    };
    let program = ConsoleOperator {
        wiring: wiring.clone(),
        gateway: gateway.clone(),
        // The configuration of the file, without the flags.
        in_force: config_loader::load(&paths).ok().map(|loaded| loaded.config),
        started: loaded.config.clone(),
        written_at_start: keys_of(&paths),
        webhook: IncomingWebhook::new(webhook_key, seen),
        state: state.clone(),
        paths,
        audit: Arc::new(AuditLog::new(Arc::new(files))),
        logins: Mutex::default(),
    };
    let config = Config { tls: loaded.config.serve.tls.is_some(), hosts };
    let (calls, clock) = (wiring.observers().call_log(), Arc::new(System::start()));
    Arc::new(Console::new(gateway.clone(), Arc::new(program), calls, clock, config))
}

/// The keys that the configuration file sets.
fn keys_of(paths: &Paths) -> HashSet<String> {
    let file = paths.config_file().unwrap_or_default();
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    effective_settings::written_keys(&file, &text)
}

/// What the console needs of this process.
struct ConsoleOperator {
    wiring: Wiring,
    gateway: Gateway,
    paths: Paths,
    state: PathBuf,
    audit: Arc<AuditLog>,
    /// Logins that wait for a human, by upstream.
    logins: Mutex<HashMap<String, AbortOnDropHandle<()>>>,
    /// The configuration file at the start.
    in_force: Option<config::Config>,
    /// The same with the flags of the command line.
    started: config::Config,
    /// The keys that the file set at the start.
    written_at_start: HashSet<String>,
    webhook: IncomingWebhook,
}

#[async_trait]
impl ProgramControl for ConsoleOperator {
    async fn audit(&self, entry: AuditEntry) {
        append_audit(&self.audit, &entry).await;
    }

    fn log_of(&self, label: &str, n_lines: usize) -> Vec<String> {
        logging::recent_of(label, n_lines)
    }

    async fn overview(&self) -> Overview {
        self.wiring.observers().quick_overview(&self.gateway).await
    }

    async fn restart(&self, label: &str) -> Result<(), String> {
        let restarted = self.wiring.restart(&self.gateway, label);
        restarted.map(drop).ok_or_else(|| format!("no upstream is called `{label}`"))
    }

    async fn set_enabled(&self, label: &str, enabled: bool) -> Result<(), String> {
        let label = label.to_owned();
        self.change_files(move |paths| {
            let file = ConfigFile::open(paths)?;
            let value = (!enabled).then_some(serde_json::Value::Bool(true));
            let edit = Edit::Set { label: &label, key: "disabled", value };
            file.write(&file.edited(&[edit])?)
        })
        .await
    }

    fn switched_off(&self) -> Vec<String> {
        ConfigFile::open(&self.paths).map(|file| file.disabled_labels()).unwrap_or_default()
    }

    async fn begin_login(&self, label: &str, who: &str) -> Result<String, String> {
        let (label, paths) = (label.to_owned(), self.paths.clone());
        let known = label.clone();
        let plan = run_blocking(move || LoginPlan::shared(&known, &paths)).await?;
        let pending = plan.begin().await.map_err(|error| format!("{error:#}"))?;
        let address = pending.url().to_owned();
        let (finisher, who) = (self.finisher(), who.to_owned());
        let ending = label.clone();
        let finishing = AbortOnDropHandle::new(tokio::spawn(async move {
            finisher.finish(plan, pending, &ending, who).await;
        }));
        // Another login for the same upstream replaces the first.
        self.logins.lock().insert(label, finishing);
        Ok(address)
    }

    fn vouches(&self, path: &str, tool: &Tool) -> bool {
        self.wiring.ledger().vouches_for(path, tool)
    }

    async fn accept(&self, path: &str, tool: &Tool) -> Result<(), String> {
        let (wiring, path, tool) = (self.wiring.clone(), path.to_owned(), tool.clone());
        self.change_files(move |_| {
            Ok(wiring.ledger().vouch_for(&path, &tool, time::unix_millis())?)
        })
        .await
    }

    fn keys(&self) -> Vec<KeyRow> {
        let now = time::unix_seconds();
        let keys =
            key_file::load(&key_file::file(&self.state)).map(|ring| ring.keys).unwrap_or_default();
        let row = |key: web::identity::key::Key| KeyRow {
            is_good: key.revoked.is_none() && key.expires.is_none_or(|expires| now < expires),
            name: key.name,
            roles: key.roles.into_iter().collect(),
            scopes: key.scopes.into_iter().collect(),
            groups: key.groups.into_iter().collect(),
        };
        keys.into_iter().map(row).collect()
    }

    fn config(&self) -> Option<ConfigText> {
        let file = self.paths.config_file()?;
        let text = std::fs::read_to_string(&file).ok()?;
        Some(ConfigText { file: file.display().to_string(), text })
    }

    fn settings(&self) -> Vec<SettingRow> {
        let written = self.config().map(|file| file.text).unwrap_or_default();
        let file = self.paths.config_file().unwrap_or_default();
        effective_settings::rows(&EffectiveConfig {
            started: &self.started,
            file_at_start: self.in_force.as_ref(),
            applied: &self.wiring.applied_config(),
            now: self.parse_config(&written).ok().map(|(config, _)| config).as_ref(),
            written: &effective_settings::written_keys(&file, &written),
            written_at_start: &self.written_at_start,
        })
    }

    fn check_config(&self, text: &str) -> ConfigCheck {
        match self.parse_config(text) {
            Ok((config, problems)) => {
                let sections =
                    self.in_force.as_ref().map(|now| now.sections_needing_restart(&config));
                let problems =
                    if problems.is_empty() { String::new() } else { problems.to_string() };
                let restart_for =
                    sections.unwrap_or_default().into_iter().map(str::to_owned).collect();
                ConfigCheck { is_valid: true, problems, restart_for }
            }
            Err(problems) => ConfigCheck {
                is_valid: false,
                problems: problems.to_string(),
                restart_for: Vec::new(),
            },
        }
    }

    async fn save_config(&self, text: &str, before: &str) -> Result<(), String> {
        if !self.check_config(text).is_valid {
            return Err("it is not sound".to_owned());
        }
        let (text, before) = (text.to_owned(), before.to_owned());
        self.change_files(move |paths| {
            let file = ConfigFile::open(paths)?;
            if file.text() != before {
                anyhow::bail!("the file was changed meanwhile: look at it again");
            }
            file.write(&text)
        })
        .await
    }

    fn remembered_rule(&self, request: &QueuedRequest) -> Result<String, String> {
        let rule =
            RememberedApproval::from_subject(&request.subject).map_err(|why| why.to_string())?;
        Ok(write_remembered(&rule))
    }

    async fn remember(&self, request: &QueuedRequest) -> Result<(), String> {
        let rule = self.remembered_rule(request)?;
        self.change_files(move |paths| write_rule(paths, &rule).map(drop)).await
    }

    async fn verify_message(
        &self,
        id: &str,
        timestamp: &str,
        signature: &str,
        body: &[u8],
    ) -> Result<(), String> {
        let message = Message { id, timestamp, signature, body };
        self.webhook.verify(time::unix_seconds(), &message).await
    }
}

impl ConsoleOperator {
    fn parse_config(&self, text: &str) -> Result<(config::Config, Problems), Problems> {
        let file = self.paths.config_file().unwrap_or_default();
        let whole = std::path::absolute(&file).unwrap_or_else(|_| file.clone());
        let base = whole.parent().unwrap_or(Path::new("/"));
        let source = SourceFile { name: file.display().to_string(), text: text.to_owned() };
        config::parse(source, base, &config_loader::environment(&self.paths))
    }

    /// Changes configuration files on a thread for blocking work.
    async fn change_files(
        &self,
        change: impl FnOnce(&Paths) -> anyhow::Result<()> + Send + 'static,
    ) -> Result<(), String> {
        let paths = self.paths.clone();
        run_blocking(move || change(&paths)).await
    }

    fn finisher(&self) -> LoginFinisher {
        LoginFinisher {
            wiring: self.wiring.clone(),
            gateway: self.gateway.clone(),
            audit: Arc::clone(&self.audit),
        }
    }
}

/// Runs work on a thread for blocking work; the error is one line.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| format!("{error:#}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Finishes a login that was begun in the console.
struct LoginFinisher {
    wiring: Wiring,
    gateway: Gateway,
    audit: Arc<AuditLog>,
}

impl LoginFinisher {
    /// Waits for the login, stores the token, and restarts the upstream with it. `who` began
    /// the login.
    async fn finish(&self, plan: LoginPlan, pending: PendingLogin, label: &str, who: String) {
        let done = match pending.finish().await {
            Ok(grant) => run_blocking(move || plan.store(&grant)).await,
            Err(error) => Err(format!("{error:#}")),
        };
        let outcome = match &done {
            Ok(()) => "done".to_owned(),
            Err(why) => format!("refused: {why}"),
        };
        if done.is_ok() {
            self.wiring.restart(&self.gateway, label);
        }
        let (at, subject) = (time::unix_millis(), label.to_owned());
        let entry = AuditEntry { at, who, action: "upstreams.logged_in", subject, outcome };
        append_audit(&self.audit, &entry).await;
    }
}

async fn append_audit(audit: &AuditLog, entry: &AuditEntry) {
    if let Err(error) = audit.append(entry).await {
        tracing::error!(%error, action = entry.action, "the audit log cannot be written");
    }
}

/// The pages of the console, for the HTTP site.
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
