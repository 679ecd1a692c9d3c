//! `cargo xtask bench console [minutes]`: a hundred calls a second, ten thousand
//! tools, and the console open in a real browser.
//!
//! Calls go over a pipe to the gatelet that serves. One page shows them as they come,
//! another walks from page to page. It fails when a request of the browser takes
//! more than 200 ms, when a call is lost, or when the gate or the page grows.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::run::{self, cargo, root};
use crate::soak::{Point, measure};
use crate::tools;

const CALLS_PER_SECOND: u32 = 100;
const N_TOOLS: &str = "10000";
/// No request of the browser may take longer, in milliseconds.
const SLOW: f64 = 200.0;
/// By what share of itself memory may grow over the run.
const GROWTH: f64 = 0.1;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (mut minutes, mut binary) = (10.0, None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--binary" => binary = Some(PathBuf::from(words.next().context("which program?")?)),
            word => minutes = word.parse().context("bench console [--binary FILE] [minutes]")?,
        }
    }
    let tools = tools::directory();
    let program = match binary {
        Some(program) => std::path::absolute(program)?,
        None => {
            run::run(&mut cargo(&["build", "--release", "--package", "gatelet"]))?;
            run::target_directory()?.join("release/gatelet")
        }
    };
    let home = tempfile::tempdir()?;
    let gate = Gate::start(&program, home.path(), &tools)?;
    let link = run::output(gate.command(&program).args(["console", "--print"]))?;
    let seconds = minutes * 60.0;
    let mut browser = Browser::open(&tools, link.trim(), seconds)?;
    let mut calls = Calls::begin(gate.command(&program))?;
    let points = work(&gate, &mut calls, &browser, seconds)?;
    let told = browser.end()?;
    let latencies = calls.end()?;
    let judged = report(&points, &latencies, calls.n_sent, &told);
    match &judged {
        Ok(()) => println!("verdict: fine: no request over {SLOW:.0} ms, no call lost, no growth"),
        Err(why) => println!("verdict: FAILED: {why}"),
    }
    judged
}

/// The gatelet that serves, in a home of its own.
struct Gate {
    process: Child,
    home: PathBuf,
}

impl Gate {
    fn start(program: &Path, home: &Path, tools: &Path) -> Result<Gate> {
        let node = tools.join("node/bin/node");
        let script = root().join("crates/gatelet/tests/browser/many_tools.mjs");
        let config = format!(
            "[[upstream]]\nlabel = \"many\"\ncommand = {node:?}\nargs = [{script:?}, {N_TOOLS:?}]\n"
        );
        std::fs::write(home.join("gatelet.toml"), config)?;
        let mut command = settled(program, home);
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().context("cannot start gatelet")?;
        let mut said = BufReader::new(process.stderr.take().context("it says something")?).lines();
        let is_ready = said.any(|line| line.is_ok_and(|line| line.contains("upstreams ready")));
        std::thread::spawn(move || said.for_each(drop));
        match is_ready {
            true => Ok(Gate { process, home: home.to_owned() }),
            false => bail!("gatelet ended before it was ready"),
        }
    }

    fn command(&self, program: &Path) -> Command {
        settled(program, &self.home)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn settled(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("HOME", home).env("GATELET_STATE", home.join("state"));
    command.env("GATELET_CONFIG", home.join("gatelet.toml")).current_dir(home);
    command
}

/// Calls over a pipe, and how long each took.
struct Calls {
    process: Child,
    sent: Arc<Mutex<std::collections::HashMap<u64, Instant>>>,
    took: Arc<Mutex<Vec<f64>>>,
    n_sent: u64,
}

impl Calls {
    fn begin(mut command: Command) -> Result<Calls> {
        command.args(["connect", "--only"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::null()).spawn()?;
        let output = process.stdout.take().context("it has an output")?;
        let mut calls = Calls { process, sent: Arc::default(), took: Arc::default(), n_sent: 0 };
        let (sent, took) = (Arc::clone(&calls.sent), Arc::clone(&calls.took));
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).unwrap_or_default();
                let Some(id) = message["id"].as_u64() else { continue };
                let since = sent.lock().expect("nobody panics here").remove(&id);
                let is_fine = message["result"]["isError"] != true && !message["result"].is_null();
                if let Some(since) = since.filter(|_| is_fine) {
                    let millis = since.elapsed().as_secs_f64() * 1000.0;
                    took.lock().expect("nobody panics here").push(millis);
                }
            }
        });
        let client = json!({"name": "bench", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        calls
            .write(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}))?;
        calls.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(calls)
    }

    fn write(&mut self, message: &Value) -> Result<()> {
        let mut input = self.process.stdin.as_ref().context("it has an input")?;
        Ok(writeln!(input, "{message}")?)
    }

    /// Calls one of the many tools.
    fn call(&mut self) -> Result<()> {
        self.n_sent += 1;
        let n = self.n_sent;
        let function = format!("read_invoice_{}", n % 100);
        let arguments =
            json!({"namespace": "many", "function": function, "kwargs": {"id": n.to_string()}});
        let params = json!({"name": "call", "arguments": arguments});
        self.sent.lock().expect("nobody panics here").insert(n, Instant::now());
        self.write(&json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params}))
    }

    /// Waits for the last answers; how long each took, sorted, in milliseconds.
    fn end(&mut self) -> Result<Vec<f64>> {
        let end = Instant::now() + Duration::from_secs(10);
        while !self.sent.lock().expect("nobody panics here").is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(self.process.stdin.take());
        self.process.wait()?;
        let mut took = self.took.lock().expect("nobody panics here").clone();
        took.sort_by(f64::total_cmp);
        Ok(took)
    }
}

/// The browser, and what it said so far.
struct Browser {
    process: Child,
    said: Arc<Mutex<Vec<Value>>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Browser {
    fn open(tools: &Path, link: &str, seconds: f64) -> Result<Browser> {
        let script = root().join("crates/gatelet/tests/browser/watch.mjs");
        let mut command = Command::new(tools.join("node/bin/node"));
        command.arg(script).arg(tools).arg(link).arg(seconds.to_string());
        let mut process = command.stdout(Stdio::piped()).spawn().context("cannot start node")?;
        let mut lines = BufReader::new(process.stdout.take().context("it says something")?).lines();
        let first = lines.next().context("the browser says nothing")??;
        if !first.contains("ready") {
            bail!("the browser says {first}");
        }
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_default();
                heard.lock().expect("nobody panics here").push(message);
            }
        });
        Ok(Browser { process, said, reader: Some(reader) })
    }

    fn end(&mut self) -> Result<Vec<Value>> {
        self.process.wait()?;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        Ok(self.said.lock().expect("nobody panics here").clone())
    }
}

/// Calls at a steady pace and looks at the gate every second.
fn work(gate: &Gate, calls: &mut Calls, browser: &Browser, seconds: f64) -> Result<Vec<Point>> {
    let (began, mut points) = (Instant::now(), Vec::<Point>::new());
    let mut n_made = 0;
    loop {
        let now = began.elapsed().as_secs_f64();
        let is_over =
            browser.said.lock().expect("nobody panics here").iter().any(|m| m["at"] == "end");
        if seconds <= now || is_over {
            return Ok(points);
        }
        while f64::from(n_made) < now * f64::from(CALLS_PER_SECOND) {
            calls.call()?;
            n_made += 1;
        }
        if points.last().is_none_or(|last| last.seconds + 1.0 <= now) {
            points.push(measure(gate.process.id(), now)?);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn report(points: &[Point], latencies: &[f64], n_sent: u64, told: &[Value]) -> Result<()> {
    let at = |sorted: &[f64], share: f64| {
        let last = sorted.len().saturating_sub(1);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let place = (sorted.len() as f64 * share) as usize;
        sorted.get(place.min(last)).copied().unwrap_or_default()
    };
    let seconds = points.last().map_or(1.0, |point| point.seconds);
    println!(
        "{n_sent} calls in {seconds:.0} s, {:.0} a second; {} answered",
        n_sent as f64 / seconds,
        latencies.len()
    );
    println!(
        "a call took {:.1} ms in the median, {:.1} at the 99th percentile, {:.1} at most",
        at(latencies, 0.5),
        at(latencies, 0.99),
        at(latencies, 1.0)
    );

    let end = told
        .iter()
        .find(|message| message["at"] == "end")
        .context("the browser did not end well")?;
    let requests: Vec<(&str, f64)> = end["found"]["requests"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|request| Some((request[0].as_str()?, request[1].as_f64()?)))
        .collect();
    let mut took: Vec<f64> = requests.iter().map(|request| request.1).collect();
    took.sort_by(f64::total_cmp);
    println!(
        "{} requests of the browser, {} of them renewals: {:.0} ms in the median, {:.0} at the 99th percentile, {:.0} at most",
        took.len(),
        end["found"]["renewed"],
        at(&took, 0.5),
        at(&took, 0.99),
        at(&took, 1.0)
    );

    let memory: Vec<f64> = points.iter().map(|point| point.memory).collect();
    let gate = grown("the gate", "MiB", &memory)?;
    let looks = || told.iter().filter(|message| message["at"] == "look");
    let series =
        |key: &str| -> Vec<f64> { looks().filter_map(|look| look[key].as_f64()).collect() };
    let heap = grown("the page's heap", "MB", &series("heap"))?;
    let nodes = grown("the page's nodes", "", &series("nodes"))?;

    let slow: Vec<String> = requests
        .iter()
        .filter(|request| SLOW < request.1)
        .map(|(path, took)| format!("{path} {took:.0} ms"))
        .collect();
    let troubles = &end["found"]["troubles"];
    if latencies.len() as u64 != n_sent {
        bail!("{} calls were lost or failed", n_sent - latencies.len() as u64);
    }
    if !slow.is_empty() || troubles.as_array().is_some_and(|troubles| !troubles.is_empty()) {
        bail!("{} slow requests: {}; troubles: {troubles}", slow.len(), slow.join(", "));
    }
    match gate || heap || nodes {
        true => bail!("something grows"),
        false => Ok(()),
    }
}

/// Prints how something developed, and returns whether it grew too much: whether it is
/// higher in the last quarter than in the second. Means are compared, because what goes up
/// and down with every page has single values anywhere, and a line through them any slope.
/// The first quarter does not count: caches fill then.
fn grown(what: &str, unit: &str, series: &[f64]) -> Result<bool> {
    let quarter = series.len() / 4;
    if quarter == 0 {
        bail!("{what}: {} values are too few to tell", series.len());
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (early, late) =
        (mean(&series[quarter..2 * quarter]), mean(&series[series.len() - quarter..]));
    println!(
        "{what}: {early:.1} {unit} in the second quarter, {late:.1} in the last ({:+.1})",
        late - early
    );
    Ok(early * GROWTH < late - early)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(series: &[f64], expected: bool) {
        assert_eq!(grown("it", "", series).unwrap(), expected);
    }

    #[test]
    fn what_goes_up_and_down_with_every_page_does_not_grow() {
        // A long page every third look: the line through these rises, the values do not.
        let noise = [1962.0, 900.0, 4800.0, 1962.0, 900.0, 4800.0, 1962.0, 900.0, 4800.0];
        let series: Vec<f64> = noise.iter().copied().cycle().take(60).collect();
        check(&series, false);
        // Caches fill at first.
        let series: Vec<f64> = (0..60).map(|n| f64::from(n.min(12)) * 100.0).collect();
        check(&series, false);
    }

    #[test]
    fn what_gets_more_with_every_page_grows() {
        let series: Vec<f64> = (0..60).map(|n| 1000.0 + f64::from(n) * 10.0).collect();
        check(&series, true);
        let noise = [1.0, 3.0, 2.0].iter().cycle();
        let series: Vec<f64> = noise.zip(0..60).map(|(x, n)| x + f64::from(n) * 0.1).collect();
        check(&series, true);
    }

    #[test]
    fn three_looks_are_too_few() {
        assert!(grown("it", "", &[1.0, 2.0, 3.0]).is_err());
    }
}
