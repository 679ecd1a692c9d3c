//! Parses the paths of the tree.

use std::fmt;
use std::str::FromStr;

/// A well-formed path. It need not exist in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    segments: Vec<String>,
    all: bool,
}

/// Why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    #[error("a path starts with `/`, as in `/namespace/cluster`")]
    Unrooted,
    #[error("a path does not end with `/`")]
    Trailing,
    #[error("a path has no empty segment")]
    Empty,
    #[error("`*` may only be the last segment")]
    Star,
    #[error("`{0}` is no namespace: lower-case letters, digits, `_` and `-`, a letter first")]
    Root(String),
    #[error("`{0}` is no segment: lower-case letters, digits, `_` and `-`, no dash first")]
    Segment(String),
}

impl Path {
    /// The segments, without the `*` at the end if there was one.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// Whether the path ends in `*`, which asks for everything below.
    pub fn all(&self) -> bool {
        self.all
    }

    pub fn depth(&self) -> usize {
        self.segments.len()
    }
}

impl FromStr for Path {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Path, InvalidPath> {
        let rest = text.strip_prefix('/').ok_or(InvalidPath::Unrooted)?;
        if rest.is_empty() {
            return Ok(Path { segments: Vec::new(), all: false });
        }
        if rest.ends_with('/') {
            return Err(InvalidPath::Trailing);
        }
        let mut segments: Vec<&str> = rest.split('/').collect();
        let all = segments.last() == Some(&"*");
        if all {
            segments.pop();
        }
        for (at, segment) in segments.iter().enumerate() {
            legal(at, segment)?;
        }
        Ok(Path { segments: segments.into_iter().map(str::to_owned).collect(), all })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            write!(f, "/{segment}")?;
        }
        match (self.all, self.segments.is_empty()) {
            (true, _) => f.write_str("/*"),
            (false, true) => f.write_str("/"),
            (false, false) => Ok(()),
        }
    }
}

fn legal(at: usize, segment: &str) -> Result<(), InvalidPath> {
    let first = segment.bytes().next().ok_or(InvalidPath::Empty)?;
    if segment == "*" {
        return Err(InvalidPath::Star);
    }
    let rest = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    let body = segment.len() <= 64 && segment.bytes().all(rest);
    match at {
        0 if !(body && first.is_ascii_lowercase()) => Err(InvalidPath::Root(segment.to_owned())),
        _ if !(body && first.is_ascii_alphanumeric()) => {
            Err(InvalidPath::Segment(segment.to_owned()))
        }
        _ => Ok(()),
    }
}
