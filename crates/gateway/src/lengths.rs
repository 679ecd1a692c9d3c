//! The length limit of names, ids, paths and queries that callers send.

/// The longest name, id, path or query, in characters.
pub(crate) const MAX_NAME_CHARS: usize = 4_096;

/// Returns the error message for the argument `member` if its value is too long.
pub(crate) fn too_long(member: &str, text: &str) -> Option<String> {
    // A character has at least one byte.
    let is_long = MAX_NAME_CHARS < text.len() && MAX_NAME_CHARS < text.chars().count();
    is_long.then(|| format!("`{member}` is too long: it has at most {MAX_NAME_CHARS} characters"))
}
