//! The least that can stand between a client and a server: reads a line, gives
//! the question an id of its own, writes it on, and puts the id back into the
//! answer. It checks nothing and knows no tool, so what it costs is what any gate
//! between pipes costs.
//!
//! `bench_raw PROGRAM [ARGUMENT…]` speaks on stdin and stdout.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::value::RawValue;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().ok_or_else(|| io::Error::other("usage: bench_raw PROGRAM"))?;
    let mut server = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (input, output) = (server.stdin.take(), server.stdout.take());
    let asked = Arc::new(Mutex::new(HashMap::new()));
    let answers = {
        let asked = Arc::clone(&asked);
        std::thread::spawn(move || back(output.expect("piped"), &asked))
    };
    forth(input.expect("piped"), &asked)?;
    answers.join().expect("it does not panic")?;
    server.wait().map(drop)
}

/// Which id of the client's an id of ours stands for.
type Asked = Mutex<HashMap<u64, Box<RawValue>>>;

#[derive(Deserialize)]
struct Question<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: &'a RawValue,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: u64,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

fn forth(mut server: impl Write, asked: &Asked) -> io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let (mut line, mut out, mut next) = (Vec::new(), Vec::new(), 0);
    while input.read_until(b'\n', &mut line)? != 0 {
        let Question { id, method, params } =
            serde_json::from_slice(&line).map_err(io::Error::other)?;
        write!(out, r#"{{"jsonrpc":"2.0","method":{method}"#)?;
        if let Some(id) = id {
            next += 1;
            asked.lock().expect("nobody panics").insert(next, id.to_owned());
            write!(out, r#","id":{next}"#)?;
        }
        if let Some(params) = params {
            write!(out, r#","params":{params}"#)?;
        }
        out.extend_from_slice(b"}\n");
        line.clear();
        // What has come goes on together.
        if input.buffer().is_empty() {
            server.write_all(&out)?;
            out.clear();
        }
    }
    Ok(())
}

fn back(server: impl io::Read, asked: &Asked) -> io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, server);
    let mut output = io::stdout().lock();
    let (mut line, mut out) = (Vec::new(), Vec::new());
    while input.read_until(b'\n', &mut line)? != 0 {
        let Answer { id, result, error } =
            serde_json::from_slice(&line).map_err(io::Error::other)?;
        let id = asked.lock().expect("nobody panics").remove(&id);
        let id = id.as_deref().map_or("null", RawValue::get);
        write!(out, r#"{{"jsonrpc":"2.0","id":{id}"#)?;
        if let Some(result) = result {
            write!(out, r#","result":{result}"#)?;
        }
        if let Some(error) = error {
            write!(out, r#","error":{error}"#)?;
        }
        out.extend_from_slice(b"}\n");
        line.clear();
        if input.buffer().is_empty() {
            output.write_all(&out)?;
            output.flush()?;
            out.clear();
        }
    }
    Ok(())
}
