//! The smallest honest upstream: answers the handshake, lists `n` tools and
//! echoes. It is what the benchmarks measure the gate against, so it does as
//! little as a server can.
//!
//! `bench_echo stdio [tools]` or `bench_echo http [tools]` (prints its port).

#![expect(clippy::print_stdout, reason = "a benchmark's upstream speaks on stdout")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde::Deserialize;
use serde_json::value::RawValue;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let transport = arguments.next().unwrap_or_default();
    let tools = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    match transport.as_str() {
        "stdio" => stdio(tools),
        "http" => http(tools),
        _ => Err(io::Error::other("usage: bench_echo stdio|http [tools]")),
    }
}

fn stdio(tools: usize) -> io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut output = io::stdout().lock();
    let (mut line, mut out) = (Vec::new(), Vec::new());
    while input.read_until(b'\n', &mut line)? != 0 {
        answer(&line, tools, &mut out);
        line.clear();
        // One write an answer, as the official SDKs do.
        output.write_all(&out)?;
        output.flush()?;
        out.clear();
    }
    Ok(())
}

fn http(tools: usize) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    for stream in listener.incoming() {
        let stream = stream?;
        std::thread::spawn(move || connection(stream, tools));
    }
    Ok(())
}

fn connection(stream: TcpStream, tools: usize) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let (mut line, mut body, mut out) = (String::new(), Vec::new(), Vec::new());
    loop {
        let mut length = 0;
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let header = line.trim_end().to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if header.is_empty() {
                break;
            }
        }
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
        out.clear();
        answer(&body, tools, &mut out);
        let status = if out.is_empty() { "202 Accepted" } else { "200 OK" };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            out.len()
        );
        let mut whole = head.into_bytes();
        whole.extend_from_slice(&out);
        writer.write_all(&whole)?;
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: &'a RawValue,
}

fn answer(message: &[u8], tools: usize, out: &mut Vec<u8>) {
    let Ok(Envelope { id: Some(id), method: Some(method), params }) =
        serde_json::from_slice(message)
    else {
        return;
    };
    let result = match method {
        "initialize" => {
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}"#.to_owned()
        }
        "tools/list" => list(tools),
        "tools/call" => {
            let arguments = params
                .and_then(|params| serde_json::from_str::<Params<'_>>(params.get()).ok())
                .map_or("null", |params| params.arguments.get());
            let text = serde_json::to_string(arguments).unwrap_or_default();
            format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#)
        }
        "ping" => "{}".to_owned(),
        _ => {
            let error = r#""error":{"code":-32601,"message":"Method not found"}"#;
            let _ = writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},{error}}}"#);
            return;
        }
    };
    let _ = writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
}

fn list(tools: usize) -> String {
    let tool = |n: usize| {
        format!(
            r#"{{"name":"echo{}","description":"Sends back what it got, as tool number {n}.","inputSchema":{{"type":"object","properties":{{"message":{{"type":"string","description":"What to send back."}}}},"required":["message"]}}}}"#,
            if n == 0 { String::new() } else { format!("_{n}") }
        )
    };
    let all: Vec<String> = (0..tools).map(tool).collect();
    format!(r#"{{"tools":[{}]}}"#, all.join(","))
}
