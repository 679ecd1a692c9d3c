//! An MCP session with the running gatelet over its local socket, for commands.

use std::io;

use serde_json::{Map, Value, json};
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Mutex;
use tool::Reply;

use crate::local_socket::{self, LocalRequest};

/// The protocol revision of the session.
const REVISION: &str = "2025-11-25";

/// An open session.
pub(crate) struct RunningSession(Mutex<Connection>);

struct Connection {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    last_id: u64,
}

impl RunningSession {
    /// Opens a session over a connection.
    pub(crate) async fn open(stream: UnixStream) -> io::Result<RunningSession> {
        let (reader, writer) = stream.into_split();
        let mut connection = Connection { reader: BufReader::new(reader), writer, last_id: 0 };
        local_socket::write_line(&mut connection.writer, &LocalRequest::Mcp).await?;
        let own = json!({"name": "gatelet-shell", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": own});
        local_socket::first_answer(connection.request("initialize", &hello)).await?;
        let opened = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        local_socket::write_line(&mut connection.writer, &opened).await?;
        Ok(RunningSession(Mutex::new(connection)))
    }

    /// Calls one of the three tools.
    pub(crate) async fn call(
        &self,
        verb: &str,
        arguments: Map<String, Value>,
    ) -> io::Result<Reply> {
        let params = json!({"name": verb, "arguments": arguments});
        let message = self.0.lock().await.request("tools/call", &params).await?;
        Ok(match message.get("result") {
            Some(result) => Reply::Result(result.clone().into()),
            None => {
                let error = message["error"]["message"].as_str().unwrap_or("no reason was given");
                let code = message["error"]["code"].as_i64().unwrap_or(-32603);
                Reply::Error(tool::RpcError::new(code, error.to_owned()))
            }
        })
    }
}

impl Connection {
    /// Sends a request and waits for its response. Other messages are ignored, because a
    /// command answers no requests.
    async fn request(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        local_socket::write_line(&mut self.writer, &request).await?;
        loop {
            let message: Value = local_socket::read_line(&mut self.reader).await?;
            if message.get("method").is_none() && message["id"] == id {
                return Ok(message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_gate_that_stays_silent_is_not_waited_for_without_end() {
        let (stream, _silent) = UnixStream::pair().unwrap();
        let opened = RunningSession::open(stream).await;
        assert_eq!(opened.err().map(|error| error.kind()), Some(io::ErrorKind::TimedOut));
    }
}
