//! Renders the tables of the results page as Markdown.

use cost::{HOST_MODELS, Listed, Prices, Totals};

use super::measurements::{Measurements, PricePair};
use super::sizes::{BreakEven, SizeRow, Sizes, cash_replay, deferring_host};
use crate::direct::{replay_capped, replay_deferred, replay_listed};
use crate::replay::Replay;

/// Returns the replays of all ways: of hosts without a gateway, and through gateways.
pub(super) fn all_ways(measured: &Measurements<'_>) -> Vec<Replay> {
    let mut rows = vec![replay_listed(measured.recording)];
    if let Some(ranking) = cash_replay(measured.replays) {
        let hosts = [Listed::Tools, Listed::Servers].into_iter().filter_map(deferring_host);
        rows.extend(hosts.map(|host| replay_deferred(measured.recording, host, ranking)));
    }
    rows.extend(measured.replays.iter().cloned());
    rows
}

/// Renders the whole page.
pub(super) fn page(measured: &Measurements<'_>) -> String {
    let recording = measured.recording;
    let rows = all_ways(measured);
    let (n_tools, n_servers, n_tasks) =
        (recording.n_tools(), recording.servers.len(), recording.tasks.len());
    let mut text = format!(
        "<!-- Written by `cargo xtask bench context`; not by hand. -->\n\n\
         {n_tasks} tasks, {n_servers} servers with {n_tools} tools. Tokens are those of `cl100k_base`. {}\n\n",
        ratio(&rows),
    );
    if !measured.versions.is_empty() {
        text += &format!("Measured: {}.\n\n", measured.versions.join(", "));
    }
    text += &costs(&rows, measured.prices);
    text += &calls(&rows);
    text += &hosts(measured);
    if let Some(sizes) = &measured.sizes {
        text += &by_size("All tasks", &sizes.all, &COLUMNS, measured.prices);
        let short = "Tasks in which every result is short";
        text += &by_size(short, &sizes.short_results, &SHORT_COLUMNS, measured.prices);
    }
    for missing in measured.left_out {
        text += &format!("\nNot measured: {missing}\n");
    }
    text
}

/// How much more context the first way sends than the first gateway.
fn ratio(rows: &[Replay]) -> String {
    let Some(cash) = rows.iter().find(|row| row.label.contains("`cash`")) else {
        return String::new();
    };
    let [all, through] = [&rows[0], cash].map(|row| row.totals().context);
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
    let times = all as f64 / through.max(1) as f64;
    format!(
        "A host that sends every definition with every request sends {} tokens of context, {times:.1} times the {} \
         through `cash`.",
        thousands(all),
        thousands(through)
    )
}

fn costs(rows: &[Replay], prices: PricePair) -> String {
    let mut text = "| way | definitions | requests | context sent | written | read | longest request | price | with a cache |\n\
         |---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let first = |prices| rows[0].totals().price(prices);
    for row in rows {
        let totals = row.totals();
        let share = |prices: Prices| percent(totals.price(prices), first(prices));
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            row.label,
            thousands(row.definitions),
            totals.requests,
            thousands(totals.context),
            thousands(totals.written),
            thousands(totals.read),
            thousands(totals.peak),
            share(prices.without_cache),
            share(prices.with_cache),
        );
    }
    let Prices { cached, fresh, written } = prices.with_cache;
    text + &format!(
        "\nPrices are in percent of those of the first row. A written token costs {} sent ones; with a cache, \
         {written} where a cached one costs {cached} and a new one {fresh}.\n\n",
        prices.without_cache.written
    )
}

fn calls(rows: &[Replay]) -> String {
    let mut text = "| way | calls | found by a search | looked up | refused rightly | refused wrongly | results kept | cut | used later, of it not in the reply | of it one question away |\n\
                    |---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let done = row.replayed();
        let found = match done.searches {
            0 => "–".to_owned(),
            _ => format!("{} %", done.found_percent()),
        };
        text += &format!(
            "| {} | {} | {found} | {} | {} | {} | {} | {} | {}, {} | {} |\n",
            row.label,
            done.calls,
            done.looked_up,
            done.refused_rightly,
            done.refused_wrongly,
            done.kept,
            done.cut,
            done.used_later,
            done.not_inline,
            done.reachable,
        );
    }
    text + "\n"
}

/// What is known of hosts, and which calls their caps prevent.
fn hosts(measured: &Measurements<'_>) -> String {
    let mut text = "| a host that | tools that it sends | calls that cannot be made | known from |\n|---|---|---|---|\n"
        .to_owned();
    for host in HOST_MODELS {
        let (tools, calls) = match host.cap {
            None => ("–".to_owned(), "–".to_owned()),
            Some(cap) => {
                let done = replay_capped(measured.recording, cap);
                let replayed = done.replayed();
                let calls = format!("{} of {}", replayed.refused_wrongly, replayed.calls);
                (done.n_definitions.to_string(), calls)
            }
        };
        text += &format!("| {} | {tools} | {calls} | {} |\n", host.about, host.source);
    }
    text + "\n"
}

/// A column of a table by size: its title, and what it has of a row.
type Column = (&'static str, fn(&SizeRow) -> Totals);

const COLUMNS: [Column; 4] = [
    ("every definition", |row| row.listed),
    ("on search, names listed", |row| row.names_listed),
    ("on search, servers listed", |row| row.servers_listed),
    CASH,
];

/// Listing everything beside our own tools is compared where no result is long: the gate
/// shortens those in both ways, which a replay without a gateway does not show.
const SHORT_COLUMNS: [Column; 5] =
    [COLUMNS[0], ("all listed by `auto`", |row| row.listed_beside), COLUMNS[1], COLUMNS[2], CASH];

const CASH: Column = ("`cash`", |row| row.cash);

fn by_size(title: &str, sizes: &Sizes, columns: &[Column], prices: PricePair) -> String {
    let each =
        |cell: &dyn Fn(&Column) -> String| columns.iter().map(cell).collect::<Vec<_>>().join(" | ");
    let names = each(&|(name, _)| (*name).to_owned());
    let mut text = format!(
        "{title}, {} in number; context, and prices with a cache:\n\n\
         | tools | tokens of definitions | {names} | with a cache: {names} |\n|{}\n",
        sizes.n_tasks,
        "---|".repeat(2 + 2 * columns.len()),
    );
    for row in &sizes.rows {
        let contexts = each(&|(_, totals)| thousands(totals(row).context));
        let with_cache =
            each(&|(_, totals)| format!("{:.0}", totals(row).price(prices.with_cache)));
        text += &format!(
            "| {} | {} | {contexts} | {with_cache} |\n",
            thousands(row.n_tools as u64),
            thousands(row.definitions),
        );
    }
    text += "\n`cash` costs less than\n\n";
    for (name, totals) in &columns[..columns.len() - 1] {
        for (cache, prices) in
            [("without a cache", prices.without_cache), ("with a cache", prices.with_cache)]
        {
            let found = sizes.break_even(|row| (totals(row).price(prices), row.cash.price(prices)));
            let said = match found {
                BreakEven::Always => "at all of these sizes".to_owned(),
                BreakEven::From(tokens) => {
                    format!("from {} tokens of definitions on", thousands(tokens))
                }
                BreakEven::Never => "at none of these sizes".to_owned(),
            };
            text += &format!("- {name}, {cache}: {said}.\n");
        }
    }
    text + "\n"
}

fn percent(part: f64, whole: f64) -> String {
    format!("{:.1} %", 100.0 * part / whole.max(1.0))
}

/// Renders a number with commas between thousands.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at != 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Recording;

    #[test]
    fn a_page_says_what_hosts_are_known_from_and_what_was_not_measured() {
        let recording = Recording::own();
        let prices = PricePair {
            with_cache: Prices { cached: 0.5, ..Prices::WITH_CACHE },
            ..PricePair::default()
        };
        let told = page(&Measurements {
            recording: &recording,
            replays: &[],
            left_out: &["other: it was ended after 8 minutes".to_owned()],
            sizes: None,
            prices,
            versions: &["other 1.2".to_owned()],
        });
        assert!(told.contains("Not measured: other: it was ended"), "{told}");
        assert!(told.contains("a cached one costs 0.5") && told.contains("Measured: other 1.2."));
        for host in HOST_MODELS {
            assert!(told.contains(host.source), "{}", host.id);
        }
    }

    #[test]
    fn numbers_have_commas() {
        let numbers = [7, 999, 1000, 1_264_528].map(thousands);
        assert_eq!(numbers, ["7", "999", "1,000", "1,264,528"]);
    }
}
