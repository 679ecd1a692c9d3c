//! Serves the notes: on standard input and output, or with
//! `--http 127.0.0.1:4800` over HTTP. The tools are the same.

use std::io::{Error, Result};
use std::sync::Arc;

use mcp::serve::{http, stdio};
use tool::FixedProvider;

#[tokio::main]
async fn main() -> Result<()> {
    let registry = notes::registry();
    // A tool that was refused is a mistake of ours: better found at the start.
    if let Some(refused) = registry.report().failed.first() {
        return Err(Error::other(refused.error.clone()));
    }
    let source = Arc::new(FixedProvider(registry.into_provider()));
    match address()? {
        Some(address) => {
            let listener = tokio::net::TcpListener::bind(address).await?;
            let endpoint = http::Endpoint::new(source, http::Options::default());
            web::listen::listen_plain(listener, http::at("/mcp", endpoint)).await?;
        }
        None => {
            stdio::stdio(source, stdio::Options::default()).await?;
        }
    }
    Ok(())
}

/// The address after `--http`, if that is said.
fn address() -> Result<Option<String>> {
    let mut words = std::env::args().skip(1);
    match (words.next().as_deref(), words.next()) {
        (None, _) => Ok(None),
        (Some("--http"), Some(address)) => Ok(Some(address)),
        (Some(_), _) => Err(Error::other("only `--http 127.0.0.1:4800` can be said")),
    }
}
