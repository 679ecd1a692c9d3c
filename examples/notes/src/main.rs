//! Serves the notes: on standard input and output, or with
//! `--http 127.0.0.1:4800` over HTTP. The tools are the same.

use std::net::SocketAddr;
use std::sync::Arc;

use mcp::serve::{http, stdio};
use tool::Always;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let door = Arc::new(Always(notes::registry().into_provider()));
    match address() {
        Some(address) => {
            let listener = tokio::net::TcpListener::bind(address).await?;
            let endpoint = http::Endpoint::new(door, http::Options::default());
            http::listen(listener, http::at("/mcp", endpoint), std::future::pending()).await?;
        }
        None => {
            stdio::stdio(door, stdio::Options::default()).await?;
        }
    }
    Ok(())
}

/// The address after `--http`, if any.
fn address() -> Option<SocketAddr> {
    let mut words = std::env::args().skip_while(|word| word != "--http").skip(1);
    words.next()?.parse().ok()
}
