//! `gatelet tokens`: counts the tokens of tool definitions, directly and through gatelet,
//! and the tokens of results.

mod results;

use comfy_table::{Cell, CellAlignment};
use gateway::{Gateway, Surface};
use roster::{Phase, Status};
use serde_json::json;
use tool::{Listing, Object, Tool};

use super::asking::{self, Wait};
use super::output::Output;
use crate::exit::Done;
use crate::paths::Paths;
use crate::terminal::{self, DIM, GOOD, HEADING, WARNING, out, paint};
use crate::wire::StartPolicy;

/// Count what every upstream's tool definitions cost a model, and what gatelet's do
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Count the results of every tool instead, from the records of calls, and say which would gain from a `[[shape]]`
    #[arg(long)]
    results: bool,

    #[command(flatten)]
    output: Output,
}

/// The tool definitions of one server, and their cost.
struct Cost {
    label: String,
    tools: usize,
    tokens: usize,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    if args.results {
        return results::run(&args.output, paths);
    }
    asking::with_gateway(paths, StartPolicy::OnDemand, async |gateway| {
        asking::wait_until_known(gateway, Wait::Known).await;
        let (mut direct, gate) = costs(gateway);
        let uncounted = uncounted(gateway);
        direct
            .sort_by(|one, other| other.tokens.cmp(&one.tokens).then(one.label.cmp(&other.label)));
        if args.output.is_json() {
            out(&crate::terminal::json_text(&as_json(&direct, &gate, &uncounted))?);
        } else {
            out(&chart(&direct, &gate, &uncounted));
        }
        let nothing = total(&direct).tools == 0 && !uncounted.is_empty();
        Ok(if nothing { Done::NoAnswer } else { Done::Fine })
    })
}

/// The tokens of all tool definitions of a listing.
pub(super) fn count_definitions(listing: &Listing) -> usize {
    listing.tools.iter().map(count_definition).sum()
}

/// The tokens of one tool definition as hosts pass it to models: without `_meta`, which is
/// for the hosts themselves.
pub(super) fn count_definition(tool: &Tool) -> usize {
    let Ok(mut raw) = Object::parse(&tool.raw) else {
        return catalog::tokens::count(tool.raw.as_str());
    };
    raw.remove("_meta");
    catalog::tokens::count(raw.to_json().as_str())
}

/// The cost of every upstream's definitions, and of those of gatelet itself.
fn costs(gateway: &Gateway) -> (Vec<Cost>, Cost) {
    let upstreams = gateway.roster().default_pool().snapshot().upstreams().to_vec();
    let direct = upstreams.iter().map(|upstream| {
        let listing = upstream.listing();
        let (tools, tokens) = (listing.tools.len(), count_definitions(&listing));
        Cost { label: upstream.label().to_owned(), tools, tokens }
    });
    let context = asking::context();
    let source = gateway.surface(Surface::Cash);
    let listing = source.provider_for(&context.client, &context.caller).listing();
    let (tools, tokens) = (listing.tools.len(), count_definitions(&listing));
    (direct.collect(), Cost { label: "through gatelet".to_owned(), tools, tokens })
}

/// The labels of upstreams whose definitions are not known, and why.
pub(super) fn uncounted(gateway: &Gateway) -> Vec<(String, String)> {
    let upstreams = gateway.roster().default_pool().snapshot().upstreams().to_vec();
    let known = |status: &Status| status.seen || *status.listing != Listing::default();
    let why = |status: Status| match status.phase {
        Phase::Down { reason, .. } => (status.label, reason),
        Phase::Asleep | Phase::Starting | Phase::Up => (status.label, "still starting".to_owned()),
    };
    upstreams
        .iter()
        .map(|upstream| upstream.status())
        .filter(|status| !known(status))
        .map(why)
        .collect()
}

fn as_json(direct: &[Cost], gate: &Cost, uncounted: &[(String, String)]) -> serde_json::Value {
    let missing = |(label, why): &(String, String)| json!({"label": label, "reason": why});
    let cost =
        |cost: &Cost| json!({"label": cost.label, "tools": cost.tools, "tokens": cost.tokens});
    json!({
        "tokenizer": "cl100k_base",
        "upstreams": direct.iter().map(cost).collect::<Vec<_>>(),
        "direct": {"tools": total(direct).tools, "tokens": total(direct).tokens},
        "gatelet": {"tools": gate.tools, "tokens": gate.tokens},
        "uncounted": uncounted.iter().map(missing).collect::<Vec<_>>(),
    })
}

fn total(costs: &[Cost]) -> Cost {
    Cost {
        label: "all of them".to_owned(),
        tools: costs.iter().map(|cost| cost.tools).sum(),
        tokens: costs.iter().map(|cost| cost.tokens).sum(),
    }
}

fn chart(direct: &[Cost], gate: &Cost, uncounted: &[(String, String)]) -> String {
    let total = total(direct);
    let mut table = terminal::table(&["definitions of", "tools", "tokens", ""]);
    let labels = direct.iter().chain([&total, gate]).map(|cost| cost.label.chars().count());
    let room =
        usize::from(terminal::width()).saturating_sub(labels.max().unwrap_or(0) + 26).clamp(8, 60);
    let most = total.tokens.max(gate.tokens).max(1);
    let mut row = |cost: &Cost, style| {
        let number =
            |n: usize| Cell::new(terminal::thousands(n)).set_alignment(CellAlignment::Right);
        let bar = bar(cost.tokens, most, room);
        table.add_row(vec![
            Cell::new(&cost.label),
            number(cost.tools),
            number(cost.tokens),
            terminal::cell(style, &bar),
        ]);
    };
    for cost in direct {
        row(cost, DIM);
    }
    row(&total, HEADING);
    row(gate, GOOD);
    let missing = uncounted
        .iter()
        .map(|(label, why)| format!("not counted: {label} ({})", terminal::foreign_line(why)));
    let missing = missing.map(|line| paint(WARNING, line));
    let lines: Vec<String> = missing.chain(saving(&total, gate, uncounted.len())).collect();
    format!("{table}\n{}", lines.join("\n"))
}

/// A line about what gatelet saves; `None` if it saves nothing yet and some definitions are
/// not known.
fn saving(total: &Cost, gate: &Cost, n_uncounted: usize) -> Option<String> {
    if total.tokens <= gate.tokens && n_uncounted != 0 {
        return None;
    }
    Some(summary(total, gate))
}

fn summary(total: &Cost, gate: &Cost) -> String {
    if total.tokens <= gate.tokens {
        return paint(DIM, "so few definitions cost no more without a gate");
    }
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
    let percent = 100.0 * (total.tokens - gate.tokens) as f64 / total.tokens as f64;
    let saved = terminal::thousands(total.tokens - gate.tokens);
    format!("{} tokens less in every conversation ({percent:.1} %)", paint(GOOD, saved))
}

/// A bar of at most `width` characters, where `max` tokens fill the width.
fn bar(tokens: usize, max: usize, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (tokens * width * 8).div_ceil(max).min(width * 8);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(100, 100, 4), "████");
        assert_eq!(bar(50, 100, 4), "██");
        assert_eq!(bar(1, 100, 4), "▏");
        assert_eq!(bar(0, 100, 4), "");
    }

    #[test]
    fn the_saving_is_told_in_tokens_and_percent() {
        let cost = |tokens| Cost { label: String::new(), tools: 1, tokens };
        assert!(saving(&cost(10_000), &cost(350), 1).unwrap().contains("96.5 %"));
        assert!(saving(&cost(100), &cost(350), 0).unwrap().contains("no more"));
        assert_eq!(saving(&cost(100), &cost(350), 1), None, "nobody knows how few they are");
    }
}
