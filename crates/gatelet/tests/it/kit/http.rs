//! A gatelet that serves over HTTP, and just enough of a client for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::{Home, PATIENCE};

/// Where a server listens.
pub(crate) struct Site {
    /// `http://127.0.0.1:PORT/mcp`
    pub(crate) url: String,
}

/// A running server.
pub(crate) struct Served {
    child: Child,
    site: Site,
    /// What it said before it was ready.
    pub(crate) greeting: String,
}

/// An HTTP answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Served {
    /// Starts gatelet on a free port of loopback.
    pub(crate) fn start(home: &Home) -> Served {
        Served::start_with(home, &[])
    }

    pub(crate) fn start_with(home: &Home, args: &[&str]) -> Served {
        Served::start_at(home, "127.0.0.1:0", args)
    }

    /// Starts gatelet at an address.
    pub(crate) fn start_at(home: &Home, address: &str, args: &[&str]) -> Served {
        Served::start_by(home.gatelet(), address, args)
    }

    /// Starts a gatelet that may open so many files and no more.
    pub(crate) fn start_short_of_files(home: &Home, soft: u32, hard: u32) -> Served {
        let mut shell = std::process::Command::new("sh");
        let limited = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"");
        shell.arg("-c").arg(limited).arg(home.gatelet().get_program());
        home.settle(&mut shell);
        Served::start_by(shell, "127.0.0.1:0", &[])
    }

    /// Starts the gatelet of a command at an address.
    pub(crate) fn start_by(
        mut command: std::process::Command,
        address: &str,
        args: &[&str],
    ) -> Served {
        command.args(["serve", "--listen", address]).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let (mut greeting, mut url) = (String::new(), None);
        // The last line of the greeting is empty.
        loop {
            let mut line = String::new();
            let n_read = stderr.read_line(&mut line).unwrap();
            assert_ne!(n_read, 0, "gatelet ended early: {greeting}");
            greeting += &line;
            let address = line.split_whitespace().find(|word| word.starts_with("http"));
            url = url.or(address.map(str::to_owned));
            if url.is_some() && greeting.contains("VS Code") {
                break;
            }
        }
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::stderr()));
        Served { child, site: Site { url: url.unwrap() }, greeting }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The endpoint of one surface.
    pub(crate) fn at(&self, surface: &str) -> Site {
        Site { url: format!("{}/{surface}", self.url) }
    }

    /// Asks it to end, as a service manager does, and waits.
    pub(crate) fn terminate(mut self) -> std::process::ExitStatus {
        super::marks::signal(self.id(), "TERM");
        self.child.wait().unwrap()
    }
}

impl std::ops::Deref for Served {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}

impl Site {
    /// Posts one message, as a client of `revision` does.
    pub(crate) fn post(&self, message: &Value, headers: &[(&str, &str)]) -> Answer {
        let mut all = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.extend(headers);
        self.send("POST", &all, &message.to_string())
    }

    pub(crate) fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let rest = self.url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = format!("{method} /{path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request += &format!("Host: {host}\r\n");
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        read(&String::from_utf8_lossy(&answer))
    }

    /// A call of the revision without sessions.
    pub(crate) fn call(&self, name: &str, arguments: &Value) -> Value {
        self.alone("tools/call", &json!({"name": name, "arguments": arguments}))
    }

    /// The same address on another path.
    pub(crate) fn path(&self, path: &str) -> Site {
        let (base, _) = self.url.rsplit_once("/mcp").unwrap();
        Site { url: format!("{base}{path}") }
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn authority(&self) -> &str {
        let rest = self.url.split_once("://").unwrap().1;
        rest.split_once('/').unwrap().0
    }

    /// The text that a call of the revision without sessions gives to the
    /// holder of a key.
    pub(crate) fn told(&self, key: Option<&str>, name: &str, arguments: &Value) -> String {
        let answer = self.asked(key, "tools/call", &json!({"name": name, "arguments": arguments}));
        let blocks = answer["result"]["content"].as_array().cloned().unwrap_or_default();
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        if texts.is_empty() { answer.to_string() } else { texts.join("\n") }
    }

    /// The whole answer to a request of that revision.
    pub(crate) fn asked(&self, key: Option<&str>, method: &str, params: &Value) -> Value {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        headers.extend(key.map(|key| ("X-Api-Key", key)));
        self.post(&message, &headers).message()
    }

    /// The names of the tools here.
    pub(crate) fn tools(&self) -> Vec<String> {
        let listed = self.alone("tools/list", &json!({}));
        let tools = listed["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// A request of the revision without sessions.
    fn alone(&self, method: &str, params: &Value) -> Value {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().map(str::to_owned);
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        let answer = self.post(&message, &headers);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.message()["result"].clone()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    /// The message in the body, or the last one of a stream of events.
    pub(crate) fn message(&self) -> Value {
        let data = self.body.lines().rev().find_map(|line| line.strip_prefix("data:"));
        let text = data.unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|_| panic!("no message in {:?}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

fn read(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").expect("an HTTP answer");
    let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunk(body) } else { body.to_owned() };
    Answer { status, head: head.to_owned(), body }
}

fn unchunk(mut text: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        // The last piece is cut when the server died.
        body += rest.get(..size).unwrap_or(rest);
        text = rest.get(size + 2..).unwrap_or("");
    }
    body
}
