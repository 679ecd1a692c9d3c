//! A process that runs scripts for a gatelet and can do nothing else.
//!
//! Its standard input is the one socket that it has. It confines itself before
//! it reads anything, and ends when the socket is closed.

use std::ffi::OsString;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use crate::engine::{self, Outside};
use crate::protocol::{self, Answer, Call, FromWorker, ToWorker};

/// The first argument that makes our executable a worker; the second is how
/// many bytes of memory it may use, the third the process that started it.
pub const ARGUMENT: &str = "__script";

/// Serves scripts if `args` (without the executable's own name) ask for that.
/// `None` when they do not.
pub fn take(mut args: impl Iterator<Item = OsString>) -> Option<io::Result<()>> {
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
    // A closed socket ends a worker that reads. One that computes hears of it only
    // when its script is over.
    sandbox::end_with_parent(parent)?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let unenforced = sandbox::isolate(memory).err().map(|error| error.to_string());
    let mut socket = Socket { from: BufReader::new(&socket), to: BufWriter::new(&socket) };
    socket.say(&FromWorker::Ready { unenforced })?;
    while let Some(said) = protocol::read::<ToWorker>(&mut socket.from)? {
        match said {
            ToWorker::Run(start) => {
                let finished = engine::run(&start, &mut socket)?;
                socket.say(&FromWorker::Done(finished))?;
            }
            // An answer that nobody waits for any more.
            ToWorker::Answer(_) => {}
        }
    }
    Ok(())
}

/// The one socket. What is written goes out when an answer is waited for, so that
/// calls that a script makes side by side leave together.
struct Socket<'a> {
    from: BufReader<&'a UnixStream>,
    to: BufWriter<&'a UnixStream>,
}

impl Socket<'_> {
    fn say(&mut self, frame: &FromWorker) -> io::Result<()> {
        protocol::write(&mut self.to, frame)?;
        self.to.flush()
    }
}

impl Outside for Socket<'_> {
    fn call(&mut self, call: Call) -> io::Result<()> {
        protocol::write(&mut self.to, &FromWorker::Call(call))
    }

    fn answer(&mut self) -> io::Result<Answer> {
        self.to.flush()?;
        match protocol::read(&mut self.from)? {
            Some(ToWorker::Answer(answer)) => Ok(answer),
            Some(ToWorker::Run(_)) => Err(io::Error::other("a script is running already")),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
