//! Normalises URIs for comparison.
//!
//! A server that reads files takes `/pub/../srv`, `//srv` and `/%73rv` for
//! `/srv`. Whoever hides one of them hides all.

/// The longest URI that is taken from a caller, in characters.
pub const LONGEST: usize = 8_192;

/// Why a URI is not taken from a caller; `None` where nothing is wrong with it.
///
/// Servers read it with parsers that drop what they do not like: those of
/// browsers drop tabs and line breaks wherever they stand, and spaces and
/// control characters at both ends. Then `file:///s<TAB>rv` is `/srv` for the
/// server, and another place for every rule.
pub fn defect(uri: &str) -> Option<String> {
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_whitespace() || c == '\u{feff}');
    if LONGEST < uri.len() && LONGEST < uri.chars().count() {
        return Some(format!("is too long: a URI has at most {LONGEST} characters"));
    }
    if let Some(found) = uri.chars().find(|c| is_dropped(*c)) {
        let code = u32::from(found);
        return Some(format!("has the control character U+{code:04X} in it: leave it out"));
    }
    let has_edge = is_edge(uri.chars().next()) || is_edge(uri.chars().next_back());
    has_edge.then(|| "begins or ends with a space: leave it out".to_owned())
}

/// What some reader of URIs drops, or takes for the end of the line.
fn is_dropped(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// What a URI may mean to its server: with a query and a fragment behind its
/// path, or with all of it as the path; and each of them without the control
/// characters that were escaped in it, for a server that unescapes it before it
/// reads it.
pub(crate) fn readings(uri: &str) -> Vec<String> {
    let whole = normalized(uri);
    let mut readings = match uri.find(['?', '#']) {
        None => vec![whole],
        Some(at) => vec![format!("{}{}", normalized(&uri[..at]), &uri[at..]), whole],
    };
    for at in 0..readings.len() {
        if readings[at].chars().any(is_dropped) {
            let plain: String = readings[at].chars().filter(|c| !is_dropped(*c)).collect();
            readings.push(normalized(&plain));
        }
    }
    readings
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

/// A text without escapes, also where an escape is escaped itself. Goes through
/// the text once: whoever wrote it decides how often it is escaped.
fn unescaped(text: &str) -> String {
    let mut plain: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        plain.push(byte);
        // What was written out may end the escape that it stands in.
        while let Some(byte) = escape_at_end(&plain) {
            plain.truncate(plain.len() - 3);
            plain.push(byte);
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The byte that the last three stand for, if they are an escape.
fn escape_at_end(bytes: &[u8]) -> Option<u8> {
    let [.., b'%', high, low] = bytes else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
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

    #[test]
    fn what_a_reader_of_uris_would_drop_is_no_uri() {
        let controls = (0..0x20_u32).chain([0x7f, 0x80, 0x85, 0x9f, 0x2028, 0x2029]);
        for c in controls.filter_map(char::from_u32) {
            for uri in [
                format!("{c}file:///srv/x"),
                format!("file:///s{c}rv/x"),
                format!("fi{c}le:///srv/x"),
                format!("file:///srv/x{c}"),
                format!("file:///pub/.{c}./srv/x"),
            ] {
                assert!(defect(&uri).is_some(), "{uri:?}");
            }
        }
        for uri in [" file:///srv/x", "file:///srv/x ", "\u{feff}file:///srv/x", "\u{a0}file:///"] {
            assert!(defect(uri).is_some(), "{uri:?}");
        }
        for uri in
            ["file:///srv/x", "file:///my notes.txt", "memo:insights", "file:///a%0Ab", "é://ü"]
        {
            assert_eq!(defect(uri), None, "{uri:?}");
        }
        assert!(defect(&"a".repeat(LONGEST + 1)).is_some());
        assert_eq!(defect(&"ü".repeat(LONGEST)), None);
    }

    #[test]
    fn escapes_within_escapes_are_read_in_one_go() {
        assert_eq!(unescaped("%2%35%32%35%37%33"), "s");
        assert_eq!(unescaped("%C3%A9 100% %zz %"), "é 100% %zz %");
        let deep = format!("%{}73", "25".repeat(500_000));
        assert_eq!(unescaped(&deep), "s");
    }

    fn escape(c: char) -> String {
        c.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect()
    }

    proptest! {
        /// Whatever is put into a URI, either it is not taken at all, or one of its
        /// readings is what a server makes of it that drops it.
        #[test]
        fn no_character_that_is_put_in_hides_a_place(
            at in 0..23_usize, c in prop_oneof![0..0x20_u32, 0x7f..0xa0_u32], escaped: bool,
        ) {
            let place = "file:///srv/secret.txt";
            let c = char::from_u32(c).unwrap();
            let written = if escaped { escape(c) } else { c.to_string() };
            let uri = format!("{}{written}{}", &place[..at], &place[at..]);
            prop_assert_eq!(defect(&uri).is_some(), !escaped, "{:?}", uri);
            let found = readings(&uri).iter().any(|reading| reading == place);
            prop_assert!(found, "{:?} is read as {:?}", uri, readings(&uri));
        }

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
