//! Labels and names with odd characters: what `help` shows can be denied, limited,
//! called dangerous and hidden, under every spelling that can call it; and what is
//! allowed is that one function.

use catalog::name;
use policy::approval::TokenApproval;
use policy::pattern::Pattern;
use policy::rules::{Action, Rule, Rules};
use policy::trust::{self, Danger};
use policy::{quota, rules};
use proptest::prelude::*;
use tool::Tool;
use tool::clock::Fake;

use super::*;

/// A function, as its upstream and the operator call it.
#[derive(Clone, Debug)]
struct Odd {
    label: String,
    name: String,
    /// Others of the same upstream.
    others: Vec<String>,
}

impl Odd {
    fn upstream(&self) -> Upstream {
        let names = std::iter::once(&self.name).chain(&self.others);
        let read = |name: &String| {
            let raw = json!({"name": name, "inputSchema": {"type": "object"}});
            Tool::parse(raw.into()).unwrap()
        };
        let provider = Scripted::new(listing(names.map(read).collect()), |ask| {
            let Ask::Call(call) = ask else { return Ok(Reply::text("?")) };
            Ok(Reply::text(&format!("ran {}", call.name)))
        });
        Upstream::new(&self.label, Scripts::of(provider))
    }

    async fn open(&self, change: impl FnOnce(&mut crate::gateway::GatewayParts)) -> Opened {
        open(vec![self.upstream()], change).await
    }

    /// Where `help` shows it: its namespace and its name there.
    fn shown(&self, opened: &Opened) -> (String, String) {
        let snapshot = opened.gateway.roster().current_snapshot();
        let catalog = &snapshot.catalog;
        let is_it = |slot: &catalog::Slot| {
            !catalog.is_builtin(*slot) && catalog.tool(*slot).name == self.name
        };
        let slot = catalog.slots().find(is_it).unwrap();
        (catalog.path(slot).to_owned(), catalog.function(slot).name.clone())
    }

    /// Ways to write it in a call: namespace and function.
    fn calls(&self, opened: &Opened) -> Vec<(String, String)> {
        let (path, shown) = self.shown(opened);
        let mut calls = Vec::new();
        for path in [path.clone(), path.to_uppercase(), path.replace('_', "-")] {
            for function in [shown.clone(), shown.to_uppercase(), self.name.clone()] {
                calls.push((path.clone(), function));
            }
        }
        calls
    }

    /// Ways to write it in a rule.
    fn patterns(&self, opened: &Opened) -> Vec<String> {
        let (path, shown) = self.shown(opened);
        let alias = name::alias(&self.label);
        let mut patterns = vec![
            format!("{path}.{shown}"),
            format!("{path}.{shown}").to_uppercase(),
            format!("{alias}:{}", below(&path, &shown)),
            format!("{alias}/{}", below(&path, &shown).replace('_', "-")),
            shown,
        ];
        if !self.name.contains(['*', '?']) {
            patterns.push(self.name.clone());
            patterns.push(format!("{alias}/{}", self.name));
            patterns.push(format!("{}:{}", self.label, self.name));
            patterns.push(format!("{}/{}", self.label, self.name));
            patterns.push(format!("{}.{}", self.label, self.name));
        }
        patterns
    }

    /// Whether what is written so may allow it: any server can give a tool a name with
    /// a label of another in it.
    fn may_be_allowed_by(&self, pattern: &str) -> bool {
        pattern != self.name || !self.name.contains(['.', ':', '/'])
    }

    /// Ways to hide it.
    fn hides(&self, opened: &Opened) -> Vec<String> {
        let (path, shown) = self.shown(opened);
        let mut hides = vec![format!("{path}.{shown}"), format!("function:{shown}"), path];
        if !self.name.contains(['*', '?']) {
            hides.push(format!("function:{}", self.name));
            hides.push(format!("{}.{}", self.label, self.name));
            hides.push(format!("{}/{}", self.label, self.name));
            hides.push(self.label.clone());
        }
        hides
    }
}

/// What stands below the label.
fn below(path: &str, shown: &str) -> String {
    match path.split_once('.') {
        Some((_, levels)) => format!("{levels}.{shown}"),
        None => shown.to_owned(),
    }
}

async fn call(opened: &Opened, (namespace, function): &(String, String)) -> String {
    opened.say("call", json!({"namespace": namespace, "function": function})).await
}

fn ruled(default: Action, action: Action, pattern: &str) -> Stages {
    let rule = Rule { tool: Some(Pattern::new(pattern)), ..Rule::any(action) };
    let config = rules::Config { default, rules: vec![rule] };
    Stages { checks: vec![Arc::new(Rules::new(config)) as _], ..Stages::default() }
}

/// Everything that has to hold for one function.
async fn check(odd: &Odd) {
    let plain = odd.open(|_| {}).await;
    let ran = format!("ran {}", odd.name);
    let mut ways = Vec::new();
    for way in odd.calls(&plain) {
        if call(&plain, &way).await == ran {
            ways.push(way);
        }
    }
    assert!(!ways.is_empty(), "what help shows can be called: {odd:?}");
    for pattern in odd.patterns(&plain) {
        let why = format!("{pattern:?} for {odd:?}");
        let denied =
            odd.open(|parts| parts.policies.stages = ruled(Action::Allow, Action::Deny, &pattern));
        let denied = denied.await;
        for way in &ways {
            let said = call(&denied, way).await;
            assert!(said.contains("policy denied"), "denied by {why}: {said}");
        }
        let rate = quota::Rate { per_minute: None, per_session: Some(1) };
        let limits = vec![(Pattern::new(&pattern), rate)];
        let limits = quota::Config { tools: limits, ..quota::Config::default() };
        let limiter = Arc::new(quota::Limiter::new(limits, Arc::new(Fake::default())));
        let limited = odd.open(|parts| {
            parts.policies.stages = Stages { quota: limiter, ..Stages::default() };
        });
        let limited = limited.await;
        assert_eq!(call(&limited, &ways[0]).await, ran, "{why}");
        for way in &ways {
            let said = call(&limited, way).await;
            assert!(said.contains("rate limit"), "limited by {why}: {said}");
        }
        let named = plain.gateway.roster().current_snapshot();
        let slot = named.catalog.slots().find(|slot| {
            !named.catalog.is_builtin(*slot) && named.catalog.tool(*slot).name == odd.name
        });
        let callee = named.target(slot.unwrap()).callee;
        let config = trust::Config {
            rules: vec![(Pattern::new(&pattern), Danger::Destructive)],
            ..trust::Config::default()
        };
        let danger = config.danger(callee.names(), &tool::Annotations::default());
        assert_eq!(danger, Danger::Destructive, "{why}");
        if odd.others.is_empty() && odd.may_be_allowed_by(&pattern) {
            let allowed = ruled(Action::Deny, Action::Allow, &pattern);
            let allowed = odd.open(|parts| parts.policies.stages = allowed).await;
            assert_eq!(call(&allowed, &ways[0]).await, ran, "allowed by {why}");
        }
    }
    for hide in odd.hides(&plain) {
        // A colon is what parts a kind from a name there.
        let Ok(what) = hide.parse() else { continue };
        let why = hide;
        let hide = visibility::Rule { hide: vec![what], ..visibility::Rule::default() };
        let config = visibility::Config { rules: vec![hide], ..visibility::Config::default() };
        let hidden = odd.open(|parts| parts.policies.visibility = config.into()).await;
        for way in &ways {
            let said = call(&hidden, way).await;
            assert!(said.starts_with("!**Error:** No "), "hidden by {why}: {odd:?}: {said}");
        }
    }
}

fn block_on(future: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(future);
}

/// Names that once were not ruled, or look as if they might not be.
#[test]
fn odd_names_are_ruled() {
    for (label, name) in [
        ("a", ".a/"),
        ("pbé--", "pb.x/"),
        ("a", "a.a"),
        ("a/b:c", "a/b:c"),
        ("up", "./."),
        ("日本", "東京"),
        ("up", "a.b.c.d.e"),
        ("up", "a*b?"),
    ] {
        let odd = Odd { label: label.to_owned(), name: name.to_owned(), others: Vec::new() };
        block_on(check(&odd));
    }
}

/// Letters, signs that part names, and characters that change when their case does.
const ODD: &str = "[a-zA-Z0-9 ._/:#@|*?é\u{301}ßİıſKς日-]{1,12}";

/// A name: of odd characters, or words with separators at every place, empty levels
/// among them.
fn odd_name() -> impl Strategy<Value = String> {
    let parts = prop::collection::vec(
        prop::sample::select(vec!["a", "b", "A", "é", "", "_", "up", ".", "/", ":", "#", "-", " "]),
        1..8,
    );
    prop_oneof![ODD, parts.prop_map(|parts| parts.concat()), "[./:#-]{1,4}"]
        .prop_filter("a tool has a name", |name| !name.trim().is_empty())
}

/// A label, and a name that often repeats it.
fn label_and_name() -> impl Strategy<Value = (String, String)> {
    let label =
        odd_name().prop_filter("a label is no pattern", |label| !label.contains(['*', '?']));
    (label, odd_name(), 0..4_usize).prop_map(|(label, name, repeats)| match repeats {
        0 => (label.clone(), label),
        1 => (label.clone(), format!("{label}.{name}")),
        _ => (label, name),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn what_help_shows_can_be_ruled_under_every_spelling_that_can_call_it(
        (label, name) in label_and_name(),
    ) {
        prop_assume!(!name::same(&label, "gatelet"));
        block_on(check(&Odd { label, name, others: Vec::new() }));
    }

    /// Of functions that differ only in spelling, an allowed one is the only one.
    #[test]
    fn what_is_allowed_allows_nothing_that_is_spelled_alike(
        words in prop::collection::vec("[a-z]{1,4}", 2..4), at in 0usize..4,
    ) {
        let camel = words.iter().map(|w| format!("{}{}", w[..1].to_uppercase(), &w[1..])).collect();
        let mut names = vec![words.join("_"), words.join("-"), camel, words.join(" ")];
        let name = names.remove(at);
        let odd = Odd { label: "my-up".to_owned(), name, others: names };
        block_on(async {
            check(&odd).await;
            let allowed = ruled(Action::Deny, Action::Allow, &format!("my-up/{}", odd.name));
            let allowed = odd.open(|parts| {
                parts.policies.stages = Stages {
                    approval: Arc::new(TokenApproval::new(Arc::new(Fake::default()))),
                    ..allowed
                };
            });
            let allowed = allowed.await;
            let own = ("my_up".to_owned(), odd.name.clone());
            assert_eq!(call(&allowed, &own).await, format!("ran {}", odd.name));
            for other in &odd.others {
                let said = call(&allowed, &("my_up".to_owned(), other.clone())).await;
                assert!(said.contains("policy denied"), "{other:?} for {odd:?}: {said}");
            }
        });
    }
}
