//! Text.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use native::{Fault, Text, tool};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256, Sha512};
use tool::hex;

/// How long a text is.
#[derive(Debug, Serialize, JsonSchema)]
struct Counts {
    characters: usize,
    words: usize,
    lines: usize,
    bytes: usize,
}

/// One place where a pattern matches.
#[derive(Debug, Serialize, JsonSchema)]
struct Match {
    /// The line, counted from one.
    line: usize,
    text: String,
    /// What the groups of the pattern matched.
    groups: Vec<Option<String>>,
}

/// What a search found.
#[derive(Debug, Serialize, JsonSchema)]
struct Matches {
    matches: Vec<Match>,
    /// How many there are in all.
    total: usize,
}

/// A way of writing names.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Case {
    Upper,
    Lower,
    Title,
    Snake,
    Kebab,
    Camel,
    Pascal,
}

/// A way of writing bytes as text.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    Base64,
    Base64url,
    Hex,
    Url,
}

/// A way of taking a digest.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Algorithm {
    Sha256,
    Sha512,
}

/// What to do with lines.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Step {
    Trim,
    Sort,
    Unique,
    Reverse,
    Number,
    /// Drop empty lines.
    Compact,
}

/// Counts characters, words, lines and bytes.
#[tool(read_only, idempotent, category = "text")]
fn count(text: String) -> Counts {
    Counts {
        characters: text.chars().count(),
        words: text.split_whitespace().count(),
        lines: text.lines().count(),
        bytes: text.len(),
    }
}

/// Finds every match of a regular expression, with its line and groups.
#[tool(read_only, idempotent, category = "text", tags = ["grep", "search"])]
fn find(
    text: String,
    /// A regular expression (RE2 syntax); `(?i)` ignores case.
    pattern: String,
    /// How many matches to return at most.
    #[schemars(range(min = 1, max = 1000))]
    #[default(100u32)]
    limit: u32,
) -> Result<Matches, Fault> {
    let pattern = regex(&pattern)?;
    let mut found = Matches { matches: Vec::new(), total: 0 };
    for (at, line) in text.lines().enumerate() {
        for captures in pattern.captures_iter(line) {
            found.total += 1;
            if found.matches.len() < limit as usize {
                let groups = captures.iter().skip(1);
                found.matches.push(Match {
                    line: at + 1,
                    text: captures[0].to_owned(),
                    groups: groups.map(|group| Some(group?.as_str().to_owned())).collect(),
                });
            }
        }
    }
    Ok(found)
}

/// Replaces every match of a regular expression.
#[tool(read_only, idempotent, category = "text")]
fn replace(
    text: String,
    /// A regular expression (RE2 syntax).
    pattern: String,
    /// The replacement; `$1` and `${name}` stand for groups.
    with: String,
) -> Result<Text, Fault> {
    Ok(Text(regex(&pattern)?.replace_all(&text, with).into_owned()))
}

/// Sorts, trims, numbers or otherwise rearranges the lines of a text.
#[tool(read_only, idempotent, category = "text")]
fn lines(
    text: String,
    /// What to do, one step after the other.
    steps: Vec<Step>,
) -> Text {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for step in steps {
        match step {
            Step::Trim => lines.iter_mut().for_each(|line| *line = line.trim().to_owned()),
            Step::Sort => lines.sort(),
            Step::Unique => {
                let mut seen = std::collections::HashSet::new();
                lines.retain(|line| seen.insert(line.clone()));
            }
            Step::Reverse => lines.reverse(),
            Step::Number => {
                let numbered = lines.iter().enumerate();
                lines = numbered.map(|(at, line)| format!("{}\t{line}", at + 1)).collect();
            }
            Step::Compact => lines.retain(|line| !line.trim().is_empty()),
        }
    }
    Text(lines.join("\n"))
}

/// Writes text in another case: upper, lower, title, snake, kebab, camel, pascal.
#[tool(read_only, idempotent, category = "text")]
fn case(text: String, to: Case) -> Text {
    Text(match to {
        Case::Upper => text.to_uppercase(),
        Case::Lower => text.to_lowercase(),
        Case::Title => words(&text).iter().map(|word| capital(word)).collect::<Vec<_>>().join(" "),
        Case::Snake => words(&text).join("_"),
        Case::Kebab => words(&text).join("-"),
        Case::Pascal => words(&text).iter().map(|word| capital(word)).collect(),
        Case::Camel => {
            let words = words(&text);
            let camel = words.iter().enumerate();
            camel.map(|(at, word)| if at == 0 { word.clone() } else { capital(word) }).collect()
        }
    })
}

/// Encodes text as base64, base64url, hex or a URL component.
#[tool(read_only, idempotent, category = "text")]
fn encode(text: String, encoding: Encoding) -> Text {
    Text(match encoding {
        Encoding::Base64 => STANDARD.encode(text),
        Encoding::Base64url => URL_SAFE_NO_PAD.encode(text),
        Encoding::Hex => hex::encode(text.as_bytes()),
        Encoding::Url => {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
            let write = |b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
            text.bytes().map(write).collect()
        }
    })
}

/// Decodes text from base64, base64url, hex or a URL component.
#[tool(read_only, idempotent, category = "text")]
fn decode(text: String, encoding: Encoding) -> Result<Text, Fault> {
    let text = text.trim();
    let bytes = match encoding {
        Encoding::Base64 => STANDARD.decode(text).ok(),
        Encoding::Base64url => URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok(),
        Encoding::Hex => hex::decode(text),
        Encoding::Url => unurl(text),
    };
    let bytes = bytes.ok_or_else(|| {
        Fault::new("InvalidEncoding", "the text is not in this encoding".to_owned())
    })?;
    String::from_utf8(bytes)
        .map(Text)
        .map_err(|_| Fault::new("NotText", "what it stands for is not UTF-8 text".to_owned()))
}

/// Takes the SHA-256 or SHA-512 digest of a text, in hex.
#[tool(read_only, idempotent, category = "text", tags = ["checksum", "sha"])]
fn hash(text: String, #[default(Algorithm::Sha256)] algorithm: Algorithm) -> Text {
    Text(match algorithm {
        Algorithm::Sha256 => hex::encode(&Sha256::digest(text)),
        Algorithm::Sha512 => hex::encode(&Sha512::digest(text)),
    })
}

fn regex(pattern: &str) -> Result<Regex, Fault> {
    let built = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build();
    built.map_err(|error| Fault::new("InvalidPattern", error.to_string()))
}

/// The words of a text, lower case; a capital after a small letter starts one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in text.chars() {
        let starts = !before.is_alphanumeric() || before.is_lowercase() && letter.is_uppercase();
        if letter.is_alphanumeric() {
            if starts {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(letter.to_lowercase());
            }
        }
        before = letter;
    }
    words
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn unurl(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                rest = &rest[2..];
                u8::from_str_radix(digits, 16).ok()?
            }
            plain => plain,
        });
    }
    Some(bytes)
}
