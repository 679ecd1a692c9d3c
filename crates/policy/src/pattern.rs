//! How an operator names tools in rules: ids, names, and `*` in either.

/// A pattern over tools, resources and prompts.
///
/// Matches a canonical id, whole (`github:create_issue#34afee88`, so only in
/// that shape) or without its version or hash (`github:create_issue`), the
/// upstream's label and the tool's name joined by a dot or a colon
/// (`github.create_issue`), or the tool's own name; `*` stands for anything,
/// `?` for one character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

/// What a pattern is held against.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The canonical id.
    pub id: &'a str,
    /// The operator's label for the upstream.
    pub upstream: &'a str,
    /// The upstream's own name for it.
    pub name: &'a str,
}

impl Pattern {
    pub fn new(text: &str) -> Pattern {
        Pattern(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern means this.
    pub fn names(&self, named: Named<'_>) -> bool {
        let Named { id, upstream, name } = named;
        let bare = id.rsplit_once(['#', '@']).map_or(id, |(bare, _)| bare);
        glob(&self.0, id)
            || glob(&self.0, bare)
            || glob(&self.0, &format!("{upstream}:{name}"))
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
        let named =
            Named { id: "github:issues.list#12345678", upstream: "github", name: "issues.list" };
        assert_eq!(Pattern::new(pattern).names(named), expected, "{pattern}");
    }

    #[test]
    fn tools_are_named_by_id_by_full_name_or_by_their_own() {
        check("github:issues.list#12345678", true);
        check("github:issues.list#87654321", false);
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
