//! The built-in tools for text.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use native::{Text, ToolError, tool};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256, Sha512};
use tool::hex;

use super::bounded::{Bounded, MAX_OUTPUT_BYTES, too_long};

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
) -> Result<Matches, ToolError> {
    let pattern = regex(&pattern)?;
    let mut found = Matches { matches: Vec::new(), total: 0 };
    let mut left = MAX_OUTPUT_BYTES;
    for (at, line) in text.lines().enumerate() {
        for captures in pattern.captures_iter(line) {
            found.total += 1;
            if found.matches.len() < limit as usize {
                let n_bytes =
                    |group: Option<regex::Match<'_>>| group.map_or(4, |group| group.len());
                let size = captures.iter().map(|group| n_bytes(group) + 4).sum();
                left = left.checked_sub(size).ok_or_else(too_long)?;
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
) -> Result<Text, ToolError> {
    let (pattern, pieces) = (regex(&pattern)?, split_replacement(&with));
    let (mut replaced, mut one, mut done) = (Bounded::default(), String::new(), 0);
    for captures in pattern.captures_iter(&text) {
        let Some(whole) = captures.get(0) else { continue };
        replaced.push(&text[done..whole.start()])?;
        for piece in &pieces {
            one.clear();
            captures.expand(piece, &mut one);
            replaced.push(&one)?;
        }
        done = whole.end();
    }
    replaced.push(&text[done..])?;
    Ok(Text(replaced.into_text()))
}

/// Sorts, trims, numbers or otherwise rearranges the lines of a text.
#[tool(read_only, idempotent, category = "text")]
fn lines(
    text: String,
    /// What to do, one step after the other.
    #[schemars(length(max = 32))]
    steps: Vec<Step>,
) -> Result<Text, ToolError> {
    check_size(text.len())?;
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
                // The number, the tab, and the end of the line.
                let size = |(at, line): (usize, &String)| digits(at + 1) + line.len() + 2;
                check_size(lines.iter().enumerate().map(size).sum())?;
                let numbered = lines.iter().enumerate();
                lines = numbered.map(|(at, line)| format!("{}\t{line}", at + 1)).collect();
            }
            Step::Compact => lines.retain(|line| !line.trim().is_empty()),
        }
    }
    Ok(Text(lines.join("\n")))
}

/// Writes text in another case: upper, lower, title, snake, kebab, camel, pascal.
#[tool(read_only, idempotent, category = "text")]
fn case(text: String, to: Case) -> Text {
    Text(match to {
        Case::Upper => text.to_uppercase(),
        Case::Lower => text.to_lowercase(),
        Case::Title => words(&text, " ", |_| true),
        Case::Snake => words(&text, "_", |_| false),
        Case::Kebab => words(&text, "-", |_| false),
        Case::Pascal => words(&text, "", |_| true),
        Case::Camel => words(&text, "", |at| at != 0),
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
fn decode(text: String, encoding: Encoding) -> Result<Text, ToolError> {
    let text = text.trim();
    let bytes = match encoding {
        Encoding::Base64 => STANDARD.decode(text).ok(),
        Encoding::Base64url => URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok(),
        Encoding::Hex => hex::decode(text),
        Encoding::Url => decode_url(text),
    };
    let bytes = bytes.ok_or_else(|| {
        ToolError::new("InvalidEncoding", "the text is not in this encoding".to_owned())
    })?;
    String::from_utf8(bytes)
        .map(Text)
        .map_err(|_| ToolError::new("NotText", "what it stands for is not UTF-8 text".to_owned()))
}

/// Takes the SHA-256 or SHA-512 digest of a text, in hex.
#[tool(read_only, idempotent, category = "text", tags = ["checksum", "sha"])]
fn hash(text: String, #[default(Algorithm::Sha256)] algorithm: Algorithm) -> Text {
    Text(match algorithm {
        Algorithm::Sha256 => hex::encode(&Sha256::digest(text)),
        Algorithm::Sha512 => hex::encode(&Sha512::digest(text)),
    })
}

fn regex(pattern: &str) -> Result<Regex, ToolError> {
    let built = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build();
    built.map_err(|error| ToolError::new("InvalidPattern", error.to_string()))
}

/// Splits a replacement into pieces with at most one group each, so that no piece
/// expands to more than the text.
fn split_replacement(with: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = with;
    while !rest.is_empty() {
        let reference = match rest.as_bytes() {
            [b'$', b'$', ..] => 2,
            [b'$', b'{', ..] => rest.find('}').map_or(2, |end| end + 1),
            [b'$', ..] => 1,
            [_, ..] | [] => 0,
        };
        let end = rest[reference..].find('$').map_or(rest.len(), |at| reference + at);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Fails if a result of so many bytes is too long.
fn check_size(n_bytes: usize) -> Result<(), ToolError> {
    if MAX_OUTPUT_BYTES < n_bytes { Err(too_long()) } else { Ok(()) }
}

/// Returns how many digits a number has.
fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |power| power as usize + 1)
}

/// Joins the words of a text by `glue`, in lower case except for the first letters of
/// the words whose index is `capital`. A capital after a small letter starts a word.
fn words(text: &str, glue: &str, capital: impl Fn(usize) -> bool) -> String {
    let (mut written, mut n_words, mut before) = (String::new(), 0, ' ');
    for letter in text.chars() {
        let starts = !before.is_alphanumeric() || before.is_lowercase() && letter.is_uppercase();
        if letter.is_alphanumeric() && starts {
            written += if n_words == 0 { "" } else { glue };
            n_words += 1;
        }
        if letter.is_alphanumeric() && starts && capital(n_words - 1) {
            written.extend(letter.to_uppercase());
        } else if letter.is_alphanumeric() {
            written.extend(letter.to_lowercase());
        }
        before = letter;
    }
    written
}

fn decode_url(text: &str) -> Option<Vec<u8>> {
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
