//! `cargo xtask soak [minutes]`: the real program under steady work, and how its
//! memory, descriptors and threads grow.
//!
//! Healthy and faulty upstreams are called in turn. Every second the process is
//! measured; the slope is that of the straight line through all points after a
//! first quarter, in which caches fill.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::chaos::gate::Gate;
use crate::chaos::tally::Tally;
use crate::chaos::{cells, random, web};

/// What one look at the process showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) seconds: f64,
    pub(crate) memory: f64,
    descriptors: f64,
    threads: f64,
}

/// One figure of a point.
type Read = fn(&Point) -> f64;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let minutes: f64 = match arguments.first() {
        Some(text) => text.parse().context("how many minutes?")?,
        None => 10.0,
    };
    let web = web::Server::start()?;
    let cells = cells::all();
    let mut gate = Gate::start(&cells, web.port())?;
    let began = Instant::now();
    let length = Duration::from_secs_f64(minutes * 60.0);
    let mut state = 20_261_117;
    let mut points: Vec<Point> = Vec::new();
    let mut tally = Tally::default();
    let mut round = 0u64;
    while began.elapsed() < length {
        // Three of four calls go where all is well.
        let at = usize::try_from(random::next(&mut state)).unwrap_or(0) % cells.len();
        let keys: Vec<String> = (0..8).map(|n| format!("soak-{round}-{n}")).collect();
        let label = |n: usize| match n % 8 {
            0 | 4 => cells[at].name,
            2 => "http-healthy",
            6 => "http-sse",
            _ => "healthy",
        };
        let asked: Vec<_> =
            keys.iter().enumerate().map(|(n, key)| gate.call(label(n), key)).collect();
        let end = Instant::now() + Duration::from_secs(60);
        for (answer, key) in asked.into_iter().zip(&keys) {
            tally.count(answer.wait(end).as_deref(), key, 0);
        }
        round += 1;
        let seconds = began.elapsed().as_secs_f64();
        if points.last().is_none_or(|last| last.seconds + 1.0 <= seconds) {
            points.push(measure(gate.process_id(), seconds)?);
        }
    }
    println!("{}\n{}", Tally::HEAD, tally.row("soak"));
    let settled: Vec<Point> =
        points.iter().copied().filter(|point| length.as_secs_f64() / 4.0 < point.seconds).collect();
    let shown: [(&str, Read); 3] = [
        ("memory (MiB)", |point| point.memory),
        ("descriptors", |point| point.descriptors),
        ("threads", |point| point.threads),
    ];
    println!("what                first     last   per hour");
    for (name, read) in shown {
        let ends = settled.first().zip(settled.last()).map(|(a, b)| (read(a), read(b)));
        let (first, last) = ends.unwrap_or_default();
        let slope = slope(settled.iter().map(|point| (point.seconds, read(point)))) * 3600.0;
        println!("{name:<16} {first:>8.1} {last:>8.1} {slope:>10.1}");
    }
    tally.left = gate.end()?;
    match tally.is_as_promised() {
        true => Ok(()),
        false => bail!("calls were lost or answered wrongly, or processes were left"),
    }
}

pub(crate) fn measure(process: u32, seconds: f64) -> Result<Point> {
    let place = format!("/proc/{process}");
    let status = fs::read_to_string(format!("{place}/status")).context("the gate is gone")?;
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|line| line.split_whitespace().next());
        word.and_then(|word| word.parse::<f64>().ok()).unwrap_or_default()
    };
    let descriptors = fs::read_dir(format!("{place}/fd"))?.count();
    Ok(Point {
        seconds,
        memory: number("VmRSS:") / 1024.0,
        descriptors: f64::from(u32::try_from(descriptors)?),
        threads: number("Threads:"),
    })
}

/// The slope of the straight line that is nearest to all points.
pub(crate) fn slope(points: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let (mut n, mut sum_x, mut sum_y) = (0.0, 0.0, 0.0);
    for (x, y) in points.clone() {
        n += 1.0;
        sum_x += x;
        sum_y += y;
    }
    if n < 2.0 {
        return 0.0;
    }
    let (middle_x, middle_y) = (sum_x / n, sum_y / n);
    let (mut products, mut squares) = (0.0, 0.0);
    for (x, y) in points {
        products += (x - middle_x) * (y - middle_y);
        squares += (x - middle_x) * (x - middle_x);
    }
    if squares == 0.0 { 0.0 } else { products / squares }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_own_slope_and_a_level_has_none() {
        let line = (0..10).map(|x| (f64::from(x), 3.0 + 2.0 * f64::from(x)));
        assert!((slope(line) - 2.0).abs() < 1e-9);
        assert!(slope((0..10).map(|x| (f64::from(x), 5.0))).abs() < 1e-9);
        assert!(slope([(1.0, 4.0)].into_iter()).abs() < 1e-9);
    }
}
