//! The canonical form of a URI, and of a pattern of URIs: no escapes, no empty segments, no
//! `.` and `..`, scheme and host in lower case, no default port.

use url::Host;

use super::path::{self, unescaped};

/// How the part behind the scheme is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// However many slashes follow the scheme, a host does.
    Web,
    /// A path follows, perhaps behind a host that most servers ignore.
    File,
    /// A host follows `//`, a path anything else.
    Other,
}

/// A URI, split. Nothing is unescaped yet.
struct Parts<'a> {
    family: Family,
    scheme: String,
    authority: Option<&'a str>,
    path: &'a str,
}

/// The canonical form of a URI with everything that was written in it.
pub(super) fn whole(uri: &str) -> String {
    let uri = unescaped(uri);
    let Some(parts) = Parts::parse(&uri) else { return path::plain(&uri) };
    let start = match parts.authority {
        Some(authority) => {
            let (user, address) = split_user(authority);
            let host = parts.hosts(address).swap_remove(0);
            format!("{}://{user}{host}", parts.scheme)
        }
        None => return without_host(&parts.scheme, &path::plain(&parts.unescaped_path())),
    };
    start + &path::plain(&parts.unescaped_path())
}

/// What has no host. A slash that begins its path begins the path behind an empty one.
fn without_host(scheme: &str, path: &str) -> String {
    let slashes = if path.starts_with('/') { "//" } else { "" };
    format!("{scheme}:{slashes}{path}")
}

/// Every spelling of the host in a URI or pattern, with everything else as in [`whole`].
pub(super) fn with_every_host(uri: &str) -> Vec<String> {
    let mut all = vec![whole(uri)];
    if let Some(parts) = Parts::parse(uri)
        && let Some(authority) = parts.authority
    {
        let (user, address) = split_user(authority);
        let path = path::plain(&parts.unescaped_path());
        let hosts = parts.hosts(address);
        all.extend(hosts.iter().map(|host| format!("{}://{user}{host}{path}", parts.scheme)));
    }
    all
}

/// The canonical forms of a URI for servers that ignore some of it: the user before the
/// host, the host of a file, parameters of a path, a slash at the end. They are told to
/// `keep` one by one, until it returns `false`.
pub(super) fn reduced(uri: &str, keep: &mut dyn FnMut(String) -> bool) -> bool {
    let Some(parts) = Parts::parse(uri) else {
        let is_absolute = uri.starts_with('/');
        let Some(paths) = path::places(uri) else { return false };
        return paths
            .into_iter()
            .all(|path| (!is_absolute || keep(format!("file://{path}"))) && keep(path));
    };
    let Parts { family, scheme, authority, .. } = &parts;
    let own_path = parts.path_with_slash();
    let Some(authority) = authority else {
        return path::places(&own_path)
            .is_some_and(|paths| paths.into_iter().all(|path| keep(without_host(scheme, &path))));
    };
    let Some(own_paths) = path::places(&own_path) else { return false };
    if *family == Family::File {
        // Some servers take what follows `file://` as the path.
        let joined = match authority.is_empty() {
            true => Some(Vec::new()),
            false => path::places(&format!("/{authority}{own_path}")),
        };
        let Some(joined) = joined else { return false };
        let mut all = own_paths.iter().chain(&joined);
        if !all.all(|path| keep(format!("file://{path}"))) {
            return false;
        }
    }
    // What follows the first `@` is the host to some, what follows the last to others.
    let (user, address) = split_user(authority);
    let behind_first = authority.split_once('@').map(|(_, behind)| behind);
    let addresses =
        [Some((user.as_str(), address)), Some(("", address)), behind_first.map(|it| ("", it))];
    addresses.into_iter().flatten().all(|(user, address)| {
        parts
            .hosts(address)
            .iter()
            .all(|host| own_paths.iter().all(|path| keep(format!("{scheme}://{user}{host}{path}"))))
    })
}

impl<'a> Parts<'a> {
    /// `None` for a text without a scheme.
    fn parse(uri: &'a str) -> Option<Parts<'a>> {
        let (scheme, rest) = uri.split_once(':')?;
        if scheme.contains(['/', '\\', '#']) {
            return None;
        }
        let scheme = unescaped(scheme).to_ascii_lowercase();
        let family = match scheme.as_str() {
            "http" | "https" | "ws" | "wss" | "ftp" => Family::Web,
            "file" => Family::File,
            _ => Family::Other,
        };
        let (authority, path) = match (family, rest.strip_prefix("//")) {
            (Family::Web, _) => {
                let behind = rest.trim_start_matches(['/', '\\']);
                let end = behind.find('/').unwrap_or(behind.len());
                (Some(&behind[..end]), &behind[end..])
            }
            (_, Some(behind)) => {
                let end = behind.find('/').unwrap_or(behind.len());
                (Some(&behind[..end]), &behind[end..])
            }
            (Family::File, None) => (Some(""), rest),
            (Family::Other, None) if rest.starts_with('/') => (Some(""), rest),
            (Family::Other, None) => (None, rest),
        };
        Some(Parts { family, scheme, authority, path })
    }

    /// The path; that of a file begins with a slash.
    fn path_with_slash(&self) -> String {
        let is_bare = self.family == Family::File && !self.path.is_empty();
        match is_bare && !self.path.starts_with('/') {
            true => format!("/{}", self.path),
            false => self.path.to_owned(),
        }
    }

    fn unescaped_path(&self) -> String {
        unescaped(&self.path_with_slash())
    }

    /// Every spelling of a host and its port, the canonical one first.
    fn hosts(&self, address: &str) -> Vec<String> {
        let address = unescaped(address);
        let (host, port) = split_port(&address);
        let mut hosts = self.spellings(host, port);
        let (host_before_colon, start_of_port) = split_port_leniently(&address);
        if host_before_colon != host {
            hosts.extend(self.spellings(host_before_colon, start_of_port));
        }
        hosts
    }

    fn spellings(&self, host: &str, port: Option<&str>) -> Vec<String> {
        if host.contains(':') && !host.starts_with('[') {
            // No host at all: it stays as it is.
            return vec![host.to_lowercase()];
        }
        let port = match port.map(|port| port.trim_start_matches('0')) {
            None | Some("") => String::new(),
            Some(port) if default_port(&self.scheme) == Some(port) => String::new(),
            Some(port) => format!(":{port}"),
        };
        let plain = host.to_lowercase();
        let plain = match (without_root(&plain), self.family) {
            ("localhost", Family::File) => "",
            (plain, _) => plain,
        };
        let mut hosts = vec![plain.to_owned()];
        match Host::parse(plain) {
            Ok(Host::Domain(ascii)) => {
                let unicode = url::quirks::domain_to_unicode(&ascii);
                hosts.insert(0, ascii);
                hosts.push(unicode);
            }
            // Elsewhere a number is a name like any other.
            Ok(ip @ (Host::Ipv4(_) | Host::Ipv6(_))) if self.family == Family::Web => {
                hosts.insert(0, ip.to_string());
            }
            Ok(Host::Ipv4(_) | Host::Ipv6(_)) | Err(_) => {}
        }
        hosts.retain(|host| !host.is_empty() || plain.is_empty());
        hosts.dedup();
        hosts.into_iter().map(|host| host + &port).collect()
    }
}

/// A host without the dot at its end. With two there it is none.
fn without_root(host: &str) -> &str {
    host.strip_suffix('.').filter(|host| !host.ends_with('.')).unwrap_or(host)
}

/// The user of an authority, with its `@`, and what follows it.
fn split_user(authority: &str) -> (String, &str) {
    match authority.rsplit_once('@') {
        Some((user, address)) => (format!("{}@", unescaped(user)), address),
        None => (String::new(), authority),
    }
}

/// A host and its port, if what follows its only colon is one.
fn split_port(address: &str) -> (&str, Option<&str>) {
    match split_port_leniently(address) {
        (host, Some(port)) if host.len() + 1 + port.len() == address.len() => (host, Some(port)),
        _ => (address, None),
    }
}

/// The same by a server that looks for the first colon, and reads digits from there.
fn split_port_leniently(address: &str) -> (&str, Option<&str>) {
    let behind_brackets = address.find(']').map_or(0, |at| at + 1);
    match address[behind_brackets..].find(':') {
        Some(at) => {
            let (host, port) = address.split_at(behind_brackets + at);
            let digits = port[1..].bytes().take_while(u8::is_ascii_digit).count();
            (host, Some(&port[1..=digits]))
        }
        None => (address, None),
    }
}

fn default_port(scheme: &str) -> Option<&'static str> {
    match scheme {
        "http" | "ws" => Some("80"),
        "https" | "wss" => Some("443"),
        "ftp" => Some("21"),
        "ssh" | "sftp" => Some("22"),
        _ => None,
    }
}
