//! Renders the tables of the results page as Markdown.

use cost::{HOST_MODELS, Prices};

use super::measurements::Measurements;
use super::sizes::{BreakEven, Sizes, cash_replay, deferring_host};
use crate::direct::{replay_capped, replay_deferred, replay_listed};
use crate::replay::Replay;

/// Renders the whole page.
pub(super) fn page(measured: &Measurements<'_>) -> String {
    let recording = measured.recording;
    let mut rows: Vec<Replay> = vec![replay_listed(recording)];
    rows.extend(
        cash_replay(measured.replays)
            .map(|ranking| replay_deferred(recording, deferring_host(), ranking)),
    );
    rows.extend(measured.replays.iter().cloned());
    let (n_tools, n_servers, n_tasks) =
        (recording.n_tools(), recording.servers.len(), recording.tasks.len());
    let mut text = format!(
        "<!-- Written by `cargo xtask bench context`; not by hand. -->\n\n\
         {n_tasks} tasks, {n_servers} servers with {n_tools} tools. Tokens are those of `cl100k_base`.\n\n\
         | way | definitions | requests | context sent | written | read | longest request | price | with a cache |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    let best = |prices| rows[0].totals().price(prices);
    for row in &rows {
        let totals = row.totals();
        let share = |prices: Prices| percent(totals.price(prices), best(prices));
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            row.label,
            thousands(row.definitions),
            totals.requests,
            thousands(totals.context),
            thousands(totals.written),
            thousands(totals.read),
            thousands(totals.peak),
            share(Prices::WITHOUT_CACHE),
            share(Prices::WITH_CACHE),
        );
    }
    text += "\nPrices are in percent of those of the first row.\n\n";
    text += &calls(&rows);
    text += &caps(measured);
    text += &by_size("All tasks", measured.sizes);
    text += &by_size("Tasks in which every result is short", measured.short_results);
    for missing in measured.left_out {
        text += &format!("\nNot measured: {missing}\n");
    }
    text
}

fn calls(rows: &[Replay]) -> String {
    let mut text = "| way | calls | found by a search | looked up | refused rightly | refused wrongly | used later, of it not in the reply | of it one question away |\n\
                    |---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let done = row.replayed();
        let found = match done.searches {
            0 => "–".to_owned(),
            _ => format!("{} %", done.found_percent()),
        };
        text += &format!(
            "| {} | {} | {found} | {} | {} | {} | {}, {} | {} |\n",
            row.label,
            done.calls,
            done.looked_up,
            done.refused_rightly,
            done.refused_wrongly,
            done.used_later,
            done.not_inline,
            done.reachable,
        );
    }
    text + "\n"
}

fn caps(measured: &Measurements<'_>) -> String {
    let mut text =
        "| host | tools that it sends | calls that cannot be made |\n|---|---|---|\n".to_owned();
    for host in HOST_MODELS.iter().filter_map(|host| Some((host, host.cap?))) {
        let (host, cap) = host;
        let done = replay_capped(measured.recording, cap);
        let replayed = done.replayed();
        text += &format!(
            "| {} | {} | {} of {} |\n",
            host.about, done.n_definitions, replayed.refused_wrongly, replayed.calls
        );
    }
    text + "\n"
}

fn by_size(title: &str, sizes: &Sizes) -> String {
    let mut text = format!("{title}, {} in number:\n\n", sizes.n_tasks);
    text += "| tools | tokens of definitions | every definition | on search | `cash` | with a cache: every definition | on search | `cash` |\n\
             |---|---|---|---|---|---|---|---|\n";
    for row in &sizes.rows {
        let (all, found, cash) = row.price(Prices::WITH_CACHE);
        text += &format!(
            "| {} | {} | {} | {} | {} | {all:.0} | {found:.0} | {cash:.0} |\n",
            row.n_tools,
            thousands(row.definitions),
            thousands(row.listed.context),
            thousands(row.deferred.context),
            thousands(row.cash.context),
        );
    }
    let said = |name: &str, found: BreakEven| match found {
        BreakEven::Always => format!("- {name}: at all of these sizes.\n"),
        BreakEven::From(tokens) => {
            format!("- {name}: from {} tokens of definitions on.\n", thousands(tokens))
        }
        BreakEven::Never => format!("- {name}: at none of these sizes.\n"),
    };
    let price = |prices: Prices| {
        sizes.break_even(move |row| {
            let (all, _, cash) = row.price(prices);
            (all, cash)
        })
    };
    let deferred = |prices: Prices| {
        sizes.break_even(move |row| {
            let (_, found, cash) = row.price(prices);
            (found, cash)
        })
    };
    text += "\n`cash` costs less than\n\n";
    text +=
        &said("every definition with every request, without a cache", price(Prices::WITHOUT_CACHE));
    text += &said("every definition with every request, with a cache", price(Prices::WITH_CACHE));
    text += &said("definitions on search, without a cache", deferred(Prices::WITHOUT_CACHE));
    text += &said("definitions on search, with a cache", deferred(Prices::WITH_CACHE));
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

    #[test]
    fn numbers_have_commas() {
        let numbers = [7, 999, 1000, 1_264_528].map(thousands);
        assert_eq!(numbers, ["7", "999", "1,000", "1,264,528"]);
    }
}
