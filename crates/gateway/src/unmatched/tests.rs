use serde_json::json;
use testkit::{Scripted, listing, tool};
use tool::{Failure, Reply};

use super::*;
use crate::fixture::{Opened, Scripts, open};
use policy::rules::{Action, Rule};
use roster::Upstream;

/// Nothing is written anywhere.
#[derive(Default)]
struct Configured {
    rules: rules::Config,
    rates: quota::Config,
    cache: cache::Config,
    default_picks: crate::dispatch::DefaultPicks,
    retry: retry::Config,
    trust: trust::Config,
    visibility: visibility::Config,
}

impl Configured {
    fn found(&self, opened: &Opened) -> Vec<String> {
        let written = ConfiguredPatterns {
            rules: &self.rules,
            rates: &self.rates,
            cache: &self.cache,
            default_picks: &self.default_picks,
            retry: &self.retry,
            trust: &self.trust,
            visibility: &self.visibility,
        };
        opened.gateway.unmatched(&written).iter().map(|one| one.subject.clone()).collect()
    }
}

fn rule(action: Action, namespace: Option<&str>, tool: Option<&str>) -> Rule {
    let pattern = |text: Option<&str>| text.map(Pattern::new);
    Rule { namespace: pattern(namespace), tool: pattern(tool), ..Rule::any(action) }
}

fn files() -> Upstream {
    let tools = ["read_file", "write-file", "dir.list"].map(|name| tool(name, "", &json!({})));
    let provider = Scripted::new(listing(tools.to_vec()), |_| Ok(Reply::text("")));
    Upstream::new("my-files", Scripts::of(provider))
}

fn unreachable(label: &str) -> Upstream {
    let connect = |_, _: &_| Err(Failure::Unavailable { reason: "away".to_owned() });
    Upstream::new(label, Scripts::new(connect))
}

#[tokio::test(start_paused = true)]
async fn every_place_that_names_nothing_is_told() {
    let opened = open(vec![files()], |_| {}).await;
    let missing = "my-files.raed_file";
    let pattern = Pattern::new(missing);
    let configured = Configured {
        rules: rules::Config {
            default: Action::Allow,
            rules: vec![
                rule(Action::Deny, None, Some(missing)),
                rule(Action::Allow, Some("your-files"), None),
                rule(Action::Deny, Some("my_files"), Some("nothing")),
                rule(Action::Deny, None, None),
            ],
        },
        rates: quota::Config {
            tools: vec![(pattern.clone(), quota::Rate::default())],
            ..quota::Config::default()
        },
        cache: cache::Config { allow: Some(vec![pattern.clone()]), ..cache::Config::default() },
        default_picks: crate::dispatch::DefaultPicks(vec![(
            pattern.clone(),
            artifacts::pick::Pick::parse(&json!(".").into()).unwrap(),
        )]),
        retry: retry::Config { repeatable: vec![pattern.clone()], ..retry::Config::default() },
        trust: trust::Config {
            rules: vec![(pattern, trust::Danger::Safe)],
            ..trust::Config::default()
        },
        visibility: visibility::Config {
            rules: vec![visibility::Rule {
                hide: ["myfiles.raed_file", "function:gone", "skill:gone", "prompt:gone"]
                    .map(|text| text.parse().unwrap())
                    .to_vec(),
                show: vec!["gone".parse().unwrap()],
                ..visibility::Rule::default()
            }],
            ..visibility::Config::default()
        },
    };
    let expected = [
        "controls.rule[0]",
        "controls.rule[1]",
        "controls.rule[2]",
        "controls.rate[0]",
        "controls.cache.allow[0]",
        "shape[0]",
        "controls.retry.repeatable[0]",
        "trust.rule[0]",
        "visibility.rule[0].show[0]",
        "visibility.rule[0].hide[0]",
        "visibility.rule[0].hide[1]",
        "visibility.rule[0].hide[2]",
        "visibility.rule[0].hide[3]",
    ];
    assert_eq!(configured.found(&opened), expected);
    let written = ConfiguredPatterns {
        rules: &configured.rules,
        rates: &quota::Config::default(),
        cache: &cache::Config::default(),
        default_picks: &crate::dispatch::DefaultPicks::default(),
        retry: &retry::Config::default(),
        trust: &trust::Config::default(),
        visibility: &visibility::Config::default(),
    };
    let told = opened.gateway.unmatched(&written).remove(0);
    assert_eq!(
        told.message,
        "`my-files.raed_file` names nothing that is here now, so it does nothing; \
         did you mean `my_files.read_file`?"
    );
}

#[tokio::test(start_paused = true)]
async fn what_names_something_in_any_spelling_is_not_told() {
    let opened = open(vec![files()], |_| {}).await;
    let spellings = ["read_file", "my-files/write-file", "MyFiles.writeFile", "my_files.*", "*"];
    let spellings = spellings.into_iter().chain(["my_files:dir.list", "*_file"]);
    let configured = Configured {
        rules: rules::Config {
            default: Action::Allow,
            rules: spellings
                .flat_map(|tool| {
                    [Action::Deny, Action::Allow].map(|action| rule(action, None, Some(tool)))
                })
                .chain([rule(Action::Deny, None, Some("dir.list"))])
                .chain([rule(Action::Deny, Some("my-files"), None)])
                .chain([rule(Action::Deny, Some("my-files.dir"), None)])
                .collect(),
        },
        visibility: visibility::Config {
            rules: vec![visibility::Rule {
                hide: ["my-files", "my_files.dir", "function:READ_*", "my-files.write_file"]
                    .map(|text| text.parse().unwrap())
                    .to_vec(),
                ..visibility::Rule::default()
            }],
            ..visibility::Config::default()
        },
        ..Configured::default()
    };
    assert_eq!(configured.found(&opened), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_allows_a_dotted_name_without_its_upstream_does_nothing_and_is_told() {
    let opened = open(vec![files()], |_| {}).await;
    let rules = rules::Config {
        default: Action::Deny,
        rules: vec![rule(Action::Allow, None, Some("dir.list"))],
    };
    let configured = Configured { rules, ..Configured::default() };
    assert_eq!(configured.found(&opened), ["controls.rule[0]"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_that_was_never_listed_could_have_is_not_judged() {
    let opened = open(vec![files(), unreachable("later")], |_| {}).await;
    let names = ["later.write", "later:*", "write", "my-files.nothing"];
    let rules = names.map(|name| rule(Action::Deny, None, Some(name))).to_vec();
    let rules = rules::Config { default: Action::Allow, rules };
    let configured = Configured { rules, ..Configured::default() };
    assert_eq!(configured.found(&opened), ["controls.rule[3]"]);
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_does_not_exist_is_told_though_nothing_was_ever_listed() {
    let opened = open(vec![unreachable("my-files")], |_| {}).await;
    let names = ["my_fiels/*", "my-fiels:write", "my-fiels.*", "MyFiles/*", "my?files/*", "a.b"];
    let mut rules = names.map(|name| rule(Action::Deny, None, Some(name))).to_vec();
    rules.push(rule(Action::Deny, Some("my-fiels"), Some("write")));
    rules.push(rule(Action::Deny, Some("my_files"), Some("write")));
    let rules = rules::Config { default: Action::Allow, rules };
    let configured = Configured { rules, ..Configured::default() };
    let told = [0, 1, 2, 6].map(|at| format!("controls.rule[{at}]"));
    assert_eq!(configured.found(&opened), told);
}

#[tokio::test(start_paused = true)]
async fn addresses_of_servers_that_have_resources_are_not_judged() {
    let offering = |label: &str| {
        let server = tool::Server::new(label, "1", json!({"resources": {}}).into());
        let listing = tool::Listing { server, ..listing(vec![tool("f", "", &json!({}))]) };
        let provider = Scripted::new(listing, |_| Ok(Reply::text("")));
        Upstream::new(label, Scripts::of(provider))
    };
    let deny = rule(Action::Deny, None, Some("file:///srv/*"));
    let rules = rules::Config { default: Action::Allow, rules: vec![deny] };
    let configured = Configured { rules, ..Configured::default() };
    assert_eq!(configured.found(&open(vec![offering("a")], |_| {}).await).len(), 0);
    assert_eq!(configured.found(&open(vec![files()], |_| {}).await).len(), 1);
}
