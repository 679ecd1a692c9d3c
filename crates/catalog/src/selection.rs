//! Constrains and checks the choice that a model makes among cards.
//!
//! [`schema`] turns the offered ids into a JSON Schema for a model provider's structured
//! output; [`check`] accepts the id that came back, repairs it when it can mean exactly
//! one candidate, or rejects it. Nothing is ever guessed.

use serde::Serialize;
use serde_json::{Value, json};

/// The model provider for whose API the schema is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// The bare schema.
    JsonSchema,
    /// A `response_format`.
    OpenAi,
    /// A tool definition.
    Anthropic,
}

/// The names in a selection schema: of its property, and of the schema itself.
#[derive(Clone, Debug)]
pub struct Names {
    pub property: String,
    pub schema: String,
}

/// The result of checking a choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Selection {
    pub status: Status,
    pub selected_id: Option<String>,
    pub raw_id: Option<String>,
    pub repair: Option<Repair>,
    pub reason: Option<Reason>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Accepted,
    Repaired,
    Rejected,
}

/// How a choice was repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    Strip,
    CaseFold,
    Prefix,
}

/// Why a choice was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    EmptySelection,
    AmbiguousCaseFold,
    AmbiguousPrefix,
    NotACandidate,
}

/// Whether a choice that is not exact may be repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repairs {
    Allowed,
    Refused,
}

/// There is nothing to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a selection needs at least one candidate; browse first")]
pub struct NoCandidates;

/// The name is not a provider of structured output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no provider; use `json_schema`, `openai` or `anthropic`")]
pub struct UnknownProvider(pub String);

impl Default for Names {
    fn default() -> Names {
        Names { property: "selection".to_owned(), schema: "tool_selection".to_owned() }
    }
}

impl std::str::FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(text: &str) -> Result<Provider, UnknownProvider> {
        match text {
            "json_schema" => Ok(Provider::JsonSchema),
            "openai" => Ok(Provider::OpenAi),
            "anthropic" => Ok(Provider::Anthropic),
            other => Err(UnknownProvider(other.to_owned())),
        }
    }
}

/// The schema of a choice among `candidates`.
pub fn schema(
    candidates: &[&str],
    provider: Provider,
    names: &Names,
) -> Result<Value, NoCandidates> {
    let mut ids: Vec<&str> = Vec::with_capacity(candidates.len());
    for id in candidates {
        if !ids.contains(id) {
            ids.push(id);
        }
    }
    if ids.is_empty() {
        return Err(NoCandidates);
    }
    let property = names.property.as_str();
    let bare = json!({
        "type": "object",
        "properties": {property: {"type": "string", "enum": ids}},
        "required": [property],
        "additionalProperties": false,
    });
    Ok(match provider {
        Provider::JsonSchema => bare,
        Provider::OpenAi => json!({
            "type": "json_schema",
            "json_schema": {"name": names.schema, "strict": true, "schema": bare},
        }),
        Provider::Anthropic => json!({
            "name": names.schema,
            "description": "Select exactly one tool_id from the routed candidates.",
            "input_schema": bare,
        }),
    })
}

/// Checks a choice against what was offered.
pub fn check(selected: Option<&str>, candidates: &[&str], repairs: Repairs) -> Selection {
    let raw = selected.unwrap_or_default();
    let wanted = raw.trim();
    let outcome = match wanted {
        "" => Err(Reason::EmptySelection),
        _ => repaired(wanted, candidates, repairs),
    };
    let raw_id = selected.map(str::to_owned);
    match outcome {
        Ok((id, repair)) => {
            let repair = repair.or((raw != wanted).then_some(Repair::Strip));
            let status = if repair.is_some() { Status::Repaired } else { Status::Accepted };
            Selection { status, selected_id: Some(id.to_owned()), raw_id, repair, reason: None }
        }
        Err(reason) => Selection {
            status: Status::Rejected,
            selected_id: None,
            raw_id,
            repair: None,
            reason: Some(reason),
        },
    }
}

/// The one candidate that `wanted` can mean, for a tool that is named in a call: what
/// [`check`] finds; and `ns:create` is `ns:create#1a2b` even if other ids begin with
/// `ns:create_`.
pub fn resolve<'a>(
    wanted: &str,
    candidates: &[&'a str],
    repairs: Repairs,
) -> Result<(&'a str, Option<Repair>), Reason> {
    let found = repaired(wanted, candidates, repairs);
    if found != Err(Reason::AmbiguousPrefix) {
        return found;
    }
    let folded = wanted.to_lowercase();
    let is_whole_name = |candidate: &&str| {
        let candidate = candidate.to_lowercase();
        candidate.strip_prefix(&*folded).is_some_and(|rest| rest.starts_with(['#', '@']))
    };
    let named = only(candidates.iter().copied().filter(is_whole_name), Reason::AmbiguousPrefix)?;
    named.map(|named| (named, Some(Repair::Prefix))).ok_or(Reason::AmbiguousPrefix)
}

/// The one candidate that `wanted` can mean: itself, the only one that differs
/// in case, or the only one that begins like it. An id shortened around `…`
/// means the only one that begins and ends like it.
fn repaired<'a>(
    wanted: &str,
    candidates: &[&'a str],
    repairs: Repairs,
) -> Result<(&'a str, Option<Repair>), Reason> {
    let all = || candidates.iter().copied();
    if let Some(exact) = all().find(|candidate| *candidate == wanted) {
        return Ok((exact, None));
    }
    if repairs == Repairs::Refused {
        return Err(Reason::NotACandidate);
    }
    let folded = wanted.to_lowercase();
    let equal = |candidate: &&str| candidate.to_lowercase() == folded;
    if let Some(only) = only(all().filter(equal), Reason::AmbiguousCaseFold)? {
        return Ok((only, Some(Repair::CaseFold)));
    }
    let (head, tail) = folded.split_once('…').unwrap_or((&folded, ""));
    let begins = |candidate: &&str| {
        let candidate = candidate.to_lowercase();
        candidate.strip_prefix(head).is_some_and(|rest| rest.ends_with(tail))
    };
    match only(all().filter(begins), Reason::AmbiguousPrefix)? {
        Some(only) => Ok((only, Some(Repair::Prefix))),
        None => Err(Reason::NotACandidate),
    }
}

fn only<'a>(
    mut found: impl Iterator<Item = &'a str>,
    ambiguous: Reason,
) -> Result<Option<&'a str>, Reason> {
    let first = found.next();
    match found.any(|other| Some(other) != first) {
        true => Err(ambiguous),
        false => Ok(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors() -> Value {
        let text = include_str!("../tests/vectors/contextweaver_selection.json");
        serde_json::from_str(text).unwrap()
    }

    fn ids(value: &Value) -> Vec<&str> {
        value.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect()
    }

    #[track_caller]
    fn same(selection: &Selection, expected: &Value) {
        assert_eq!(&serde_json::to_value(selection).unwrap(), expected);
    }

    #[test]
    fn choices_are_judged_as_in_the_vectors() {
        let vectors = vectors();
        let candidates = ids(&vectors["candidates"]);
        for case in vectors["validate"].as_array().unwrap() {
            let selected = case["selected"].as_str();
            let judge = |repairs| check(selected, &candidates, repairs);
            same(&judge(Repairs::Allowed), &case["out"]);
            same(&judge(Repairs::Refused), &case["out_no_repair"]);
        }
        let case = &vectors["ambiguous_case"];
        let candidates = ids(&case["candidates"]);
        same(&check(case["selected"].as_str(), &candidates, Repairs::Allowed), &case["out"]);
    }

    #[test]
    fn schemas_are_those_of_the_vectors_under_their_property() {
        let vectors = vectors();
        let candidates = ids(&vectors["candidates"]);
        let names = Names { property: "tool_id".to_owned(), ..Names::default() };
        for (provider, expected) in vectors["schemas"].as_object().unwrap() {
            let made = schema(&candidates, provider.parse().unwrap(), &names).unwrap();
            assert_eq!(&made, expected);
        }
        let names = Names { schema: "pick".to_owned(), ..Names::default() };
        assert_eq!(schema(&["x", "x"], Provider::OpenAi, &names).unwrap(), vectors["custom"]);
    }

    #[test]
    fn nothing_to_choose_from_is_an_error() {
        assert_eq!(schema(&[], Provider::JsonSchema, &Names::default()), Err(NoCandidates));
    }

    #[test]
    fn a_whole_name_means_its_tool_and_not_those_that_begin_like_it() {
        let candidates = ["ppt:create#00000001", "ppt:create_from_template#00000002"];
        let resolved = |wanted| resolve(wanted, &candidates, Repairs::Allowed);
        assert_eq!(resolved("ppt:create"), Ok((candidates[0], Some(Repair::Prefix))));
        assert_eq!(resolved("PPT:Create"), Ok((candidates[0], Some(Repair::Prefix))));
        assert_eq!(resolved("ppt:creat"), Err(Reason::AmbiguousPrefix));
        assert_eq!(resolved("ppt:create_"), Ok((candidates[1], Some(Repair::Prefix))));
        let versions = ["a:b@1", "a:b@2", "a:bc@1"];
        let resolved = resolve("a:b", &versions, Repairs::Allowed);
        assert_eq!(resolved, Err(Reason::AmbiguousPrefix));
    }

    #[test]
    fn a_shortened_id_means_the_one_it_was_made_from() {
        let candidates = ["n:abc_one#00000001", "n:abc_two#00000002"];
        let resolved = resolve("n:abc_…#00000002", &candidates, Repairs::Allowed);
        assert_eq!(resolved, Ok((candidates[1], Some(Repair::Prefix))));
        let resolved = resolve("n:abc_…", &candidates, Repairs::Allowed);
        assert_eq!(resolved, Err(Reason::AmbiguousPrefix));
        // Nothing was cut out of what is said twice.
        let resolved = resolve("n:abc_o…bc_one#00000001", &candidates, Repairs::Allowed);
        assert_eq!(resolved, Err(Reason::NotACandidate));
    }
}
