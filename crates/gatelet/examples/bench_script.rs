//! A call inside of a script against the same call as a client makes it, through the
//! program itself and to the same server.
//!
//! Rounds of both take turns, so that a busy machine slows both alike: read the
//! ratio. `bench_script [rounds] [calls]`; `gatelet` and `bench_echo` stand beside
//! this program.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "kit/kit.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod kit;
#[path = "kit/server.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod server;

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use server::Programs;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual| arguments.next().and_then(|n| n.parse().ok()).unwrap_or(usual);
    let (rounds, calls) = (number(7), number(1000));
    let programs = Programs::beside_this_one()?;
    println!("through the program, to a server on a pipe:");
    for (store, why) in [
        ("memory", "a script ends with the gate"),
        ("disk", "its journal is kept before every call that may change something"),
    ] {
        println!("\nresults kept in {store}: {why}");
        measure(&mut Gate::start(&programs, store)?, rounds, calls)?;
    }
    Ok(())
}

fn measure(gate: &mut Gate, rounds: u32, calls: u32) -> io::Result<()> {
    let (mut plain, mut inner, mut start) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        start.push(gate.timed(50, "return 1")? / 50.0);
        plain.push(gate.plain(calls)? / f64::from(calls));
        let code = format!(
            "for (let n = 0; n < {calls}; n++) await tools.e.echo({{message: 'abcdefghijklmnopqrstuvwxyz012345'}}); \
             return 1"
        );
        inner.push((gate.timed(1, &code)? - start[start.len() - 1]) / f64::from(calls));
    }
    let ratios: Vec<f64> = inner.iter().zip(&plain).map(|(inner, plain)| inner / plain).collect();
    println!(
        "start of a script, warm worker           {:>9.3} ms   to reach: 1",
        median(&start) * 1e3
    );
    println!("a plain call on cash, by a client        {:>9.1} us", median(&plain) * 1e6);
    println!(
        "the same call inside of a script         {:>9.1} us   {:.2} times a plain one; to reach: 1.5",
        median(&inner) * 1e6,
        median(&ratios)
    );
    Ok(())
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A gate on a pipe, with scripts.
struct Gate {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Gate {
    fn start(programs: &Programs, store: &str) -> io::Result<Gate> {
        let config = programs.scratch.join("gatelet.toml");
        let echo = programs.echo.display().to_string();
        let text = format!(
            "[scripts]\nenabled = true\ncalls = 100000\n\n[artifacts]\nstore = {store:?}\n\n[trust]\nmode = \"off\"\n\n\
             [[upstream]]\nlabel = \"e\"\ncommand = {echo:?}\nargs = [\"stdio\"]\n"
        );
        std::fs::write(&config, text)?;
        let mut command = Command::new(&programs.gatelet);
        command.args(["serve", "--stdio", "--config"]).arg(&config);
        command.arg("--state").arg(programs.scratch.join("state"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut gate = Gate { child, input, output };
        gate.ask(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}),
        )?;
        writeln!(gate.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)?;
        gate.plain(100)?;
        gate.timed(20, "return (await tools.e.echo({message: 'xyz'})).length")?;
        Ok(gate)
    }

    fn ask(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.input, "{message}")?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                return Err(io::Error::other("the gate ended"));
            }
            let answer: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
            if answer["id"] == 1 {
                return Ok(answer);
            }
        }
    }

    fn call(&mut self, namespace: &str, function: &str, kwargs: &Value) -> io::Result<()> {
        let arguments = json!({"namespace": namespace, "function": function, "kwargs": kwargs});
        let answer = self.ask("tools/call", &json!({"name": "call", "arguments": arguments}))?;
        match answer["result"]["isError"] == true || answer["result"].is_null() {
            true => Err(io::Error::other(answer.to_string())),
            false => Ok(()),
        }
    }

    /// Seconds that so many calls take, one after another.
    fn plain(&mut self, calls: u32) -> io::Result<f64> {
        let began = Instant::now();
        for _ in 0..calls {
            self.call("e", "echo", &json!({"message": "abcdefghijklmnopqrstuvwxyz012345"}))?;
        }
        Ok(began.elapsed().as_secs_f64())
    }

    /// Seconds that a script takes, so many times.
    fn timed(&mut self, times: u32, code: &str) -> io::Result<f64> {
        let began = Instant::now();
        for _ in 0..times {
            self.call("gatelet", "run", &json!({"code": code}))?;
        }
        Ok(began.elapsed().as_secs_f64())
    }
}
