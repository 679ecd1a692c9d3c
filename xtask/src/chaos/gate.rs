//! The program under trial, and a client at its pipe.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::run::{self, cargo, target};

use super::cells::{Cell, Transport};
use super::web;

/// Answers that are waited for, by id.
type Waiting = Arc<Mutex<HashMap<u64, Sender<String>>>>;

/// A running gatelet, with everything it keeps in a directory of its own.
pub(crate) struct Gate {
    process: Child,
    input: Option<ChildStdin>,
    waiting: Waiting,
    /// Held while the client reads nothing.
    reading: Arc<Mutex<()>>,
    next: u64,
    place: PathBuf,
}

/// An answer that is on its way.
pub(crate) struct Answer(Receiver<String>);

impl Answer {
    /// The answer as it stands on the wire, if it comes before `end`.
    pub(crate) fn wait(&self, end: Instant) -> Option<String> {
        self.0.recv_timeout(end.saturating_duration_since(Instant::now())).ok()
    }
}

impl Gate {
    /// Builds and starts the program in front of these cells.
    pub(crate) fn start(cells: &[Cell], port: u16) -> Result<Gate> {
        run::run(&mut cargo(&["build", "--package", "gatelet", "--bins"]))?;
        let place = std::env::temp_dir().join(format!("gatelet-chaos-{}", std::process::id()));
        fs::create_dir_all(&place)?;
        let effects = place.join("effects");
        web::note_in(&effects);
        fs::write(place.join("gatelet.toml"), configuration(cells, port, &effects)?)?;
        let log = fs::File::create(place.join("log"))?;
        let mut process = Command::new(target().join("debug/gatelet"))
            .args(["serve", "--stdio", "--config"])
            .arg(place.join("gatelet.toml"))
            .env("GATELET_STATE", place.join("state"))
            .env("HOME", &place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("cannot start gatelet")?;
        let input = process.stdin.take();
        let output = process.stdout.take().context("gatelet has no output")?;
        let waiting = Waiting::default();
        let heard = Arc::clone(&waiting);
        let reading = Arc::new(Mutex::new(()));
        let may_read = Arc::clone(&reading);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { break };
                drop(may_read.lock().expect("nobody panics here"));
                let message: Value = serde_json::from_str(&line).unwrap_or_default();
                let Some(id) = message["id"].as_u64() else { continue };
                let waits = heard.lock().expect("nobody panics here").remove(&id);
                if let Some(waits) = waits {
                    let _ = waits.send(line);
                }
            }
        });
        let mut gate = Gate { process, input, waiting, reading, next: 0, place };
        gate.open()?;
        Ok(gate)
    }

    /// Opens a session, and waits until every upstream has been listed.
    fn open(&mut self) -> Result<()> {
        let client = json!({"name": "chaos", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let welcome = self.ask("initialize", &hello);
        let soon = Instant::now() + Duration::from_secs(60);
        welcome.wait(soon).context("gatelet does not answer; see its log")?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let first = self.call("healthy", "first").wait(soon).context("no answer to a call")?;
        match first.contains("done:first") {
            true => Ok(()),
            false => bail!("a healthy upstream answers: {first}"),
        }
    }

    /// Calls the one tool of an upstream.
    pub(crate) fn call(&mut self, label: &str, key: &str) -> Answer {
        let arguments = json!({"namespace": label, "function": "deed", "kwargs": {"key": key}});
        self.ask("tools/call", &json!({"name": "call", "arguments": arguments}))
    }

    /// Looks at the beginning of an answer that was kept, as a client does.
    pub(crate) fn view(&mut self, handle: &str) -> Answer {
        let kwargs = json!({"handle": handle, "selector": {"type": "head", "chars": 200}});
        let arguments = json!({"namespace": "gatelet", "function": "view", "kwargs": kwargs});
        self.ask("tools/call", &json!({"name": "call", "arguments": arguments}))
    }

    /// Reads nothing while `during` lasts.
    pub(crate) fn without_reading<T>(&mut self, during: impl FnOnce(&mut Gate) -> T) -> T {
        let reading = Arc::clone(&self.reading);
        let _held = reading.lock().expect("nobody panics here");
        during(self)
    }

    /// Makes sure that nothing more can be written where results are kept, as when
    /// the disk is full.
    pub(crate) fn spoil_disk(&self) -> Result<()> {
        let kept = self.place.join("state/artifacts");
        if kept.exists() {
            fs::remove_dir_all(&kept)?;
        }
        fs::write(&kept, "no room")?;
        Ok(())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Answer {
        self.next += 1;
        let (sender, receiver) = channel();
        self.waiting.lock().expect("nobody panics here").insert(self.next, sender);
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        Answer(receiver)
    }

    fn send(&mut self, message: &Value) {
        if let Some(input) = &mut self.input {
            // One that is gone shows by answers that do not come.
            let _ = input.write_all(format!("{message}\n").as_bytes());
        }
    }

    /// How often a call was carried out.
    pub(crate) fn runs(&self, key: &str) -> usize {
        let effects = fs::read_to_string(self.place.join("effects")).unwrap_or_default();
        effects.lines().filter(|line| *line == key).count()
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Ends gatelet, and returns how many processes it left.
    pub(crate) fn end(mut self) -> Result<usize> {
        drop(self.input.take());
        let end = Instant::now() + Duration::from_secs(30);
        while self.process.try_wait()?.is_none() {
            if end < Instant::now() {
                self.process.kill()?;
                self.process.wait()?;
                bail!("gatelet does not end when its pipe is closed");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // Who was told to end has a moment for it.
        let end = Instant::now() + Duration::from_secs(5);
        let place = self.place.display().to_string();
        while 0 < marked(&place) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
        }
        let left = marked(&place);
        match left {
            0 => fs::remove_dir_all(&self.place)?,
            _ => println!("see {place}"),
        }
        Ok(left)
    }
}

/// How many processes have this text among their arguments.
fn marked(text: &str) -> usize {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let words = |path: &Path| fs::read(path.join("cmdline")).unwrap_or_default();
    let words = processes.flatten().map(|process| words(&process.path()));
    words.filter(|words| String::from_utf8_lossy(words).contains(text)).count()
}

/// A configuration with an upstream for every cell.
fn configuration(cells: &[Cell], port: u16, effects: &Path) -> Result<String> {
    let program = std::env::current_exe()?;
    let mut text = "[controls.retry]\nattempts = 3\nbase_delay = \"50ms\"\n\n".to_owned();
    for Cell { name, transport } in cells {
        let reached = match transport {
            Transport::Stdio => {
                let args = json!(["__upstream", name, effects]);
                format!("command = {program:?}\nargs = {args}")
            }
            Transport::Http => format!("url = \"http://127.0.0.1:{port}/{name}\""),
        };
        let limits = "start_timeout = \"60s\"\ncall_timeout = \"3s\"";
        writeln!(text, "[[upstream]]\nlabel = \"{name}\"\n{reached}\n{limits}\n")?;
    }
    Ok(text)
}
