//! Takes a recording through one way, and prints what it cost: for trying things out.

#![expect(clippy::print_stdout, reason = "it prints its figures")]

use std::path::{Path, PathBuf};

use replay::{Peer, Recording, Surface, Way, replay};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || std::io::Error::other("usage: try_way DATA WAY PROGRAM_OR_DIRECTORY");
    let data = arguments.next().ok_or_else(usage)?;
    if data == replay::BRIDGE {
        return replay::bridge(&arguments.next().ok_or_else(usage)?);
    }
    let (name, place) = arguments.next().zip(arguments.next()).ok_or_else(usage)?;
    let place = PathBuf::from(place);
    let own = std::env::current_exe()?;
    let gatelet = |surface| Way::Gatelet { program: place.clone(), surface };
    let peer = |peer| Way::Peer { peer, directory: place.clone(), bridge: own.clone() };
    let way = match name.as_str() {
        "cash" => gatelet(Surface::Cash),
        "gateway" => gatelet(Surface::Gateway),
        "proxy" => gatelet(Surface::Proxy),
        "compressor" => peer(Peer::Compressor),
        "search" => peer(Peer::FastMcpSearch),
        "code" => peer(Peer::FastMcpCode),
        "contextweaver" => peer(Peer::ContextWeaver),
        _ => return Err(usage()),
    };
    let recording = Recording::read(Path::new(&data))?;
    let done = replay(&recording, &way)?;
    println!("{}: {} definitions of {} tokens", done.way, done.n_definitions, done.definitions);
    println!("{:?}\n{:?}", done.totals(), done.replayed());
    Ok(())
}
