//! The address of a Valkey store: one server, a primary behind Sentinel, or a
//! cluster.
//!
//! | form | example |
//! |---|---|
//! | one server | `valkey://user:password@host:6379/0`, `rediss://host` (TLS), `unix:///run/valkey.sock` |
//! | Sentinel | `valkey+sentinel://one:26379,two:26379/mymaster/0` |
//! | cluster | `valkey+cluster://one:6379,two:6379` |
//!
//! `redis` means the same as `valkey`, and `valkeys` the same as `rediss`.

use std::fmt;

use url::Url;

/// The address of a store, and the credentials for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(crate) topology: Topology,
    pub(crate) tls: Tls,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: i64,
    /// The trusted certificate authorities as PEM; those of the machine if `None`.
    pub(crate) authority: Option<Vec<u8>>,
}

/// How the server or servers are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    Server(Node),
    /// The path of a Unix socket.
    Socket(String),
    Sentinel {
        sentinels: Vec<Node>,
        service: String,
    },
    Cluster(Vec<Node>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) host: String,
    pub(crate) port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    No,
    Yes,
}

/// A text that is not an address of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}; write `valkey://host:6379`, `rediss://host:6379` with TLS, `valkey+sentinel://host:26379/service` or `valkey+cluster://host:6379,host:6379`"
)]
pub struct InvalidAddress(String);

impl Address {
    pub fn parse(text: &str) -> Result<Address, InvalidAddress> {
        let invalid = |what: &str| InvalidAddress(what.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(|| invalid("this is no address"))?;
        if scheme == "unix" {
            return Ok(Address::plain(Topology::Socket(rest.to_owned())));
        }
        let (family, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let tls = match family {
            "valkey" | "redis" => Tls::No,
            "valkeys" | "rediss" => Tls::Yes,
            _ => return Err(invalid(&format!("`{scheme}` is no kind of store"))),
        };
        // A URL has only one host, so the list of hosts is split off first.
        let (hosts, path) = rest.split_once('/').map_or((rest, ""), |(hosts, path)| (hosts, path));
        let (login, hosts) =
            hosts.rsplit_once('@').map_or(("", hosts), |(login, hosts)| (login, hosts));
        let port = if kind == "sentinel" { 26379 } else { 6379 };
        let nodes: Option<Vec<Node>> = hosts.split(',').map(|host| node(host, port)).collect();
        let nodes = nodes.ok_or_else(|| invalid("a host cannot be read"))?;
        let (user, password) =
            credentials(login).ok_or_else(|| invalid("the user or password cannot be read"))?;
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let topology = match kind {
            "" => match <[Node; 1]>::try_from(nodes) {
                Ok([node]) => Topology::Server(node),
                Err(_) => return Err(invalid("one server has one host")),
            },
            "sentinel" => {
                let service =
                    parts.next().ok_or_else(|| invalid("Sentinel needs the name of a service"))?;
                Topology::Sentinel { sentinels: nodes, service: service.to_owned() }
            }
            "cluster" => Topology::Cluster(nodes),
            _ => return Err(invalid(&format!("`{kind}` is no form of a store"))),
        };
        let database = parts.next().unwrap_or("0").parse();
        let database = database.map_err(|_| invalid("the database is a number"))?;
        if parts.next().is_some() || (database != 0 && matches!(topology, Topology::Cluster(_))) {
            return Err(invalid("there is too much behind the host"));
        }
        Ok(Address { tls, user, password, database, ..Address::plain(topology) })
    }

    fn plain(topology: Topology) -> Address {
        Address { topology, tls: Tls::No, user: None, password: None, database: 0, authority: None }
    }

    /// Replaces the password in the address, if another one is given.
    #[must_use]
    pub fn with_password(self, password: Option<String>) -> Address {
        Address { password: password.or(self.password), ..self }
    }

    #[must_use]
    pub fn with_user(self, user: Option<String>) -> Address {
        Address { user: user.or(self.user), ..self }
    }

    /// Sets the trusted certificate authorities, as PEM.
    #[must_use]
    pub fn with_authority(self, authority: Option<Vec<u8>>) -> Address {
        Address { authority: authority.or(self.authority), ..self }
    }
}

/// Formats the address without its credentials.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = if self.tls == Tls::Yes { "rediss" } else { "valkey" };
        let hosts = |nodes: &[Node]| {
            let each: Vec<String> =
                nodes.iter().map(|n| format!("{}:{}", n.host, n.port)).collect();
            each.join(",")
        };
        match &self.topology {
            Topology::Server(node) => {
                write!(f, "{family}://{}:{}/{}", node.host, node.port, self.database)
            }
            Topology::Socket(path) => write!(f, "unix://{path}"),
            Topology::Sentinel { sentinels, service } => {
                write!(f, "{family}+sentinel://{}/{service}/{}", hosts(sentinels), self.database)
            }
            Topology::Cluster(nodes) => write!(f, "{family}+cluster://{}", hosts(nodes)),
        }
    }
}

/// Hides the password, so that it does not reach a log.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// Parses one host with an optional port, as in a URL.
fn node(text: &str, default: u16) -> Option<Node> {
    let url = Url::parse(&format!("redis://{text}")).ok()?;
    let host = url.host_str().filter(|host| !host.is_empty())?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some(Node { host, port: url.port().unwrap_or(default) })
}

/// Splits `user:password` and decodes their `%…` escapes.
fn credentials(text: &str) -> Option<(Option<String>, Option<String>)> {
    let decode = |text: &str| {
        let bytes = decoded(text)?;
        let text = String::from_utf8(bytes).ok()?;
        Some((!text.is_empty()).then_some(text))
    };
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    Some((decode(user)?, decode(password)?))
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut rest = text.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let [first, others @ ..] = rest {
        rest = others;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let parsed = Address::parse(text).map(|address| address.to_string());
        assert_eq!(parsed.unwrap_or_else(|error| error.0), expected);
    }

    #[test]
    fn every_form_is_read() {
        check("valkey://cache", "valkey://cache:6379/0");
        check("redis://cache:7000/3", "valkey://cache:7000/3");
        check("rediss://cache", "rediss://cache:6379/0");
        check("valkeys://[::1]:7000", "rediss://::1:7000/0");
        check("unix:///run/valkey.sock", "unix:///run/valkey.sock");
        check("valkey+sentinel://a,b:7/main", "valkey+sentinel://a:26379,b:7/main/0");
        check("rediss+sentinel://a/main/2", "rediss+sentinel://a:26379/main/2");
        check("valkey+cluster://a:1,b", "valkey+cluster://a:1,b:6379");
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_reason() {
        check("cache:6379", "this is no address");
        check("http://cache", "`http` is no kind of store");
        check("valkey+ring://cache", "`ring` is no form of a store");
        check("valkey://a,b", "one server has one host");
        check("valkey://", "a host cannot be read");
        check("valkey+sentinel://a", "Sentinel needs the name of a service");
        check("valkey://a/b", "the database is a number");
        check("valkey://a/1/2", "there is too much behind the host");
        check("valkey+cluster://a/1", "there is too much behind the host");
        check("valkey://u:%zz@a", "the user or password cannot be read");
    }

    #[test]
    fn a_password_is_taken_and_never_shown() {
        let address = Address::parse("valkey://ann:p%40ss@cache").unwrap();
        assert_eq!(address.user.as_deref(), Some("ann"));
        assert_eq!(address.password.as_deref(), Some("p@ss"));
        assert_eq!(format!("{address:?}"), "Address(valkey://cache:6379/0)");
        let other = address.with_password(Some("other".to_owned()));
        assert_eq!(other.password.as_deref(), Some("other"));
    }
}
