//! What recorded tasks cost through this program: the main figures of
//! `docs/benchmarks.md` stay within bounds, and are the same every time.

use std::path::Path;

use cost::{HOST_MODELS, Prices};
use gateway::surface::listed;
use replay::page::{BreakEven, MAX_SHORT_CHARS, Sizes};
use replay::{Gateway, Recording, Replay, Surface, replay, replay_deferred, replay_listed};

fn through(surface: Surface) -> Replay {
    let program = env!("CARGO_BIN_EXE_gatelet").into();
    replay(&Recording::own(), &Gateway::Gatelet { program, surface }).unwrap()
}

#[test]
fn recorded_tasks_cost_two_fifths_at_most_through_cash_and_nothing_is_refused_wrongly() {
    let direct = replay_listed(&Recording::own()).totals();
    let cash = through(Surface::Cash);
    let (totals, done) = (cash.totals(), cash.replayed());
    assert!(cash.definitions <= 350, "{}", cash.definitions);
    assert!(totals.context * 5 <= direct.context * 2, "{totals:?} {direct:?}");
    assert!(totals.context <= 80_000, "{totals:?}");
    assert_eq!((done.refused_rightly, done.refused_wrongly), (2, 0), "{done:?}");
    assert!(65 <= done.found_percent(), "{done:?}");
    assert_eq!(done.not_inline, done.reachable, "what was kept can be had: {done:?}");
}

#[test]
fn two_replays_give_the_same_figures() {
    let [one, other] = [(); 2].map(|()| through(Surface::Gateway));
    assert_eq!((one.totals(), one.replayed()), (other.totals(), other.replayed()));
    assert_eq!(one.replayed().refused_wrongly, 0, "{:?}", one.replayed());
    // A recorded call counts as found when the page has its id. Pages of `tool_browse`
    // name more tools than they have cards, and those names are not ids.
    assert!(75 <= one.replayed().found_percent(), "{:?}", one.replayed());
}

#[test]
fn hosts_that_defer_definitions_cost_what_they_did_and_cash_two_thirds_of_it_at_most() {
    let (recording, cash) = (Recording::own(), through(Surface::Cash));
    let through_cash = cash.totals().context;
    for (id, least, most) in [("defers", 135_000, 165_000), ("defers-servers", 170_000, 210_000)] {
        let host = HOST_MODELS.iter().find(|host| host.id == id).unwrap();
        let deferred = replay_deferred(&recording, host, &cash).totals();
        // Both bounds: a host that became dearer by itself would flatter us.
        assert!((least..=most).contains(&deferred.context), "{id}: {deferred:?}");
        assert!(through_cash * 3 <= deferred.context * 2, "{id}: {through_cash} {deferred:?}");
    }
    // Nothing of it depends on gatelet.
    assert_eq!(replay_listed(&recording).totals().context, 225_196);
}

#[test]
fn proxy_costs_less_than_plain_definitions_and_refuses_nothing_wrongly() {
    let (direct, proxy) = (replay_listed(&Recording::own()).totals(), through(Surface::Proxy));
    let (totals, done) = (proxy.totals(), proxy.replayed());
    assert!(totals.context <= 215_000, "{totals:?}");
    for prices in [Prices::WITHOUT_CACHE, Prices::WITH_CACHE] {
        assert!(totals.price(prices) <= direct.price(prices), "{totals:?} {direct:?}");
    }
    assert_eq!((done.refused_wrongly, done.kept, done.cut), (0, 2, 0), "{done:?}");
}

#[test]
fn with_short_results_cash_breaks_even_at_about_a_dozen_tools() {
    let short = Recording::own().with_short_results(MAX_SHORT_CHARS);
    let program = Path::new(env!("CARGO_BIN_EXE_gatelet"));
    let sizes = Sizes::measure(&short, program, &[10, 30], |_| {}).unwrap();
    for (prices, least, most) in
        [(Prices::WITHOUT_CACHE, 800, 1_700), (Prices::WITH_CACHE, 700, 1_500)]
    {
        let found = sizes.break_even(|row| (row.listed.price(prices), row.cash.price(prices)));
        let BreakEven::From(tokens) = found else { panic!("{found:?}") };
        assert!((least..=most).contains(&tokens), "{tokens} with {prices:?}");
    }
}

/// A row of a published table by size: tokens of definitions, and what listing everything and
/// `cash` cost, in context and by price.
type Published = (f64, [(f64, f64); 2]);

fn published(page: &str) -> Vec<Published> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks").join(page);
    let text = std::fs::read_to_string(place).unwrap();
    let (_, short) = text.split_once("Tasks in which every result is short").unwrap();
    let cells = |line: &str| -> Vec<String> {
        line.split('|').map(|cell| cell.trim().replace(',', "")).collect()
    };
    let mut lines = short.lines().skip_while(|line| !line.starts_with('|')).map(cells);
    let titles = lines.next().unwrap();
    let all = |name: &str| -> Vec<usize> {
        let is_it = |at: &usize| titles[*at].trim_start_matches("with a cache: ") == name;
        (0..titles.len()).filter(is_it).collect()
    };
    let (listed, cash) = (all("all listed by `auto`"), all("`cash`"));
    let rows = lines.skip(1).take_while(|cells| 1 < cells.len());
    rows.map(|cells| {
        let number = |at: usize| cells[at].parse::<f64>().unwrap();
        (number(2), [0, 1].map(|way| (number(listed[way]), number(cash[way]))))
    })
    .collect()
}

/// How much dearer the way chosen by a threshold is than the other one, at worst.
fn regret(threshold: u32, pages: &[Vec<Published>]) -> f64 {
    let mut worst = 0.0_f64;
    for (pair, tokens) in pages
        .iter()
        .flat_map(|rows| rows.windows(2))
        .flat_map(|pair| (0..6_000_u32).step_by(50).map(move |tokens| (pair, tokens)))
    {
        let [(from, before), (to, after)] = pair else { continue };
        let share = (f64::from(tokens) - from) / (to - from);
        if !(0.0..=1.0).contains(&share) {
            continue;
        }
        for (one, other) in before.iter().zip(after) {
            let listed = one.0 + (other.0 - one.0) * share;
            let cash = one.1 + (other.1 - one.1) * share;
            let more = if tokens < threshold { listed / cash } else { cash / listed };
            worst = worst.max(more - 1.0);
        }
    }
    worst
}

#[test]
fn everything_is_listed_up_to_the_size_that_the_published_tables_say() {
    let pages = ["context.md", "livemcp.md"].map(published);
    assert!(pages.iter().all(|rows| rows.len() == 6), "{pages:?}");
    let sizes = || (200..5_000_u32).step_by(50);
    let least = sizes().map(|size| regret(size, &pages)).fold(f64::MAX, f64::min);
    // The largest of those that are as good: listing everything takes fewer requests.
    let best = sizes().filter(|size| regret(*size, &pages) <= least + 0.02).max().unwrap();
    let chosen = u32::try_from(listed::Config::default().everything_below).unwrap();
    assert!(chosen.abs_diff(best) <= 150, "{chosen}, and by the tables {best}");
}
