//! `gatelet tokens --results`: counts the tokens of results by the records of calls, and says
//! which tools would gain from a `[[shape]]`.

use comfy_table::{Cell, CellAlignment};
use serde_json::json;

use super::super::output::Output;
use super::super::stats::{self, ResultCost};
use crate::exit::Done;
use crate::paths::Paths;
use crate::terminal::{self, DIM, GOOD, out, paint};

/// The average tokens of a result from which a shape is worth it.
const WORTH_A_SHAPE: usize = 500;

pub(super) fn run(output: &Output, paths: &Paths) -> anyhow::Result<Done> {
    let costs = stats::result_costs(paths)?;
    if output.is_json() {
        let told: Vec<_> = costs.iter().map(as_json).collect();
        out(&crate::terminal::json_text(&json!({"tokenizer": "cl100k_base", "tools": told}))?);
    } else {
        out(&table(&costs));
    }
    Ok(Done::Fine)
}

fn mean(tokens: usize, calls: usize) -> usize {
    tokens.checked_div(calls).unwrap_or(0)
}

/// Whether a tool would gain from a shape.
fn would_gain(cost: &ResultCost) -> bool {
    WORTH_A_SHAPE <= mean(cost.sent, cost.calls)
}

fn as_json(cost: &ResultCost) -> serde_json::Value {
    let ResultCost { tool, calls, raw, sent } = cost;
    json!({
        "tool": tool,
        "calls": calls,
        "tokens_raw": raw,
        "tokens_sent": sent,
        "mean_tokens_sent": mean(*sent, *calls),
        "would_gain": would_gain(cost),
    })
}

fn table(costs: &[ResultCost]) -> String {
    let mut table = terminal::table(&["results of", "calls", "as they came", "read", "each", ""]);
    for cost in costs {
        let number =
            |n: usize| Cell::new(terminal::thousands(n)).set_alignment(CellAlignment::Right);
        let ResultCost { tool, calls, raw, sent } = cost;
        let advice = if would_gain(cost) { "shape it" } else { "" };
        table.add_row(vec![
            Cell::new(terminal::foreign(tool)),
            number(*calls),
            number(*raw),
            number(*sent),
            number(mean(*sent, *calls)),
            terminal::cell(GOOD, advice),
        ]);
    }
    let hint = match costs.iter().find(|cost| would_gain(cost)) {
        None => paint(DIM, "no tool's results are long on average"),
        Some(cost) => {
            let tool = cost.tool.split('#').next().unwrap_or(&cost.tool);
            let tool = terminal::foreign(tool);
            format!(
                "in the configuration: [[shape]] tool = \"{tool}\", pick = \"[.items[] | {{id}}]\""
            )
        }
    };
    format!("{table}\n{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_with_long_results_would_gain() {
        let cost = |calls, sent| ResultCost { tool: "a:b#1".to_owned(), calls, raw: sent, sent };
        assert!(would_gain(&cost(2, 1_000)) && !would_gain(&cost(3, 1_000)));
        assert!(!would_gain(&cost(0, 0)));
        assert_eq!(as_json(&cost(2, 1_000))["mean_tokens_sent"], 500);
    }
}
