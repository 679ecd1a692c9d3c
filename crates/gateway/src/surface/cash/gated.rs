//! The reply in place of an answer that is over the size limit.

use std::sync::Arc;

use catalog::{Parameter, Slot};
use serde_json::json;
use tool::{Json, Reply};

use super::request::CashRequest;
use crate::surface::oversize::{annotated, counted, parts, reading};
use artifacts::gate::{self, Over, thousands};
use artifacts::{Artifact, Overview, TooLarge};

/// How many arguments are named as ways to narrow a query.
const FILTERS: usize = 4;
/// With a lower limit than this, the reply does not show how the result begins.
const ROOM: usize = 2_000;

impl CashRequest<'_> {
    /// Says that the function ran, what came back, and how to get at it: first
    /// by picking a part, then by reading parts, then by allowing it all.
    /// `given` are the arguments of the call.
    pub(super) fn gated(
        &self,
        slot: Slot,
        given: &Json,
        artifact: &Arc<Artifact>,
        over: &Over,
    ) -> Reply {
        let config = self.cash.pipeline.gate.load();
        let suggested = gate::suggestion(over.chars);
        let overview = artifact.overview();
        let (counted, tokens) = (counted(overview.shape.as_ref()), overview.tokens);
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
        lines.extend(overview.said.iter().map(|said| format!("Its text: {said}")));
        if ROOM <= over.limit {
            lines.extend(beginning(overview));
        }
        lines.extend(parts(artifact));
        lines.push("\nTo go on, none of it runs the function again:".to_owned());
        lines.extend(picking(overview));
        lines.push(reading(artifact));
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

    /// Says that the function ran and that only the beginning of its result is
    /// left, because the whole is too large to be kept.
    pub(super) fn unkept(
        &self,
        slot: Slot,
        given: &Json,
        artifact: &Arc<Artifact>,
        over: &Over,
        why: TooLarge,
        beginning: &str,
    ) -> Reply {
        let config = self.cash.pipeline.gate.load();
        let lines = [
            format!(
                "**Gated:** Response exceeds size limit ({}~{} characters; limit {}). The function \
                 ran; its result could not be kept: {why}.",
                counted(artifact.overview().shape.as_ref()),
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

    /// The optional arguments that were not given, by which less may come back.
    fn narrowing(&self, slot: Slot, given: &Json) -> Option<String> {
        let contract = self.snapshot.catalog.contract(slot);
        let is_open = |parameter: &&Parameter| {
            !parameter.required && given.member(&parameter.name).is_none_or(|it| it.is_null())
        };
        let open = contract.parameters.iter().filter(is_open).take(FILTERS);
        let names: Vec<String> = open.map(|parameter| format!("`{}`", parameter.name)).collect();
        (!names.is_empty()).then(|| format!("Or ask for less with {}.", names.join(", ")))
    }
}

/// How the result begins, and which member has most of it.
fn beginning(overview: &Overview) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    if !overview.samples.is_empty() {
        lines.push(format!("It begins:\n{}", overview.samples.join("\n")));
    }
    let heavy = overview.heaviest.as_ref();
    lines.extend(heavy.map(|(path, share)| format!("`{path}` has {share} % of it.")));
    lines
}

/// How to get at a part, or count in it, by the same call: in data by a member, in
/// a text by a word. An image has neither.
fn picking(overview: &Overview) -> Option<String> {
    let rows = overview.shape.as_ref().and_then(|shape| shape.rows.as_ref());
    let is_light = |key: &&String| {
        let heavy = overview.heaviest.as_ref();
        catalog::name::is_legal(key) && heavy.is_none_or(|(path, _)| !path.ends_with(key.as_str()))
    };
    let counted = rows.and_then(|rows| {
        let key = rows.keys.iter().find(is_light)?;
        Some(format!("[{}[] | select(.{key} == …)] | length", rows.path))
    });
    let example = match (overview.has_data, overview.samples.is_empty()) {
        (true, _) => counted.unwrap_or_else(|| "length".to_owned()),
        (false, false) => "[scan(\\\"…\\\")] | length".to_owned(),
        (false, true) => return None,
    };
    let over = if overview.has_data { "" } else { " over the text" };
    Some(format!(
        "- A part, or a count: the same call with `pick` (jq{over}), such as `pick=\"{example}\"`"
    ))
}
