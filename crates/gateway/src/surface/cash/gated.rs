//! The reply in place of an answer that is over the size limit.

use std::sync::Arc;

use catalog::Slot;
use serde_json::json;
use tool::Reply;

use super::request::CashRequest;
use crate::surface::oversize::{annotated, counted, parts, reading};
use artifacts::gate::{self, Over, thousands};
use artifacts::{Artifact, TooLarge};

/// How many arguments are named as ways to narrow a query.
const FILTERS: usize = 6;

impl CashRequest<'_> {
    /// Says that the function ran, what came back, and how to get at it: first
    /// by asking for less, then by reading parts, then by allowing it all.
    pub(super) fn gated(&self, slot: Slot, artifact: &Arc<Artifact>, over: &Over) -> Reply {
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
        lines.extend(parts(artifact));
        lines.push("\nTo go on, prefer the first that does:".to_owned());
        lines.push(self.narrowing(slot));
        lines.extend(overview.has_data.then(|| {
            "- Repeat the call with `pick` (jq, such as `pick=\"length\"`): a part of the kept result, \
             without running the function again"
                .to_owned()
        }));
        lines.push(reading(artifact));
        lines.push(match config.ceiling {
            Some(ceiling) if ceiling < over.chars => format!(
                "- `sizelimit={suggested}` would fit it, but the operator allows at most {ceiling}: \
                 read it in parts"
            ),
            Some(_) | None => format!(
                "- Repeat the call with `sizelimit={suggested}`: returns the kept result without \
                 running the function again"
            ),
        });
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
            self.narrowing(slot),
            format!("\nIt begins:\n\n{beginning}"),
        ];
        let meta = json!({"cash/gated": {"chars": over.chars, "limit": over.limit}});
        annotated(&lines.join("\n"), over.is_error || config.gated_is_error, &meta)
    }

    fn narrowing(&self, slot: Slot) -> String {
        let contract = self.snapshot.catalog.contract(slot);
        let optional = contract.parameters.iter().filter(|parameter| !parameter.required);
        let names: Vec<String> =
            optional.take(FILTERS).map(|parameter| format!("`{}`", parameter.name)).collect();
        if names.is_empty() {
            "- Narrow the query, if the function allows it".to_owned()
        } else {
            format!("- Narrow the query with filters (arguments: {})", names.join(", "))
        }
    }
}
