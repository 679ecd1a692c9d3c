//! The replies of `call` in place of an answer that is over the size limit.

use std::sync::Arc;

use catalog::{Parameter, Slot};
use serde_json::json;
use tool::{Json, Reply};

use super::request::CashRequest;
use crate::surface::oversize::{annotated, how_to_view, item_count, part_list};
use artifacts::gate::{self, Excess, thousands};
use artifacts::shape::jq_step;
use artifacts::{Artifact, Overview, TooLarge};

/// How many arguments are suggested to narrow a query.
const MAX_FILTERS: usize = 4;
/// The smallest size limit with which the reply shows how the result begins.
const MIN_LIMIT_FOR_SAMPLE: usize = 2_000;

impl CashRequest<'_> {
    /// Says that the function ran and its result is stored, what it looks like, and how to
    /// get it: by picking a part, by viewing parts, or with a larger size limit. `given`
    /// are the arguments of the call.
    pub(super) fn over_limit(
        &self,
        slot: Slot,
        given: &Json,
        artifact: &Arc<Artifact>,
        over: &Excess,
    ) -> Reply {
        let config = self.cash.pipeline.gate.load();
        let suggested = gate::suggested_limit(over.chars);
        let overview = artifact.overview();
        let (counted, tokens) = (item_count(overview.shape.as_ref()), overview.tokens);
        let handle = &artifact.handle;
        let mut lines = vec![format!(
            "**Gated:** Response exceeds size limit ({counted}~{} characters, ~{} tokens; limit {}). \
             The function ran; its result is kept as `{handle}`.",
            thousands(over.chars),
            thousands(tokens),
            thousands(over.limit),
        )];
        if let Some(shape) = &overview.shape {
            lines.push(format!("It is: {}.", catalog::summary::cut(&shape.describe(), 300)));
        }
        // Short text beside the data is shown as well.
        lines.extend(overview.text_excerpt.iter().map(|said| format!("Its text: {said}")));
        if MIN_LIMIT_FOR_SAMPLE <= over.limit {
            lines.extend(beginning(overview));
        }
        lines.extend(part_list(artifact));
        lines.push("\nTo go on, none of it runs the function again:".to_owned());
        lines.extend(pick_hint(overview));
        lines.push(how_to_view(artifact));
        lines.push(match config.ceiling {
            Some(ceiling) if ceiling < over.chars => format!(
                "- `sizelimit={suggested}` would fit it, but the operator allows at most {ceiling}: \
                 read it in parts"
            ),
            Some(_) | None => format!("- All of it: the same call with `sizelimit={suggested}`"),
        });
        lines.extend(self.narrowing(slot, given));
        let meta = json!({"cash/gated": {
            "chars": over.chars,
            "limit": over.limit,
            "suggested": suggested,
            "tokens": tokens,
            "handle": handle,
        }});
        annotated(&lines.join("\n"), over.is_error || config.gated_is_error, &meta)
    }

    /// Says that the function ran and that only the beginning of its result is left,
    /// because the whole is too large to be stored.
    pub(super) fn over_limit_not_stored(
        &self,
        slot: Slot,
        given: &Json,
        artifact: &Arc<Artifact>,
        over: &Excess,
        why: TooLarge,
        beginning: &str,
    ) -> Reply {
        let config = self.cash.pipeline.gate.load();
        let lines = [
            format!(
                "**Gated:** Response exceeds size limit ({}~{} characters; limit {}). The function \
                 ran; its result could not be kept: {why}.",
                item_count(artifact.overview().shape.as_ref()),
                thousands(over.chars),
                thousands(over.limit),
            ),
            "\nCalling it again runs it again. To get less:".to_owned(),
            self.narrowing(slot, given).unwrap_or_else(|| "- Ask for less".to_owned()),
            format!("\nIt begins:\n\n{beginning}"),
        ];
        let meta = json!({"cash/gated": {"chars": over.chars, "limit": over.limit}});
        annotated(&lines.join("\n"), over.is_error || config.gated_is_error, &meta)
    }

    /// Suggests optional arguments that were not given and may narrow the result.
    fn narrowing(&self, slot: Slot, given: &Json) -> Option<String> {
        let contract = self.snapshot.catalog.contract(slot);
        let is_open = |parameter: &&Parameter| {
            !parameter.required && given.member(&parameter.name).is_none_or(|it| it.is_null())
        };
        let open = contract.parameters.iter().filter(is_open).take(MAX_FILTERS);
        let names: Vec<String> = open.map(|parameter| format!("`{}`", parameter.name)).collect();
        (!names.is_empty()).then(|| format!("Or ask for less with {}.", names.join(", ")))
    }
}

/// Renders how the result begins, and which member is most of it.
fn beginning(overview: &Overview) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    if !overview.samples.is_empty() {
        lines.push(format!("It begins:\n{}", overview.samples.join("\n")));
    }
    let heavy = overview.heaviest.as_ref();
    lines.extend(heavy.map(|(path, share)| format!("`{path}` has {share} % of it.")));
    lines
}

/// Says how to pick a part of the result or count in it: in data by a member, in a text
/// by a word. Media have neither.
fn pick_hint(overview: &Overview) -> Option<String> {
    let largest = overview.shape.as_ref().and_then(|shape| shape.largest_array.as_ref());
    let is_light = |key: &&String| {
        let heavy = overview.heaviest.as_ref();
        catalog::name::is_legal(key) && heavy.is_none_or(|(path, _)| !path.ends_with(key.as_str()))
    };
    let counted = largest.and_then(|array| {
        let key = array.keys.iter().find(is_light)?;
        Some(format!("[{}[] | select({} == …)] | length", array.path, jq_step(key)))
    });
    let example = match (overview.has_data, overview.samples.is_empty()) {
        (true, _) => counted.unwrap_or_else(|| "length".to_owned()),
        (false, false) => "[scan(\"…\")] | length".to_owned(),
        (false, true) => return None,
    };
    // As a quoted argument, like those that a model writes.
    let example = serde_json::Value::from(example);
    let over = if overview.has_data { "" } else { " over the text" };
    Some(format!(
        "- A part, or a count: the same call with `pick` (jq{over}), such as `pick={example}`"
    ))
}
