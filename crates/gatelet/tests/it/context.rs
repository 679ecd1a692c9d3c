//! What recorded tasks cost through this program: the main figures of
//! `docs/benchmarks.md` stay within bounds, and are the same every time.

use replay::{Gateway, Recording, Replay, Surface, replay, replay_listed};

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
