//! The benchmark of context: recorded tasks through every gateway, as tables and plots.
//!
//! `context GATELET PEERS OUT [FLAG VALUE]…`: the program, the directory of installed peers,
//! the directory for the page. `--tools` and `--tasks` name a recording other than our own,
//! `--page` the page, `--minutes` how long another gateway may take, `--sizes no` leaves out
//! catalogues of other sizes, and `--cached`, `--fresh` and `--written` are prices.

#![expect(clippy::print_stderr, reason = "it says what it does")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use replay::page::{self, BySize, Measurements, PricePair, SIZES, Sizes};
use replay::{Gateway, OtherGateway, Recording, Replay, Surface, replay, replay_within};

/// What is measured, and where the page goes.
struct Plan {
    gatelet: PathBuf,
    peers: PathBuf,
    out: PathBuf,
    page: String,
    tools: Option<PathBuf>,
    tasks: Option<PathBuf>,
    limit: Duration,
    has_sizes: bool,
    prices: PricePair,
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, url] = arguments.as_slice()
        && first == replay::BRIDGE
    {
        return replay::bridge(url);
    }
    let [gatelet, peers, out, flags @ ..] = arguments.as_slice() else {
        return Err(io::Error::other("usage: context GATELET PEERS OUT [FLAG VALUE]…"));
    };
    let mut plan = Plan {
        // Gateways run in directories of their own.
        gatelet: std::path::absolute(gatelet)?,
        peers: std::path::absolute(peers)?,
        out: out.into(),
        page: "context".to_owned(),
        tools: None,
        tasks: None,
        limit: Duration::from_mins(10),
        has_sizes: true,
        prices: PricePair::default(),
    };
    for flag in flags.chunks(2) {
        plan.set(flag)?;
    }
    run(&plan)
}

impl Plan {
    fn set(&mut self, flag: &[String]) -> io::Result<()> {
        let [name, value] = flag else {
            return Err(io::Error::other(format!("`{}` needs a value", flag.join(" "))));
        };
        let wrong = |_| io::Error::other(format!("`{value}` is no value of {name}"));
        let number =
            || value.parse::<f64>().map_err(|_| io::Error::other(format!("`{value}` is no price")));
        match name.as_str() {
            "--page" => value.clone_into(&mut self.page),
            "--tools" => self.tools = Some(value.into()),
            "--tasks" => self.tasks = Some(value.into()),
            "--minutes" => self.limit = Duration::from_mins(value.parse().map_err(wrong)?),
            "--sizes" => self.has_sizes = value != "no",
            "--cached" => self.prices.with_cache.cached = number()?,
            "--fresh" => self.prices.with_cache.fresh = number()?,
            "--written" => {
                self.prices.with_cache.written = number()?;
                self.prices.without_cache.written = number()?;
            }
            _ => return Err(io::Error::other(format!("no flag `{name}`"))),
        }
        Ok(())
    }

    fn recording(&self) -> io::Result<Recording> {
        match (&self.tools, &self.tasks) {
            (None, None) => Ok(Recording::own()),
            (Some(tools), Some(tasks)) => Recording::read(tools, tasks),
            (Some(place), None) | (None, Some(place)) => Recording::read(place, place),
        }
    }

    /// The versions of everything that is measured, as far as programs and installers say.
    fn versions(&self) -> Vec<String> {
        let own = Command::new(&self.gatelet).arg("--version").output();
        let text = own.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        // The lines after it are the revisions of the protocol.
        let first = text.ok().and_then(|text| text.lines().next().map(str::to_owned));
        let mut versions: Vec<String> = first.into_iter().collect();
        let mut directories: Vec<&str> = OtherGateway::ALL.map(OtherGateway::directory).into();
        directories.dedup();
        for directory in directories {
            let stamp = self.peers.join(directory).join(".installed");
            let packages = std::fs::read_to_string(stamp).unwrap_or_default();
            versions.extend(packages.lines().map(|line| line.replace("==", " ")));
        }
        versions
    }
}

fn run(plan: &Plan) -> io::Result<()> {
    let recording = plan.recording()?;
    let mut replays: Vec<Replay> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    for surface in Surface::ALL {
        let gateway = Gateway::Gatelet { program: plan.gatelet.clone(), surface };
        eprintln!("{}", gateway.name());
        replays.push(replay(&recording, &gateway)?);
    }
    let bridge = std::env::current_exe()?;
    for peer in OtherGateway::ALL {
        let directory = plan.peers.join(peer.directory());
        let gateway = Gateway::Other { peer, directory, bridge: bridge.clone() };
        eprintln!("{}", gateway.name());
        match replay_within(&recording, &gateway, plan.limit) {
            Ok(done) => replays.push(done),
            Err(error) => left_out.push(error.to_string()),
        }
    }
    let sizes = if plan.has_sizes { Some(by_size(&recording, &plan.gatelet)?) } else { None };
    page::write(
        &plan.out,
        &plan.page,
        &Measurements {
            recording: &recording,
            replays: &replays,
            left_out: &left_out,
            sizes,
            prices: plan.prices,
            versions: &plan.versions(),
        },
    )
}

fn by_size(recording: &Recording, gatelet: &Path) -> io::Result<BySize> {
    let report = |n| eprintln!("{n} tools");
    let short = recording.with_short_results(page::MAX_SHORT_CHARS);
    Ok(BySize {
        all: Sizes::measure(recording, gatelet, &SIZES, report)?,
        short_results: Sizes::measure(&short, gatelet, &SIZES, report)?,
    })
}
