//! `[controls]`: limits, rules, and what is done about failures. All off until
//! configured.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use catalog::name;
use document::tree::Path;
use gateway::surface::meta;
use policy::attempt::{self, UpstreamLimits};
use policy::pattern::Pattern;
use policy::{breaker, cache, quota, retry, rules};
use roster::{listing_check, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problems;
use super::schema_check::closest_name;
use super::text;

/// Limits, rules, and what is done about failures. All off until configured.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Controls")]
pub(crate) struct Raw {
    /// What happens to calls that no rule fits. `allow` when left out.
    default: Option<Action>,
    /// What may be called: the first rule that fits decides.
    #[serde(default)]
    rule: Vec<Rule>,
    /// How often things may be done.
    #[serde(default)]
    rate: Vec<Rate>,
    #[serde(default)]
    retry: Retry,
    #[serde(default)]
    cache: Cache,
    #[serde(default)]
    breaker: Breaker,
    /// How long calls may take and how many run at once, for every upstream.
    #[serde(default)]
    calls: Calls,
    /// The same for single upstreams, by label.
    #[serde(default)]
    upstreams: BTreeMap<String, Calls>,
    /// Whether `"42"` becomes 42 where a schema asks for a number. Gateway and proxy surfaces only.
    #[serde(default)]
    tolerant: bool,
    /// Cards per browse unless the caller asks for another number, from 1 to 50. 10 when left out.
    #[schemars(range(min = 1, max = 50))]
    top_k: Option<usize>,
    /// Whether repeated browses keep a stable beginning, for prompt caches.
    #[serde(default)]
    cache_stable: bool,
    /// Whether secrets in answers are masked. On when left out.
    redact: Option<bool>,
    /// How big a schema may be before it is reported.
    #[serde(default)]
    schemas: Schemas,
    /// What upstreams are expected to list, by label.
    #[serde(default)]
    pins: BTreeMap<String, Pin>,
}

/// How big a schema may be before it is reported.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Schemas {
    /// 65536 when left out.
    #[schemars(range(min = 1))]
    max_bytes: Option<usize>,
    /// 32 when left out.
    #[schemars(range(min = 1))]
    max_depth: Option<usize>,
    /// Properties at all levels together. 512 when left out.
    #[schemars(range(min = 1))]
    max_properties: Option<usize>,
}

/// What an upstream is expected to list.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pin {
    /// As `gatelet upstreams --report` tells it.
    expected_hash: String,
    /// `warn` (the default): what lists something else is reported; `strict`: it is not used.
    mode: Option<PinMode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PinMode {
    Warn,
    Strict,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Allow,
    Deny,
    /// The user has to agree first.
    Ask,
}

/// A rule; what is left out fits everything.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// `allow`, `deny` or `ask`.
    action: Action,
    /// `tool_execute`, `tool_view`, `resource_read` or `prompt_get`.
    meta_tool: Option<MetaTool>,
    /// The upstream's label; `*` and `?` work.
    namespace: Option<String>,
    /// `files:write_file`, `files.write_file` or `write_file`; `*` and `?` work.
    tool: Option<String>,
    /// All of these must be there: `read-only`, `destructive`.
    #[serde(default)]
    tags: Vec<String>,
    /// Whether the tool calls itself read-only.
    read_only: Option<bool>,
    /// What to tell who is refused.
    reason: Option<String>,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum MetaTool {
    ToolExecute,
    ToolView,
    ResourceRead,
    PromptGet,
}

impl MetaTool {
    fn word(self) -> &'static str {
        match self {
            MetaTool::ToolExecute => "tool_execute",
            MetaTool::ToolView => "tool_view",
            MetaTool::ResourceRead => "resource_read",
            MetaTool::PromptGet => "prompt_get",
        }
    }
}

/// A limit: on a `tool`, on a `meta_tool`, or on everything one identity does.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rate {
    /// Within a session: `files:write_file`, `files.*`, …
    tool: Option<String>,
    /// Within a session: `tool_execute`, `tool_browse`, …
    meta_tool: Option<String>,
    #[schemars(range(min = 1))]
    per_minute: Option<u32>,
    #[schemars(range(min = 1))]
    per_session: Option<u32>,
}

/// Whether a call that failed is made again.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Retry {
    /// Attempts in all. 1 when left out: nothing is made again.
    #[schemars(range(min = 1))]
    attempts: Option<u32>,
    /// The pause before the second attempt; doubled each time. `100ms` when left out.
    base_delay: Option<String>,
    /// No pause is longer. `5s` when left out.
    max_delay: Option<String>,
    /// How much of a pause is left to chance, from 0 to 1.
    jitter: Option<f64>,
    /// Tools that may run twice, whatever they say of themselves.
    #[serde(default)]
    repeatable: Vec<String>,
    /// Whether tools are believed that call themselves read-only or idempotent. On when left out.
    hints: Option<bool>,
}

/// Answers of read-only tools that are given again.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cache {
    /// Keep answers of tools that call themselves read-only.
    #[serde(default)]
    read_only: bool,
    /// How long. `1m` when left out.
    life: Option<String>,
    /// How many. 256 when left out.
    #[schemars(range(min = 1))]
    entries: Option<usize>,
    /// Only these tools.
    allow: Option<Vec<String>>,
}

/// When an upstream that keeps failing is left alone.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Breaker {
    /// After this many failures in a row. Never when left out.
    #[schemars(range(min = 1))]
    failures: Option<u32>,
    /// For this long. `30s` when left out.
    pause: Option<String>,
    /// Then so many calls at once may try. 1 when left out.
    #[schemars(range(min = 1))]
    probes: Option<u32>,
    /// And so many answers in a row make it well again. 1 when left out.
    #[schemars(range(min = 1))]
    answers: Option<u32>,
}

/// How long calls may take and how many run at once.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Calls {
    /// How long one attempt may take.
    timeout: Option<String>,
    /// How many calls run at once.
    #[schemars(range(min = 1))]
    at_once: Option<usize>,
    /// How long a call waits for its turn. `30s` when left out.
    patience: Option<String>,
}

/// The validated `[controls]` section.
#[derive(Clone, Debug, PartialEq)]
pub struct Controls {
    pub rules: rules::Config,
    pub rates: quota::Config,
    pub cache: cache::Config,
    pub calls: attempt::Config,
    /// The settings of the gateway and proxy surfaces' own tools.
    pub meta: meta::Config,
    /// Whether secrets in answers are masked.
    pub redact: bool,
    pub inspection: listing_check::Config,
}

/// Parses the section; `labels` are the labels of all upstreams.
pub(crate) fn parse(raw: Raw, labels: &[&str], problems: &mut Problems) -> Controls {
    let mut section = Section { path: Path::default().key("controls"), problems };
    let rules = rules::Config {
        default: raw.default.map_or(rules::Action::Allow, Action::into_policy),
        rules: raw.rule.into_iter().map(Rule::into_policy).collect(),
    };
    let default_limits =
        section.limits(&section.path.key("calls"), raw.calls, &UpstreamLimits::default());
    let calls = attempt::Config {
        retry: section.retry(raw.retry),
        breaker: section.breaker(raw.breaker),
        upstream_limits: section.upstream_limits(raw.upstreams, &default_limits, labels),
        default_limits,
    };
    Controls {
        rules,
        rates: section.rates(raw.rate),
        cache: section.cache(raw.cache),
        calls,
        meta: meta::Config {
            tolerant: raw.tolerant,
            cache_stable: raw.cache_stable,
            run_tool: false,
            top_k: raw.top_k.unwrap_or(meta::Config::default().top_k),
            ..meta::Config::default()
        },
        redact: raw.redact.unwrap_or(true),
        inspection: listing_check::Config {
            limits: limits(&raw.schemas),
            pins: section.pins(raw.pins, labels),
        },
    }
}

fn limits(raw: &Schemas) -> schema::Limits {
    let usual = schema::Limits::default();
    schema::Limits {
        bytes: raw.max_bytes.unwrap_or(usual.bytes),
        depth: raw.max_depth.unwrap_or(usual.depth),
        properties: raw.max_properties.unwrap_or(usual.properties),
    }
}

impl Action {
    fn into_policy(self) -> rules::Action {
        match self {
            Action::Allow => rules::Action::Allow,
            Action::Deny => rules::Action::Deny,
            Action::Ask => rules::Action::Ask,
        }
    }
}

impl Rule {
    fn into_policy(self) -> rules::Rule {
        rules::Rule {
            action: self.action.into_policy(),
            meta_tool: self.meta_tool.map(|name| name.word().to_owned()),
            namespace: self.namespace.as_deref().map(Pattern::new),
            tool: self.tool.as_deref().map(Pattern::new),
            tags: self.tags,
            read_only: self.read_only,
            reason: self.reason,
        }
    }
}

/// Parses the tables of the section.
struct Section<'p> {
    path: Path,
    problems: &'p mut Problems,
}

impl Section<'_> {
    fn duration(&mut self, path: &Path, written: Option<String>) -> Option<Duration> {
        written.and_then(|text| self.problems.parse(path, &text, text::parse_duration))
    }

    fn rates(&mut self, raw: Vec<Rate>) -> quota::Config {
        let mut config = quota::Config::default();
        for (at, raw) in raw.into_iter().enumerate() {
            let path = self.path.key("rate").index(at);
            let rate = quota::Rate { per_minute: raw.per_minute, per_session: raw.per_session };
            if rate == quota::Rate::default() {
                let hint = "say `per_minute`, `per_session` or both";
                self.problems.error(&path, "limits nothing", Some(hint));
            }
            match (raw.tool, raw.meta_tool) {
                (Some(tool), None) => config.tools.push((Pattern::new(&tool), rate)),
                (None, Some(name)) => {
                    let known: Vec<&str> = meta::names().collect();
                    if !known.contains(&name.as_str()) {
                        let hint = closest_name(&name, known.iter().copied());
                        let hint = hint.map(|name| format!("did you mean `{name}`?"));
                        let hint = hint.unwrap_or_else(|| format!("use {}", known.join(", ")));
                        let message = format!("there is no meta-tool `{name}`");
                        self.problems.error(&path.key("meta_tool"), message, Some(&hint));
                    }
                    config.meta.push((name, rate));
                }
                (None, None) => config.identity = rate,
                (Some(_), Some(_)) => {
                    let hint = "write one `[[controls.rate]]` for each";
                    self.problems.error(&path, "has a `tool` and a `meta_tool`", Some(hint));
                }
            }
        }
        config
    }

    fn pins(
        &mut self,
        raw: BTreeMap<String, Pin>,
        labels: &[&str],
    ) -> HashMap<String, listing_check::Pin> {
        let mut pins = HashMap::new();
        for (label, pin) in raw {
            let path = self.path.key("pins").key(&label);
            check_label(&label, labels, &path, self.problems);
            let digits = pin.expected_hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            if pin.expected_hash.len() != 64 || !digits {
                let hint = "`gatelet upstreams --report` tells it";
                let path = path.key("expected_hash");
                self.problems.error(&path, "is no hash of 64 hexadecimal digits", Some(hint));
            }
            let strictness = match pin.mode {
                Some(PinMode::Strict) => listing_check::Strictness::Strict,
                Some(PinMode::Warn) | None => listing_check::Strictness::Warn,
            };
            pins.insert(label, listing_check::Pin { hash: pin.expected_hash, strictness });
        }
        pins
    }

    fn retry(&mut self, raw: Retry) -> retry::Config {
        let path = self.path.key("retry");
        let usual = retry::Config::default();
        let base_delay = self.duration(&path.key("base_delay"), raw.base_delay);
        let max_delay = self.duration(&path.key("max_delay"), raw.max_delay);
        let config = retry::Config {
            attempts: raw.attempts.unwrap_or(usual.attempts),
            base_delay: base_delay.unwrap_or(usual.base_delay),
            max_delay: max_delay.unwrap_or(usual.max_delay),
            jitter: raw.jitter.unwrap_or(usual.jitter),
            repeatable: patterns(&raw.repeatable),
            hints: match raw.hints {
                Some(false) => retry::Hints::Ignored,
                Some(true) | None => retry::Hints::Believed,
            },
            codes: usual.codes,
        };
        if let Err(invalid) = config.check() {
            self.problems.error(&path, invalid.to_string(), None);
        }
        config
    }

    fn cache(&mut self, raw: Cache) -> cache::Config {
        let path = self.path.key("cache");
        if raw.allow.is_some() && !raw.read_only {
            let hint = "say `read_only = true` too";
            self.problems.warning(&path.key("allow"), "the cache is off", Some(hint));
        }
        let usual = cache::Config::default();
        cache::Config {
            read_only: raw.read_only,
            life: self.duration(&path.key("life"), raw.life).unwrap_or(usual.life),
            entries: raw.entries.unwrap_or(usual.entries),
            bytes: usual.bytes,
            allow: raw.allow.as_deref().map(patterns),
        }
    }

    fn breaker(&mut self, raw: Breaker) -> breaker::Config {
        let usual = breaker::Config::default();
        let pause = self.path.key("breaker").key("pause");
        breaker::Config {
            failures: raw.failures.unwrap_or(usual.failures),
            pause: self.duration(&pause, raw.pause).unwrap_or(usual.pause),
            probes: raw.probes.unwrap_or(usual.probes),
            answers: raw.answers.unwrap_or(usual.answers),
        }
    }

    fn limits(&mut self, path: &Path, raw: Calls, usual: &UpstreamLimits) -> UpstreamLimits {
        UpstreamLimits {
            timeout: self.duration(&path.key("timeout"), raw.timeout).or(usual.timeout),
            at_once: raw.at_once.or(usual.at_once),
            patience: self.duration(&path.key("patience"), raw.patience).or(usual.patience),
        }
    }

    fn upstream_limits(
        &mut self,
        raw: BTreeMap<String, Calls>,
        usual: &UpstreamLimits,
        labels: &[&str],
    ) -> HashMap<String, UpstreamLimits> {
        let mut upstream_limits = HashMap::new();
        for (label, calls) in raw {
            let path = self.path.key("upstreams").key(&label);
            check_label(&label, labels, &path, self.problems);
            let limits = self.limits(&path, calls, usual);
            upstream_limits.insert(label, limits);
        }
        upstream_limits
    }
}

/// Reports a label that no upstream has.
pub(crate) fn check_label(label: &str, labels: &[&str], path: &Path, problems: &mut Problems) {
    if !labels.iter().any(|known| name::means(known, label)) {
        let hint = closest_name(label, labels.iter().copied());
        let hint = hint.map(|name| format!("did you mean `{name}`?"));
        let message = format!("there is no upstream `{label}`");
        problems.error(path, message, hint.as_deref());
    }
}

fn patterns(texts: &[String]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(text)).collect()
}
