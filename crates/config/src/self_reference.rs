//! Detects entries that would put gatelet behind itself.
//!
//! Clients' files name the gatelet that they reach, so whoever serves such a file
//! would put gatelet behind itself. A gatelet notices that when it connects, too;
//! here it is said before anything is started.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use super::raw_upstream::Raw;
use super::text::Environment;
use super::{serve, text};

/// What is known of the gatelet that a configuration is for.
#[derive(Clone, Debug)]
pub(crate) struct OwnAddress {
    /// Where the command line says that it listens.
    pub(crate) asked: Option<SocketAddr>,
    pub(crate) listen: SocketAddr,
    /// Under which address others know it.
    pub(crate) public: Option<String>,
    /// The file of the configuration.
    pub(crate) file: PathBuf,
    /// The directory of the file.
    pub(crate) base: PathBuf,
}

impl OwnAddress {
    /// A gatelet that listens where the command line says, or where all do.
    pub(crate) fn usual(file: &str, base: &Path, listen: Option<SocketAddr>) -> OwnAddress {
        let file = std::path::absolute(file).unwrap_or_else(|_| PathBuf::from(file));
        let (asked, listen) = (listen, listen.unwrap_or(serve::USUAL));
        OwnAddress { asked, listen, public: None, file, base: base.to_owned() }
    }

    /// Returns why an upstream is this gatelet itself, if it is; the key that says
    /// so comes first.
    pub(crate) fn is(
        &self,
        raw: &Raw,
        environment: &dyn Environment,
    ) -> Option<(&'static str, String)> {
        // What cannot be filled in leads nowhere.
        let fill = |text: &String| text::fill(text, &self.base, environment).unwrap_or_default();
        if let Some(url) = raw.url.as_ref().map(fill) {
            let told = || ("url", format!("`{url}` is where this gate listens"));
            return self.listens_at(&url).then(told);
        }
        let words: Vec<String> = raw.command.iter().chain(&raw.args).map(fill).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let Some(url) = bridged(&words).filter(|url| self.listens_at(url)) {
            return Some(("args", format!("`{url}` is where this gate listens")));
        }
        let served = serves(&words)?;
        let other = served.or_else(|| raw.env.get("GATELET_CONFIG").map(String::as_str));
        let other = other.map(|file| text::place(file.into(), &self.base, environment));
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

/// Returns whether these words run `gatelet serve`, whatever its configuration.
pub(crate) fn is_a_gate(raw: &Raw) -> bool {
    let words: Vec<&str> = raw.command.iter().chain(&raw.args).map(String::as_str).collect();
    serves(&words).is_some()
}

/// The configuration that `gatelet serve` is given, if these words run it.
fn serves<'a>(words: &[&'a str]) -> Option<Option<&'a str>> {
    let (mut config, mut verb) = (None, None);
    let mut rest = gatelet(words)?.iter();
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

/// Returns what stands behind `gatelet`, where these words run it: as it is, in
/// another environment, or out of its source.
fn gatelet<'w, 'a>(words: &'w [&'a str]) -> Option<&'w [&'a str]> {
    let (program, rest) = words.split_first()?;
    match name(program) {
        "gatelet" => Some(rest),
        "env" => {
            let is_set = |word: &&str| word.contains('=') || word.starts_with('-');
            let n_set = rest.iter().take_while(|word| is_set(word)).count();
            gatelet(&rest[n_set..])
        }
        "cargo" => {
            let at = rest.iter().position(|word| *word == "--")?;
            let of_ours = rest[..at].iter().any(|word| word.contains("gatelet"));
            of_ours.then(|| &rest[at + 1..])
        }
        _ => None,
    }
}

/// The address to which `mcp-remote` leads, where these words run it.
fn bridged<'a>(words: &[&'a str]) -> Option<&'a str> {
    let is_bridge = |word: &&str| {
        let name = name(word);
        name == "mcp-remote" || name.starts_with("mcp-remote@")
    };
    let at = words.iter().position(is_bridge)?;
    words[at..].iter().copied().find(|word| word.starts_with("http"))
}

fn name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Process;

    fn here() -> OwnAddress {
        OwnAddress::usual("/etc/gate/gatelet.toml", Path::new("/etc/gate"), None)
    }

    #[track_caller]
    fn check(words: &[&str], expected: bool) {
        let mut words = words.iter().map(|word| (*word).to_owned());
        let raw = Raw { command: words.next(), args: words.collect(), ..Raw::default() };
        let found = here().is(&raw, &Process);
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
