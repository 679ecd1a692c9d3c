//! Matches names against patterns in which `*` stands for any text.

/// Returns whether the whole name matches the pattern.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, fits) in [
            ("evo.model.*", "evo.model.get", true),
            ("evo.model.*", "evo.content.get", false),
            ("*.get", "evo.model.get", true),
            ("evo.*.get", "evo.model.list", false),
            ("evo.model.get", "evo.model.get", true),
            ("evo.model.get", "evo.model.getter", false),
            ("*", "", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
