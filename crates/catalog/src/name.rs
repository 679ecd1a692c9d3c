//! Names in the namespace tree: which are legal, which are the same, and which alias
//! replaces one that is not legal.
//!
//! [`canonical`] is the only place that decides whether two spellings are the
//! same name.

/// The form in which names are compared: no `_` and no `-`, ASCII lower case.
///
/// The hyphen cannot occur in a legal name, so dropping it costs nothing and
/// forgives a caller who writes `order-mgmt`.
pub fn canonical(text: &str) -> String {
    let mut canonical = String::with_capacity(text.len());
    canonical.extend(folded(text));
    canonical
}

/// Whether two spellings are the same name.
pub fn same(left: &str, right: &str) -> bool {
    folded(left).eq(folded(right))
}

fn folded(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase())
}

/// The form in which names of upstreams and tools are compared: the same for the original
/// name with its illegal characters and for its [alias].
pub fn folded_name(text: &str) -> String {
    canonical(&alias(text))
}

/// Whether two texts name the same upstream or tool: in any spelling, by the original
/// name or by the alias.
pub fn means(left: &str, right: &str) -> bool {
    left == right || folded_name(left) == folded_name(right)
}

/// The most namespace levels, the label included. The levels beyond it become part of the
/// function's name.
pub const LEVELS: usize = 3;

/// The place of a tool of the upstream `label` in the namespace tree: the levels below
/// the label, and the function's name.
///
/// A first level that repeats the label is left out.
pub fn place(label: &str, tool: &str) -> (Vec<String>, String) {
    let mut levels: Vec<String> =
        tool.split('.').filter(|level| !level.is_empty()).map(alias).collect();
    let Some(last) = levels.pop() else { return (Vec::new(), alias(tool)) };
    if levels.first().is_some_and(|first| same(first, label)) {
        levels.remove(0);
    }
    let spill = levels.split_off(levels.len().min(LEVELS - 1));
    let name = spill.into_iter().chain([last]).collect::<Vec<_>>().join("_");
    (levels, name)
}

/// Whether `text` is legal as one label: ASCII letters, digits and `_`,
/// with at least one letter or digit.
pub fn is_legal(text: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    text.bytes().all(legal) && text.bytes().any(|b| b.is_ascii_alphanumeric())
}

/// `text` itself when it is legal, otherwise a legal name close to it: every
/// other character becomes `_`; a name without any letter left gets a tag.
pub fn alias(text: &str) -> String {
    if is_legal(text) {
        return text.to_owned();
    }
    let mapped: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let trimmed = mapped.trim_matches('_');
    if trimmed.is_empty() { format!("x{}", tag(text, 6)) } else { trimmed.to_owned() }
}

/// A few hexadecimal digits that depend on `text` alone, so a name that needs
/// them is the same in every run and in every order of arrival.
pub fn tag(text: &str, digits: usize) -> String {
    // FNV-1a: stable by definition, unlike the standard library's hasher.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")[..digits.min(16)].to_owned()
}

/// The canonical segments of a dotted path; `None` when a segment is empty.
/// The empty path is the root.
pub fn path(text: &str) -> Option<Vec<String>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let segments: Vec<String> = text.split('.').map(canonical).collect();
    segments.iter().all(|segment| !segment.is_empty()).then_some(segments)
}

#[cfg(test)]
mod tests;
