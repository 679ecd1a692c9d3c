//! Hostile manifests: whatever comes, reading it ends, and what is believed is
//! what a manifest may be. The mutations follow from a fixed seed.

#![expect(clippy::unwrap_used, reason = "what fails here is a failed test")]

use web::manifest::sign::{PublicKey, SecretKey, verify};
use web::manifest::{MAX_BYTES, Manifest, parse, yaml};

const SEED: &str = "cash_version: \"0.1.1\"\nlast_updated: 2026-11-15\npublisher: Shop\n\
    endpoint: https://shop.example/mcp\ncache_ttl: 600\n\
    authentication: {scheme: bearer, docs_url: \"https://shop.example/docs\"}\n\
    namespaces:\n  - suggested: orders\n    description: Orders.\n\
    skills:\n  - name: refund\n    description: Refund.\n";

/// What breaks parsers.
const HOSTILE: &[&str] = &[
    "&a ",
    "*a",
    "<<: *a",
    "!!binary ",
    "!!python/object:os.system ",
    "---\n",
    "...\n",
    "%YAML 9\n",
    "? ",
    "| \n",
    ">-\n",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "\t",
    "\u{0}",
    "\u{feff}",
    "\u{202e}",
    "\u{1f4a3}",
    "\r",
    "~",
    "null",
    ".inf",
    ".nan",
    "-0",
    "0x",
    "1e999",
    "99999999999999999999",
    "2026-13-45",
    "stdio:rm -rf /",
    "http://169.254.169.254/",
    "file:///etc/passwd",
    "#",
    ": ",
    "- ",
    "\n",
    "  ",
    "suggested",
    "endpoint",
    "signature: {key: a, algorithm: ed25519, value: b}\n",
];

/// A small generator: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }
}

fn mutate(text: &str, numbers: &mut Numbers) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=numbers.below(6) {
        let at = numbers.below(bytes.len() + 1);
        match numbers.below(6) {
            0 => {
                let piece = HOSTILE[numbers.below(HOSTILE.len())];
                bytes.splice(at..at, piece.bytes());
            }
            1 => {
                let end = (at + numbers.below(20)).min(bytes.len());
                drop(bytes.drain(at..end));
            }
            2 => {
                let end = (at + numbers.below(200)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                let times = numbers.below(20);
                let many: Vec<u8> = std::iter::repeat_n(copy, times).flatten().collect();
                bytes.splice(at..at, many);
            }
            3 if at < bytes.len() => bytes[at] = u8::try_from(numbers.below(256)).unwrap(),
            4 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
            _ => {
                let deep = "[".repeat(numbers.below(300));
                bytes.splice(at..at, deep.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What must hold of everything that is believed.
fn check(text: &str) -> bool {
    let Ok((manifest, _)) = parse(text) else { return false };
    assert!(manifest.endpoint.starts_with("http"), "{text}");
    assert!(!manifest.publisher.is_empty() && !manifest.cash_version.is_empty());
    assert!((1..=1000).contains(&manifest.namespaces.len()) && manifest.skills.len() <= 1000);
    for entry in &manifest.namespaces {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        assert!(entry.suggested.chars().all(legal), "{text}");
        assert!(!entry.description.contains('\n'), "{text}");
    }
    for written in [manifest.to_yaml(), manifest.to_json()] {
        let again = parse(&written).unwrap_or_else(|problems| panic!("{problems:?}: {written}"));
        assert_eq!(again.0, Manifest { whole: None, ..manifest.clone() }, "{written}");
    }
    // The document as it was written is written again without a loss.
    let written = yaml(&manifest.document());
    let again = parse(&written).unwrap_or_else(|problems| panic!("{problems:?}: {written}"));
    assert_eq!(again.0, manifest, "{written}");
    let pin: PublicKey = SecretKey::from_seed([9; 32]).public();
    assert!(verify(&manifest, &[pin]).is_err(), "nobody signed this");
    true
}

#[test]
fn whatever_is_done_to_a_manifest_reading_it_ends() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let json = parse(SEED).unwrap().0.to_json();
    let (mut n_believed, mut corpus) = (0, vec![SEED.to_owned(), json]);
    for _ in 0..20_000 {
        let from = numbers.below(corpus.len());
        let text = mutate(&corpus[from], &mut numbers);
        if check(&text) {
            n_believed += 1;
            // What is still a manifest is worth changing further.
            if corpus.len() < 200 && text.len() < 4_000 {
                corpus.push(text);
            }
        }
    }
    assert!(100 < n_believed, "the mutations are too wild to test anything: {n_believed}");
}

#[test]
fn bombs_of_every_kind_are_refused_before_they_go_off() {
    let anchors: String =
        (0..30).map(|n| format!("a{}: &a{} [*a{n},*a{n},*a{n}]\n", n + 1, n + 1)).collect();
    for bomb in [
        format!("a0: &a0 x\n{anchors}{SEED}"),
        format!("{SEED}more: {}", "{a: ".repeat(10_000)),
        format!("{SEED}{}", "k: v\n".repeat(60_000)),
        format!("{SEED}more: \"{}\"", "x".repeat(MAX_BYTES)),
        format!("{}: 1\n{SEED}", "k".repeat(MAX_BYTES)),
        SEED.replace("- suggested", &"- suggested: a\n    description: b\n  ".repeat(2_000)),
        format!("<<: {{publisher: x}}\n{}", "- ".repeat(50_000)),
    ] {
        assert!(parse(&bomb).is_err(), "{}", &bomb[..80]);
    }
}
