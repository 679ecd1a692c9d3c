//! What a caller may not see costs as much to ask for as what is not there.
//!
//! Nothing is timed here. What can be counted is: how often anybody asks what
//! the caller may see, whether an upstream hears of it, what is recorded. Both
//! must be alike, and what differs must not grow with what there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use testkit::{Scripted, listing, tool};
use tool::{
    Ask, Call, Client, Context, GetPrompt, Identity, Json, Object, Prompt, Provider, ReadResource,
    Reply, Resource,
};

use crate::choice::Surface;
use crate::fixture::{Opened, Scripts, open};
use policy::visibility::{Item, VisibilityFilter, VisibilityRules};
use roster::Upstream;
use skills::{File, Library};

const HIDDEN: &str = "secret";
const UNKNOWN: &str = "sacred";

/// Hides whatever has the hidden word in its name, and counts the questions.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Counting {
    fn shows(&self, caller: &Identity, name: &str) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        !caller.is_anonymous() || !name.contains(HIDDEN)
    }
}

impl VisibilityRules for Counting {
    fn is_open(&self) -> bool {
        false
    }

    fn shows(&self, caller: &Identity, thing: &Item<'_>) -> bool {
        match thing {
            Item::Function { path, name, .. } => {
                Counting::shows(self, caller, &format!("{path}.{name}"))
            }
            other @ (Item::Namespace(_)
            | Item::Skill { .. }
            | Item::Resource { .. }
            | Item::Prompt { .. }) => Counting::shows(self, caller, &format!("{other:?}")),
        }
    }

    fn hides_resources(&self, _: &Identity) -> bool {
        true
    }

    fn hides_skills(&self, _: &Identity) -> bool {
        false
    }

    fn view_key(&self, caller: &Identity) -> String {
        caller.subject.clone()
    }
}

/// A gate with so many functions, one of them hidden, and an upstream that is
/// hidden as a whole.
struct Stage {
    opened: Opened,
    rules: Arc<Counting>,
    providers: [Arc<Scripted>; 2],
}

async fn stage(n_functions: usize) -> Stage {
    stage_with(n_functions, true).await
}

/// With what is hidden, or without it.
async fn stage_with(n_functions: usize, has_hidden: bool) -> Stage {
    let plain = (0..n_functions).map(|n| tool(&format!("plain_{n}"), "Does a thing.", &json!({})));
    let resource = json!({"uri": "doc:///secret", "name": "secret"});
    let prompt = json!({"name": "secret", "arguments": [{"name": "who"}]});
    let hidden = has_hidden.then(|| tool(HIDDEN, "Hidden.", &json!({})));
    let mut shop = listing(plain.chain(hidden).collect());
    if has_hidden {
        shop.resources.push(Resource::parse(resource.into()).unwrap());
        shop.prompts.push(Prompt::parse(prompt.into()).unwrap());
    }
    let shop = Scripted::new(shop, |_| Ok(Reply::text("ran")));
    let vault = listing(vec![tool("plain", "Does a thing.", &json!({}))]);
    let vault = Scripted::new(vault, |_| Ok(Reply::text("ran")));
    let mut upstreams = vec![Upstream::new("shop", Scripts::of(Arc::clone(&shop)))];
    if has_hidden {
        upstreams.push(Upstream::new(HIDDEN, Scripts::of(Arc::clone(&vault))));
    }
    let rules = Arc::new(Counting::default());
    let skill = |namespace: &str, name: &str| File {
        path: format!("{namespace}/{name}/SKILL.md"),
        text: format!("---\nname: {name}\ndescription: A way.\n---\nGo.\n"),
    };
    let opened = open(upstreams, |parts| {
        parts.policies.visibility = VisibilityFilter::new(Arc::clone(&rules) as _);
        let mut skills = vec![skill("shop", "open-way")];
        if has_hidden {
            skills.extend([skill("shop", HIDDEN), skill(HIDDEN, "other-way")]);
        }
        parts.skills = Library::parse(&skills).0;
    })
    .await;
    Stage { opened, rules, providers: [shop, vault] }
}

impl Stage {
    fn surface(&self, surface: Surface, caller: &Arc<Identity>) -> Arc<dyn Provider> {
        let client = Arc::new(Client::named("test", ""));
        self.opened.gateway.surface(surface).provider_for(&client, caller)
    }

    /// What comes of a question, and how much work it was.
    async fn ask(&self, surface: Surface, ask: Ask) -> (String, usize) {
        let caller = Arc::<Identity>::default();
        let provider = self.surface(surface, &caller);
        let asked = || self.providers.iter().map(|one| one.asked().len()).sum::<usize>();
        let context = Context { caller, ..Context::anonymous() };
        // Whatever is found out once for everybody has been found out.
        let _ = provider.ask(ask.clone(), &context).await;
        let (steps, before) = (self.rules.0.load(Ordering::Relaxed), asked());
        let reply = provider.ask(ask, &context).await;
        assert_eq!(asked(), before, "no upstream hears of it");
        (format!("{reply:?}"), self.rules.0.load(Ordering::Relaxed) - steps)
    }

    /// The name that a surface has for the hidden function.
    fn named(&self, surface: Surface, within: &str) -> String {
        let ops = Arc::new(Identity { subject: "ops".into(), ..Identity::default() });
        let listed = self.surface(surface, &ops).listing();
        let mut names = listed.tools.iter().map(|tool| tool.name.clone());
        names.find(|name| name.contains(within)).unwrap()
    }
}

fn call(name: &str, arguments: Value) -> Ask {
    Ask::Call(Call::new(name, arguments.into()))
}

fn complete(name: &str) -> Ask {
    let params = json!({"ref": {"type": "ref/prompt", "name": name},
                        "argument": {"name": "who", "value": "a"}});
    Ask::Complete(Object::parse(&params.into()).unwrap())
}

/// Every way to ask for something by its name.
fn questions(stage: &Stage) -> Vec<(&'static str, Surface, Ask)> {
    let at =
        |namespace: &str, function: &str| json!({"namespace": namespace, "function": function});
    let read = || {
        Ask::ReadResource(ReadResource {
            uri: "doc:///secret".to_owned(),
            other_params: Object::new(),
        })
    };
    let prompt = || {
        let name = HIDDEN.to_owned();
        Ask::Prompt(GetPrompt { name, arguments: None, other_params: Object::new() })
    };
    let mut all = vec![
        ("a function", Surface::Cash, call("call", at("shop", HIDDEN))),
        ("a namespace", Surface::Cash, call("call", at(HIDDEN, "plain"))),
        ("its help", Surface::Cash, call("help", at("shop", HIDDEN))),
        ("help of a namespace", Surface::Cash, call("help", json!({"namespace": HIDDEN}))),
        ("a skill", Surface::Cash, call("skill", json!({"skillname": HIDDEN}))),
        ("skills of a namespace", Surface::Cash, call("skill", json!({"namespace": HIDDEN}))),
        ("an id", Surface::Gateway, call("tool_execute", json!({"tool_id": "shop:secret"}))),
        ("a path", Surface::Gateway, call("tool_browse", json!({"path": "/secret"}))),
        ("an id", Surface::Proxy, call("tool_execute", json!({"tool_id": "shop:secret"}))),
        ("a definition", Surface::Proxy, call("tool_hydrate", json!({"tool_id": "shop:secret"}))),
        ("a tool", Surface::Proxy, call(&stage.named(Surface::Proxy, HIDDEN), json!({}))),
        ("a tool", Surface::Direct, call(&stage.named(Surface::Direct, HIDDEN), json!({}))),
    ];
    for surface in [Surface::Cash, Surface::Gateway, Surface::Proxy, Surface::Direct] {
        all.push(("a resource", surface, read()));
        all.push(("a prompt", surface, prompt()));
        all.push(("a completion", surface, complete(HIDDEN)));
    }
    all
}

/// The same question for what is not there.
fn renamed(ask: &Ask) -> Ask {
    let swap = |text: &str| text.replace(HIDDEN, UNKNOWN);
    match ask {
        Ask::Call(call) => {
            let arguments = call.arguments.as_ref().map(|json| swap(json.as_str()));
            let arguments = arguments.and_then(|text| Json::parse(text).ok());
            Ask::Call(Call {
                name: swap(&call.name),
                arguments,
                other_params: call.other_params.clone(),
            })
        }
        Ask::ReadResource(read) => Ask::ReadResource(ReadResource {
            uri: swap(&read.uri),
            other_params: read.other_params.clone(),
        }),
        Ask::Prompt(prompt) => {
            Ask::Prompt(GetPrompt { name: swap(&prompt.name), ..prompt.clone() })
        }
        Ask::Complete(_) => complete(UNKNOWN),
        Ask::Other { .. } => ask.clone(),
    }
}

/// A name that leads somewhere is asked about once more at each of the few
/// places that look it up. More than that is other work.
const APART: usize = 12;

#[tokio::test(start_paused = true)]
async fn what_is_hidden_costs_what_is_not_there_costs() {
    let mut apart = Vec::new();
    for n_functions in [10, 400] {
        let stage = stage(n_functions).await;
        let mut distances = Vec::new();
        for (what, surface, ask) in questions(&stage) {
            let what = format!("{what} on {}", surface.name());
            let (hidden, n_hidden) = stage.ask(surface, ask.clone()).await;
            let (unknown, n_unknown) = stage.ask(surface, renamed(&ask)).await;
            assert_eq!(hidden.replace(HIDDEN, UNKNOWN), unknown, "{what}");
            let distance = n_hidden.abs_diff(n_unknown);
            assert!(distance <= APART, "{what}: {n_hidden} steps, or {n_unknown}");
            distances.push((what, distance));
        }
        apart.push(distances);
    }
    assert_eq!(apart[0], apart[1], "what differs does not grow with what there is");
}

#[tokio::test(start_paused = true)]
async fn what_is_hidden_leaves_no_trace_in_what_is_said() {
    let (with, without) = (stage(10).await, stage_with(10, false).await);
    for (what, surface, ask) in questions(&with) {
        let what = format!("{what} on {}", surface.name());
        // Of the hidden one, and of one that is spelt like it.
        let near = renamed(&ask);
        for ask in [ask, near] {
            let (said, _) = with.ask(surface, ask.clone()).await;
            assert_eq!(said, without.ask(surface, ask).await.0, "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_questions_are_good_ones() {
    let stage = stage(10).await;
    let caller = Arc::new(Identity { subject: "ops".into(), ..Identity::default() });
    let context = Context { caller: Arc::clone(&caller), ..Context::anonymous() };
    for (what, surface, ask) in questions(&stage) {
        let provider = stage.surface(surface, &caller);
        let seen = format!("{:?}", provider.ask(ask.clone(), &context).await);
        let unknown = format!("{:?}", provider.ask(renamed(&ask), &context).await);
        let what = format!("{what} on {}", surface.name());
        assert_ne!(seen.replace(HIDDEN, UNKNOWN), unknown, "{what}: {seen}");
    }
}
