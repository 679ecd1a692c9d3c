//! Compares URIs with the patterns of an operator, by the place that they lead to.
//!
//! A file server treats `/pub/../srv`, `//srv`, `/%73rv` and `/srv#` as `/srv`, and
//! `https://u@host:443/` is `https://host/`. Servers do not agree about all of it, so a URI
//! has several [`Readings`]. What forbids a place has to match one of them; what allows
//! it, all.

mod canonical;
mod path;
mod pattern;
mod readings;

pub(crate) use pattern::UriPattern;
pub use readings::Readings;

/// The longest URI that is accepted from a caller, in characters.
pub const MAX_CHARS: usize = 8_192;

/// Why a URI is not accepted from a caller; `None` where nothing is wrong with it.
///
/// Some URI parsers of servers drop tabs and line breaks anywhere, and spaces and
/// control characters at both ends. To them `file:///s<TAB>rv` is `/srv`, which a
/// rule about `/srv` would not match.
pub fn defect(uri: &str) -> Option<String> {
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_whitespace() || c == '\u{feff}');
    if MAX_CHARS < uri.len() && MAX_CHARS < uri.chars().count() {
        return Some(format!("is too long: a URI has at most {MAX_CHARS} characters"));
    }
    if let Some(found) = uri.chars().find(|c| is_dropped(*c)) {
        let code = u32::from(found);
        return Some(format!("has the control character U+{code:04X} in it: leave it out"));
    }
    let has_edge = is_edge(uri.chars().next()) || is_edge(uri.chars().next_back());
    has_edge.then(|| "begins or ends with a space: leave it out".to_owned())
}

/// Whether some URI parsers drop this character or end the line there.
fn is_dropped(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests;
