//! The benchmark of context: recorded tasks through every gateway, as tables and plots.
//!
//! `context GATELET PEERS OUT [DATA]`: the program, the directory of installed
//! peers, the directory for the page, and a recording other than our own.

#![expect(clippy::print_stderr, reason = "it says what it does")]

use std::io;
use std::path::{Path, PathBuf};

use replay::page::{Measurements, Sizes};
use replay::{Gateway, OtherGateway, Recording, Replay, Surface, page, replay};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [replay::BRIDGE, url] => replay::bridge(url),
        [gatelet, peers, out] => run(gatelet, Path::new(peers), Path::new(out), None),
        [gatelet, peers, out, data] => {
            run(gatelet, Path::new(peers), Path::new(out), Some(Path::new(data)))
        }
        _ => Err(io::Error::other("usage: context GATELET PEERS OUT [DATA]")),
    }
}

fn run(gatelet: &str, peers: &Path, out: &Path, data: Option<&Path>) -> io::Result<()> {
    let recording = match data {
        Some(data) => Recording::read(data)?,
        None => Recording::own(),
    };
    let mut replays: Vec<Replay> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    for surface in Surface::ALL {
        let gateway = Gateway::Gatelet { program: PathBuf::from(gatelet), surface };
        eprintln!("{}", gateway.name());
        replays.push(replay(&recording, &gateway)?);
    }
    let bridge = std::env::current_exe()?;
    for peer in OtherGateway::ALL {
        let gateway = Gateway::Other {
            peer,
            directory: peers.join(peer.directory()),
            bridge: bridge.clone(),
        };
        eprintln!("{}", gateway.name());
        match replay(&recording, &gateway) {
            Ok(done) => replays.push(done),
            Err(error) => left_out.push(error.to_string()),
        }
    }
    let report = |n| eprintln!("{n} tools");
    let sizes = Sizes::measure(&recording, Path::new(gatelet), report)?;
    let short = recording.with_short_results(page::MAX_SHORT_CHARS);
    let short_results = Sizes::measure(&short, Path::new(gatelet), report)?;
    page::write(
        out,
        &Measurements {
            recording: &recording,
            replays: &replays,
            left_out: &left_out,
            sizes: &sizes,
            short_results: &short_results,
        },
    )
}
