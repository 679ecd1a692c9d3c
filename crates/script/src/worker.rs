//! A process that runs scripts for a gatelet and can do nothing else.
//!
//! Its standard input is the one socket that it has. It confines itself before
//! it reads anything, and ends when the socket is closed.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use crate::engine::{self, Outside};
use crate::protocol::{self, Answer, Call, FromWorker, ToWorker};

/// The first argument that makes our executable a worker; the second is how
/// many bytes of memory it may use.
pub const ARGUMENT: &str = "__script";

/// Serves scripts if `args` (without the executable's own name) ask for that.
/// `None` when they do not.
pub fn take(mut args: impl Iterator<Item = OsString>) -> Option<io::Result<()>> {
    if args.next()? != ARGUMENT {
        return None;
    }
    let memory = args.next().and_then(|text| text.to_str()?.parse().ok());
    let memory = memory.ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "a worker needs a bound of memory")
    });
    Some(memory.and_then(serve))
}

fn serve(memory: u64) -> io::Result<()> {
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let unenforced = sandbox::isolate(memory).err().map(|error| error.to_string());
    protocol::write(&mut socket, &FromWorker::Ready { unenforced })?;
    while let Some(said) = protocol::read::<ToWorker>(&mut socket)? {
        match said {
            ToWorker::Run(start) => {
                let finished = engine::run(&start, &mut Socket(&mut socket))?;
                protocol::write(&mut socket, &FromWorker::Done(finished))?;
            }
            // An answer that nobody waits for any more.
            ToWorker::Answer(_) => {}
        }
    }
    Ok(())
}

struct Socket<'a>(&'a mut UnixStream);

impl Outside for Socket<'_> {
    fn call(&mut self, call: Call) -> io::Result<()> {
        protocol::write(self.0, &FromWorker::Call(call))
    }

    fn answer(&mut self) -> io::Result<Answer> {
        match protocol::read(self.0)? {
            Some(ToWorker::Answer(answer)) => Ok(answer),
            Some(ToWorker::Run(_)) => Err(io::Error::other("a script is running already")),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
