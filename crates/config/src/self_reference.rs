//! Detects upstreams that would put gatelet behind itself.
//!
//! The files of clients contain an entry for gatelet, so a gatelet that serves such a
//! file would connect to itself. That is also detected when it connects; this check
//! reports it before anything is started.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use super::raw_upstream::Raw;
use super::text::Environment;
use super::{serve, text};

/// The addresses and the configuration file of the gatelet that a configuration is for.
#[derive(Clone, Debug)]
pub(crate) struct OwnAddress {
    /// The listen address from the command line.
    pub(crate) listen_flag: Option<SocketAddr>,
    /// The listen address in use.
    pub(crate) listen: SocketAddr,
    /// The public URL under which clients reach it.
    pub(crate) public: Option<String>,
    /// The configuration file.
    pub(crate) file: PathBuf,
    /// The directory of the file.
    pub(crate) base: PathBuf,
}

impl OwnAddress {
    /// Creates the address of a gatelet that listens at the address from the command line,
    /// else at the default.
    pub(crate) fn with_defaults(
        file: &str,
        base: &Path,
        listen_flag: Option<SocketAddr>,
    ) -> OwnAddress {
        let file = std::path::absolute(file).unwrap_or_else(|_| PathBuf::from(file));
        let listen = listen_flag.unwrap_or(serve::DEFAULT_LISTEN);
        OwnAddress { listen_flag, listen, public: None, file, base: base.to_owned() }
    }

    /// Returns the key and the reason by which an upstream is this gatelet itself; `None`
    /// when it is another server.
    pub(crate) fn self_reference(
        &self,
        raw: &Raw,
        environment: &dyn Environment,
    ) -> Option<(&'static str, String)> {
        // A placeholder without a value cannot refer to this gatelet.
        let fill = |text: &String| {
            text::fill_placeholders(text, &self.base, environment).unwrap_or_default()
        };
        if let Some(url) = raw.url.as_ref().map(fill) {
            let reason = || ("url", format!("`{url}` is where this gate listens"));
            return self.listens_at(&url).then(reason);
        }
        let words: Vec<String> = raw.command.iter().chain(&raw.args).map(fill).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let Some(url) = mcp_remote_url(&words).filter(|url| self.listens_at(url)) {
            return Some(("args", format!("`{url}` is where this gate listens")));
        }
        let served = served_config(&words)?;
        let other = served.or_else(|| raw.env.get("GATELET_CONFIG").map(String::as_str));
        let other = other.map(|file| text::resolve_path(file.into(), &self.base, environment));
        match other.filter(|file| *file != self.file) {
            Some(_) => None,
            None => Some(("command", "this runs the gate itself".to_owned())),
        }
    }

    fn listens_at(&self, url: &str) -> bool {
        let Ok(url) = reqwest::Url::parse(url) else { return false };
        let public = self.public.as_deref().and_then(|public| reqwest::Url::parse(public).ok());
        if public.is_some_and(|public| public.origin() == url.origin()) {
            return true;
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return false;
        };
        let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        let is_local = host == "localhost"
            || host.ends_with(".localhost")
            || address.is_some_and(|ip| ip.is_loopback() || ip.is_unspecified());
        let ip = self.listen.ip();
        let is_here = is_local && (ip.is_unspecified() || ip.is_loopback()) || address == Some(ip);
        self.listen.port() == port && is_here
    }
}

/// Returns whether the command runs `gatelet serve`, whatever its configuration.
pub(crate) fn runs_gatelet_serve(raw: &Raw) -> bool {
    let words: Vec<&str> = raw.command.iter().chain(&raw.args).map(String::as_str).collect();
    served_config(&words).is_some()
}

/// Returns the `--config` of a command that runs `gatelet serve`; the outer `None` is any
/// other command.
fn served_config<'a>(words: &[&'a str]) -> Option<Option<&'a str>> {
    let (mut config, mut verb) = (None, None);
    let mut rest = gatelet_arguments(words)?.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--config" | "-c" => config = rest.next().copied(),
            "--state" | "--log" | "--color" => drop(rest.next()),
            flag if flag.starts_with('-') => {
                config = flag.strip_prefix("--config=").or(config);
            }
            word => verb = verb.or(Some(word)),
        }
    }
    matches!(verb, Some("serve" | "connect")).then_some(config)
}

/// Returns the arguments of a command that runs gatelet: directly, through `env`, or
/// through `cargo run`.
fn gatelet_arguments<'w, 'a>(words: &'w [&'a str]) -> Option<&'w [&'a str]> {
    let (program, rest) = words.split_first()?;
    match program_name(program) {
        "gatelet" => Some(rest),
        "env" => {
            let is_set = |word: &&str| word.contains('=') || word.starts_with('-');
            let n_set = rest.iter().take_while(|word| is_set(word)).count();
            gatelet_arguments(&rest[n_set..])
        }
        "cargo" => {
            let at = rest.iter().position(|word| *word == "--")?;
            let of_ours = rest[..at].iter().any(|word| word.contains("gatelet"));
            of_ours.then(|| &rest[at + 1..])
        }
        _ => None,
    }
}

/// Returns the URL of a command that runs `mcp-remote`.
fn mcp_remote_url<'a>(words: &[&'a str]) -> Option<&'a str> {
    let is_bridge = |word: &&str| {
        let name = program_name(word);
        name == "mcp-remote" || name.starts_with("mcp-remote@")
    };
    let at = words.iter().position(is_bridge)?;
    words[at..].iter().copied().find(|word| word.starts_with("http"))
}

fn program_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProcessEnvironment;

    fn here() -> OwnAddress {
        OwnAddress::with_defaults("/etc/gate/gatelet.toml", Path::new("/etc/gate"), None)
    }

    #[track_caller]
    fn check(words: &[&str], expected: bool) {
        let mut words = words.iter().map(|word| (*word).to_owned());
        let raw = Raw { command: words.next(), args: words.collect(), ..Raw::default() };
        let found = here().self_reference(&raw, &ProcessEnvironment);
        assert_eq!(found.is_some(), expected, "{raw:?}");
    }

    #[test]
    fn a_program_that_serves_the_same_is_the_gate_itself() {
        check(&["gatelet", "serve", "--stdio"], true);
        check(&["/opt/gatelet", "--state", "x", "serve", "--stdio"], true);
        check(&["gatelet.exe", "serve", "--stdio", "--config", "/etc/gate/gatelet.toml"], true);
        check(&["gatelet", "-c", "gatelet.toml", "serve", "--stdio"], true);
        check(&["env", "RUST_LOG=x", "gatelet", "serve", "--stdio"], true);
        check(&["cargo", "run", "--release", "-p", "gatelet", "--", "serve", "--stdio"], true);
    }

    #[test]
    fn another_server_of_gatelet_is_not() {
        check(&["gatelet", "content", "serve", "--stdio"], false);
        check(&["gatelet", "spec", "serve", "x.md"], false);
        check(&["gatelet", "serve", "--stdio", "--config", "other.toml"], false);
        check(&["cargo", "run", "-p", "other", "--", "serve"], false);
        check(&["cargo", "run"], false);
    }

    #[test]
    fn a_bridge_to_the_gate_is_the_gate() {
        check(&["npx", "-y", "mcp-remote", "http://127.0.0.1:4747/mcp"], true);
        check(&["mcp-remote@latest", "http://localhost:4747/mcp"], true);
        check(&["npx", "mcp-remote", "https://example.org/mcp"], false);
    }

    #[test]
    fn an_address_is_the_gates_by_every_name_of_this_machine() {
        let mut here = here();
        here.public = Some("https://gate.example.org".to_owned());
        for url in [
            "http://127.0.0.1:4747/mcp",
            "http://localhost:4747/mcp/direct",
            "http://[::1]:4747/mcp",
            "http://0.0.0.0:4747/mcp",
            "https://gate.example.org/mcp",
        ] {
            assert!(here.listens_at(url), "{url}");
        }
        for url in ["http://127.0.0.1:4748/mcp", "http://10.0.0.1:4747/mcp", "nonsense"] {
            assert!(!here.listens_at(url), "{url}");
        }
    }
}
