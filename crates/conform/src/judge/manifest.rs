//! Checks of the manifest and of the identity resource.

use serde_json::Value;

use super::observation::{Check, Observation, good_if, good_if_empty, not_visible};
use crate::survey::Transcript;

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("C082", is_published),
    ("C083", is_yaml),
    ("C084", json_by_negotiation),
    ("C085", |t| field(t, "cash_version", Need::Required, text)),
    ("C086", |t| field(t, "last_updated", Need::Required, date)),
    ("C087", |t| field(t, "publisher", Need::Required, text)),
    ("C088", |t| field(t, "copyright", Need::Optional, text)),
    ("C089", |t| field(t, "endpoint", Need::Required, url)),
    ("C090", |t| field(t, "cache_ttl", Need::Optional, seconds)),
    ("C091", |t| field(t, "authentication", Need::Optional, mapping)),
    ("C092", |t| nested_field(t, "authentication", "scheme", Need::Required, scheme)),
    ("C093", |t| nested_field(t, "authentication", "docs_url", Need::Optional, url)),
    ("C094", |t| field(t, "namespaces", Need::Required, entries)),
    ("C095", |t| each_entry(t, "namespaces", "suggested", label)),
    ("C096", |t| each_entry(t, "namespaces", "description", line)),
    ("C097", |t| field(t, "skills", Need::Optional, list)),
    ("C098", |t| each_entry(t, "skills", "name", text)),
    ("C099", |t| each_entry(t, "skills", "description", text)),
    ("C100", identity_exists),
    ("C101", identity_is_the_manifest),
];

const NO_WEB: &str = "the server has no web address";

/// Whether a missing field is a breach.
#[derive(Clone, Copy, PartialEq)]
enum Need {
    Required,
    Optional,
}

fn is_published(transcript: &Transcript) -> Observation {
    let Some(page) = &transcript.manifest else { return not_visible(NO_WEB) };
    good_if(
        page.status == 200,
        "GET /.well-known/cash-mcp.yaml answers 200",
        format!("GET /.well-known/cash-mcp.yaml answers {}", page.status),
    )
}

fn is_yaml(transcript: &Transcript) -> Observation {
    let Some(page) = transcript.manifest.as_ref().filter(|page| page.status == 200) else {
        return not_visible("there is no manifest");
    };
    let kind = page.content_type.split(';').next().unwrap_or_default().trim();
    good_if(kind == "application/yaml", kind, format!("content type is `{}`", page.content_type))
}

fn json_by_negotiation(transcript: &Transcript) -> Observation {
    let Some(page) = transcript.manifest_json.as_ref().filter(|page| page.status == 200) else {
        return not_visible("there is no manifest");
    };
    if page.content_type.starts_with("application/yaml") {
        return Observation::Good("YAML only".into());
    }
    let varies = page.vary.to_ascii_lowercase().contains("accept");
    let parses = serde_json::from_str::<Value>(&page.body).is_ok();
    good_if(
        page.content_type.starts_with("application/json") && parses && varies,
        "JSON on request, with Vary: Accept",
        format!("content type `{}`, vary `{}`", page.content_type, page.vary),
    )
}

/// Parses the YAML form of the manifest.
fn manifest(transcript: &Transcript) -> Result<Value, Observation> {
    let page = transcript.manifest.as_ref().filter(|page| page.status == 200);
    let Some(page) = page else { return Err(not_visible("there is no manifest")) };
    // The server may be hostile, so the depth is limited.
    let options = serde_saphyr::options! { budget: serde_saphyr::budget! { max_depth: 64 } };
    let tree = serde_saphyr::from_str_with_options(&page.body, options);
    tree.map_err(|error| Observation::Bad(format!("not YAML: {error}")))
}

/// Checks a member of the manifest.
fn field(
    transcript: &Transcript,
    name: &str,
    need: Need,
    is_valid: fn(&Value) -> bool,
) -> Observation {
    match manifest(transcript) {
        Ok(manifest) => check_value(&manifest[name], name, need, is_valid),
        Err(seen) => seen,
    }
}

fn check_value(value: &Value, name: &str, need: Need, is_valid: fn(&Value) -> bool) -> Observation {
    if value.is_null() {
        return match need {
            Need::Required => Observation::Bad(format!("`{name}` is missing")),
            Need::Optional => Observation::Good(format!("`{name}` is left out")),
        };
    }
    good_if(is_valid(value), format!("`{name}` is there"), format!("`{name}` is {value}"))
}

/// Checks a member of the block `block`, if the manifest has that.
fn nested_field(
    transcript: &Transcript,
    block: &str,
    name: &str,
    need: Need,
    is_valid: fn(&Value) -> bool,
) -> Observation {
    match manifest(transcript) {
        Ok(manifest) if manifest[block].is_null() => {
            Observation::Good(format!("no `{block}` block"))
        }
        Ok(manifest) => check_value(&manifest[block][name], name, need, is_valid),
        Err(seen) => seen,
    }
}

/// Checks the member `name` of every entry of a list.
fn each_entry(
    transcript: &Transcript,
    list: &str,
    name: &str,
    is_valid: fn(&Value) -> bool,
) -> Observation {
    let manifest = match manifest(transcript) {
        Ok(manifest) => manifest,
        Err(seen) => return seen,
    };
    let entries = manifest[list].as_array().cloned().unwrap_or_default();
    let wrong: Vec<String> = entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| !is_valid(&entry[name]))
        .map(|(at, entry)| format!("`{list}[{at}].{name}` is {}", entry[name]))
        .collect();
    good_if_empty(&wrong, format!("{} entries of `{list}`", entries.len()))
}

fn text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

fn line(value: &Value) -> bool {
    text(value) && value.as_str().is_some_and(|text| !text.contains('\n'))
}

fn label(value: &Value) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    text(value) && value.as_str().is_some_and(|text| text.chars().all(legal))
}

fn date(value: &Value) -> bool {
    value.as_str().is_some_and(|text| {
        let day = text.get(..10).unwrap_or_default();
        let shape = |(at, c): (usize, char)| match at {
            4 | 7 => c == '-',
            _ => c.is_ascii_digit(),
        };
        day.len() == 10 && day.chars().enumerate().all(shape)
    })
}

fn url(value: &Value) -> bool {
    value.as_str().is_some_and(|text| {
        text.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty())
            || text.starts_with("stdio:")
    })
}

fn seconds(value: &Value) -> bool {
    value.as_u64().is_some()
}

fn mapping(value: &Value) -> bool {
    value.is_object()
}

fn scheme(value: &Value) -> bool {
    matches!(value.as_str(), Some("none" | "bearer" | "apikey" | "oauth2"))
}

fn list(value: &Value) -> bool {
    value.is_array()
}

fn entries(value: &Value) -> bool {
    value.as_array().is_some_and(|entries| !entries.is_empty())
}

fn identity_exists(transcript: &Transcript) -> Observation {
    good_if(
        transcript.identity.is_some() && transcript.has_resources,
        "cash://server can be read",
        "cash://server cannot be read, or resources are not declared",
    )
}

fn identity_is_the_manifest(transcript: &Transcript) -> Observation {
    let Some(identity) = &transcript.identity else {
        return not_visible("there is no cash://server");
    };
    if transcript.identity_type != "application/json" {
        return Observation::Bad(format!("media type `{}`", transcript.identity_type));
    }
    match manifest(transcript) {
        Ok(manifest) => good_if(
            manifest == *identity,
            "the resource equals the manifest",
            "the resource differs from the manifest",
        ),
        Err(Observation::NotVisible(_)) => {
            Observation::Good("JSON; no web manifest to compare with".into())
        }
        Err(seen) => seen,
    }
}
