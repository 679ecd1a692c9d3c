//! The settings of a validated configuration as a table, for whoever wants to see what is
//! in force: with defaults filled in, and without secrets.

use std::time::Duration;

use crate::{
    Approvals, Artifacts, Auth, Config, Gate, Learning, Location, Meaning, Metrics, Records, Serve,
    Traces,
};

use Applies::{AfterRestart, AtOnce};

/// One setting and its value. Secrets are never in it, only whether they are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// As in the file: `serve.listen`.
    pub key: &'static str,
    /// As it would be written, `not set` where there is none, and a count for tables.
    pub value: String,
    pub applies: Applies,
}

/// When a changed setting takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// When the file is saved.
    AtOnce,
    AfterRestart,
}

impl Config {
    /// Returns every setting with its value.
    pub fn settings(&self) -> Vec<Setting> {
        // Every section is listed, so that the compiler notices a new one.
        let Config {
            upstreams,
            gate,
            shapes,
            serve,
            scripts,
            skills,
            builtin,
            auth,
            manifest,
            records,
            metrics,
            traces,
            artifacts,
            console,
            controls,
            learning,
            listed,
            meaning,
            trust: _,
            approvals,
            visibility: _,
            mounts,
            named_secrets: _,
            state,
        } = self;
        let rows = [
            serve_rows(serve),
            auth_rows(auth),
            gate_rows(gate),
            listing_rows(listed),
            search_rows(*meaning, *learning),
            approval_rows(approvals),
            vec![
                ("console.enabled", console.enabled.to_string(), AfterRestart),
                ("console.payloads", console.payloads.to_string(), AfterRestart),
                ("controls.redact", controls.redact.to_string(), AtOnce),
                ("scripts.enabled", scripts.enabled.to_string(), AfterRestart),
                ("scripts.gateway", scripts.run_tool.to_string(), AfterRestart),
                ("scripts.workers", scripts.workers.to_string(), AfterRestart),
            ],
            storage_rows(artifacts, records),
            metrics_rows(metrics),
            trace_rows(traces.as_ref()),
            vec![
                ("manifest.publisher", manifest.publisher.clone(), AfterRestart),
                ("manifest.key", is_set(manifest.key.is_some()), AfterRestart),
                ("builtin.tools", builtin.to_string(), AtOnce),
                ("skills.directories", count_or_none(skills.directories.len()), AtOnce),
                ("upstream", count_or_none(upstreams.len()), AtOnce),
                ("mount", count_or_none(mounts.len()), AtOnce),
                ("shape", count_or_none(shapes.0.len()), AtOnce),
                ("state", is_set(state.is_some()), AfterRestart),
            ],
        ];
        let rows = rows.into_iter().flatten();
        rows.map(|(key, value, applies)| Setting { key, value, applies }).collect()
    }
}

/// Key, value, and when a change takes effect.
type Row = (&'static str, String, Applies);

fn serve_rows(serve: &Serve) -> Vec<Row> {
    vec![
        ("serve.listen", serve.listen.to_string(), AfterRestart),
        ("serve.surface", serve.surface.name().to_owned(), AfterRestart),
        ("serve.hosts", joined_or_none(serve.hosts.iter().map(String::as_str)), AfterRestart),
        ("serve.open", serve.open.to_string(), AfterRestart),
        ("serve.card", serve.card.to_string(), AfterRestart),
        ("serve.tls", is_set(serve.tls.is_some()), AfterRestart),
        ("serve.limits.requests", serve.limits.requests.to_string(), AfterRestart),
        ("serve.limits.body_bytes", serve.limits.body_bytes.to_string(), AfterRestart),
        ("serve.limits.body_time", duration(serve.limits.body_time), AfterRestart),
        ("serve.limits.answer_bytes", serve.limits.answer_bytes.to_string(), AfterRestart),
    ]
}

fn auth_rows(auth: &Auth) -> Vec<Row> {
    vec![
        ("auth.required", auth.required.to_string(), AfterRestart),
        ("auth.scope", or_not_set(auth.scope.clone()), AfterRestart),
        ("auth.public_url", or_not_set(auth.public_url.clone()), AfterRestart),
        ("auth.origins", joined_or_none(auth.origins.iter().map(String::as_str)), AfterRestart),
        ("auth.issuer", count_or_none(auth.issuers.len()), AfterRestart),
    ]
}

fn gate_rows(gate: &Gate) -> Vec<Row> {
    vec![
        ("gate.limit", gate.limit.to_string(), AtOnce),
        ("gate.ceiling", or_not_set(gate.ceiling), AtOnce),
        ("gate.gated_is_error", gate.gated_is_error.to_string(), AtOnce),
        ("gate.same_data", format!("{:?}", gate.same_data).to_lowercase(), AtOnce),
    ]
}

fn listing_rows(listed: &gateway::surface::listed::Config) -> Vec<Row> {
    vec![
        ("listing.everything_below", listed.everything_below.to_string(), AtOnce),
        ("listing.pinned", count_or_none(listed.pinned.len()), AtOnce),
        ("listing.pinned_tokens", listed.tokens.to_string(), AtOnce),
        ("listing.most_used", listed.most_used.to_string(), AtOnce),
        ("listing.read_tool", listed.read_tool.to_string(), AtOnce),
        ("listing.read_only", count_or_none(listed.read_only.len()), AtOnce),
        ("listing.groups", listed.groups.to_string(), AtOnce),
    ]
}

fn search_rows(meaning: Meaning, learning: Learning) -> Vec<Row> {
    vec![
        ("search.meaning", (meaning == Meaning::Compared).to_string(), AfterRestart),
        ("learning.enabled", (learning == Learning::On).to_string(), AfterRestart),
    ]
}

fn approval_rows(approvals: &Approvals) -> Vec<Row> {
    vec![
        ("trust.confirm", format!("{:?}", approvals.confirm).to_lowercase(), AtOnce),
        ("approvals.wait", duration(approvals.stage.wait), AtOnce),
        ("approvals.remember", count_or_none(approvals.stage.remembered.len()), AtOnce),
        ("approvals.life", duration(approvals.life), AfterRestart),
        ("approvals.webhook", is_set(approvals.webhook.is_some()), AfterRestart),
    ]
}

fn storage_rows(artifacts: &Artifacts, records: &Records) -> Vec<Row> {
    vec![
        ("artifacts.store", location_name(&artifacts.location), AfterRestart),
        ("artifacts.life", duration(artifacts.bounds.ttl), AfterRestart),
        (
            "records.file",
            or_not_set(records.file.as_ref().map(|file| file.display())),
            AfterRestart,
        ),
        (
            "records.keep_days",
            or_not_set(records.keep.map(|keep| keep.as_secs() / 86_400)),
            AfterRestart,
        ),
    ]
}

fn metrics_rows(metrics: &Metrics) -> Vec<Row> {
    vec![
        ("metrics.listen", or_not_set(metrics.listen), AfterRestart),
        ("metrics.on_gate", metrics.on_gate.to_string(), AfterRestart),
        ("metrics.token", is_set(metrics.token.is_some()), AfterRestart),
        ("metrics.tools", metrics.n_tools.to_string(), AfterRestart),
    ]
}

fn trace_rows(traces: Option<&Traces>) -> Vec<Row> {
    let traced =
        |value: &dyn Fn(&Traces) -> String| traces.map_or_else(|| NOT_SET.to_owned(), value);
    vec![
        ("traces.endpoint", traced(&|traces| url_without_secrets(&traces.endpoint)), AfterRestart),
        ("traces.sample", traced(&|traces| traces.sample.to_string()), AfterRestart),
        ("traces.interval", traced(&|traces| duration(traces.interval)), AfterRestart),
        ("traces.service", traced(&|traces| traces.service.clone()), AfterRestart),
    ]
}

const NOT_SET: &str = "not set";

fn is_set(is_set: bool) -> String {
    if is_set { "set" } else { NOT_SET }.to_owned()
}

fn or_not_set(value: Option<impl ToString>) -> String {
    value.map_or_else(|| NOT_SET.to_owned(), |value| value.to_string())
}

fn joined_or_none<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn count_or_none(n_entries: usize) -> String {
    match n_entries {
        0 => "none".to_owned(),
        n => n.to_string(),
    }
}

/// `90s`, `30m`, `250ms`, as the file has it.
fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        _ if !millis.is_multiple_of(1_000) => format!("{millis}ms"),
        _ if millis == 0 || !millis.is_multiple_of(60_000) => format!("{}s", millis / 1_000),
        _ if !millis.is_multiple_of(3_600_000) => format!("{}m", millis / 60_000),
        _ => format!("{}h", millis / 3_600_000),
    }
}

/// An address without the user, password and query that may be secrets.
fn url_without_secrets(url: &reqwest::Url) -> String {
    let mut shown = url.clone();
    // Addresses without a host have neither, and take none.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.to_string()
}

fn location_name(location: &Location) -> String {
    match location {
        Location::Memory => "memory".to_owned(),
        Location::Shared => "valkey".to_owned(),
        Location::State => "disk".to_owned(),
        Location::Directory(path) => path.display().to_string(),
        Location::SharedDirectory(path) => format!("dir:{}", path.display()),
        Location::Objects(_) => "an object store".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::{ProcessEnvironment, Raw, SourceFile, parse};

    fn settings(text: &str) -> Vec<Setting> {
        let source = SourceFile { name: "gatelet.toml".to_owned(), text: text.to_owned() };
        let (config, _) = parse(source, Path::new("/etc"), &ProcessEnvironment).unwrap();
        config.settings()
    }

    #[test]
    fn every_setting_is_a_key_of_the_file() {
        let file = serde_json::to_value(Raw::default()).unwrap();
        for Setting { key, .. } in settings("") {
            let mut at = &file;
            for part in key.split('.') {
                // A table that is left out as a whole says nothing of what is in it.
                if at == &Value::Null {
                    break;
                }
                at = at.get(part).unwrap_or_else(|| panic!("`{key}` is no key of the file"));
            }
        }
    }

    #[test]
    fn values_are_as_the_file_has_them_and_secrets_are_not_there() {
        let text = "[metrics]\nlisten = \"127.0.0.1:9464\"\ntoken = \"hush-hush\"\n\
            [traces]\nendpoint = \"http://ann:hush-hush@127.0.0.1:4318/?key=hush-hush\"\nsample = 0.5\n\
            [approvals]\nwait = \"90s\"\nlife = \"2h\"\n";
        let found = settings(text);
        let value = |key: &str| {
            let setting = found.iter().find(|setting| setting.key == key);
            setting.unwrap_or_else(|| panic!("no {key}")).value.as_str()
        };
        assert_eq!((value("metrics.listen"), value("metrics.token")), ("127.0.0.1:9464", "set"));
        assert_eq!((value("traces.sample"), value("gate.ceiling")), ("0.5", "not set"));
        assert_eq!((value("approvals.wait"), value("approvals.life")), ("90s", "2h"));
        assert!(!format!("{found:?}").contains("hush"), "{found:?}");
    }

    #[test]
    fn what_needs_a_restart_is_marked_as_the_comparison_has_it() {
        let parsed = |text: &str| {
            let source = SourceFile { name: "gatelet.toml".to_owned(), text: text.to_owned() };
            parse(source, Path::new("/etc"), &ProcessEnvironment).unwrap().0
        };
        let before = parsed("");
        for changed in [
            "[serve]\nlisten = \"127.0.0.1:1\"\n",
            "[console]\npayloads = true\n",
            "[gate]\nlimit = 7\n",
            "[learning]\nenabled = true\n",
            "[approvals]\nwait = \"1s\"\n",
            "[approvals]\nlife = \"1m\"\n",
            "[listing]\nmost_used = 2\n",
        ] {
            let after = parsed(changed);
            let needs = !before.sections_needing_restart(&after).is_empty();
            let other = before.settings().into_iter().zip(after.settings());
            let marked: Vec<Setting> =
                other.filter(|(one, other)| one != other).map(|(_, other)| other).collect();
            assert_eq!(marked.len(), 1, "{changed}: {marked:?}");
            assert_eq!(marked[0].applies == Applies::AfterRestart, needs, "{changed}");
        }
    }
}
