//! `cargo xtask chaos [calls] [seed]`: the real program in front of upstreams that
//! misbehave in every way we know.
//!
//! Each cell is one upstream with one fault. It counts what was done in its name,
//! so that a call which ran twice, or got no answer, or left a process behind is
//! seen. What is promised is checked here: nothing is lost, nothing runs twice,
//! nothing stays behind; a call is answered rightly or with an error that says so.

pub(crate) mod cells;
pub(crate) mod gate;
pub(crate) mod random;
pub(crate) mod stdio;
pub(crate) mod tally;
pub(crate) mod web;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use cells::Cell;
use gate::{Answer, Gate};
use tally::Tally;

/// Longer than any limit that gatelet was given.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut numbers = arguments.iter().map(|text| text.parse::<u64>().context("a number, please"));
    let calls = numbers.next().transpose()?.unwrap_or(20);
    let seed = numbers.next().transpose()?.unwrap_or(20_261_117);
    let web = web::Server::start()?;
    let cells = cells::all();
    let mut gate = Gate::start(&cells, web.port())?;
    let began = Instant::now();
    println!("seed {seed}, {calls} calls per cell\n{}", Tally::HEAD);
    let mut all = Tally::default();
    for cell in random::shuffled(&cells, seed) {
        let tally = try_cell(&mut gate, cell, calls, seed);
        println!("{}", tally.row(cell.name));
        all.add(&tally);
    }
    gate.spoil_disk()?;
    let kept = cells.iter().find(|cell| cell.name == "kept").context("no cell keeps anything")?;
    let tally = try_cell(&mut gate, kept, calls, seed.wrapping_add(1));
    println!("{}", tally.row("kept, disk full"));
    all.add(&tally);
    all.left = gate.end()?;
    println!("{}", all.row("all"));
    println!("took {} s; processes left: {}", began.elapsed().as_secs(), all.left);
    match all.is_as_promised() {
        true => Ok(()),
        false => bail!("calls were lost or ran twice, or processes were left"),
    }
}

/// Asks a cell so many times at once, and a healthy upstream beside it.
fn try_cell(gate: &mut Gate, cell: &Cell, calls: u64, seed: u64) -> Tally {
    let keys: Vec<String> = (0..calls).map(|n| format!("{}-{seed}-{n}", cell.name)).collect();
    let ask =
        |gate: &mut Gate| keys.iter().map(|key| gate.call(cell.name, key)).collect::<Vec<Answer>>();
    let asked = match cell.name {
        "slow-client" => gate.without_reading(|gate| {
            let asked = ask(gate);
            std::thread::sleep(Duration::from_millis(500));
            asked
        }),
        _ => ask(gate),
    };
    let beside: Vec<_> = (0..5).map(|n| format!("beside-{}-{seed}-{n}", cell.name)).collect();
    let beside: Vec<_> = beside.iter().map(|key| (gate.call("healthy", key), key)).collect();
    let end = Instant::now() + PATIENCE;
    let mut tally = Tally::default();
    for (answer, key) in asked.into_iter().zip(&keys) {
        let mut answer = answer.wait(end);
        if let Some(handle) = answer.as_deref().and_then(tally::kept_as) {
            answer = gate.view(&handle).wait(end);
        }
        tally.count(answer.as_deref(), key, gate.runs(key));
    }
    for (answer, key) in beside {
        tally.count_beside(answer.wait(end).as_deref(), key);
    }
    // What a late upstream still does counts too.
    tally.twice = keys.iter().filter(|key| 1 < gate.runs(key)).count();
    tally
}
