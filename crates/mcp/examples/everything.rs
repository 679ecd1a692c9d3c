//! Serves the conformance provider, over a pipe or over HTTP.
//!
//! `everything stdio [asking|requiring|mixed]`, or
//! `everything http ADDRESS [asking|requiring|mixed]`. Real clients and the
//! official conformance suite are pointed at it, in tests and by hand.

use std::sync::Arc;
use std::time::Duration;

use mcp::serve::{http, stdio};
use testkit::everything::{Everything, Style};
use tokio::net::TcpListener;
use tool::{FixedProvider, ProviderSource};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["stdio", rest @ ..] => {
            stdio::stdio(source(rest), stdio::Options::default()).await?;
            Ok(())
        }
        ["http", address, rest @ ..] => {
            let listener = TcpListener::bind(address).await?;
            // Streams open early, so that they are tried.
            let options = http::Options {
                stream_after: Duration::from_millis(50),
                ..http::Options::default()
            };
            let endpoint = http::Endpoint::new(source(rest), options);
            web::listen::listen_plain(listener, http::at("/mcp", endpoint)).await
        }
        _ => Err(std::io::Error::other("usage: everything stdio|http ADDRESS [STYLE]")),
    }
}

fn source(rest: &[&str]) -> Arc<dyn ProviderSource> {
    let style = match rest {
        ["asking"] => Style::Asking,
        ["requiring"] => Style::Requiring,
        _ => Style::Mixed,
    };
    Arc::new(FixedProvider(Everything::new(style)))
}
