//! The places that a path may lead to.

use std::collections::BTreeSet;

/// How long the forms of a path before it is unescaped may be together, in bytes. A path
/// that only its last slash makes two of may be as long as any URI.
const MAX_LENGTH_OF_FORMS: usize = 12 * 1024;

/// How the `.` and `..` of a path are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walk {
    /// An empty segment is none.
    FileSystem,
    /// An empty segment is one, which `..` takes away.
    Url,
    /// As [`Walk::Url`], where `%2e` is a dot too.
    Browser,
}

/// A path without empty segments, `.` and `..`.
pub(super) fn plain(path: &str) -> String {
    let walked = walked(path, Walk::FileSystem);
    let is_open = path.ends_with('/') && !walked.is_empty() && !walked.ends_with('/');
    if is_open { walked + "/" } else { walked }
}

/// The places that a path may lead to, without a slash at the end.
///
/// On the way to a file a path passes several readers, and each may do one of these things
/// or not: resolve its dots, drop what follows `;` in a segment, unescape it, once or to
/// the end, resolve the dots that were escaped, take a backslash for a slash. A file system
/// comes last.
///
/// `None` for a long path that is full of what they differ about: to read it in all ways
/// would take tens of milliseconds.
pub(super) fn places(raw: &str) -> Option<Vec<String>> {
    let walks = [Walk::FileSystem, Walk::Url, Walk::Browser];
    let forms = BTreeSet::from([raw.to_owned()]);
    let forms = branch(forms, |form| walks.map(|walk| walked(form, walk)).into());
    let forms = branch(forms, |form| vec![without_parameters(form)]);
    if 2 < forms.len() && MAX_LENGTH_OF_FORMS < forms.iter().map(String::len).sum() {
        return None;
    }
    // What was written does not stay: whoever opens a file unescapes its address.
    let forms: BTreeSet<String> =
        forms.iter().flat_map(|form| [unescaped_once(form), unescaped(form)]).collect();
    let forms = branch(forms, |form| vec![walked(form, Walk::Url)]);
    let forms = branch(forms, |form| vec![form.replace('\\', "/")]);
    let places = forms.iter().map(|form| walked(form, Walk::FileSystem));
    let places: BTreeSet<String> = places.map(|place| place.trim_end_matches('/').into()).collect();
    Some(places.into_iter().collect())
}

/// Every form, and what may be made of each.
fn branch(forms: BTreeSet<String>, read: impl Fn(&str) -> Vec<String>) -> BTreeSet<String> {
    let made: Vec<String> = forms.iter().flat_map(|form| read(form)).collect();
    forms.into_iter().chain(made).collect()
}

fn walked(path: &str, walk: Walk) -> String {
    let (start, rest) = path.strip_prefix('/').map_or(("", path), |rest| ("/", rest));
    let mut levels: Vec<&str> = Vec::new();
    for level in rest.split('/') {
        match (dots(level, walk), level) {
            (Some(2), _) => drop(levels.pop()),
            (Some(_), _) => {}
            (None, "") if walk == Walk::FileSystem => {}
            (None, level) => levels.push(level),
        }
    }
    format!("{start}{}", levels.join("/"))
}

/// The number of dots that a segment is, where it is one or two.
fn dots(level: &str, walk: Walk) -> Option<usize> {
    let mut rest = level;
    let mut dots = 0;
    while !rest.is_empty() {
        let escaped = rest.get(..3).filter(|start| start.eq_ignore_ascii_case("%2e"));
        rest = match (rest.strip_prefix('.'), escaped) {
            (Some(rest), _) => rest,
            (None, Some(_)) if walk == Walk::Browser => &rest[3..],
            (None, _) => return None,
        };
        dots += 1;
    }
    (1..=2).contains(&dots).then_some(dots)
}

fn without_parameters(path: &str) -> String {
    let levels = path.split('/').map(|level| level.split(';').next().unwrap_or_default());
    levels.collect::<Vec<_>>().join("/")
}

/// Replaces percent escapes, also those that are escaped again, in one pass over the
/// text.
pub(super) fn unescaped(text: &str) -> String {
    let mut plain: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        plain.push(byte);
        // The byte just decoded may complete an outer escape.
        while let Some(byte) = escape_at_end(&plain) {
            plain.truncate(plain.len() - 3);
            plain.push(byte);
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Replaces percent escapes, and leaves those that come out of it.
pub(super) fn unescaped_once(text: &str) -> String {
    let mut plain: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, behind @ ..] = rest {
        let escaped = rest.get(..3).and_then(escape_at_end);
        plain.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The byte that the last three bytes encode, if they are an escape.
fn escape_at_end(bytes: &[u8]) -> Option<u8> {
    let [.., b'%', high, low] = bytes else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}
