//! What the gate costs as the number of tools behind it grows.
//!
//! For each size: the time from starting the program to its first answer, with
//! listings remembered from the run before and no upstream started; a search and
//! a call, once everything is up; resident memory of the gate alone, with the
//! tokenizer loaded, and what each idle session adds to it.
//! `bench_scale [rounds]`; the programs stand beside this one.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "kit/kit.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod kit;
#[path = "kit/pipe.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod pipe;

use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kit::{connect, median, resident};
use pipe::{HELLO, Pipe};

/// Upstreams, and tools of each.
const SIZES: &[(usize, usize)] =
    &[(1, 10), (2, 50), (10, 50), (10, 100), (20, 100), (20, 250), (20, 500)];

const HELP: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"help","arguments":{}}}"#;
const FIND: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"help","arguments":{"kwargs":{"query":"send back what it got number 7"}}}}"#;

fn main() -> io::Result<()> {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(5);
    let home = std::env::current_exe()?;
    let examples = home.parent().expect("a program stands in a directory");
    let scratch = std::env::temp_dir().join(format!("gatelet-scale-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    let programs = Programs {
        echo: examples.join("bench_echo"),
        gatelet: examples.parent().expect("examples stand below").join("gatelet"),
        scratch,
    };
    let done = measure(&programs, rounds);
    std::fs::remove_dir_all(&programs.scratch)?;
    done
}

fn measure(programs: &Programs, rounds: usize) -> io::Result<()> {
    println!("| tools | upstreams | first answer ms | call µs | search µs | MB | kB/session |");
    println!("|---|---|---|---|---|---|---|");
    for &(upstreams, tools) in SIZES {
        programs.configure(upstreams, tools)?;
        let (call, search) = programs.warm(upstreams * tools)?;
        let first: Vec<f64> =
            (0..rounds).map(|_| programs.first_answer()).collect::<io::Result<_>>()?;
        let (resident, session) = programs.memory(upstreams)?;
        println!(
            "| {} | {upstreams} | {:.1} | {call:.0} | {search:.0} | {resident:.1} | {session:.1} |",
            upstreams * tools,
            median(&first),
        );
    }
    Ok(())
}

struct Programs {
    echo: PathBuf,
    gatelet: PathBuf,
    scratch: PathBuf,
}

impl Programs {
    fn configure(&self, upstreams: usize, tools: usize) -> io::Result<()> {
        let mut text = String::new();
        for at in 0..upstreams {
            text += &format!(
                "[[upstream]]\nlabel = \"e{at}\"\ncommand = {:?}\nargs = [\"stdio\", \"{tools}\"]\n\n",
                self.echo.display().to_string()
            );
        }
        std::fs::write(self.scratch.join("gatelet.toml"), text)
    }

    fn gate(&self) -> Command {
        let mut command = Command::new(&self.gatelet);
        command.arg("serve").arg("--config").arg(self.scratch.join("gatelet.toml"));
        command.arg("--state").arg(self.scratch.join("state")).stderr(Stdio::null());
        command
    }

    fn pipe(&self) -> io::Result<Pipe> {
        Pipe::start(self.gate().arg("--stdio"))
    }

    /// Starts everything once, so that the listings are remembered, and times a
    /// call and a search when all is there.
    fn warm(&self, tools: usize) -> io::Result<(f64, f64)> {
        let mut pipe = self.pipe()?;
        pipe.ask(HELLO)?;
        all_are_there(&mut pipe, tools)?;
        Ok((time(&mut pipe, &call(0), 300)?, time(&mut pipe, FIND, 100)?))
    }

    /// Milliseconds from the start of the program to what `help` says.
    fn first_answer(&self) -> io::Result<f64> {
        let started = Instant::now();
        let mut pipe = self.pipe()?;
        pipe.ask(HELLO)?;
        pipe.ask(HELP)?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    }

    /// Resident memory over HTTP in MB, and the kB that one more session costs.
    fn memory(&self, upstreams: usize) -> io::Result<(f64, f64)> {
        const SESSIONS: usize = 500;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = self.gate();
        command.args(["--listen", &format!("127.0.0.1:{port}")]).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::null()).spawn()?;
        let measured = (|| {
            let mut client = connect(port)?;
            let session_id = client.hello(HELLO)?;
            for at in 0..upstreams {
                let message = call(at);
                client.post("/mcp", &session_id, &message)?;
            }
            client.post("/mcp", &session_id, FIND)?;
            let before = resident(child.id())?;
            for _ in 0..SESSIONS {
                client.hello(HELLO)?;
            }
            let each = (resident(child.id())? - before).max(0.0) * 1024.0 / SESSIONS as f64;
            Ok((before, each))
        })();
        child.kill()?;
        child.wait()?;
        measured
    }
}

/// Waits until the upstreams have as many tools as they will have.
fn all_are_there(gate: &mut Pipe, tools: usize) -> io::Result<()> {
    let status = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call","arguments":{"namespace":"gatelet","function":"status"}}}"#;
    let mut last = String::new();
    for _ in 0..2000 {
        last = gate.ask(status)?;
        if n_tools(&last) == tools {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(io::Error::other(format!("the upstreams did not all come up: {last}")))
}

/// Microseconds that an answer takes.
fn time(gate: &mut Pipe, message: &str, times: usize) -> io::Result<f64> {
    let mut taken = Vec::with_capacity(times);
    for _ in 0..times {
        let started = Instant::now();
        let answer = gate.ask(message)?;
        taken.push(started.elapsed().as_secs_f64() * 1e6);
        if answer.contains("\"isError\":true") {
            return Err(io::Error::other(format!("not an answer: {answer}")));
        }
    }
    Ok(median(&taken))
}

/// A call of a function that every upstream has.
fn call(upstream: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"call","arguments":{{"namespace":"e{upstream}","function":"echo_3","kwargs":{{"message":"m"}}}}}}}}"#
    )
}

/// How many functions are there in all, by what the gate says of its upstreams.
fn n_tools(status: &str) -> usize {
    let up = status.split("\\n").filter(|line| line.contains(": up, "));
    let count = |line: &str| line.split(": up, ").nth(1)?.split(' ').next()?.parse::<usize>().ok();
    up.filter_map(count).sum()
}
