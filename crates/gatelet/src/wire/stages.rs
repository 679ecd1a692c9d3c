//! Builds the policies that a call passes (trust, rules, quota, approval, cache, retry,
//! masking of secrets) from the configuration.

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use policy::admission::{Check, ListingCheck};
use policy::approval::queued::PageUrl;
use policy::approval::{Approval, Approvals, QueuedApproval, TokenApproval};
use policy::attempt::{self, Retry, UpstreamCaller};
use policy::cache::{Cache, ReplyCache};
use policy::quota::{self, Limiter, Quota};
use policy::rules::{self, Rules};
use policy::trust::TrustCheck;
use policy::{AllowAll, Stages};
use redact::{self, Scrubber};
use store::confirm_tokens::SharedTokens;
use store::limits::SharedLimiter;
use tool::clock::Clock;

use super::cluster::Cluster;
use super::identity::Identities;
use super::shared_replies::SharedReplies;
use super::trust;
use config::{Config, Confirm, Reach};

/// The stages in force. When the configuration changes, stages whose settings stay the
/// same stay too, with their counts, cached replies and open circuits.
pub(super) struct CurrentStages {
    approvals: Arc<Approvals>,
    /// The console's page for a request for approval.
    page: PageUrl,
    built: Mutex<Option<Built>>,
}

/// The stages as they were last built, and what from.
struct Built {
    config: Config,
    clock: Arc<dyn Clock>,
    cluster: Option<Cluster>,
    trust: Option<Arc<TrustCheck>>,
    stages: Stages,
}

impl CurrentStages {
    pub(super) fn new(approvals: Arc<Approvals>, page: PageUrl) -> CurrentStages {
        CurrentStages { approvals, page, built: Mutex::default() }
    }

    fn approval(
        &self,
        config: &Config,
        cluster: Option<&Cluster>,
        clock: &Arc<dyn Clock>,
    ) -> Arc<dyn Approval> {
        let config = &config.approvals;
        match config.confirm {
            Confirm::Token => Arc::new(match cluster {
                Some(cluster) => TokenApproval::with_store(Arc::new(shared_tokens(cluster))),
                None => TokenApproval::new(Arc::clone(clock)),
            }),
            Confirm::Queue => {
                let stage = QueuedApproval::new(Arc::clone(&self.approvals), config.stage.clone());
                Arc::new(stage.with_page(Arc::clone(&self.page)))
            }
        }
    }

    /// Builds all stages, for the configuration that a gatelet starts with.
    pub(super) fn build(
        &self,
        config: &Config,
        state: &Path,
        cluster: Option<&Cluster>,
        identities: &Identities,
        clock: &Arc<dyn Clock>,
    ) -> Stages {
        let trust = trust::trust_check(config, state, identities, clock);
        let stages = Stages {
            checks: checks(config, trust.as_ref()),
            listings: listings(trust.as_ref()),
            approval: self.approval(config, cluster, clock),
            quota: quota(config, cluster, clock),
            cache: cache(config, cluster, clock),
            retry: retry(config, clock),
            scrubber: scrubber(config),
        };
        let (config, clock) = (config.clone(), Arc::clone(clock));
        let cluster = cluster.cloned();
        let built = Built { config, clock, cluster, trust, stages: stages.clone() };
        *self.built.lock() = Some(built);
        stages
    }

    /// Builds the stages whose settings have changed, after [`CurrentStages::build`].
    pub(super) fn rebuild(&self, config: &Config, state: &Path, identities: &Identities) -> Stages {
        let mut built = self.built.lock();
        let Some(Built { config: before, clock, cluster, trust, stages }) = &mut *built else {
            return Stages::default();
        };
        if !trust::is_same(before, config) {
            *trust = trust::trust_check(config, state, identities, clock);
        }
        let (old, new) = (&before.controls, &config.controls);
        // The queue stays in any case; confirmation tokens that were given out stay valid
        // while the settings of approval are the same.
        if before.approvals != config.approvals {
            stages.approval = self.approval(config, cluster.as_ref(), clock);
        }
        stages.checks = checks(config, trust.as_ref());
        stages.listings = listings(trust.as_ref());
        if old.rates != new.rates {
            stages.quota = quota(config, cluster.as_ref(), clock);
        }
        if old.cache != new.cache {
            stages.cache = cache(config, cluster.as_ref(), clock);
        }
        if old.calls != new.calls {
            stages.retry = retry(config, clock);
        }
        if old.redact != new.redact || secrets(before) != secrets(config) {
            stages.scrubber = scrubber(config);
        }
        before.clone_from(config);
        stages.clone()
    }
}

// A stage that is not configured is `AllowAll`, which lets everything pass and costs nothing.

fn checks(config: &Config, trust: Option<&Arc<TrustCheck>>) -> Vec<Arc<dyn Check>> {
    let trust = trust.map(|trust| Arc::clone(trust) as Arc<dyn Check>);
    let rules = &config.controls.rules;
    let has_rules = *rules != rules::Config::default();
    let rules = has_rules.then(|| Arc::new(Rules::new(rules.clone())) as Arc<dyn Check>);
    trust.into_iter().chain(rules).collect()
}

fn listings(trust: Option<&Arc<TrustCheck>>) -> Arc<dyn ListingCheck> {
    match trust {
        Some(trust) => Arc::clone(trust) as _,
        None => Arc::new(AllowAll),
    }
}

fn shared_tokens(cluster: &Cluster) -> SharedTokens {
    SharedTokens::new(Arc::new(cluster.store().clone()), cluster.signer().key())
}

fn quota(config: &Config, cluster: Option<&Cluster>, clock: &Arc<dyn Clock>) -> Arc<dyn Quota> {
    let (rates, clock) = (config.controls.rates.clone(), Arc::clone(clock));
    if rates == quota::Config::default() {
        return Arc::new(AllowAll);
    }
    match cluster.zip(config.state.as_ref()) {
        Some((cluster, state)) => {
            let counters = Arc::new(cluster.store().clone());
            Arc::new(SharedLimiter::new(rates, counters, state.on_loss, clock))
        }
        None => Arc::new(Limiter::new(rates, clock)),
    }
}

fn cache(config: &Config, cluster: Option<&Cluster>, clock: &Arc<dyn Clock>) -> Arc<dyn Cache> {
    let cache = &config.controls.cache;
    if !cache.read_only {
        return Arc::new(AllowAll);
    }
    let own = ReplyCache::new(cache.clone(), Arc::clone(clock));
    match cluster {
        Some(cluster) => Arc::new(SharedReplies::new(own, cluster.clone())),
        None => Arc::new(own),
    }
}

fn retry(config: &Config, clock: &Arc<dyn Clock>) -> Arc<dyn Retry> {
    let calls = &config.controls.calls;
    match *calls == attempt::Config::default() {
        true => Arc::new(AllowAll),
        false => {
            Arc::new(UpstreamCaller::new(calls.clone(), Arc::clone(clock), rand::random::<f64>))
        }
    }
}

/// Makes the scrubber for results, and masks the same secrets in the log.
fn scrubber(config: &Config) -> Arc<Scrubber> {
    let (enabled, known_secrets) = (config.controls.redact, secrets(config));
    crate::logging::mask(known_secrets.clone());
    Arc::new(Scrubber::new(redact::Config { enabled, known_secrets }))
}

/// The secrets that upstreams get from the configuration, to be masked in answers: an
/// upstream may repeat them, in an error or among its settings.
fn secrets(config: &Config) -> Vec<String> {
    let mounted = config.mounts.iter().flat_map(|mount| &mount.headers);
    let given = config.upstreams.iter().flat_map(|upstream| match &upstream.reach {
        Reach::Program { env: named, .. } | Reach::Address { headers: named, .. } => {
            named.iter().collect::<Vec<_>>()
        }
        Reach::Content { .. } | Reach::Nowhere { .. } => Vec::new(),
    });
    // Credentials of single callers are as secret as shared ones.
    let callers = config.upstreams.iter().flat_map(|upstream| upstream.access.callers.values());
    let callers = callers.flatten().flat_map(|own| own.headers.iter().chain(&own.env));
    let secret = |(name, value): (&String, &String)| {
        // Of `Bearer abc`, only `abc` is secret.
        let is_login = name.to_ascii_lowercase().ends_with("authorization");
        let name = if is_login { "token" } else { name };
        let value = value.split_whitespace().last().filter(|_| is_login).unwrap_or(value);
        redact::looks_like_secret(name, value).then(|| value.to_owned())
    };
    let clients = config.upstreams.iter().filter_map(|upstream| {
        let secret = upstream.access.oauth.client_secret.as_deref()?;
        redact::looks_like_secret("client_secret", secret).then(|| secret.to_owned())
    });
    let passwords = config.upstreams.iter().filter_map(|upstream| {
        let Reach::Content { database: Some(database), .. } = &upstream.reach else { return None };
        let password = password(database)?;
        redact::looks_like_secret("password", password).then(|| password.to_owned())
    });
    // Whatever a reference such as `${keyring:…}` stands for is secret, under any name.
    let kept = config.named_secrets.0.iter();
    let kept = kept.filter(|value| redact::looks_like_secret("secret", value)).cloned();
    // Basic authentication has the password in base64.
    let logins = mounted.clone().chain(given.clone()).chain(callers.clone());
    let logins = logins.filter_map(|(_, value)| basic_password(value));
    let named = mounted.chain(given).chain(callers).filter_map(secret);
    named.chain(clients).chain(passwords).chain(logins).chain(kept).collect()
}

/// The password in `Basic …`.
fn basic_password(header: &str) -> Option<String> {
    let (scheme, login) = header.split_once(' ')?;
    let login =
        STANDARD.decode(login.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let login = String::from_utf8(login).ok()?;
    let (_, password) = login.split_once(':')?;
    redact::looks_like_secret("password", password).then(|| password.to_owned())
}

/// The password in the URL of a database. It may hold any character, so the host begins
/// after the last `@`.
fn password(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let (login, _) = rest.rsplit_once('@')?;
    login.split_once(':').map(|(_, password)| password)
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::SourceFile;

    #[test]
    fn what_upstreams_are_given_in_secret_is_masked() {
        let text = r#"
            [[upstream]]
            label = "db"
            command = "db"
            env = { DB_PASSWORD = "${env:NO_SUCH_VARIABLE:-correct-horse-1}", HOME = "/home/somebody" }

            [[upstream]]
            label = "web"
            url = "http://127.0.0.1:1/mcp"
            headers = { Authorization = "Bearer abc-DEF-123", X-Team = "everybody" }
        "#;
        let source = SourceFile { name: "gatelet.toml".to_owned(), text: text.to_owned() };
        let (config, _) =
            config::parse(source, Path::new(""), &config::ProcessEnvironment).unwrap();
        assert_eq!(secrets(&config), ["correct-horse-1", "abc-DEF-123"]);
        let told = "/home/somebody correct-horse-1 everybody abc-DEF-123";
        let masked = "/home/somebody [REDACTED-SECRET] everybody [REDACTED-SECRET]";
        assert_eq!(scrubber(&config).scrub(told), masked);
    }

    #[test]
    fn what_the_operator_keeps_elsewhere_is_masked_whatever_it_is_for() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("dsn"), "host=db-Q7zzz;pw=1\n").unwrap();
        let text = r#"
            [[upstream]]
            label = "db"
            command = "db"
            args = ["--conn", "${cmd:printf kept-by-PASS-77}"]
            env = { DSN = "${file:dsn}", MODE = "${file:dsn}" }

            [[upstream]]
            label = "web"
            url = "http://127.0.0.1:1/mcp?auth=${cmd:printf in-the-URL-88}"
            headers = { Authorization = "Basic YW5uOnBhc3MtVzByZC05OQ==" }
        "#;
        let source = SourceFile { name: "gatelet.toml".to_owned(), text: text.to_owned() };
        let machine = crate::config_loader::OperatorEnvironment::new(None);
        let (config, _) = config::parse(source, home.path(), &machine).unwrap();
        for secret in ["kept-by-PASS-77", "host=db-Q7zzz;pw=1", "in-the-URL-88", "pass-W0rd-99"] {
            let masked = scrubber(&config).scrub(&format!("it is {secret} here")).into_owned();
            assert_eq!(masked, "it is [REDACTED-SECRET] here");
        }
        assert!(!format!("{:?}", config.named_secrets).contains("kept"));
    }

    #[test]
    fn what_single_callers_and_clients_and_databases_are_known_by_is_masked() {
        let text = r#"
            [[upstream]]
            label = "web"
            url = "http://127.0.0.1:1/mcp"
            [upstream.oauth]
            client_secret = "oauth-SECRET-0001"
            [upstream.callers."key:ann"]
            headers = { Authorization = "Bearer ann-DEF-123456" }
            [upstream.callers."key:bob"]
            headers = { X-Api-Key = "bob-key-GHI-789" }

            [[upstream]]
            label = "db"
            command = "db"
            [upstream.callers."key:ann"]
            env = { DB_PASSWORD = "correct-horse-2" }

            [[upstream]]
            label = "site"
            kind = "content"
            database = "postgres://user:p@ss-W0RD@host/db"
        "#;
        let source = SourceFile { name: "gatelet.toml".to_owned(), text: text.to_owned() };
        let (config, _) =
            config::parse(source, Path::new(""), &config::ProcessEnvironment).unwrap();
        for secret in [
            "oauth-SECRET-0001",
            "ann-DEF-123456",
            "bob-key-GHI-789",
            "correct-horse-2",
            "p@ss-W0RD",
        ] {
            let masked = scrubber(&config).scrub(&format!("it is {secret} here")).into_owned();
            assert_eq!(masked, "it is [REDACTED-SECRET] here");
            assert!(!format!("{config:?}").contains(secret), "{secret} is shown by {{:?}}");
        }
    }
}
