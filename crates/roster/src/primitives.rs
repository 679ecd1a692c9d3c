//! Merges the resources, templates and prompts of all upstreams, and routes requests for
//! them.
//!
//! A URI belongs to the first upstream that lists it; if another lists it too, that is a
//! finding. A prompt keeps its name unless an earlier one has the same; then it is
//! prefixed with its upstream's label, and numbered if that is taken, too.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use catalog::Catalog;
use catalog::source::Role;
use tool::{
    Ask, Finding, GetPrompt, Json, Object, Prompt, ReadResource, Resource, Severity, Template,
};

use crate::readable::plain_line;
use crate::uri_template;
use policy::call::{CompletionSubject, SubscriptionChange};
use policy::visibility::Item;

/// The resources, templates and prompts of a catalog, and which source has which. A
/// source is given by its index in the catalog.
#[derive(Debug, Default)]
pub struct Primitives {
    pub resources: Vec<Resource>,
    pub templates: Vec<Template>,
    pub prompts: Vec<Prompt>,
    /// What was left out because another upstream lists it.
    pub findings: Vec<Finding>,
    /// The source of each URI.
    uris: HashMap<String, usize>,
    /// The source of each template.
    template_sources: Vec<usize>,
    /// The text before the first variable of each template, with its source.
    prefixes: Vec<(String, usize)>,
    /// The source of each prompt and its name there, by its name here.
    names: HashMap<String, (usize, String)>,
    /// The only source with resources, if there is only one.
    only_source: Option<usize>,
}

/// Which resources and prompts a caller may see.
pub struct Viewer<'a> {
    pub shows: &'a dyn Fn(&Item<'_>) -> bool,
    /// Whether single resources are hidden. Then a URI that nobody lists is not found, so
    /// that it looks the same as a hidden one.
    pub hides_resources: bool,
}

/// Which source a request goes to, with names and URIs of that upstream.
#[derive(Clone, Debug, PartialEq)]
pub enum Route {
    Read {
        source: usize,
        uri: String,
    },
    Prompt {
        source: usize,
        name: String,
    },
    /// `filled_uri` is the URI of a template with its values: only callers who may read
    /// it may complete it.
    Completion {
        source: usize,
        of: CompletionSubject,
        filled_uri: Option<String>,
        params: Object,
    },
    Subscription {
        source: usize,
        uri: String,
        change: SubscriptionChange,
    },
}

/// The resources, templates and prompts that a caller sees.
pub struct VisiblePrimitives {
    pub resources: Vec<Resource>,
    pub templates: Vec<Template>,
    pub prompts: Vec<Prompt>,
}

impl Primitives {
    /// Returns those that a caller sees.
    pub fn visible(
        &self,
        catalog: &Catalog,
        shows: &dyn Fn(&Item<'_>) -> bool,
    ) -> VisiblePrimitives {
        let label = |source: usize| catalog.sources()[source].label.as_str();
        let uri = |source, uri: &str| shows(&Item::Resource { upstream: label(source), uri });
        let resource =
            |one: &&Resource| self.uris.get(&one.uri).is_some_and(|source| uri(*source, &one.uri));
        let templates = self.templates.iter().zip(&self.template_sources);
        let templates = templates.filter(|(one, source)| uri(**source, &one.uri_template));
        let prompt = |one: &&Prompt| {
            let place = self.names.get(&one.name);
            place.is_some_and(|(source, name)| {
                shows(&Item::Prompt { upstream: label(*source), name })
            })
        };
        VisiblePrimitives {
            resources: self.resources.iter().filter(resource).cloned().collect(),
            templates: templates.map(|(one, _)| one.clone()).collect(),
            prompts: self.prompts.iter().filter(prompt).cloned().collect(),
        }
    }

    pub fn build(catalog: &Catalog) -> Primitives {
        let mut primitives = Primitives::default();
        let mut with_resources = Vec::new();
        let mut numbers = HashMap::new();
        for (at, source) in catalog.sources().iter().enumerate() {
            if source.role == Role::Builtin {
                continue;
            }
            let listing = &source.listing;
            if listing.server.capabilities.member("resources").is_some() {
                with_resources.push(at);
            }
            for resource in &listing.resources {
                if let Some(other) = foreign_owner(catalog, at, &resource.uri) {
                    let uri = &resource.uri;
                    primitives.findings.push(foreign_skill(&source.label, uri, other));
                    continue;
                }
                match primitives.uris.entry(resource.uri.clone()) {
                    Entry::Vacant(free) => {
                        free.insert(at);
                        primitives.resources.push(resource.clone());
                    }
                    Entry::Occupied(taken) => {
                        let first = &catalog.sources()[*taken.get()].label;
                        primitives.findings.extend(duplicate_uri(
                            &source.label,
                            &resource.uri,
                            first,
                        ));
                    }
                }
            }
            for template in &listing.templates {
                if let Some(other) = foreign_owner(catalog, at, &template.uri_template) {
                    let uri = &template.uri_template;
                    primitives.findings.push(foreign_skill(&source.label, uri, other));
                    continue;
                }
                let fixed = template.uri_template.split('{').next().unwrap_or_default();
                primitives.prefixes.push((fixed.to_owned(), at));
                primitives.templates.push(template.clone());
                primitives.template_sources.push(at);
            }
            for prompt in &listing.prompts {
                primitives.add_prompt(at, &source.label, prompt, &mut numbers);
            }
        }
        // The longest literal prefix is the best match.
        primitives.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        primitives.only_source = match with_resources.as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        primitives
    }

    /// Returns the source of a URI, if the caller sees it.
    pub fn visible_resource(
        &self,
        catalog: &Catalog,
        uri: &str,
        viewer: &Viewer<'_>,
    ) -> Option<usize> {
        let source = self.resource(uri).or(self.only_source.filter(|_| !viewer.hides_resources))?;
        let upstream = &catalog.sources()[source].label;
        (viewer.shows)(&Item::Resource { upstream, uri }).then_some(source)
    }

    /// Returns the source of a prompt and its name there, if the caller sees it.
    fn visible_prompt(
        &self,
        catalog: &Catalog,
        name: &str,
        viewer: &Viewer<'_>,
    ) -> Option<(usize, &str)> {
        let (source, name) = self.prompt(name)?;
        let upstream = &catalog.sources()[source].label;
        (viewer.shows)(&Item::Prompt { upstream, name }).then_some((source, name))
    }

    /// Returns the source that lists a URI, or a template for it.
    pub fn resource(&self, uri: &str) -> Option<usize> {
        let listed = self.uris.get(uri).copied();
        let templated = || {
            let fits = |(prefix, _): &&(String, usize)| {
                !prefix.is_empty() && uri.starts_with(prefix.as_str())
            };
            self.prefixes.iter().find(fits).map(|(_, source)| *source)
        };
        listed.or_else(templated)
    }

    /// Returns the source of a prompt, and its name there.
    pub fn prompt(&self, name: &str) -> Option<(usize, &str)> {
        self.names.get(name).map(|(source, name)| (*source, name.as_str()))
    }

    /// Routes a request about a resource or a prompt; `None` for every other request, and if
    /// the caller sees nothing of that name.
    pub fn route(&self, catalog: &Catalog, ask: &Ask, viewer: &Viewer<'_>) -> Option<Route> {
        match ask {
            Ask::ReadResource(ReadResource { uri, .. }) => {
                let source = self.visible_resource(catalog, uri, viewer)?;
                Some(Route::Read { source, uri: uri.clone() })
            }
            Ask::Prompt(GetPrompt { name, .. }) => {
                let (source, name) = self.visible_prompt(catalog, name, viewer)?;
                Some(Route::Prompt { source, name: name.to_owned() })
            }
            Ask::Complete(params) => self.completion(catalog, params, viewer),
            Ask::Other { method, params } => {
                let change = SubscriptionChange::from_method(method)?;
                let uri = params.get("uri").and_then(Json::string_value)?;
                let source = self.visible_resource(catalog, &uri, viewer)?;
                Some(Route::Subscription { source, uri, change })
            }
            Ask::Call(_) => None,
        }
    }

    /// Routes a completion. Its reference is rewritten with the upstream's name, so that it
    /// has no other members.
    fn completion(&self, catalog: &Catalog, params: &Object, viewer: &Viewer<'_>) -> Option<Route> {
        let reference = Object::parse(params.get("ref")?).ok()?;
        let text = |key: &str| reference.get(key).and_then(Json::string_value);
        let (source, of) = match (text("type").as_deref(), text("uri"), text("name")) {
            (Some("ref/resource") | None, Some(uri), None) => {
                let source = self.template(&uri).filter(|source| {
                    let upstream = &catalog.sources()[*source].label;
                    (viewer.shows)(&Item::Resource { upstream, uri: &uri })
                });
                let source = source.or_else(|| self.visible_resource(catalog, &uri, viewer))?;
                (source, CompletionSubject::Resource(uri))
            }
            (Some("ref/prompt") | None, None, Some(name)) => {
                let (source, name) = self.visible_prompt(catalog, &name, viewer)?;
                (source, CompletionSubject::Prompt(name.to_owned()))
            }
            _ => return None,
        };
        let filled_uri = match &of {
            CompletionSubject::Resource(uri) if uri.contains('{') => {
                Some(fill_from_params(uri, params))
            }
            CompletionSubject::Resource(_) | CompletionSubject::Prompt(_) => None,
        };
        if let Some(uri) = &filled_uri {
            let upstream = &catalog.sources()[source].label;
            (viewer.shows)(&Item::Resource { upstream, uri }).then_some(())?;
        }
        let mut params = params.clone();
        params.set("ref", reference_json(&of));
        Some(Route::Completion { source, of, filled_uri, params })
    }

    /// Returns the source of a URI template.
    fn template(&self, uri: &str) -> Option<usize> {
        let fixed = uri.split('{').next().unwrap_or_default();
        self.prefixes.iter().find(|(prefix, _)| prefix == fixed).map(|(_, source)| *source)
    }

    /// Adds a prompt under a free name. `numbers` has the last number tried for each name,
    /// because an upstream may list many prompts with the same name.
    fn add_prompt(
        &mut self,
        source: usize,
        label: &str,
        prompt: &Prompt,
        numbers: &mut HashMap<String, usize>,
    ) {
        // It is listed under a name without invisible characters.
        let mut name = plain_line(&prompt.name);
        if name.is_empty() {
            "prompt".clone_into(&mut name);
        }
        if self.names.contains_key(&name) {
            let labelled = format!("{label}_{name}");
            name.clone_from(&labelled);
            let number = numbers.entry(labelled.clone()).or_insert(1);
            while self.names.contains_key(&name) {
                *number += 1;
                name = format!("{labelled}_{number}");
            }
        }
        self.names.insert(name.clone(), (source, prompt.name.clone()));
        let mut exposed = prompt.clone();
        if name != prompt.name
            && let Ok(mut raw) = Object::parse(&prompt.raw)
        {
            raw.set("name", Json::encode(&name));
            exposed = Prompt { name, raw: raw.to_json(), ..exposed };
        }
        self.prompts.push(exposed);
    }
}

/// Fills a template with the values in the parameters of a completion: the variable that
/// is being completed, and those before it.
fn fill_from_params(template: &str, params: &Object) -> String {
    let argument = params.get("argument").and_then(|json| json.member("value"));
    completed_uri(template, params, &argument.and_then(|it| it.string_value()).unwrap_or_default())
}

/// Returns the URI that a template makes with `value` for the variable that is being
/// completed, and with the values of those before it.
pub fn completed_uri(template: &str, params: &Object, value: &str) -> String {
    let object = |key: &str| params.get(key).and_then(|json| Object::parse(json).ok());
    let argument = object("argument").unwrap_or_default();
    let name = argument.get("name").and_then(Json::string_value);
    let context = object("context").unwrap_or_default();
    let known = context.get("arguments").and_then(|json| Object::parse(json).ok());
    let known = known.unwrap_or_default();
    uri_template::fill(template, |variable| match name.as_deref() == Some(variable) {
        true => Some(value.to_owned()),
        false => known.get(variable).and_then(Json::string_value),
    })
}

/// Returns the `ref` of a completion request.
fn reference_json(of: &CompletionSubject) -> Json {
    match of {
        CompletionSubject::Prompt(name) => serde_json::json!({"type": "ref/prompt", "name": name}),
        CompletionSubject::Resource(uri) => serde_json::json!({"type": "ref/resource", "uri": uri}),
    }
    .into()
}

/// Returns the label of the upstream that a skill URI names as its owner, if the source
/// `own` that lists the URI is another one.
fn foreign_owner<'a>(catalog: &'a Catalog, own: usize, uri: &str) -> Option<&'a str> {
    let (scheme, path) = uri.split_once("://")?;
    let first = path.split(['/', '{']).next().filter(|_| scheme.eq_ignore_ascii_case("skill"))?;
    let is_named = |label: &&str| catalog::name::same(label, first);
    let mut others = catalog.sources().iter().enumerate().filter(|(at, _)| *at != own);
    let is_own = is_named(&catalog.sources()[own].label.as_str());
    others.find_map(|(_, other)| {
        Some(other.label.as_str()).filter(|label| !is_own && is_named(label))
    })
}

/// Reports that a skill is left out because its address says that it is another's.
fn foreign_skill(label: &str, uri: &str, other: &str) -> Finding {
    let uri = catalog::summary::cut(uri, 200);
    let message = format!("`{uri}` is left out: its address says that it is of `{other}`");
    Finding::new(Severity::Warning, "foreign-skill", label, message)
}

/// Reports that an earlier upstream lists the same URI.
fn duplicate_uri(label: &str, uri: &str, first: &str) -> Option<Finding> {
    // Listing it twice loses nothing.
    (label != first).then(|| {
        let uri = catalog::summary::cut(uri, 200);
        let message = format!("`{uri}` is read from `{first}`, which lists it too");
        Finding::new(Severity::Warning, "duplicate-uri", label, message)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use catalog::Source;
    use serde_json::json;
    use tool::{Listing, Server};

    use super::*;

    fn source(label: &str, uri: &str, template: &str, prompt: &str) -> Source {
        let read = |value: serde_json::Value| Json::from(value);
        let listing = Listing {
            server: Server::new(label, "1", json!({"resources": {}}).into()),
            resources: vec![Resource::parse(read(json!({"uri": uri}))).unwrap()],
            templates: vec![Template::parse(read(json!({"uriTemplate": template}))).unwrap()],
            prompts: vec![Prompt::parse(read(json!({"name": prompt, "x": 1}))).unwrap()],
            ..Listing::default()
        };
        Source::new(label, Arc::new(listing))
    }

    fn catalog() -> Catalog {
        Catalog::build(vec![
            source("one", "a://1", "file:///{path}", "greet"),
            source("two", "a://2", "file:///logs/{day}", "greet"),
        ])
        .0
    }

    fn primitives() -> Primitives {
        Primitives::build(&catalog())
    }

    const ALL: Viewer<'static> = Viewer { shows: &|_| true, hides_resources: false };

    /// A caller who does not see the second upstream, nor `a://1`.
    const SOME: Viewer<'static> = Viewer {
        shows: &|thing| match thing {
            Item::Resource { upstream, uri } => *upstream == "one" && *uri != "a://1",
            Item::Prompt { upstream, .. } => *upstream == "one",
            Item::Namespace(_) | Item::Function { .. } | Item::Skill { .. } => true,
        },
        hides_resources: true,
    };

    #[test]
    fn what_a_caller_does_not_see_is_neither_listed_nor_found() {
        let (catalog, primitives) = (catalog(), primitives());
        let seen = primitives.visible(&catalog, SOME.shows);
        assert_eq!((seen.resources.len(), seen.templates.len(), seen.prompts.len()), (0, 1, 1));
        let check = |method: &str, params: serde_json::Value, found: bool| {
            let ask = || Ask::parse(method, &Json::from(params.clone())).unwrap();
            assert!(primitives.route(&catalog, &ask(), &ALL).is_some(), "{method} {params}");
            assert_eq!(
                primitives.route(&catalog, &ask(), &SOME).is_some(),
                found,
                "{method} {params}"
            );
        };
        check("resources/read", json!({"uri": "file:///x"}), true);
        check("resources/read", json!({"uri": "a://1"}), false);
        check("resources/read", json!({"uri": "file:///logs/x"}), false);
        check("resources/subscribe", json!({"uri": "a://1"}), false);
        check("prompts/get", json!({"name": "greet"}), true);
        check("prompts/get", json!({"name": "two_greet"}), false);
        let prompt = |name: &str| json!({"ref": {"type": "ref/prompt", "name": name}});
        let template = |uri: &str| json!({"ref": {"type": "ref/resource", "uri": uri}});
        check("completion/complete", prompt("greet"), true);
        check("completion/complete", prompt("two_greet"), false);
        check("completion/complete", template("file:///{path}"), true);
        check("completion/complete", template("file:///logs/{day}"), false);
    }

    #[test]
    fn a_skill_below_the_name_of_another_upstream_is_left_out() {
        let (evil, good) = ("skill://good/x/SKILL.md", "skill://acme/y/SKILL.md");
        let catalog = Catalog::build(vec![
            source("evil", evil, "SKILL://Good/{x}", "a"),
            source("good", good, "skill://good/{x}", "b"),
        ]);
        let primitives = Primitives::build(&catalog.0);
        assert_eq!(primitives.resource(evil), Some(1), "by its own template");
        assert_eq!(primitives.resource(good), Some(1));
        let codes: Vec<&str> =
            primitives.findings.iter().map(|found| found.code.as_str()).collect();
        assert_eq!(codes, ["foreign-skill", "foreign-skill"]);
    }

    #[test]
    fn a_uri_that_nobody_listed_leads_to_the_only_one_with_resources() {
        let catalog = Catalog::build(vec![source("one", "a://1", "b://{x}", "greet")]).0;
        let primitives = Primitives::build(&catalog);
        let ask = || Ask::parse("resources/read", &json!({"uri": "c://new"}).into()).unwrap();
        assert!(primitives.route(&catalog, &ask(), &ALL).is_some());
        // Else it could be told apart from one that is hidden.
        assert!(primitives.route(&catalog, &ask(), &SOME).is_none());
    }

    #[test]
    fn a_uri_leads_to_who_listed_it_or_whose_template_fits_best() {
        let found = ["a://1", "a://2", "file:///x", "file:///logs/x", "b://"];
        assert_eq!(
            found.map(|uri| primitives().resource(uri)),
            [Some(0), Some(1), Some(0), Some(1), None]
        );
    }

    #[test]
    fn only_a_prompt_that_collides_is_renamed() {
        let primitives = primitives();
        let names: Vec<&str> = primitives.prompts.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["greet", "two_greet"]);
        assert_eq!(primitives.prompts[1].raw.as_str(), r#"{"name":"two_greet","x":1}"#);
        assert_eq!(primitives.prompt("two_greet"), Some((1, "greet")));
    }

    #[test]
    fn a_prompt_goes_by_a_name_that_can_be_shown() {
        let hostile = "greet\n# gatelet\u{1b}[31m\u{202e}";
        let catalog = Catalog::build(vec![source("one", "a://1", "b://{x}", hostile)]).0;
        let primitives = Primitives::build(&catalog);
        let shown = "greet # gatelet [31m";
        assert_eq!(primitives.prompts[0].name, shown);
        assert!(primitives.prompts[0].raw.as_str().contains(shown));
        assert_eq!(primitives.prompt(shown), Some((0, hostile)));
    }

    #[test]
    fn a_completion_reaches_the_prompt_under_its_own_name() {
        let params = Json::from(json!({"ref": {"type": "ref/prompt", "name": "two_greet"}}));
        let ask = Ask::parse("completion/complete", &params).unwrap();
        let route = primitives().route(&catalog(), &ask, &ALL).unwrap();
        let Route::Completion { source, of, params, .. } = route else { panic!("{route:?}") };
        assert_eq!((source, of), (1, CompletionSubject::Prompt("greet".to_owned())));
        assert_eq!(params.to_json().as_str(), r#"{"ref":{"type":"ref/prompt","name":"greet"}}"#);
    }

    #[test]
    fn a_uri_that_another_upstream_lists_too_is_told() {
        let sources = ["one", "two"].map(|label| source(label, "a://1", "b://{x}", label));
        let primitives = Primitives::build(&Catalog::build(sources.to_vec()).0);
        assert_eq!(primitives.resource("a://1"), Some(0));
        let told: Vec<String> = primitives.findings.iter().map(ToString::to_string).collect();
        let expected = "warning[duplicate-uri] two: `a://1` is read from `one`, which lists it too";
        assert_eq!(told, [expected]);
    }

    #[test]
    fn many_prompts_of_one_name_have_names_of_their_own() {
        let n_prompts = 20_000;
        let prompt = Prompt::parse(json!({"name": "greet"}).into()).unwrap();
        let listing = Listing { prompts: vec![prompt; n_prompts], ..Listing::default() };
        let catalog = Catalog::build(vec![Source::new("up", Arc::new(listing))]).0;
        let primitives = Primitives::build(&catalog);
        let names: std::collections::HashSet<&str> =
            primitives.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        assert_eq!(names.len(), n_prompts);
        assert!(names.contains("greet") && names.contains("up_greet"));
        assert!(names.iter().all(|name| name.len() < 20));
    }
}
