//! Takes a recording through one gateway, and prints what it cost: for trying things out.

#![expect(clippy::print_stdout, reason = "it prints its figures")]

use std::path::{Path, PathBuf};

use replay::{Gateway, OtherGateway, Recording, Surface, replay};

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
    let gatelet = |surface| Gateway::Gatelet { program: place.clone(), surface };
    let peer = |peer| Gateway::Other { peer, directory: place.clone(), bridge: own.clone() };
    let gateway = match name.as_str() {
        "cash" => gatelet(Surface::Cash),
        "gateway" => gatelet(Surface::Gateway),
        "proxy" => gatelet(Surface::Proxy),
        "compressor" => peer(OtherGateway::Compressor),
        "search" => peer(OtherGateway::FastMcpSearch),
        "code" => peer(OtherGateway::FastMcpCode),
        "contextweaver" => peer(OtherGateway::ContextWeaver),
        _ => return Err(usage()),
    };
    let recording = Recording::read(Path::new(&data), Path::new(&data))?;
    let done = replay(&recording, &gateway)?;
    println!("{}: {} definitions of {} tokens", done.label, done.n_definitions, done.definitions);
    println!("{:?}\n{:?}", done.totals(), done.replayed());
    Ok(())
}
