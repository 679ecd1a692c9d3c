//! How long what a caller names may be.

/// The longest name, id, path or query, in characters.
pub(crate) const LONGEST: usize = 4_096;

/// What is wrong with a text that is too long for a name.
pub(crate) fn too_long(member: &str, text: &str) -> Option<String> {
    // A character has at least one byte.
    let is_long = LONGEST < text.len() && LONGEST < text.chars().count();
    is_long.then(|| format!("`{member}` is too long: it has at most {LONGEST} characters"))
}
