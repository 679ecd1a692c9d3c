//! The manifest of this gate, from its configuration.

use gateway::visibility::Thing;
use tool::Identity;
use web::manifest::sign::SecretKey;
use web::manifest::{Advertised, Authentication, CASH_VERSION, Manifest, Scheme, Suggested};

use crate::builtin;
use crate::config::Config;

/// What anybody may know of this gate: the namespaces that the operator
/// configured, never what only some callers see.
pub(crate) fn manifest(config: &Config) -> Manifest {
    let today = jiff::Zoned::now().date().to_string();
    let address = config.serve.listen;
    let own = if config.builtin { builtin::LABELS } else { &[] };
    let own = own.iter().map(|(label, description)| suggested(label, description));
    let upstreams = config.upstreams.iter().map(|upstream| {
        let description = upstream.description.as_deref().unwrap_or("Tools of an MCP server.");
        suggested(&upstream.label, description)
    });
    let base = config.auth.public_url.clone().unwrap_or_else(|| {
        let scheme = if config.serve.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}")
    });
    let scheme = match (config.auth.required, config.auth.issuers.is_empty()) {
        (false, _) => None,
        (true, true) => Some(Scheme::ApiKey),
        (true, false) => Some(Scheme::Bearer),
    };
    let docs_url = config.manifest.docs_url.clone();
    let gate = suggested("gatelet", "This gate: search, long results in parts, health.");
    let knows = |thing: &Thing<'_>| config.visibility.shows(&Identity::default(), thing);
    let mut namespaces: Vec<Suggested> = own.chain(upstreams).chain([gate]).collect();
    namespaces.retain(|namespace| knows(&Thing::Namespace(&namespace.suggested)));
    let first = Thing::Skill { namespace: "", name: "first_steps" };
    let skills = if config.builtin && knows(&first) {
        let description = "How to find and use what is behind this gate.".to_owned();
        vec![Advertised { name: "first_steps".to_owned(), description }]
    } else {
        Vec::new()
    };
    let manifest = Manifest {
        cash_version: CASH_VERSION.to_owned(),
        last_updated: today,
        publisher: config.manifest.publisher.clone(),
        copyright: config.manifest.copyright.clone(),
        endpoint: format!("{base}/mcp"),
        cache_ttl: config.manifest.cache_ttl,
        authentication: scheme.map(|scheme| Authentication { scheme, docs_url }),
        namespaces,
        skills,
        signature: None,
        whole: None,
    };
    match config.manifest.key.as_deref().map(SecretKey::parse) {
        Some(Ok(key)) => key.sign(&manifest),
        Some(Err(_)) | None => manifest,
    }
}

fn suggested(label: &str, description: &str) -> Suggested {
    let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let line = description.lines().next().unwrap_or_default().trim();
    Suggested { suggested: label.chars().map(legal).collect(), description: line.to_owned() }
}
