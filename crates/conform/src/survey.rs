//! Sends requests to the server and records its replies in a transcript.
//!
//! The survey makes only harmless requests: `help` and `skill` never have side
//! effects, and a function is called only if the operator named it as a trial, or if
//! it needs no arguments and its name says that it only reads. Fields of the
//! transcript for which there is no such function stay `None`, and their checks are
//! skipped.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tool::{Ask, Call, Context, Json, Object, Provider, ReadResource, Reply, Tool};

use crate::answer::Answer;
use crate::outline::{self, Outline, Parameter};

/// The role of the server in the CaSH specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Server,
    StaticAggregator,
    DynamicAggregator,
}

/// A harmless call that the survey may make.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    pub namespace: String,
    pub function: String,
    pub kwargs: Value,
}

impl std::fmt::Display for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dot = if self.namespace.is_empty() { "" } else { "." };
        write!(f, "{}{dot}{}", self.namespace, self.function)
    }
}

/// The default size limit of the CaSH document, in characters.
const DEFAULT_LIMIT: usize = 10_000;

/// The settings of a survey.
#[derive(Clone, Debug)]
pub struct Options {
    pub role: Role,
    /// A harmless call with a short answer; the survey searches for one if `None`.
    pub trial: Option<Trial>,
    /// A harmless call whose answer is over 10,000 characters.
    pub large: Option<Trial>,
    /// The maximum number of namespaces, and of skills of each, that are visited.
    pub breadth: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { role: Role::Server, trial: None, large: None, breadth: 40 }
    }
}

/// The server that is examined: a provider, and its web address if it has one.
pub struct Subject {
    pub provider: Arc<dyn Provider>,
    pub web: Option<Arc<dyn Web>>,
}

/// Plain HTTP GET on the server's host.
#[async_trait]
pub trait Web: Send + Sync {
    /// Fetches a path; the error says why there is no response.
    async fn get(&self, path: &str, accept: &str) -> Result<Page, String>;
}

/// The response to a GET request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub status: u16,
    pub content_type: String,
    pub vary: String,
    pub body: String,
}

/// The `help` page of one namespace.
#[derive(Clone, Debug, Default)]
pub struct NamespacePage {
    pub path: String,
    pub answer: Answer,
    pub outline: Outline,
    /// The reply to the same request with another spelling of the path.
    pub respelled: Answer,
    /// Namespaces that are listed as functions.
    pub mislabelled: Vec<String>,
}

/// The `help` page of one function.
#[derive(Clone, Debug, Default)]
pub struct FunctionPage {
    pub namespace: String,
    pub function: String,
    pub answer: Answer,
    pub parameters: Vec<Parameter>,
    /// The page with `params="full"`.
    pub full: Answer,
}

/// One skill with its text.
#[derive(Clone, Debug, Default)]
pub struct SkillPage {
    pub namespace: String,
    pub name: String,
    pub answer: Answer,
}

/// The answers to several variants of one harmless call.
#[derive(Clone, Debug, Default)]
pub struct TrialResult {
    pub name: String,
    /// The call as it is.
    pub plain: Answer,
    /// With another spelling of namespace and function.
    pub respelled: Answer,
    /// With the namespace in `function`.
    pub dotted: Answer,
    /// With `sizelimit=1`.
    pub gated: Answer,
    /// With the limit that the gated answer suggests.
    pub with_suggested_limit: Option<Answer>,
    /// The call as it is once more, after those with limits.
    pub afterwards: Answer,
    /// With `sizelimit=0`, which is invalid.
    pub bad_limit: Answer,
}

/// All replies of the server.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    pub role: Option<Role>,
    pub tools: Vec<Tool>,
    pub has_resources: bool,
    /// `help` without arguments.
    pub help: Answer,
    /// `help` with an empty namespace.
    pub help_empty: Answer,
    /// `help` without arguments once more.
    pub help_again: Answer,
    /// `help` with an unknown argument in `kwargs`, and beside it.
    pub help_unknown: Answer,
    pub help_unknown_flat: Answer,
    /// `help` with `format="json"`.
    pub help_json: Answer,
    /// `help` for an unknown namespace.
    pub help_nowhere: Answer,
    /// `help` for malformed namespaces.
    pub help_bad_paths: Vec<(String, Answer)>,
    /// The entries of `help` without arguments.
    pub root: Outline,
    pub namespace_pages: Vec<NamespacePage>,
    pub function_pages: Vec<FunctionPage>,
    /// `skill` without arguments, and with an empty namespace.
    pub skills: Answer,
    pub skill_again: Answer,
    pub skill_pages: Vec<SkillPage>,
    /// `skill` for an unknown skill, and for the path of a file.
    pub skill_unknown: Answer,
    pub skill_path: Answer,
    /// `call` with an unknown namespace or function, without a function, and with an
    /// empty one.
    pub unknown_namespace: Answer,
    pub unknown_function: Option<Answer>,
    pub no_function: Answer,
    pub empty_function: Answer,
    /// `call` of an unknown function without a namespace, and with an empty one.
    pub root_function: Answer,
    pub root_function_empty: Answer,
    /// A call without a required parameter: the parameter, and the answer.
    pub bad_arguments: Option<(Parameter, Answer)>,
    /// The trial with the names of its arguments, and with another spelling of them.
    pub respelled_arguments: Option<(Answer, Answer)>,
    pub tried: Option<TrialResult>,
    /// A call of a function that needs no arguments: without `kwargs`, and with `null`.
    pub bare: Option<(Answer, Answer)>,
    /// The large trial, and the same with the suggested limit.
    pub large: Option<(Answer, Option<Answer>)>,
    /// The trials of the operator that cannot be used, each with the reason.
    pub unusable: Vec<String>,
    /// The content of the resource `cash://server`, and its media type.
    pub identity: Option<Value>,
    pub identity_type: String,
    /// The manifest on the web, fetched as any type, and as JSON.
    pub manifest: Option<Page>,
    pub manifest_json: Option<Page>,
}

/// Makes every request that the checklist needs.
pub async fn survey(subject: &Subject, options: &Options) -> Transcript {
    let client = Client { provider: Arc::clone(&subject.provider), context: Context::anonymous() };
    let listing = subject.provider.listing();
    let mut transcript = Transcript {
        role: Some(options.role),
        tools: listing.tools.clone(),
        has_resources: listing.server.capabilities.member("resources").is_some(),
        ..Transcript::default()
    };
    client.request_help(&mut transcript).await;
    client.visit_namespaces(&mut transcript, options.breadth).await;
    client.request_skills(&mut transcript, options.breadth).await;
    client.request_errors(&mut transcript).await;
    client.run_trials(&mut transcript, options).await;
    client.request_identity(&mut transcript).await;
    if let Some(web) = &subject.web {
        let path = "/.well-known/cash-mcp.yaml";
        transcript.manifest = web.get(path, "*/*").await.ok();
        transcript.manifest_json = web.get(path, "application/json").await.ok();
    }
    transcript
}

struct Client {
    provider: Arc<dyn Provider>,
    context: Context,
}

impl Client {
    async fn ask(&self, tool: &str, arguments: Value) -> Answer {
        let call = Call::new(tool, Json::from(arguments));
        Answer::from_reply(self.provider.ask(Ask::Call(call), &self.context).await)
    }

    async fn request_help(&self, transcript: &mut Transcript) {
        transcript.help = self.ask("help", json!({})).await;
        transcript.help_empty = self.ask("help", json!({"namespace": ""})).await;
        transcript.help_again = self.ask("help", json!({})).await;
        transcript.help_unknown = self.ask("help", json!({"kwargs": {"zzz": 1}})).await;
        transcript.help_unknown_flat = self.ask("help", json!({"zzz": 1})).await;
        transcript.help_json = self.ask("help", json!({"kwargs": {"format": "json"}})).await;
        transcript.help_nowhere = self.ask("help", json!({"namespace": "zzznope"})).await;
        transcript.root = outline::listing(&transcript.help.text, true);
    }

    /// Requests the pages of namespaces, breadth first, and of functions in them.
    async fn visit_namespaces(&self, transcript: &mut Transcript, breadth: usize) {
        let mut paths: Vec<String> =
            transcript.root.namespaces.iter().map(|entry| entry.name.clone()).collect();
        for entry in &transcript.root.functions {
            transcript.function_pages.push(self.function_page("", &entry.name).await);
        }
        let mut at = 0;
        while at < paths.len() && at < breadth {
            let path = paths[at].clone();
            let answer = self.ask("help", json!({"namespace": path})).await;
            let respelled = self.ask("help", json!({"namespace": respell(&path)})).await;
            let outline = outline::listing(&answer.text, false);
            for entry in &outline.namespaces {
                paths.push(format!("{path}.{}", entry.name));
            }
            let mut mislabelled = Vec::new();
            // A few of each namespace show as much as all of them.
            for entry in outline.functions.iter().take(4) {
                let page = self.function_page(&path, &entry.name).await;
                let below = format!("{path}.{}", entry.name);
                if page.answer.is_error && self.is_namespace(&below).await {
                    mislabelled.push(below);
                } else {
                    transcript.function_pages.push(page);
                }
            }
            transcript.namespace_pages.push(NamespacePage {
                path,
                answer,
                outline,
                respelled,
                mislabelled,
            });
            at += 1;
        }
        if let Some(first) = paths.first() {
            for bad in [format!("{first}..x"), format!(".{first}"), format!("{first}.")] {
                let answer = self.ask("help", json!({"namespace": bad})).await;
                transcript.help_bad_paths.push((bad, answer));
            }
        }
    }

    async fn is_namespace(&self, path: &str) -> bool {
        !self.ask("help", json!({"namespace": path})).await.is_error
    }

    async fn function_page(&self, namespace: &str, function: &str) -> FunctionPage {
        let place = json!({"namespace": namespace, "function": function});
        let answer = self.ask("help", place.clone()).await;
        let mut full = place;
        full["kwargs"] = json!({"params": "full"});
        FunctionPage {
            namespace: namespace.to_owned(),
            function: function.to_owned(),
            parameters: outline::parameters(&answer.text),
            answer,
            full: self.ask("help", full).await,
        }
    }

    async fn request_skills(&self, transcript: &mut Transcript, breadth: usize) {
        transcript.skills = self.ask("skill", json!({})).await;
        transcript.skill_again = self.ask("skill", json!({"namespace": ""})).await;
        transcript.skill_unknown = self.ask("skill", json!({"skillname": "zzznope"})).await;
        let path = json!({"skillname": "../scripts/run.sh"});
        transcript.skill_path = self.ask("skill", path).await;
        let outline = outline::listing(&transcript.skills.text, false);
        let mut places = vec![(String::new(), outline.functions)];
        for entry in outline.namespaces.iter().take(breadth) {
            let answer = self.ask("skill", json!({"namespace": entry.name})).await;
            let inner = outline::listing(&answer.text, false);
            places.push((entry.name.clone(), inner.functions));
        }
        for (namespace, entries) in places {
            for entry in entries.into_iter().take(breadth) {
                // A listing may write the namespace into the name.
                let (namespace, name) = match entry.name.rsplit_once('.') {
                    Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
                    None => (namespace.clone(), entry.name),
                };
                let place = json!({"namespace": namespace, "skillname": name});
                let answer = self.ask("skill", place).await;
                transcript.skill_pages.push(SkillPage { namespace, name, answer });
            }
        }
    }

    async fn request_errors(&self, transcript: &mut Transcript) {
        let nowhere = json!({"namespace": "zzznope", "function": "x"});
        transcript.unknown_namespace = self.ask("call", nowhere).await;
        transcript.root_function = self.ask("call", json!({"function": "zzznope"})).await;
        let root = json!({"namespace": "", "function": "zzznope"});
        transcript.root_function_empty = self.ask("call", root).await;
        let known =
            transcript.namespace_pages.first().map(|page| page.path.clone()).unwrap_or_default();
        let unknown = json!({"namespace": known, "function": "zzznope"});
        transcript.unknown_function = Some(self.ask("call", unknown).await);
        transcript.no_function = self.ask("call", json!({"namespace": known})).await;
        let empty = json!({"namespace": known, "function": ""});
        transcript.empty_function = self.ask("call", empty).await;
        let strict = transcript.function_pages.iter().find_map(|page| {
            let parameter = page.parameters.iter().find(|parameter| parameter.required)?;
            looks_read_only(&page.function).then(|| (page.clone(), parameter.clone()))
        });
        if let Some((page, parameter)) = strict {
            let call = json!({"namespace": page.namespace, "function": page.function});
            transcript.bad_arguments = Some((parameter, self.ask("call", call).await));
        }
    }

    async fn run_trials(&self, transcript: &mut Transcript, options: &Options) {
        let found = self.find_trial(transcript).await;
        if let Some(Trial { namespace, function, .. }) = &found {
            let mut call = json!({"namespace": namespace, "function": function});
            let without = self.ask("call", call.clone()).await;
            call["kwargs"] = Value::Null;
            transcript.bare = Some((without, self.ask("call", call).await));
        }
        let named = self.named_trial(transcript, options).await;
        if let Some(trial) = named.or(found) {
            transcript.respelled_arguments = self.respell_arguments(&trial).await;
            transcript.tried = Some(self.run_trial(&trial).await);
        }
        if let Some(large) = &options.large {
            self.run_large_trial(large, transcript).await;
        }
    }

    /// Returns the trial of the operator, if it can be used.
    async fn named_trial(&self, transcript: &mut Transcript, options: &Options) -> Option<Trial> {
        let trial = options.trial.clone()?;
        let mut why = self.refusal_reason(&trial).await;
        if why.is_none() && self.call(&trial, json!({})).await.is_gated() {
            why = Some("its answer is too long".to_owned());
        }
        let Some(why) = why else { return Some(trial) };
        transcript.unusable.push(format!("--trial {trial}: {why}"));
        None
    }

    async fn run_large_trial(&self, large: &Trial, transcript: &mut Transcript) {
        let gated = self.call(large, json!({})).await;
        let mut why = self.refusal_reason(large).await;
        if why.is_none() && !gated.is_gated() && !gated.is_error && gated.chars() <= DEFAULT_LIMIT {
            why = Some(format!("the answer has only {} characters", gated.chars()));
        }
        if let Some(why) = why {
            return transcript.unusable.push(format!("--large {large}: {why}"));
        }
        let full = match gated.suggested_limit() {
            Some(limit) => Some(self.call(large, json!({"sizelimit": limit})).await),
            None => None,
        };
        transcript.large = Some((gated, full));
    }

    /// Returns why the server refuses a call, in its own words: there is no such
    /// function, or an argument is missing.
    async fn refusal_reason(&self, trial: &Trial) -> Option<String> {
        let page = self.function_page(&trial.namespace, &trial.function).await;
        if page.answer.is_error {
            return Some(format!("`help` knows no such function: {}", page.answer.excerpt()));
        }
        let given = |parameter: &Parameter| {
            let keys = trial.kwargs.as_object().into_iter().flat_map(serde_json::Map::keys);
            keys.into_iter().any(|key| canonical(key) == canonical(&parameter.name))
        };
        let lacking = page.parameters.iter().find(|one| one.required && !given(one));
        lacking.map(|parameter| format!("it needs `{}`", parameter.name))
    }

    async fn find_trial(&self, transcript: &Transcript) -> Option<Trial> {
        for page in &transcript.function_pages {
            let needs_nothing = page.parameters.iter().all(|parameter| !parameter.required);
            if !needs_nothing || !looks_read_only(&page.function) {
                continue;
            }
            let trial = Trial {
                namespace: page.namespace.clone(),
                function: page.function.clone(),
                kwargs: json!({}),
            };
            let answer = self.call(&trial, json!({})).await;
            if !answer.is_error && 12 <= answer.chars() && !answer.is_gated() {
                return Some(trial);
            }
        }
        None
    }

    async fn run_trial(&self, trial: &Trial) -> TrialResult {
        let plain = self.call(trial, json!({})).await;
        let other = json!({
            "namespace": respell(&trial.namespace),
            "function": respell(&trial.function),
        });
        let dotted = json!({
            "function": format!("{}.{}", trial.namespace, trial.function), "kwargs": trial.kwargs,
        });
        let gated = self.call(trial, json!({"sizelimit": 1})).await;
        let with_suggested_limit = match gated.suggested_limit() {
            Some(limit) => Some(self.call(trial, json!({"sizelimit": limit})).await),
            None => None,
        };
        TrialResult {
            name: format!("{}.{}", trial.namespace, trial.function),
            plain,
            respelled: self.call(trial, other).await,
            dotted: self.ask("call", dotted).await,
            gated,
            with_suggested_limit,
            afterwards: self.call(trial, json!({})).await,
            bad_limit: self.call(trial, json!({"sizelimit": 0})).await,
        }
    }

    /// Calls the trial with the names of its arguments, and with another spelling.
    async fn respell_arguments(&self, trial: &Trial) -> Option<(Answer, Answer)> {
        let kwargs = trial.kwargs.as_object().filter(|kwargs| !kwargs.is_empty())?;
        let other: serde_json::Map<String, Value> =
            kwargs.iter().map(|(key, value)| (respell(key), value.clone())).collect();
        let exact = self.call(trial, json!({})).await;
        let respelled = self.call(trial, json!({"kwargs": other})).await;
        Some((exact, respelled))
    }

    async fn call(&self, trial: &Trial, changes: Value) -> Answer {
        let mut arguments = json!({
            "namespace": trial.namespace, "function": trial.function, "kwargs": trial.kwargs,
        });
        for (key, value) in changes.as_object().into_iter().flatten() {
            arguments[key] = value.clone();
        }
        self.ask("call", arguments).await
    }

    async fn request_identity(&self, transcript: &mut Transcript) {
        let read = ReadResource { uri: "cash://server".to_owned(), other_params: Object::new() };
        let Ok(Reply::Result(json)) =
            self.provider.ask(Ask::ReadResource(read), &self.context).await
        else {
            return;
        };
        let Ok(result) = json.to_value() else { return };
        let content = &result["contents"][0];
        transcript.identity_type = content["mimeType"].as_str().unwrap_or_default().to_owned();
        let text = content["text"].as_str().unwrap_or_default();
        transcript.identity = serde_json::from_str(text).ok();
    }
}

/// Returns another spelling of the same identifier: upper case, with underscores.
pub fn respell(path: &str) -> String {
    let label = |label: &str| {
        let letters: Vec<String> = label
            .chars()
            .filter(|c| *c != '_')
            .map(|c| c.to_ascii_uppercase().to_string())
            .collect();
        letters.join("_")
    };
    path.split('.').map(label).collect::<Vec<_>>().join(".")
}

/// Returns the canonical form of a label: lower case, without underscores.
pub fn canonical(label: &str) -> String {
    label.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect()
}

/// First words of the names of functions that only read.
#[rustfmt::skip]
const READING_WORDS: &[&str] = &[
    "check", "count", "current", "describe", "find", "get", "info", "list", "now", "read",
    "search", "show", "status", "summary", "time", "version",
];

/// Words that show that a function does more than reading, such as `check_in` and
/// `get_or_create`.
#[rustfmt::skip]
const CHANGING_WORDS: &[&str] = &[
    "add", "and", "append", "apply", "approve", "archive", "assign", "book", "buy", "cancel",
    "change", "charge", "clear", "close", "confirm", "create", "delete", "deploy", "disable",
    "drop", "edit", "enable", "exec", "execute", "grant", "import", "in", "insert", "install",
    "invite", "kill", "lock", "mark", "merge", "modify", "move", "notify", "off", "on", "or",
    "out", "pay", "publish", "purge", "push", "put", "register", "reject", "remove", "rename",
    "replace", "reply", "reserve", "reset", "restart", "revoke", "save", "send", "set", "start",
    "stop", "submit", "subscribe", "sync", "then", "trigger", "unlock", "update", "upload",
    "upsert", "write",
];

/// Returns whether the name of a function says that it only reads. In doubt it does
/// not, because the call runs on somebody's server.
fn looks_read_only(function: &str) -> bool {
    let words = words(function);
    let begins = words.first().is_some_and(|first| READING_WORDS.contains(&first.as_str()));
    begins && !words.iter().any(|word| CHANGING_WORDS.contains(&word.as_str()))
}

/// Splits a name into words: `getTime`, `get-time` and `get_time` have the same.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (was_lower && c.is_uppercase()) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_spelling_has_the_same_canonical_form() {
        for label in ["orders", "Order_Mgmt", "a1"] {
            assert_eq!(canonical(&respell(label)), canonical(label));
            assert_ne!(respell(label), label);
        }
        assert_eq!(respell("a.bc"), "A.B_C");
    }

    #[test]
    fn only_what_sounds_harmless_is_tried() {
        assert!(looks_read_only("list_orders") && looks_read_only("getTime"));
        assert!(
            looks_read_only("GET_TIME")
                && looks_read_only("status")
                && looks_read_only("search.all-orders")
        );
        assert!(!looks_read_only("delete_all") && !looks_read_only("create"));
        for acts in [
            "checkout",
            "check_in",
            "checkOut",
            "listen",
            "inform_customer",
            "get_or_create",
            "status_update",
            "find-and-replace",
            "getaway",
            "timeout",
            "",
        ] {
            assert!(!looks_read_only(acts), "{acts}");
        }
    }
}
