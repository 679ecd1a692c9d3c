//! Checks and cleans the listing of an upstream before it is published.
//!
//! Sizes are bounded, secrets in definitions are masked, invisible characters are removed
//! from texts, schemas are measured and checked against their meta-schema, changed tools
//! are reported, and the operator's pin is compared. Problems become findings of the
//! listing; only a strict pin that does not match rejects a listing.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use catalog::{Catalog, Directory, Source};
use tool::{Finding, Json, Listing, Object, Prompt, Resource, Severity, Template, Tool};

use crate::bounds;
use crate::readable;
use crate::schema;
use policy::admission::ListingCheck;
use redact::Scrubber;

/// What the operator expects of listings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// How large a schema may be before it is reported.
    pub limits: schema::Limits,
    /// The pins of upstreams, by label.
    pub pins: HashMap<String, Pin>,
}

/// The hash of what an upstream is expected to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    pub hash: String,
    pub strictness: Strictness,
}

/// What happens to an upstream whose listing does not match its pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// The mismatch is reported.
    Warn,
    /// The upstream is not used.
    Strict,
}

/// Checks listings before they are published.
pub struct ListingChecker {
    pub config: ArcSwap<Config>,
    pub scrubber: Arc<Scrubber>,
    /// Further checks, such as for changed tools.
    pub check: Arc<dyn ListingCheck>,
}

/// Returns the hash that a pin has: over ids, names, descriptions and tags of the tools of
/// one upstream.
pub fn hash(label: &str, listing: &Arc<Listing>) -> String {
    let (catalog, _) = Catalog::build(vec![Source::new(label, Arc::clone(listing))]);
    Directory::build(&catalog).hash(&catalog)
}

impl ListingChecker {
    /// Returns the cleaned listing, with findings, or why it is rejected.
    pub fn check(&self, label: &str, listing: &Arc<Listing>) -> Result<Arc<Listing>, String> {
        let config = self.config.load();
        let mut findings = Vec::new();
        let mut bounded = Listing::clone(listing);
        bounds::enforce(label, &mut bounded, &mut findings);
        let mut clean = self.mask_secrets(label, &bounded, &mut findings);
        readable::clean(label, &mut clean, &mut findings);
        for tool in &clean.tools {
            let subject = format!("{label}/{}", tool.name);
            if tool.raw.member("inputSchema").is_none_or(|schema| !schema.is_object()) {
                let message = "has no input schema, or none that is an object";
                findings.push(Finding::new(
                    Severity::Warning,
                    "schema-missing",
                    subject.clone(),
                    message,
                ));
            }
            for schema in [Some(&tool.input_schema), tool.output_schema.as_ref()] {
                let problems = schema.map(|schema| schema::examine(schema, &config.limits));
                let problems = problems.unwrap_or_default();
                findings.extend(problems.iter().map(|one| schema::finding(one, &subject)));
            }
        }
        findings.extend(self.check.inspect(label, &clean));
        if let Some(pin) = config.pins.get(label) {
            findings.extend(compare_pin(pin, label, &Arc::new(clean.clone()))?);
        }
        if findings.is_empty() && clean == **listing {
            return Ok(Arc::clone(listing));
        }
        clean.findings.extend(findings);
        Ok(Arc::new(clean))
    }

    /// Masks secrets in the reason of a failure.
    pub(crate) fn scrub_reason(&self, text: &str) -> String {
        self.scrubber.scrub(text).into_owned()
    }

    /// Masks secrets in definitions. Identifiers stay: a URI with a password in it is
    /// still needed to read its resource.
    fn mask_secrets(&self, label: &str, listing: &Listing, findings: &mut Vec<Finding>) -> Listing {
        let mut clean = listing.clone();
        let mut report = |name: &str| {
            let message = "secrets in its definition are masked";
            let subject = format!("{label}/{name}");
            findings.push(Finding::new(
                Severity::Warning,
                "secret-in-definition",
                subject,
                message,
            ));
        };
        for tool in &mut clean.tools {
            if let Some(Ok(masked)) = self.mask_definition(&tool.raw, &["name"]).map(Tool::parse) {
                report(&masked.name);
                *tool = masked;
            }
        }
        for prompt in &mut clean.prompts {
            if let Some(Ok(masked)) =
                self.mask_definition(&prompt.raw, &["name"]).map(Prompt::parse)
            {
                report(&masked.name);
                *prompt = masked;
            }
        }
        for resource in &mut clean.resources {
            if let Some(Ok(masked)) =
                self.mask_definition(&resource.raw, &["uri"]).map(Resource::parse)
            {
                report(&masked.name);
                *resource = masked;
            }
        }
        for template in &mut clean.templates {
            if let Some(Ok(masked)) =
                self.mask_definition(&template.raw, &["uriTemplate"]).map(Template::parse)
            {
                report(&masked.name);
                *template = masked;
            }
        }
        if let Some(words) = &mut clean.server.instructions {
            *words = self.scrubber.scrub(words).into_owned();
        }
        clean
    }

    /// Masks secrets in a definition, except in the `kept` members; `None` if it has no
    /// secrets.
    fn mask_definition(&self, raw: &Json, kept: &[&str]) -> Option<Json> {
        let scrubbed = self.scrubber.scrub_json(raw);
        if scrubbed == *raw {
            return None;
        }
        let (before, mut after) = (Object::parse(raw).ok()?, Object::parse(&scrubbed).ok()?);
        for key in kept {
            if let Some(value) = before.get(key) {
                after.set(key, value.clone());
            }
        }
        Some(after.to_json()).filter(|masked| masked.to_value().ok() != raw.to_value().ok())
    }
}

fn compare_pin(pin: &Pin, label: &str, listing: &Arc<Listing>) -> Result<Option<Finding>, String> {
    let actual = hash(label, listing);
    if actual == pin.hash {
        return Ok(None);
    }
    let message =
        format!("lists other tools than it is pinned to: {actual} instead of {}", pin.hash);
    match pin.strictness {
        Strictness::Strict => Err(format!("it {message}")),
        Strictness::Warn => {
            Ok(Some(Finding::new(Severity::Warning, "pin-mismatch", label, message)))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use testkit::{listing, tool};

    use super::*;
    use policy::Stages;

    fn listing_checker(config: Config) -> ListingChecker {
        let Stages { scrubber, listings: check, .. } = Stages::default();
        ListingChecker { config: ArcSwap::from_pointee(config), scrubber, check }
    }

    #[test]
    fn a_listing_without_problems_is_not_changed() {
        let listed = Arc::new(listing(vec![tool("t", "Reads.", &json!({"type": "object"}))]));
        let seen = listing_checker(Config::default()).check("up", &listed).unwrap();
        assert!(Arc::ptr_eq(&seen, &listed));
    }

    #[test]
    fn secrets_in_definitions_are_masked_and_identifiers_stay() {
        let words = "Use the key sk-proj-bbbbbbbbbbbbbbbbbbbbbbbb.";
        let raw = json!({"uri": "db://u:hunter22@h/x", "name": "x", "description": words});
        let listed = Listing {
            resources: vec![Resource::parse(raw.into()).unwrap()],
            ..listing(vec![tool("t", words, &json!({}))])
        };
        let seen = listing_checker(Config::default()).check("up", &Arc::new(listed)).unwrap();
        let shown = seen.tools[0].description.as_deref().unwrap();
        assert_eq!(shown, "Use the key [REDACTED-SECRET].");
        assert!(seen.tools[0].raw.as_str().contains("REDACTED"));
        assert_eq!(seen.resources[0].uri, "db://u:hunter22@h/x");
        assert!(seen.resources[0].raw.as_str().contains("REDACTED"));
        let codes: Vec<&str> = seen.findings.iter().map(|found| found.code.as_str()).collect();
        assert_eq!(codes, ["secret-in-definition", "secret-in-definition"]);
    }

    #[test]
    fn every_odd_schema_is_a_finding_and_no_tool_goes() {
        let deep = (0..40).fold(json!({}), |inner, _| json!({"properties": {"n": inner}}));
        let listed = Arc::new(listing(vec![
            tool("list", "", &json!({"properties": []})),
            tool("deep", "", &deep),
            tool("type", "", &json!({"type": "objekt"})),
        ]));
        let seen = listing_checker(Config::default()).check("up", &listed).unwrap();
        assert_eq!(seen.tools.len(), 3);
        let reported: Vec<String> =
            seen.findings.iter().map(|found| format!("{} {}", found.subject, found.code)).collect();
        assert_eq!(
            reported,
            [
                "up/list schema-not-well-formed",
                "up/deep schema-depth-exceeded",
                "up/type schema-not-well-formed"
            ]
        );
    }

    #[test]
    fn a_pin_that_does_not_match_is_reported_or_rejects_the_listing() {
        let listed = Arc::new(listing(vec![tool("t", "Reads.", &json!({}))]));
        let pin = |hash: &str, strictness| {
            let pin = Pin { hash: hash.to_owned(), strictness };
            let pins = [("up".to_owned(), pin)].into();
            listing_checker(Config { pins, ..Config::default() }).check("up", &listed)
        };
        let right = hash("up", &listed);
        assert_eq!(pin(&right, Strictness::Strict).unwrap().findings, []);
        assert_eq!(pin("0", Strictness::Warn).unwrap().findings[0].code, "pin-mismatch");
        assert!(pin("0", Strictness::Strict).unwrap_err().contains(&right));
    }
}
