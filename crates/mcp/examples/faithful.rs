//! Whether real servers' listings survive the wire.
//!
//! `faithful DIR` takes every `*.json` in a directory (the answers of one server:
//! `serverInfo`, `capabilities`, `tools`, `resources`, `resourceTemplates`,
//! `prompts`), offers it as a server of its own would, connects to that, serves
//! what was connected, and compares each definition that a client gets with the
//! bytes in the file. Whatever differs is printed, and the exit code says so.

#![expect(clippy::print_stdout, reason = "it prints what it found")]

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use mcp::connect::{self, Program, Target, Upstream};
use mcp::serve::stdio;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tool::{Client, FixedProvider};

/// What one server said, as it said it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    server_info: Box<RawValue>,
    capabilities: Box<RawValue>,
    #[serde(default, deserialize_with = "list")]
    tools: Vec<Box<RawValue>>,
    #[serde(default, deserialize_with = "list")]
    resources: Vec<Box<RawValue>>,
    #[serde(default, deserialize_with = "list")]
    resource_templates: Vec<Box<RawValue>>,
    #[serde(default, deserialize_with = "list")]
    prompts: Vec<Box<RawValue>>,
}

/// A list; empty where a server answered with an error instead.
fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Box<RawValue>>, D::Error> {
    let value = Box::<RawValue>::deserialize(from)?;
    Ok(serde_json::from_str(value.get()).unwrap_or_default())
}

impl Said {
    fn read(file: &Path) -> io::Result<Said> {
        // A definition may stand over several lines in a file, not in a message.
        let text = std::fs::read_to_string(file)?.replace(['\n', '\r'], " ");
        serde_json::from_str(&text).map_err(io::Error::other)
    }

    /// Every list by its method and the member that holds it.
    fn lists(&self) -> [(&'static str, &'static str, &[Box<RawValue>]); 4] {
        [
            ("tools/list", "tools", &self.tools),
            ("resources/list", "resources", &self.resources),
            ("resources/templates/list", "resourceTemplates", &self.resource_templates),
            ("prompts/list", "prompts", &self.prompts),
        ]
    }
}

#[tokio::main]
async fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--upstream", file] => upstream(&Said::read(Path::new(file))?).map(|()| ExitCode::SUCCESS),
        [directory] => compare(Path::new(directory)).await,
        _ => Err(io::Error::other("usage: faithful DIR")),
    }
}

async fn compare(directory: &Path) -> io::Result<ExitCode> {
    let entries = std::fs::read_dir(directory)?;
    let files: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut files = files?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let (mut n_definitions, mut n_changed) = (0, 0);
    for file in &files {
        let said = Said::read(file)?;
        let mut client = Served::open(file).await?;
        let name = file.file_stem().unwrap_or_default().display();
        for (method, member, expected) in said.lists() {
            let found = client.list(method, member).await?;
            n_definitions += expected.len();
            let is_same = |at: usize| found.get(at).is_some_and(|f| f.get() == expected[at].get());
            for at in (0..expected.len()).filter(|at| !is_same(*at)) {
                n_changed += 1;
                let got = found.get(at).map_or("nothing", |found| found.get());
                println!("{name}, {method}: {}\n  became {got}", expected[at].get());
            }
            for more in found.iter().skip(expected.len()) {
                n_changed += 1;
                println!("{name}, {method}: nobody said {}", more.get());
            }
        }
    }
    println!("{} listings, {n_definitions} definitions, {n_changed} changed", files.len());
    Ok(if n_changed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A client of what is connected to a server that says what the file says.
struct Served {
    reader: BufReader<DuplexStream>,
    writer: DuplexStream,
    n_asked: usize,
}

impl Served {
    async fn open(file: &Path) -> io::Result<Served> {
        let args = vec!["--upstream".to_owned(), file.display().to_string()];
        let program = Program { command: std::env::current_exe()?, args, ..Program::default() };
        let target = Target::Stdio(program);
        let connected: Arc<Upstream> =
            connect::connect(&target, &connect::Options::default(), &Client::named("faithful", ""))
                .await
                .map_err(io::Error::other)?;
        let (ours, theirs) = (duplex(1 << 20), duplex(1 << 20));
        let source = Arc::new(FixedProvider(connected as _));
        tokio::spawn(stdio::serve(source, theirs.1, ours.1, stdio::Options::default()));
        let mut served = Served { reader: BufReader::new(ours.0), writer: theirs.0, n_asked: 0 };
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
        served.ask("initialize", params).await?;
        Ok(served)
    }

    async fn ask(&mut self, method: &str, params: &str) -> io::Result<Option<Box<RawValue>>> {
        self.n_asked += 1;
        let id = self.n_asked;
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.writer.write_all(format!("{text}\n").as_bytes()).await?;
        #[derive(Deserialize)]
        struct Answer {
            id: Option<usize>,
            result: Option<Box<RawValue>>,
        }
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).await?;
            let answer: Answer = serde_json::from_str(&line).map_err(io::Error::other)?;
            if answer.id == Some(id) {
                return Ok(answer.result);
            }
        }
    }

    /// The definitions of a list; none where the method is not known.
    async fn list(&mut self, method: &str, member: &str) -> io::Result<Vec<Box<RawValue>>> {
        let Some(result) = self.ask(method, "{}").await? else { return Ok(Vec::new()) };
        let mut members: std::collections::HashMap<String, Box<RawValue>> =
            serde_json::from_str(result.get()).map_err(io::Error::other)?;
        let Some(list) = members.remove(member) else { return Ok(Vec::new()) };
        serde_json::from_str(list.get()).map_err(io::Error::other)
    }
}

/// A server that knows nothing but its lists.
fn upstream(said: &Said) -> io::Result<()> {
    #[derive(Deserialize)]
    struct Question {
        id: Option<Box<RawValue>>,
        method: String,
    }
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let question: Question = serde_json::from_str(&line?).map_err(io::Error::other)?;
        let Some(id) = question.id else { continue };
        let list = said.lists().into_iter().find(|(method, ..)| *method == question.method);
        let result = match list {
            Some((_, member, items)) => {
                let items: Vec<&str> = items.iter().map(|item| item.get()).collect();
                Some(format!(r#"{{"{member}":[{}]}}"#, items.join(",")))
            }
            None if question.method == "initialize" => Some(format!(
                r#"{{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}}"#,
                said.capabilities, said.server_info
            )),
            None => None,
        };
        let text = match result {
            Some(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
            None => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"unknown"}}}}"#
            ),
        };
        writeln!(out, "{text}")?;
        out.flush()?;
    }
    Ok(())
}
