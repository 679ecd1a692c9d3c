//! The flags of `gatelet serve`, and what belongs to a gatelet while it serves.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use config::{Config, Loaded, Tls};
use gateway::{Gateway, Surface};

use crate::paths::Paths;
use crate::wire::Wiring;

/// Serve everything behind gatelet to MCP clients
///
/// Streamable HTTP on loopback unless `--stdio` is given. Without a
/// configuration the built-in tools are served.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Talk on standard input and output, as a host that starts gatelet expects
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,

    /// Address and port for HTTP [default: 127.0.0.1:4747, or what the configuration says]
    #[arg(long, value_name = "ADDRESS", value_parser = config::parse_address)]
    pub(super) listen: Option<SocketAddr>,

    /// Threads that answer [default: half of the processors, or one with --stdio]
    #[arg(long, value_name = "NUMBER")]
    pub(super) threads: Option<NonZeroUsize>,

    /// What clients see [default: cash, or what the configuration says]
    #[arg(long, value_name = "SURFACE", value_parser = surface())]
    pub(super) surface: Option<Surface>,

    /// Listen on an address that other machines can reach, though nobody is asked who they are
    #[arg(long)]
    pub(super) open: bool,

    /// Speak HTTPS with this certificate chain, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "stdio")]
    tls_cert: Option<PathBuf>,

    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

/// Parses a surface by its name in the configuration.
fn surface() -> impl TypedValueParser<Value = Surface> {
    let values = Surface::ALL.map(|one| PossibleValue::new(one.name()).help(one.description()));
    PossibleValuesParser::new(values).try_map(|name| name.parse())
}

impl Args {
    /// The flags of `gatelet serve --stdio`.
    pub(crate) fn for_stdio() -> Args {
        Args {
            stdio: true,
            listen: None,
            threads: None,
            surface: None,
            open: false,
            tls_cert: None,
            tls_key: None,
        }
    }

    /// The configuration with the flags applied.
    pub(super) fn apply_to(&self, config: &Config) -> Config {
        let mut config = config.clone();
        let serve = &mut config.serve;
        serve.listen = self.listen.unwrap_or(serve.listen);
        serve.surface = self.surface.unwrap_or(serve.surface);
        if let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) {
            let (cert, key) = (cert.clone(), key.clone());
            let rest = serve.tls.take();
            let callers = rest.as_ref().map(|tls| tls.callers).unwrap_or_default();
            let client_ca = rest.and_then(|tls| tls.client_ca);
            serve.tls = Some(Tls { cert, key, client_ca, callers });
        }
        config
    }
}

/// A gatelet while it serves.
pub(super) struct Serving<'a> {
    pub(super) args: &'a Args,
    pub(super) paths: &'a Paths,
    /// The state directory.
    pub(super) state: PathBuf,
    /// The configuration with the flags applied and the address in use.
    pub(super) loaded: Loaded,
    pub(super) wiring: Wiring,
    pub(super) gateway: Gateway,
}

impl Serving<'_> {
    pub(super) fn config(&self) -> &Config {
        &self.loaded.config
    }
}
