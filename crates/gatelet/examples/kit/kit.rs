//! What the benchmarks share: a client that does as little as it can, and a look
//! at the process that is measured.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One keep-alive connection.
pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Connection {
    pub(crate) fn open(port: u16) -> io::Result<Connection> {
        let writer = TcpStream::connect(("127.0.0.1", port))?;
        writer.set_nodelay(true)?;
        writer.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Connection { reader: BufReader::new(writer.try_clone()?), writer })
    }

    pub(crate) fn post(
        &mut self,
        path: &str,
        session: &str,
        body: &str,
    ) -> io::Result<(String, String)> {
        let session = if session.is_empty() {
            String::new()
        } else {
            format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n")
        };
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{session}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.writer.write_all(request.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.reader.read_line(&mut head)? == 0 {
                return Err(io::Error::other("the server closed the connection"));
            }
        }
        let lower = head.to_ascii_lowercase();
        let value = |name: &str| lower.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
        let mut body = Vec::new();
        if let Some(length) = value("content-length:").and_then(|n| n.parse().ok()) {
            body.resize(length, 0);
            self.reader.read_exact(&mut body)?;
        } else if value("transfer-encoding:") == Some("chunked") {
            self.chunks(&mut body)?;
        }
        Ok((head, String::from_utf8_lossy(&body).into_owned()))
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            let from = body.len();
            body.resize(from + size + 2, 0);
            self.reader.read_exact(&mut body[from..])?;
            body.truncate(from + size);
            if size == 0 {
                return Ok(());
            }
        }
    }
}

/// Resident memory of a process, in MB.
pub(crate) fn resident(pid: u32) -> io::Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().map_err(io::Error::other)?;
    Ok(kilobytes / 1024.0)
}
