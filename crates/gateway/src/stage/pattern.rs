//! How an operator names tools in rules: ids, names, and `*` in either.

/// A pattern over tools.
///
/// Matches a canonical id with or without its version or hash
/// (`github:create_issue`), the upstream's name and the tool's joined by a dot
/// (`github.create_issue`), or the tool's own name; `*` stands for anything,
/// `?` for one character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    pub fn new(text: &str) -> Pattern {
        Pattern(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern means the tool `name` of `upstream`.
    pub fn names(&self, upstream: &str, name: &str) -> bool {
        let id = format!("{upstream}:{name}");
        let pinned = self.0.rsplit_once(['#', '@']).map_or(self.0.as_str(), |(bare, _)| bare);
        glob(pinned, &id)
            || glob(&self.0, &id)
            || glob(&self.0, &format!("{upstream}.{name}"))
            || glob(&self.0, name)
    }

    /// Whether the pattern matches this text as a whole.
    pub fn matches(&self, text: &str) -> bool {
        glob(&self.0, text)
    }
}

/// Whether `text` is of the form `pattern`. Linear in the text for each `*`.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            Some(_) | None => {
                // Let the last star swallow one character more.
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                p = at + 1;
                t = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, expected: bool) {
        assert_eq!(Pattern::new(pattern).names("github", "issues.list"), expected, "{pattern}");
    }

    #[test]
    fn tools_are_named_by_id_by_full_name_or_by_their_own() {
        check("github:issues.list#12345678", true);
        check("github:issues.list", true);
        check("github.issues.list", true);
        check("issues.*", true);
        check("*list", true);
        check("git*:*", true);
        check("issues.lis?", true);
        check("*", true);
        check("gitlab:*", false);
        check("issues", false);
        check("Issues.*", false);
        check("", false);
    }
}
