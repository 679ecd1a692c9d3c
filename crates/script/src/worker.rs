//! The worker process, which runs scripts for gatelet and can do nothing else.
//!
//! Its standard input is its only socket. It confines itself before it reads anything,
//! and ends when the socket is closed.

use std::ffi::OsString;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use crate::engine::{self, CallChannel};
use crate::protocol::{self, Answer, Call, FromWorker, ToWorker};

/// The first argument that makes gatelet's executable a worker; the second is how many
/// bytes of memory it may use, the third the id of the process that started it.
pub const ARGUMENT: &str = "__script";

/// Runs as a worker until the socket is closed if `args` (without the executable's own
/// name) request it; otherwise returns `None`.
pub fn run_if_requested(mut args: impl Iterator<Item = OsString>) -> Option<io::Result<()>> {
    if args.next()? != ARGUMENT {
        return None;
    }
    let mut number = || args.next().and_then(|text| text.to_str()?.parse::<u64>().ok());
    let (memory, parent) = (number(), number().and_then(|id| u32::try_from(id).ok()));
    let given = memory.zip(parent).ok_or_else(|| {
        let why = "a worker needs a bound of memory and who started it";
        io::Error::new(io::ErrorKind::InvalidInput, why)
    });
    Some(given.and_then(|(memory, parent)| serve(memory, parent)))
}

fn serve(memory: u64, parent: u32) -> io::Result<()> {
    // A closed socket ends only a worker that reads. One that computes would notice it
    // when its script has ended.
    sandbox::end_with_parent(parent)?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let unenforced = sandbox::isolate(memory).err().map(|error| error.to_string());
    let mut socket = Socket { from: BufReader::new(&socket), to: BufWriter::new(&socket) };
    socket.send(&FromWorker::Ready { unenforced })?;
    while let Some(frame) = protocol::read::<ToWorker>(&mut socket.from)? {
        match frame {
            ToWorker::Run(start) => {
                let finished = engine::run(&start, &mut socket)?;
                socket.send(&FromWorker::Done(finished))?;
            }
            // An answer to a script that has ended.
            ToWorker::Answer(_) => {}
        }
    }
    Ok(())
}

/// The socket to gatelet. Calls are sent when the worker waits for an answer, so that
/// parallel calls of a script go out together.
struct Socket<'a> {
    from: BufReader<&'a UnixStream>,
    to: BufWriter<&'a UnixStream>,
}

impl Socket<'_> {
    fn send(&mut self, frame: &FromWorker) -> io::Result<()> {
        protocol::write(&mut self.to, frame)?;
        self.to.flush()
    }
}

impl CallChannel for Socket<'_> {
    fn call(&mut self, call: Call) -> io::Result<()> {
        protocol::write(&mut self.to, &FromWorker::Call(call))
    }

    fn answer(&mut self) -> io::Result<Answer> {
        self.send(&FromWorker::Waiting)?;
        match protocol::read(&mut self.from)? {
            Some(ToWorker::Answer(answer)) => Ok(answer),
            Some(ToWorker::Run(_)) => Err(io::Error::other("a script is running already")),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
