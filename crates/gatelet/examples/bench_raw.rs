//! The least that can stand between a client and a server: takes a message, gives
//! the question an id of its own, writes it on, and puts the id back into the
//! answer. It checks nothing and knows no tool, so what it costs is what any gate
//! costs.
//!
//! `bench_raw stdio PROGRAM [ARGUMENT…]` speaks on stdin and stdout,
//! `bench_raw http PROGRAM [ARGUMENT…]` prints its port. The program speaks on its
//! stdin and stdout.

#![expect(clippy::print_stdout, reason = "a benchmark's gate says its port on stdout")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Mutex;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::oneshot;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let usage = || io::Error::other("usage: bench_raw stdio|http PROGRAM [ARGUMENT…]");
    let transport = arguments.next().ok_or_else(usage)?;
    let mut command = Command::new(arguments.next().ok_or_else(usage)?);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    match transport.to_str() {
        Some("stdio") => stdio(command),
        Some("http") => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            tokio::task::LocalSet::new().block_on(&runtime, http(command.into()))
        }
        _ => Err(usage()),
    }
}

#[derive(Deserialize)]
struct Question<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: &'a RawValue,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl Question<'_> {
    /// Writes the question with another id.
    fn write(&self, id: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let Question { id: asked, method, params } = self;
        write!(out, r#"{{"jsonrpc":"2.0","method":{method}"#)?;
        if asked.is_some() {
            write!(out, r#","id":{id}"#)?;
        }
        if let Some(params) = params {
            write!(out, r#","params":{params}"#)?;
        }
        writeln!(out, "}}")
    }
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: u64,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Answer<'_> {
    /// Writes the answer with the id of who asked.
    fn write(&self, id: Option<&RawValue>, out: &mut Vec<u8>) -> io::Result<()> {
        let id = id.map_or("null", RawValue::get);
        write!(out, r#"{{"jsonrpc":"2.0","id":{id}"#)?;
        if let Some(result) = self.result {
            write!(out, r#","result":{result}"#)?;
        }
        if let Some(error) = self.error {
            write!(out, r#","error":{error}"#)?;
        }
        writeln!(out, "}}")
    }
}

fn read<'a, T: Deserialize<'a>>(message: &'a [u8]) -> io::Result<T> {
    serde_json::from_slice(message).map_err(io::Error::other)
}

/// Two threads, one for each direction.
fn stdio(mut command: Command) -> io::Result<()> {
    let mut server = command.spawn()?;
    let (input, output) = (server.stdin.take().expect("piped"), server.stdout.take());
    let asked = Mutex::new(HashMap::<u64, Box<RawValue>>::new());
    let asked = || asked.lock().expect("nobody panics");
    std::thread::scope(|scope| {
        let answers = scope.spawn(|| {
            lines(output.expect("piped"), io::stdout().lock(), |line, out| {
                let answer: Answer<'_> = read(line)?;
                let id = asked().remove(&answer.id);
                answer.write(id.as_deref(), out)
            })
        });
        let mut next = 0;
        lines(io::stdin().lock(), input, |line, out| {
            let question: Question<'_> = read(line)?;
            next += 1;
            if let Some(id) = question.id {
                asked().insert(next, id.to_owned());
            }
            question.write(next, out)
        })?;
        answers.join().expect("it does not panic")
    })?;
    server.wait().map(drop)
}

/// Hands every line to `each` and writes what it makes of them. What has come
/// together goes on together.
fn lines(
    input: impl Read,
    mut output: impl Write,
    mut each: impl FnMut(&[u8], &mut Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, input);
    let (mut line, mut out) = (Vec::new(), Vec::new());
    while input.read_until(b'\n', &mut line)? != 0 {
        each(&line, &mut out)?;
        line.clear();
        if input.buffer().is_empty() {
            output.write_all(&out)?;
            output.flush()?;
            out.clear();
        }
    }
    Ok(())
}

/// Who waits for the answer to a question of ours, and under which id.
#[derive(Default)]
struct Waiting {
    next: u64,
    callers: HashMap<u64, (Box<RawValue>, oneshot::Sender<Vec<u8>>)>,
}

/// One thread, with the libraries that a gate would use.
async fn http(mut command: tokio::process::Command) -> io::Result<()> {
    let mut server = command.kill_on_drop(true).spawn()?;
    let (input, output) = (server.stdin.take().expect("piped"), server.stdout.take());
    let input = Rc::new(tokio::sync::Mutex::new(input));
    let waiting = Rc::new(RefCell::new(Waiting::default()));
    tokio::task::spawn_local(answers(output.expect("piped"), Rc::clone(&waiting)));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (input, waiting) = (Rc::clone(&input), Rc::clone(&waiting));
        tokio::task::spawn_local(async move {
            let service =
                service_fn(|request| post(request, Rc::clone(&input), Rc::clone(&waiting)));
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await
        });
    }
}

async fn answers(output: ChildStdout, waiting: Rc<RefCell<Waiting>>) -> io::Result<()> {
    let mut output = tokio::io::BufReader::with_capacity(1 << 16, output);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line).await? != 0 {
        let answer: Answer<'_> = read(&line)?;
        if let Some((id, caller)) = waiting.borrow_mut().callers.remove(&answer.id) {
            let mut out = Vec::with_capacity(line.len() + id.get().len());
            answer.write(Some(&id), &mut out)?;
            let _ = caller.send(out);
        }
        line.clear();
    }
    Ok(())
}

async fn post(
    request: Request<Incoming>,
    input: Rc<tokio::sync::Mutex<ChildStdin>>,
    waiting: Rc<RefCell<Waiting>>,
) -> io::Result<Response<Full<Bytes>>> {
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let mut out = Vec::with_capacity(body.len() + 16);
    let caller = {
        let question: Question<'_> = read(&body)?;
        let mut waiting = waiting.borrow_mut();
        waiting.next += 1;
        let next = waiting.next;
        question.write(next, &mut out)?;
        question.id.map(|id| {
            let (send, receive) = oneshot::channel();
            waiting.callers.insert(next, (id.to_owned(), send));
            receive
        })
    };
    input.lock().await.write_all(&out).await?;
    let Some(caller) = caller else {
        let mut accepted = Response::new(Full::default());
        *accepted.status_mut() = StatusCode::ACCEPTED;
        return Ok(accepted);
    };
    let mut answer = Response::new(Full::from(caller.await.map_err(io::Error::other)?));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(answer)
}
