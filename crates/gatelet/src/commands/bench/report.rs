//! Renders what gatelet would save, by kind of host, as a table and as JSON.

use comfy_table::{Cell, CellAlignment};
use cost::{HOST_MODELS, HostModel, Prices, Task, Totals};
use serde_json::{Value, json};

use super::measure::Measured;
use crate::terminal::{self, DIM, GOOD, WARNING, paint, thousands};

/// Differences below this share of the direct cost are not called savings or losses.
const NOTICEABLE: f64 = 0.05;

/// What one kind of host sends for the task, directly and through gatelet.
struct Row {
    host: &'static HostModel,
    direct: Totals,
    through: Totals,
    n_left_out: usize,
}

fn rows(measured: &Measured, task: &Task) -> Vec<Row> {
    let through = task.through(&measured.gateway).totals();
    let row = |host: &'static HostModel| Row {
        host,
        direct: task.direct(&measured.catalogue, host).totals(),
        through,
        n_left_out: measured.catalogue.n_left_out(host),
    };
    HOST_MODELS.iter().map(row).collect()
}

/// The share of the direct cost that gatelet saves; below zero where it costs more.
fn saving(row: &Row, prices: Prices) -> f64 {
    let direct = row.direct.price(prices);
    if direct == 0.0 { 0.0 } else { 1.0 - row.through.price(prices) / direct }
}

pub(super) fn as_json(measured: &Measured, task: &Task) -> Value {
    let host = |row: &Row| {
        json!({
            "host": row.host.id,
            "about": row.host.about,
            "direct": {"requests": row.direct.requests, "context": row.direct.context},
            "gatelet": {"requests": row.through.requests, "context": row.through.context},
            "saving": saving(row, Prices::WITHOUT_CACHE),
            "saving_with_cache": saving(row, Prices::WITH_CACHE),
            "tools_left_out": row.n_left_out,
        })
    };
    let mut told = measured.as_json();
    told["tokenizer"] = json!("cl100k_base");
    told["task"] = json!({"searches": task.searches, "calls": task.calls, "result": task.result});
    told["hosts"] = rows(measured, task).iter().map(host).collect();
    told
}

pub(super) fn text(measured: &Measured, task: &Task) -> String {
    let rows = rows(measured, task);
    let mut table = terminal::table(&["a host that", "direct", "gatelet", "saved", "with a cache"]);
    for row in &rows {
        let number = |n: u64| {
            let n = usize::try_from(n).unwrap_or(usize::MAX);
            Cell::new(thousands(n)).set_alignment(CellAlignment::Right)
        };
        table.add_row(vec![
            Cell::new(row.host.about),
            number(row.direct.context),
            number(row.through.context),
            percent(saving(row, Prices::WITHOUT_CACHE)),
            percent(saving(row, Prices::WITH_CACHE)),
        ]);
    }
    let lines =
        [facts(measured, task), missing(measured), left_out(&rows), verdict(measured, &rows)];
    let lines: Vec<String> = lines.into_iter().flatten().collect();
    format!("{}\n{table}\n{}", heading(task), lines.join("\n"))
}

fn heading(task: &Task) -> String {
    let Task { searches, calls, .. } = task;
    format!(
        "tokens sent to a model for a task of {calls} calls, with {searches} searches where tools are not listed"
    )
}

fn percent(share: f64) -> Cell {
    let style = if share < 0.0 { WARNING } else { GOOD };
    terminal::cell(style, &format!("{:.0} %", share * 100.0)).set_alignment(CellAlignment::Right)
}

fn facts(measured: &Measured, task: &Task) -> Vec<String> {
    let number = |n: u64| thousands(usize::try_from(n).unwrap_or(usize::MAX));
    let searches = measured.searches;
    let results = match measured.results {
        Some(known) => format!(
            "results: {} tokens each, {} through gatelet, by {} recorded calls",
            number(known.raw),
            number(known.sent),
            thousands(known.calls)
        ),
        None => format!(
            "results: {} tokens each assumed; with `[records]` in the configuration it is measured",
            number(task.result)
        ),
    };
    vec![
        format!(
            "definitions: {} tools cost {}, gatelet's own cost {}",
            thousands(measured.catalogue.tools.len()),
            number(measured.catalogue.definitions()),
            number(measured.gateway.definitions)
        ),
        format!(
            "searches: {} tokens each ({} at most); the tool was named in {} of {}, made of its own description \
             without the words of its name. Models use words of their own, and find fewer",
            number(searches.mean),
            number(searches.longest),
            searches.found,
            searches.made
        ),
        results,
        format!(
            "saved: by price, where a token that the model writes costs {:.0} times one that it reads; the \
             columns before count what it reads. With a cache, what was sent before costs {:.0} %",
            Prices::WITHOUT_CACHE.written,
            Prices::WITH_CACHE.cached * 100.0
        ),
    ]
}

fn missing(measured: &Measured) -> Vec<String> {
    let line = |(label, why): &(String, String)| {
        paint(WARNING, format!("not counted: {label} ({})", terminal::foreign_line(why)))
    };
    measured.uncounted.iter().map(line).collect()
}

/// The hosts that leave tools out, which no number of tokens shows.
fn left_out(rows: &[Row]) -> Vec<String> {
    let line = |row: &Row| {
        let n = thousands(row.n_left_out);
        paint(WARNING, format!("{n} tools cannot be called where a host {}", row.host.about))
    };
    rows.iter().filter(|row| row.n_left_out != 0).map(line).collect()
}

/// Sentences: with which hosts gatelet saves, with which only at one of the two prices, and
/// with which it costs more. None if it saves nothing yet and some definitions are not known.
fn verdict(measured: &Measured, rows: &[Row]) -> Vec<String> {
    let prices = |row: &Row| [Prices::WITHOUT_CACHE, Prices::WITH_CACHE].map(|p| saving(row, p));
    let worse = |row: &Row| prices(row).into_iter().fold(f64::MAX, f64::min);
    let best = |row: &Row| prices(row).into_iter().fold(f64::MIN, f64::max);
    let named = |is_one: &dyn Fn(&Row) -> bool| -> Vec<&Row> {
        rows.iter().filter(|row| is_one(row)).collect()
    };
    let always = named(&|row| NOTICEABLE < worse(row));
    let sometimes = named(&|row| worse(row) <= NOTICEABLE && NOTICEABLE < best(row));
    let dearer = named(&|row| best(row) <= NOTICEABLE && worse(row) < -NOTICEABLE);
    if always.is_empty() && sometimes.is_empty() {
        if !measured.uncounted.is_empty() {
            return Vec::new();
        }
        return vec![paint(
            DIM,
            "gatelet would save nothing here: so few definitions cost less than searching for them; \
             `--surface auto` lists them directly",
        )];
    }
    let ids = |rows: &[&Row]| rows.iter().map(|row| row.host.id).collect::<Vec<_>>().join(", ");
    let mut lines = Vec::new();
    if always.len() == rows.len() {
        lines.push(paint(GOOD, "gatelet saves with every kind of host, with and without a cache"));
    } else if !always.is_empty() {
        let others = if sometimes.is_empty() { "; with the others nothing" } else { "" };
        lines.push(paint(GOOD, format!("gatelet saves with: {}{others}", ids(&always))));
    }
    for row in sometimes {
        let [without, with] = prices(row).map(|share| share * 100.0);
        lines.push(paint(
            WARNING,
            format!("with {} it depends on the prices: {without:.0} % without a cache, {with:.0} % with one", row.host.id),
        ));
    }
    if !dearer.is_empty() {
        lines.push(paint(WARNING, format!("gatelet costs more with: {}", ids(&dearer))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use cost::{Catalogue, Gateway, ToolCost};

    use super::super::measure::Searches;
    use super::*;

    fn measured(n_tools: usize) -> Measured {
        Measured {
            catalogue: Catalogue {
                tools: vec![ToolCost { definition: 150, name: 6 }; n_tools],
                servers: 40,
            },
            gateway: Gateway { definitions: 300, search: 280, call_overhead: 10 },
            searches: Searches { made: 1, found: 1, mean: 280, longest: 280 },
            results: None,
            uncounted: Vec::new(),
        }
    }

    #[test]
    fn a_few_tools_are_said_to_gain_nothing() {
        let few = measured(3);
        let told = text(&few, &few.task(3, 6));
        assert!(told.contains("save nothing"), "{told}");
        let host = &as_json(&few, &few.task(3, 6))["hosts"][0];
        assert!(host["saving"].as_f64().unwrap() < 0.0, "{host}");
    }

    #[test]
    fn many_tools_gain_with_every_host_and_caps_are_told() {
        let many = measured(1_000);
        let told = text(&many, &many.task(3, 6));
        assert!(told.contains("with every kind of host"), "{told}");
        assert!(told.contains("872 tools cannot be called"), "{told}");
        let host = &as_json(&many, &many.task(3, 6))["hosts"][0];
        assert!(0.9 < host["saving"].as_f64().unwrap(), "{host}");
    }

    #[test]
    fn a_saving_at_one_of_two_prices_is_not_called_a_saving() {
        let direct = Totals { requests: 2, context: 2_000, cached: 0, ..Totals::default() };
        let through = Totals { requests: 2, context: 1_800, ..Totals::default() };
        let row = |cached: u64| {
            let direct = Totals { cached, ..direct };
            Row { host: &HOST_MODELS[1], direct, through, n_left_out: 0 }
        };
        let told = |rows: &[Row]| verdict(&measured(1), rows).join(" | ");
        assert!(told(&[row(0)]).contains("with every kind of host, with and without"));
        let mixed = told(&[row(200), row(0)]);
        assert!(mixed.contains("it depends on the prices: 10 % without a cache"), "{mixed}");
        assert!(!mixed.contains("every kind") && mixed.contains("saves with: defers"), "{mixed}");
        let dear = Row { through: Totals { context: 5_000, ..through }, ..row(0) };
        assert!(told(&[row(0), dear]).contains("costs more with: defers"));
    }

    #[test]
    fn nothing_behind_the_gate_divides_by_nothing() {
        let none = Measured { searches: Searches::default(), ..measured(0) };
        assert!(text(&none, &none.task(0, 1)).contains("save nothing"));
    }
}
