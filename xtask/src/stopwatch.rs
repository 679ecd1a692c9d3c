//! `cargo xtask bench start`: from nothing to the first useful answer, by every way
//! to install.
//!
//! Each way begins in an empty home that has one host in it, Claude Code's file. The
//! package is installed from its file into a clean place, `gatelet install` is asked
//! once at a terminal and told yes, and then the entry that it wrote is started as
//! the host would start it and asked for the time. What is measured is what a person
//! waits for, without their reading and typing, and without a download.

mod ways;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::dist;
use ways::{WAYS, Way};

const USAGE: &str = "\
usage: cargo xtask bench start [--binary FILE | --packages DIR] [--source] [rounds]

  --binary FILE    pack this program instead of building the `dist` profile
  --packages DIR   take the packages that stand there
  --source         also build from a clean copy of the sources: takes minutes
  rounds           how often every way is gone; the median is shown (3)";

/// What a run was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    binary: Option<String>,
    packages: Option<PathBuf>,
    source: bool,
    rounds: usize,
}

/// How long each step of a way took.
#[derive(Clone, Copy)]
struct Times {
    package: Duration,
    host: Duration,
    answer: Duration,
}

impl Times {
    fn all(&self) -> Duration {
        self.package + self.host + self.answer
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let wanted = wanted(arguments)?;
    let scratch = tempfile::tempdir()?;
    let packages = packages(&wanted, scratch.path())?;
    println!("| way | commands | package | into the host | first answer | all |");
    println!("|---|---|---|---|---|---|");
    for way in WAYS {
        if way.is_slow && !wanted.source {
            continue;
        }
        let rounds = if way.is_slow { 1 } else { wanted.rounds };
        match (0..rounds).map(|_| go(way, &packages)).collect::<Result<Vec<Times>>>() {
            Ok(times) => println!("{}", row(way, median(times))),
            Err(error) => println!("| {} | `{}` | not here: {error:#} | | | |", way.name, way.line),
        }
    }
    Ok(())
}

fn wanted(arguments: &[String]) -> Result<Wanted> {
    let mut wanted = Wanted { binary: None, packages: None, source: false, rounds: 3 };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` needs a value\n{USAGE}"));
        match word.as_str() {
            "--binary" => wanted.binary = Some(value()?.clone()),
            "--packages" => wanted.packages = Some(value()?.into()),
            "--source" => wanted.source = true,
            rounds => match rounds.parse() {
                Ok(rounds) if 0 < rounds => wanted.rounds = rounds,
                Ok(_) | Err(_) => bail!("`{word}` is no argument\n{USAGE}"),
            },
        }
    }
    Ok(wanted)
}

/// Where the packages are; makes them where they are not there yet.
fn packages(wanted: &Wanted, scratch: &Path) -> Result<PathBuf> {
    if let Some(place) = &wanted.packages {
        return Ok(std::path::absolute(place)?);
    }
    let out = scratch.join("packages");
    let mut words = vec!["--out".to_owned(), out.display().to_string()];
    if let Some(binary) = &wanted.binary {
        // How tightly it is packed is felt by a download, which is not measured.
        words.extend(["--fast".to_owned(), "--binary".to_owned(), binary.clone()]);
    }
    dist::run(&words)?;
    Ok(out)
}

/// A clean place to install into, and an empty home with one host.
pub(crate) struct Fresh {
    place: tempfile::TempDir,
}

impl Fresh {
    fn new() -> Result<Fresh> {
        let fresh = Fresh { place: tempfile::tempdir()? };
        for directory in ["home", "prefix", "project"] {
            std::fs::create_dir(fresh.path(directory))?;
        }
        std::fs::write(fresh.path("home/.claude.json"), "{}\n")?;
        Ok(fresh)
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.place.path().join(below)
    }

    /// A command of somebody whose home this is.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("HOME", self.path("home")).current_dir(self.path("project"));
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
            command.env_remove(name);
        }
        for name in ["GATELET_CONFIG", "GATELET_STATE", "CLAUDE_CONFIG_DIR"] {
            command.env_remove(name);
        }
        command
    }
}

/// Goes one way from nothing to an answer.
fn go(way: &Way, packages: &Path) -> Result<Times> {
    let fresh = Fresh::new()?;
    let began = Instant::now();
    let line = (way.install)(&fresh, packages)?;
    let package = began.elapsed();
    let began = Instant::now();
    agree(&fresh, &line)?;
    let host = began.elapsed();
    let began = Instant::now();
    first_answer(&fresh)?;
    Ok(Times { package, host, answer: began.elapsed() })
}

/// Runs a command line at a terminal of its own and says yes when it is asked.
fn agree(fresh: &Fresh, line: &str) -> Result<()> {
    let mut command = fresh.command("script");
    command.args(["-qefc", line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("`script` of util-linux makes the terminal")?;
    let mut answers = child.stdin.take().context("it has a standard input")?;
    answers.write_all(b"y\n")?;
    let ended = child.wait_with_output()?;
    drop(answers);
    if !ended.status.success() {
        bail!("`{line}`: {}", String::from_utf8_lossy(&ended.stdout).trim());
    }
    Ok(())
}

/// Starts what the host's file names and asks it for the time.
fn first_answer(fresh: &Fresh) -> Result<()> {
    let text = std::fs::read_to_string(fresh.path("home/.claude.json"))?;
    let file: Value = serde_json::from_str(&text)?;
    let entry = &file["mcpServers"]["gatelet"];
    let program = entry["command"].as_str().context("the host's file has no entry of gatelet's")?;
    let words = entry["args"].as_array().cloned().unwrap_or_default();
    let mut command = fresh.command(program);
    command.args(words.iter().filter_map(Value::as_str)).stderr(Stdio::null());
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let answered = converse(&mut server);
    drop(server.stdin.take());
    server.wait()?;
    answered
}

fn converse(server: &mut Child) -> Result<()> {
    let mut input = server.stdin.as_ref().context("it has a standard input")?;
    let mut lines = BufReader::new(server.stdout.as_mut().context("it has a standard output")?);
    let client = json!({"name": "stopwatch", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let time = json!({"namespace": "time", "function": "now", "kwargs": {"timezone": "UTC"}});
    let call = json!({"name": "call", "arguments": time});
    for (id, method, params) in [(1, "initialize", hello), (2, "tools/call", call)] {
        let asked = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(input, "{asked}")?;
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line)? == 0 {
                bail!("it ended without an answer");
            }
            let told: Value = serde_json::from_str(&line)?;
            if told["id"] != id {
                continue;
            }
            if told["result"].is_null() || told["result"]["isError"] == true {
                bail!("it answered {line}");
            }
            break;
        }
    }
    Ok(())
}

/// The way that took neither the longest nor the shortest, by all steps together.
fn median(mut times: Vec<Times>) -> Times {
    times.sort_by_key(Times::all);
    times[times.len() / 2]
}

fn row(way: &Way, times: Times) -> String {
    let seconds = |duration: Duration| format!("{:.1} s", duration.as_secs_f64());
    let Times { package, host, answer } = times;
    let package =
        if package < Duration::from_millis(5) { "–".to_owned() } else { seconds(package) };
    format!(
        "| {} | `{}` | {package} | {} | {} | **{}** |",
        way.name,
        way.line,
        seconds(host),
        seconds(answer),
        seconds(times.all()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_and_unknown_ones_refused() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let found = wanted(&words("--packages p --source 5")).unwrap();
        let expected = Wanted { binary: None, packages: Some("p".into()), source: true, rounds: 5 };
        assert_eq!(found, expected);
        for wrong in ["--package x", "--binary", "0", "five"] {
            assert!(wanted(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_median_is_by_all_steps() {
        let times = |package: u64, host: u64| Times {
            package: Duration::from_secs(package),
            host: Duration::from_secs(host),
            answer: Duration::ZERO,
        };
        let found = median(vec![times(9, 0), times(1, 1), times(0, 5)]);
        assert_eq!((found.package.as_secs(), found.host.as_secs()), (0, 5));
    }
}
