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

    /// Waits so long for each answer.
    pub(crate) fn wait_for(&self, time: Duration) -> io::Result<()> {
        self.writer.set_read_timeout(Some(time))
    }

    /// Opens a session; gives its id.
    pub(crate) fn hello(&mut self, hello: &str) -> io::Result<String> {
        let (head, _) = self.post("/mcp", "", hello)?;
        let head = head.to_ascii_lowercase();
        let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id:"));
        Ok(id.map(|id| id.trim().to_owned()).unwrap_or_default())
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

/// Connects once the gate listens.
pub(crate) fn connect(port: u16) -> io::Result<Connection> {
    for _ in 0..1000 {
        if let Ok(connection) = Connection::open(port) {
            return Ok(connection);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(io::Error::other("the gate did not listen within ten seconds"))
}

/// Resident memory of a process, in MB.
pub(crate) fn resident(pid: u32) -> io::Result<f64> {
    memory(pid, "VmRSS:")
}

/// A line of what the kernel says of the memory of a process, in MB.
pub(crate) fn memory(pid: u32, line: &str) -> io::Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|found| found.strip_prefix(line)).unwrap_or("0");
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().map_err(io::Error::other)?;
    Ok(kilobytes / 1024.0)
}

/// Seconds of processor time that a process has used. The kernel counts threads
/// to the nanosecond, but forgets those that ended; it counts the process in
/// ticks, which are coarse, but forgets nothing.
pub(crate) fn processor_time(pid: u32) -> io::Result<f64> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let counted = std::fs::read_to_string(thread?.path().join("schedstat"));
        let used = counted.ok().and_then(|text| text.split_whitespace().next()?.parse().ok());
        nanoseconds += used.unwrap_or(0_u64);
    }
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after = text.rsplit(')').next().unwrap_or_default();
    let ticks = after.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok());
    let ticks = ticks.sum::<u64>().saturating_sub(2) as f64 / 100.0;
    Ok(ticks.max(nanoseconds as f64 / 1e9))
}

/// The value in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
