//! The resources, templates and prompts of all upstreams, under one roof.
//!
//! A URI leads to the upstream that listed it. A prompt keeps its name unless
//! an earlier upstream has the same; then the label goes before it.

use std::collections::HashMap;

use catalog::Catalog;
use catalog::source::Role;
use tool::{Ask, GetPrompt, Json, Object, Prompt, Read, Resource, Template};

/// Where everything beside functions is.
#[derive(Debug, Default)]
pub struct Offers {
    pub resources: Vec<Resource>,
    pub templates: Vec<Template>,
    pub prompts: Vec<Prompt>,
    /// Resource to source.
    uris: HashMap<String, usize>,
    /// Text before the first variable of a template, with its source.
    prefixes: Vec<(String, usize)>,
    /// Exposed name to source and upstream name.
    names: HashMap<String, (usize, String)>,
    /// The only source with resources, if there is only one.
    only: Option<usize>,
}

impl Offers {
    pub fn of(catalog: &Catalog) -> Offers {
        let mut offers = Offers::default();
        let mut with_resources = Vec::new();
        for (at, source) in catalog.sources().iter().enumerate() {
            if source.role == Role::Own {
                continue;
            }
            let listing = &source.listing;
            if listing.server.capabilities.member("resources").is_some() {
                with_resources.push(at);
            }
            for resource in &listing.resources {
                if !offers.uris.contains_key(&resource.uri) {
                    offers.uris.insert(resource.uri.clone(), at);
                    offers.resources.push(resource.clone());
                }
            }
            for template in &listing.templates {
                let fixed = template.uri_template.split('{').next().unwrap_or_default();
                offers.prefixes.push((fixed.to_owned(), at));
                offers.templates.push(template.clone());
            }
            for prompt in &listing.prompts {
                offers.add_prompt(at, &source.label, prompt);
            }
        }
        // The longest literal beginning is the best match.
        offers.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        offers.only = match with_resources.as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        offers
    }

    /// The source that a URI leads to.
    pub fn resource(&self, uri: &str) -> Option<usize> {
        let listed = self.uris.get(uri).copied();
        let templated = || {
            let fits = |(prefix, _): &&(String, usize)| {
                !prefix.is_empty() && uri.starts_with(prefix.as_str())
            };
            self.prefixes.iter().find(fits).map(|(_, source)| *source)
        };
        listed.or_else(templated).or(self.only)
    }

    /// The source of a prompt, and its name there.
    pub fn prompt(&self, name: &str) -> Option<(usize, &str)> {
        self.names.get(name).map(|(source, name)| (*source, name.as_str()))
    }

    /// The source that a question about a resource or prompt goes to, with the
    /// question as that upstream understands it.
    pub fn route(&self, ask: Ask) -> Result<(usize, Ask), Ask> {
        match ask {
            Ask::Read(Read { ref uri, .. }) => match self.resource(uri) {
                Some(source) => Ok((source, ask)),
                None => Err(ask),
            },
            Ask::Prompt(prompt) => match self.prompt(&prompt.name) {
                Some((source, name)) => {
                    let name = name.to_owned();
                    Ok((source, Ask::Prompt(GetPrompt { name, ..prompt })))
                }
                None => Err(Ask::Prompt(prompt)),
            },
            Ask::Complete(params) => self.completion(params),
            Ask::Other { ref params, .. } => {
                let uri = params.get("uri").and_then(|uri| uri.read::<String>().ok());
                match uri.and_then(|uri| self.resource(&uri)) {
                    Some(source) => Ok((source, ask)),
                    None => Err(ask),
                }
            }
            Ask::Call(_) => Err(ask),
        }
    }

    fn completion(&self, mut params: Object) -> Result<(usize, Ask), Ask> {
        let reference = params.get("ref").cloned().unwrap_or_else(Json::null);
        if let Some(uri) = reference.member_as::<String>("uri") {
            let source = self.resource(&uri).or_else(|| self.template(&uri));
            return match source {
                Some(source) => Ok((source, Ask::Complete(params))),
                None => Err(Ask::Complete(params)),
            };
        }
        let name: String = reference.member_as("name").unwrap_or_default();
        let Some((source, own)) = self.prompt(&name) else { return Err(Ask::Complete(params)) };
        if own != name
            && let Ok(mut renamed) = Object::parse(&reference)
        {
            renamed.set("name", Json::of(own));
            params.set("ref", renamed.to_json());
        }
        Ok((source, Ask::Complete(params)))
    }

    fn template(&self, uri: &str) -> Option<usize> {
        let fixed = uri.split('{').next().unwrap_or_default();
        self.prefixes.iter().find(|(prefix, _)| prefix == fixed).map(|(_, source)| *source)
    }

    fn add_prompt(&mut self, source: usize, label: &str, prompt: &Prompt) {
        let mut name = prompt.name.clone();
        while self.names.contains_key(&name) {
            name = format!("{label}_{name}");
        }
        self.names.insert(name.clone(), (source, prompt.name.clone()));
        let mut exposed = prompt.clone();
        if name != prompt.name
            && let Ok(mut raw) = Object::parse(&prompt.raw)
        {
            raw.set("name", Json::of(&name));
            exposed = Prompt { name, raw: raw.to_json(), ..exposed };
        }
        self.prompts.push(exposed);
    }
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
            resources: vec![Resource::read(read(json!({"uri": uri}))).unwrap()],
            templates: vec![Template::read(read(json!({"uriTemplate": template}))).unwrap()],
            prompts: vec![Prompt::read(read(json!({"name": prompt, "x": 1}))).unwrap()],
            ..Listing::default()
        };
        Source::new(label, Arc::new(listing))
    }

    fn offers() -> Offers {
        let sources = vec![
            source("one", "a://1", "file:///{path}", "greet"),
            source("two", "a://2", "file:///logs/{day}", "greet"),
        ];
        Offers::of(&Catalog::build(sources).0)
    }

    #[test]
    fn a_uri_leads_to_who_listed_it_or_whose_template_fits_best() {
        let found = ["a://1", "a://2", "file:///x", "file:///logs/x", "b://"];
        assert_eq!(
            found.map(|uri| offers().resource(uri)),
            [Some(0), Some(1), Some(0), Some(1), None]
        );
    }

    #[test]
    fn only_a_prompt_that_collides_is_renamed() {
        let offers = offers();
        let names: Vec<&str> = offers.prompts.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["greet", "two_greet"]);
        assert_eq!(offers.prompts[1].raw.as_str(), r#"{"name":"two_greet","x":1}"#);
        assert_eq!(offers.prompt("two_greet"), Some((1, "greet")));
    }

    #[test]
    fn a_completion_reaches_the_prompt_under_its_own_name() {
        let params = Json::from(json!({"ref": {"type": "ref/prompt", "name": "two_greet"}}));
        let ask = Ask::read("completion/complete", &params).unwrap();
        let (source, ask) = offers().route(ask).unwrap();
        assert_eq!(source, 1);
        assert_eq!(ask.params().as_str(), r#"{"ref":{"type":"ref/prompt","name":"greet"}}"#);
    }
}
