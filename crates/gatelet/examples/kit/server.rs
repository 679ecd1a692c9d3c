//! A server under test, direct or behind the gate, and a client that calls it.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::kit::Connection;

/// The programs of a measurement, and a directory for what they write.
pub(crate) struct Programs {
    pub(crate) echo: PathBuf,
    pub(crate) raw: PathBuf,
    pub(crate) gatelet: PathBuf,
    pub(crate) scratch: PathBuf,
    /// What gatelet is run under, such as a profiler: a program and its arguments.
    pub(crate) wrapper: Vec<OsString>,
}

impl Programs {
    /// Those that stand beside the program that is running.
    pub(crate) fn beside_this_one() -> io::Result<Programs> {
        let home = std::env::current_exe()?;
        let examples = home.parent().expect("a program stands in a directory");
        let scratch = std::env::temp_dir().join(format!("gatelet-bench-{}", std::process::id()));
        std::fs::create_dir_all(&scratch)?;
        Ok(Programs {
            echo: examples.join("bench_echo"),
            raw: examples.join("bench_raw"),
            gatelet: examples.parent().expect("examples stand below").join("gatelet"),
            scratch,
            wrapper: Vec::new(),
        })
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

/// What is called, and how.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    Direct,
    Raw,
    Surface(&'static str),
    /// `cash`, with a record of every call in a file.
    Recorded,
    /// `cash`, with this beside the upstream in the configuration.
    Configured(&'static str),
}

impl Way {
    pub(crate) fn surface(self) -> Option<&'static str> {
        match self {
            Way::Direct | Way::Raw => None,
            Way::Surface(surface) => Some(surface),
            Way::Recorded | Way::Configured(_) => Some("cash"),
        }
    }
}

/// A transport, a number of calls in flight, and who answers.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) transport: &'static str,
    pub(crate) flight: usize,
    pub(crate) way: Way,
}

/// A server under test, and the way to talk to it.
pub(crate) struct Server {
    pub(crate) child: Child,
    talk: Talk,
}

enum Talk {
    Ended,
    Pipe { input: ChildStdin, output: BufReader<ChildStdout> },
    Http { port: u16, path: &'static str, session: String },
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Ends the server in order and waits: its input ends, and it is asked to stop.
    pub(crate) fn stop(mut self) -> io::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        self.talk = Talk::Ended;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        self.child.wait().map(drop)
    }

    pub(crate) fn start(programs: &Programs, load: Load) -> io::Result<Server> {
        let mut command = match load.way {
            Way::Direct => {
                let mut command = Command::new(&programs.echo);
                command.arg(load.transport);
                command
            }
            Way::Raw => {
                let mut command = Command::new(&programs.raw);
                command.arg(load.transport).arg(&programs.echo).arg("stdio");
                command
            }
            Way::Surface(_) | Way::Recorded | Way::Configured(_) => gate(programs, load)?,
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take().expect("piped");
        let mut output = BufReader::with_capacity(1 << 16, child.stdout.take().expect("piped"));
        if load.transport == "stdio" {
            let mut server = Server { child, talk: Talk::Pipe { input, output } };
            server.handshake(load)?;
            return Ok(server);
        }
        let port = match load.way {
            Way::Direct | Way::Raw => {
                let mut line = String::new();
                output.read_line(&mut line)?;
                line.trim().parse().map_err(io::Error::other)?
            }
            Way::Surface(_) | Way::Recorded | Way::Configured(_) => {
                wait_for_port(&programs.scratch.join("port"))?
            }
        };
        let talk = Talk::Http { port, path: "/mcp", session: String::new() };
        let mut server = Server { child, talk };
        server.handshake(load)?;
        Ok(server)
    }

    fn handshake(&mut self, load: Load) -> io::Result<()> {
        let hello = r#"{"jsonrpc":"2.0","id":"h","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        match &mut self.talk {
            Talk::Ended => {}
            Talk::Pipe { input, output } => {
                writeln!(input, "{hello}")?;
                let mut line = String::new();
                output.read_line(&mut line)?;
                writeln!(input, "{ready}")?;
            }
            Talk::Http { port, path, session } => {
                let mut connection = Connection::open(*port)?;
                let (head, _) = connection.post(path, session, hello)?;
                let wanted = "mcp-session-id:";
                let found = head.lines().find(|line| line.to_ascii_lowercase().starts_with(wanted));
                *session =
                    found.map(|line| line[wanted.len()..].trim().to_owned()).unwrap_or_default();
                connection.post(path, session, ready)?;
            }
        }
        // On the first round nothing is remembered yet, and the upstream is still starting.
        let mut tries = 0;
        loop {
            match self.run(load, 1) {
                Err(_) if tries < 1000 => tries += 1,
                done => return done.map(drop),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Makes `calls` calls, `load.flight` at a time, and times each.
    pub(crate) fn run(&mut self, load: Load, calls: usize) -> io::Result<Vec<Duration>> {
        match &mut self.talk {
            Talk::Ended => Err(io::Error::other("the server was stopped")),
            Talk::Pipe { input, output } => pipe(input, output, load, calls.max(1)),
            Talk::Http { port, path, session } => {
                let each = (calls / load.flight).max(1);
                let (port, path, session) = (*port, *path, session.as_str());
                std::thread::scope(|scope| {
                    let callers: Vec<_> = (0..load.flight)
                        .map(|n| n * each..(n + 1) * each)
                        .map(|ids| scope.spawn(move || http(port, path, session, load.way, ids)))
                        .collect();
                    let mut times = Vec::with_capacity(calls);
                    for caller in callers {
                        times.extend(caller.join().expect("a caller does not panic")?);
                    }
                    Ok(times)
                })
            }
        }
    }
}

fn gate(programs: &Programs, load: Load) -> io::Result<Command> {
    let config = programs.scratch.join("gatelet.toml");
    let records = match load.way {
        Way::Direct | Way::Raw | Way::Surface(_) => "",
        Way::Recorded => "[records]\nfile = \"calls.jsonl\"\n",
        Way::Configured(text) => text,
    };
    let text = format!(
        "{records}[[upstream]]\nlabel = \"e\"\ncommand = {:?}\nargs = [\"stdio\"]\n",
        programs.echo.display().to_string()
    );
    std::fs::write(&config, text)?;
    let mut command = match programs.wrapper.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).arg(&programs.gatelet);
            command
        }
        None => Command::new(&programs.gatelet),
    };
    command.arg("serve").arg("--config").arg(&config);
    command.arg("--state").arg(programs.scratch.join("state"));
    command.args(load.way.surface().map(|surface| ["--surface", surface]).into_iter().flatten());
    if load.transport == "stdio" {
        command.arg("--stdio");
    } else {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        std::fs::write(programs.scratch.join("port"), port.to_string())?;
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
    }
    Ok(command)
}

/// The port that was given away, once somebody listens there.
fn wait_for_port(file: &Path) -> io::Result<u16> {
    let port = std::fs::read_to_string(file)?.trim().parse().map_err(io::Error::other)?;
    for _ in 0..1000 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(io::Error::other("the gate did not listen within ten seconds"))
}

fn call(id: usize, way: Way) -> String {
    let message = "abcdefghijklmnopqrstuvwxyz012345";
    let params = match way.surface() {
        Some("cash") => format!(
            r#"{{"name":"call","arguments":{{"namespace":"e","function":"echo","kwargs":{{"message":"{message}"}}}}}}"#
        ),
        None => {
            format!(r#"{{"name":"echo","arguments":{{"message":"{message}"}}}}"#)
        }
        Some(_) => format!(r#"{{"name":"e_echo","arguments":{{"message":"{message}"}}}}"#),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
}

fn pipe(
    input: &mut ChildStdin,
    output: &mut BufReader<ChildStdout>,
    load: Load,
    calls: usize,
) -> io::Result<Vec<Duration>> {
    let mut sent = vec![None; calls];
    let mut times = Vec::with_capacity(calls);
    let mut line = String::new();
    let mut next = 0;
    while times.len() < calls {
        while next < calls && next - times.len() < load.flight {
            let mut text = call(next, load.way);
            text.push('\n');
            sent[next] = Some(Instant::now());
            input.write_all(text.as_bytes())?;
            next += 1;
        }
        line.clear();
        if output.read_line(&mut line)? == 0 {
            return Err(io::Error::other("the server ended"));
        }
        if let Some(started) = check(&line)?.and_then(|id| sent.get(id).copied().flatten()) {
            times.push(started.elapsed());
        }
    }
    Ok(times)
}

fn http(
    port: u16,
    path: &str,
    session: &str,
    way: Way,
    ids: Range<usize>,
) -> io::Result<Vec<Duration>> {
    let mut connection = Connection::open(port)?;
    let mut times = Vec::with_capacity(ids.len());
    for id in ids {
        let text = call(id, way);
        let started = Instant::now();
        let (head, body) = connection.post(path, session, &text)?;
        times.push(started.elapsed());
        if !body.contains('{') || check(&body)?.is_none() {
            return Err(io::Error::other(format!("no answer but: {head}{body}")));
        }
    }
    Ok(times)
}

/// The id of a good answer; `None` for a notification; an error otherwise.
fn check(line: &str) -> io::Result<Option<usize>> {
    let line = line.trim_start_matches(|c| c != '{');
    let answer: serde_json::Value = serde_json::from_str(line.trim()).map_err(io::Error::other)?;
    if answer["id"].is_null() {
        return Ok(None);
    }
    let good = answer["result"]["content"][0]["text"].as_str().is_some_and(|t| t.contains("xyz"));
    if !good || answer["result"]["isError"] == true {
        return Err(io::Error::other(format!("not the answer: {line}")));
    }
    Ok(answer["id"].to_string().parse().ok())
}
