//! Normalises URIs for comparison.
//!
//! A server that reads files takes `/pub/../srv`, `//srv` and `/%73rv` for
//! `/srv`. Whoever hides one of them hides all.

/// What a URI may mean to its server: with a query and a fragment behind its
/// path, or with all of it as the path.
pub(crate) fn readings(uri: &str) -> Vec<String> {
    let whole = normalized(uri);
    match uri.find(['?', '#']) {
        None => vec![whole],
        Some(at) => vec![format!("{}{}", normalized(&uri[..at]), &uri[at..]), whole],
    }
}

/// A URI, or a pattern of URIs, in the one way to write it: without escapes, in
/// forward slashes, without empty levels, `.` and `..`; scheme and host in lower
/// case.
pub(crate) fn normalized(uri: &str) -> String {
    let uri = unescaped(uri).replace('\\', "/");
    let Some((scheme, rest)) = uri.split_once(':') else { return path(&uri) };
    let scheme = scheme.to_ascii_lowercase();
    let (authority, rest) = match rest.strip_prefix("//") {
        Some(rest) => match rest.split_once('/') {
            Some((authority, rest)) => (authority.to_ascii_lowercase(), format!("/{rest}")),
            None => (rest.to_ascii_lowercase(), String::new()),
        },
        None if rest.starts_with('/') => (String::new(), rest.to_owned()),
        None => return format!("{scheme}:{}", path(rest)),
    };
    // A file on this machine needs no host.
    let authority = match (scheme.as_str(), authority.as_str()) {
        ("file", "localhost") => "",
        (_, authority) => authority,
    };
    format!("{scheme}://{authority}{}", path(&rest))
}

/// A path without levels that lead nowhere.
fn path(path: &str) -> String {
    let mut levels: Vec<&str> = Vec::new();
    for level in path.split('/') {
        match level {
            "" | "." => {}
            ".." => {
                levels.pop();
            }
            level => levels.push(level),
        }
    }
    let start = if path.starts_with('/') { "/" } else { "" };
    let end = if path.ends_with('/') && !levels.is_empty() { "/" } else { "" };
    format!("{start}{}{end}", levels.join("/"))
}

/// A text without escapes, also where an escape is escaped itself.
fn unescaped(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(plain) = unescaped_once(&text) {
        text = plain;
    }
    text
}

/// `None` where there is no escape. Each time it is not, the text is shorter.
fn unescaped_once(text: &str) -> Option<String> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let bytes = text.as_bytes();
    let (mut plain, mut at, mut found) = (Vec::with_capacity(bytes.len()), 0, false);
    while let Some(byte) = bytes.get(at) {
        let escape =
            (*byte == b'%').then(|| digit(bytes.get(at + 1)).zip(digit(bytes.get(at + 2))));
        match escape.flatten() {
            Some((high, low)) => {
                plain.push((high * 16 + low) as u8);
                at += 3;
                found = true;
            }
            None => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    found.then(|| String::from_utf8_lossy(&plain).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_place_is_written_in_one_way() {
        for uri in [
            "file:///srv/x",
            "FILE:///srv/x",
            "file://localhost/srv/x",
            "file:/srv/x",
            "file:////srv//x",
            "file:///pub/../srv/x",
            "file:///pub/%2e%2E/srv/x",
            "file:///pub/..%2fsrv/x",
            "file:///%73rv/x",
            "file:///%2573rv/./x",
            "file:///../srv/x",
            "file:///pub\\..\\srv/x",
        ] {
            assert_eq!(normalized(uri), "file:///srv/x", "{uri}");
        }
        assert_eq!(normalized("file:///srv/*"), "file:///srv/*");
        assert_eq!(normalized("https://Host.org/a/?q=1"), "https://host.org/a/?q=1");
        assert_eq!(normalized("MEMO:Insights"), "memo:Insights");
        assert_eq!(normalized("memo://insights"), "memo://insights");
        assert_eq!(normalized("100%"), "100%");
    }

    #[test]
    fn a_query_may_be_one_or_a_part_of_the_path() {
        let both = ["file:///srv/x?/../../pub", "file:///pub"].map(str::to_owned);
        assert_eq!(readings("file:///srv/x?/../../pub"), both);
    }

    proptest! {
        #[test]
        fn no_way_to_write_a_place_differs(
            detours in prop::collection::vec(0..6_u8, 0..4), escapes in any::<u16>(), twice: bool,
        ) {
            let mut written = "file://".to_owned();
            for detour in detours {
                written.push_str(["/.", "/", "/pub/..", "/a/b/../..", "/..", "/%2e"][usize::from(detour)]);
            }
            for (at, c) in "/srv/secret.txt".chars().enumerate() {
                match escapes >> at & 1 {
                    0 => written.push(c),
                    _ if c == '/' && at == 0 => written.push(c),
                    _ if twice => written.push_str(&format!("%25{:02x}", c as u32)),
                    _ => written.push_str(&format!("%{:02X}", c as u32)),
                }
            }
            prop_assert_eq!(normalized(&written), "file:///srv/secret.txt", "{}", written);
        }

        #[test]
        fn what_is_normal_stays(uri in "[a-z]{1,5}:[a-z/.%0-9*?]{0,20}") {
            let once = normalized(&uri);
            prop_assert_eq!(normalized(&once), once);
        }
    }
}
