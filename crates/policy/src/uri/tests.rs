use proptest::prelude::*;

use super::canonical::whole;
use super::path::unescaped;
use super::*;

fn denies(pattern: &str, uri: &str) -> bool {
    UriPattern::new(pattern).may_match(&Readings::new(uri))
}

fn allows(pattern: &str, uri: &str) -> bool {
    UriPattern::new(pattern).matches_exactly(&Readings::new(uri))
}

#[test]
fn one_place_is_written_in_one_way() {
    for uri in [
        "file:///srv/x",
        "FILE:///srv/x",
        "file://localhost/srv/x",
        "file:/srv/x",
        "file:srv/x",
        "file:////srv//x",
        "file:///pub/../srv/x",
        "file:///pub/%2e%2E/srv/x",
        "file:///pub/..%2fsrv/x",
        "file:///%73rv/x",
        "file:///%2573rv/./x",
        "file:///../srv/x",
    ] {
        assert_eq!(whole(uri), "file:///srv/x", "{uri}");
    }
    for uri in [
        "https://Host.org:443/a",
        "https://host.org.:/a",
        "https:host.org/a",
        "https:////HOST.org//a",
    ] {
        assert_eq!(whole(uri), "https://host.org/a", "{uri}");
    }
    assert_eq!(whole("file:///srv/*"), "file:///srv/*");
    assert_eq!(whole("https://Host.org/a/?q=1"), "https://host.org/a/?q=1");
    assert_eq!(whole("https://u:p@Host.org:8443/"), "https://u:p@host.org:8443/");
    assert_eq!(whole("https://BÜCHER.example/"), "https://xn--bcher-kva.example/");
    assert_eq!(whole("http://0x7f.1/"), "http://127.0.0.1/");
    assert_eq!(whole("MEMO:Insights"), "memo:Insights");
    assert_eq!(whole("memo://insights"), "memo://insights");
    assert_eq!(whole("note://12"), "note://12");
    assert_eq!(whole("100%"), "100%");
}

#[test]
fn what_forbids_fits_every_spelling_of_a_place() {
    for (pattern, uris) in [
        (
            "file:///home/*.key",
            &[
                "file:///home/id.key#",
                "file:///home/id.key?",
                "file:///home/id.key;",
                "file:///home/ID.KEY",
            ] as &[&str],
        ),
        (
            "file:///srv/secret",
            &[
                "file:///srv/secret#",
                "file:///srv/secret?",
                "file:///srv/secret?a=1",
                "file:///srv/secret/",
                "file:///srv/secret//",
                "file:///srv/secret/.",
                "file:///srv/secret%23",
                "file:///srv/secret%3fa",
                "file:///srv/secret#?/../../pub",
                "file:///pub?/../srv/secret",
                "file:///pub;/..;a/srv/secret;b=1",
                "file:///a/%2e%2e/../srv/../a/../srv/secret",
                "file://elsewhere/srv/secret",
                "file://%2e%2e/srv//../secret",
                "file:///srv/x///../../../secret",
                "file:///pub/a%5cb/../..%5csrv%5csecret",
                "file:///pub/a%252f../../srv/secret/../../../srv/secret",
                "file://srv/secret",
                "file:srv/secret",
                "file:\\\\\\srv\\secret",
                "/srv/secret",
                "/srv/secret?x",
            ],
        ),
        (
            "https://intern.example/*",
            &[
                "https://intern.example",
                "https://intern.example?x",
                "https://intern.example#",
                "https://intern.example:443/x",
                "https://intern.example:00443/x",
                "https://intern.example:/x",
                "https://intern.example:443../x",
                "https://a@intern.example/x",
                "https://u:p@intern.example:443/x",
                "https://evil.example%2f@intern.example/x",
                "https://evil.example\\@intern.example/x",
                "https://intern.example\\x",
                "https://evil.example#@intern.example/x",
                "https://INTERN.example./x",
                "https:intern.example/x",
                "https:\\\\intern.example/x",
                "https://ｉntern。example/x",
                "https://in\u{ad}tern.example/x",
                "https://intern%2eexample/x",
            ],
        ),
        ("https://intern.example:443/*", &["https://intern.example/x"]),
        (
            "https://intern.example:*/*",
            &["https://intern.example/x", "https://intern.example:81/x"],
        ),
        (
            "https://bücher.example/*",
            &["https://xn--bcher-kva.example/x", "https://BÜCHER.example/x"],
        ),
        ("https://xn--bcher-kva.example/*", &["https://bücher.example/x"]),
        ("https://*bü*/x", &["https://xn--bcher-kva.example/x"]),
        (
            "http://127.0.0.1/*",
            &["http://127.1/x", "http://2130706433/x", "http://0177.0.0.1:80/x"],
        ),
        ("http://[::1]/*", &["http://[0:0::1]:80/x"]),
        ("notes://alice@x/*", &["notes://alice@x/1?", "NOTES://alice@X/1/"]),
        ("https://intern*", &["https://intern.example/x"]),
    ] {
        for uri in uris {
            assert!(denies(pattern, uri), "{pattern} {uri}: {:?}", Readings::new(uri));
        }
    }
}

#[test]
fn what_forbids_one_place_does_not_forbid_another() {
    for (pattern, uri) in [
        ("file:///srv/secret", "file:///srv/secrets"),
        ("file:///srv/secret", "file:///srv/secret/x"),
        ("file:///srv/*", "file:///pub/x?y=/srv/z"),
        ("file:///home/*.key", "file:///home/id.key.pub"),
        ("file://host/*", "file:///srv/x"),
        ("https://intern.example/*", "https://intern.example.org/x"),
        ("https://intern.example/*", "https://intern.example:8443/x"),
        ("https://intern.example/*", "http://intern.example/x"),
        ("https://intern.example/*", "https://other.example/https://intern.example"),
        ("notes://alice@x/*", "notes://bob@x/1"),
        ("note://1*", "note://21"),
    ] {
        assert!(!denies(pattern, uri), "{pattern} {uri}");
    }
}

#[test]
fn what_allows_fits_only_where_every_reading_does() {
    for (pattern, uri, expected) in [
        ("file:///pub/*", "file:///pub/x", true),
        ("file:///pub/*", "file:///pub/x?a#b", true),
        ("file:///pub/*", "file:///pub/x?/../../srv/secret", false),
        ("file:///pub/*", "file:///srv/secret?/../../pub/x", false),
        ("file:///pub/*", "file:///PUB/x", false),
        ("file:///pub/*", "file:///pub/..\\%2570ub/x", false),
        ("file:///pub/*", "file:///pub/a%5cb/../..%5csrv", false),
        ("file:///pub/*", "file:///pub/100%25/a%20b", true),
        ("*.txt", "file:///srv/secret.key?.txt", false),
        ("*.txt", "file:///srv/secret.key#.txt", false),
        ("https://h/x?q=1", "https://h/x?q=1", true),
        ("https://h/x?q=1", "https://h/x?q=2", false),
        ("https://h/*", "https://h:443/x", true),
        ("https://h*", "https://h@evil.example/x", false),
        ("https://h/*", "https://h\\@evil.example/x", false),
        ("https://h/*", "https://evil.example\\@h/x", false),
        ("notes://alice@x/*", "notes://alice@x/1", true),
        ("notes://alice@x/*", "notes://bob@x/1", false),
        ("note://1*", "note://12", true),
        ("file://host/pub/*", "file://host/pub/x", true),
        ("file:///srv/", "file:///srv/", true),
        ("*", "file:///a\\..%2f;x@y?z#", true),
    ] {
        assert_eq!(allows(pattern, uri), expected, "{pattern} {uri}: {:?}", Readings::new(uri));
    }
}

#[test]
fn a_uri_with_too_many_readings_is_forbidden_and_never_allowed() {
    let path = "x;y\\z%0av/".repeat(300);
    let bomb = format!("https://a@b@bücher.example/{path}?x\\#y");
    let readings = Readings::new(&bomb);
    assert!(readings.is_unclear, "{}", readings.reduced.len());
    assert!(readings.reduced.len() <= 65);
    assert!(denies("file:///srv/*", &bomb) && !allows("*", &bomb));
}

#[test]
fn a_long_path_that_readers_differ_about_is_unclear_and_a_plain_one_is_not() {
    for piece in ["x;y%255c/%2e%2e//", "/a;b%252f//c/./"] {
        let uri = format!("https://h/{}", piece.repeat(8_000 / piece.len()));
        assert!(denies("file:///srv/*", &uri) && !allows("*", &uri), "{piece}");
    }
    for piece in ["a/", "a%20b/", "ü", "%C3%BC"] {
        let uri = format!("https://h/{}", piece.repeat(8_000 / piece.len()));
        assert!(allows("https://h/*", &uri) && !denies("file:///srv/*", &uri), "{piece}");
    }
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
    for uri in ["file:///srv/x", "file:///my notes.txt", "memo:insights", "file:///a%0Ab", "é://ü"]
    {
        assert_eq!(defect(uri), None, "{uri:?}");
    }
    assert!(defect(&"a".repeat(MAX_CHARS + 1)).is_some());
    assert_eq!(defect(&"ü".repeat(MAX_CHARS)), None);
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

/// The host and the path that a server finds in a URI that parses as RFC 3986 says, and
/// unescapes the path.
fn read_by_rfc(uri: &str) -> (String, String) {
    let rest = uri.split_once(':').map_or(uri, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let host = authority.rsplit('@').next().unwrap_or_default().split(':').next();
    (host.unwrap_or_default().to_lowercase(), resolved(&once_unescaped(path)))
}

/// The same for one that parses as browsers and Node do.
fn read_by_browsers(uri: &str) -> Option<(String, String)> {
    let url = url::Url::parse(uri).ok()?;
    Some((url.host_str().unwrap_or_default().to_owned(), resolved(&once_unescaped(url.path()))))
}

/// The path that a file system finds.
fn resolved(path: &str) -> String {
    let mut levels = Vec::new();
    for level in path.split('/').filter(|level| !matches!(*level, "" | ".")) {
        match level {
            ".." => drop(levels.pop()),
            level => levels.push(level),
        }
    }
    format!("/{}", levels.join("/"))
}

fn once_unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let hex = behind
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Pieces of which spellings of a place are made.
const PIECES: [&str; 44] = [
    "file:",
    "FILE:",
    "https:",
    "hTTps:",
    "/",
    "/",
    "//",
    "///",
    "\\",
    "%2f",
    "%5c",
    ".",
    "..",
    "/./",
    "/../",
    "%2e%2e",
    "srv",
    "%73rv",
    "s%72v",
    "%2573rv",
    "secret",
    "secre%74",
    "intern.example",
    "INTERN.example",
    "intern%2eexample",
    "ｉntern.example",
    "localhost",
    "pub",
    "pub/..",
    "?",
    "#",
    "?a=1",
    "%3f",
    "%23",
    ":443",
    ":",
    ":80",
    "u@",
    "u:p@",
    "@",
    ";",
    ";a=b",
    "intern.example.",
    "x",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// Whatever a URI is made of, a server that finds a forbidden place in it is not asked.
    #[test]
    fn no_reader_finds_a_forbidden_place(
        scheme in 0..4_usize,
        slashes in prop::sample::select(vec!["", "/", "//", "//", "//", "///", "\\\\", "/\\"]),
        pieces in prop::collection::vec(0..PIECES.len(), 1..9),
        aim in prop::sample::select(vec!["", "/srv/secret", "intern.example/x", "@intern.example/"]),
        at in 0..9_usize,
    ) {
        let mut pieces: Vec<&str> = pieces.into_iter().map(|at| PIECES[at]).collect();
        pieces.insert(at.min(pieces.len()), aim);
        let uri = format!("{}{slashes}{}", PIECES[scheme], pieces.concat());
        let is_file = scheme < 2;
        for (host, path) in std::iter::once(read_by_rfc(&uri)).chain(read_by_browsers(&uri)) {
            if is_file && path == "/srv/secret" {
                prop_assert!(denies("file:///srv/secret", &uri), "{} {:?}", uri, Readings::new(&uri));
            }
            if is_file && path.starts_with("/srv/") {
                prop_assert!(denies("file:///srv/*", &uri), "{} {:?}", uri, Readings::new(&uri));
            }
            // Another port is another server.
            let has_port = uri.contains(":80") || url::Url::parse(&uri).is_ok_and(|url| url.port().is_some());
            if !is_file && !has_port && host == "intern.example" {
                prop_assert!(denies("https://intern.example/*", &uri), "{} {:?}", uri, Readings::new(&uri));
            }
        }
        // What is allowed is not forbidden by the same words.
        for pattern in ["file:///srv/*", "https://intern.example/*"] {
            prop_assert!(!allows(pattern, &uri) || denies(pattern, &uri), "{}", uri);
        }
    }

    /// What is allowed leads every reader to an allowed place.
    #[test]
    fn no_reader_leaves_an_allowed_place(
        pieces in prop::collection::vec(0..PIECES.len(), 0..9), is_file: bool,
    ) {
        let rest: String = pieces.into_iter().map(|at| PIECES[at]).collect();
        let start = if is_file { "file:///srv/" } else { "https://intern.example/" };
        let uri = format!("{start}{rest}");
        if allows(&format!("{start}*"), &uri) {
            for (host, path) in std::iter::once(read_by_rfc(&uri)).chain(read_by_browsers(&uri)) {
                match is_file {
                    true => prop_assert!(format!("{path}/").starts_with("/srv/"), "{} {}", uri, path),
                    false => prop_assert_eq!(host, "intern.example", "{}", uri),
                }
            }
        }
    }

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
        prop_assert!(denies(place, &uri), "{:?} is read as {:?}", uri, Readings::new(&uri));
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
        prop_assert_eq!(whole(&written), "file:///srv/secret.txt", "{}", written);
    }

    #[test]
    fn what_is_canonical_stays(uri in "[a-z]{1,5}:[a-z/.%0-9*?@:;]{0,20}") {
        let once = whole(&uri);
        prop_assert_eq!(whole(&once), once);
    }
}
