//! Patterns by which an operator names tools in rules: ids, names, and `*` in
//! either.
//!
//! What forbids is wide: [`Pattern::may_mean`] takes every spelling by which a
//! tool could be called. What allows is exact: [`Pattern::means`] takes the one
//! tool that `call` would find, and nothing that only looks like it.

use catalog::name;

use crate::uri;

/// A pattern over tools, resources and prompts.
///
/// Matches a canonical id, whole (`github:create_issue#34afee88`, so only in
/// that shape) or without its version or hash (`github:create_issue`), the
/// upstream's label and the tool's name joined by a dot, a colon or a slash
/// (`github.create_issue`), or the tool's own name; `*` stands for anything,
/// `?` for one character. Names are compared as `help` and `call` compare them:
/// in the upstream's spelling or in the one that `help` shows, whatever the
/// case, `_` and `-`. Addresses of resources are compared by where they lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    /// The text with its names as they are compared.
    folded: String,
    /// The text as an address of a resource.
    address: String,
}

/// What a pattern is held against.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The canonical id.
    pub id: &'a str,
    /// The operator's label for the upstream.
    pub upstream: &'a str,
    /// The upstream's own name for it.
    pub name: &'a str,
    pub shown: Shown<'a>,
}

/// How callers know something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown<'a> {
    /// A function, by its namespace and name, as `help` shows them.
    Path {
        path: &'a str,
        /// Whether another function differs from it in nothing but spelling. Then
        /// each is called only as its upstream spells it, or as `help` shows it.
        has_double: bool,
    },
    /// A resource, by its URI.
    Address,
    /// As the upstream names it.
    AsNamed,
}

impl Pattern {
    pub fn new(text: &str) -> Pattern {
        let address = uri::normalized(text);
        Pattern { text: text.to_owned(), folded: folded(text), address }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern means this and nothing that only looks like it: for
    /// what allows something.
    pub fn means(&self, named: Named<'_>) -> bool {
        let Named { id, upstream, name, shown } = named;
        if shown == Shown::Address {
            // Its server may read it in another way than it is written.
            let mut readings = uri::readings(name).into_iter();
            let has_id = glob(&self.text, id) || glob(&self.text, bare(id));
            let below = self.below(upstream).any(|text| glob(text, name));
            let has_name = glob(&self.text, name) || below;
            return has_id
                || (has_name && readings.all(|reading| self.leads_to(upstream, &reading)));
        }
        let Shown::Path { path, has_double } = shown else { return self.may_mean(named) };
        if glob(&self.text, id) || glob(&self.text, bare(id)) {
            return true;
        }
        let below_label = path.split_once(LEVEL).map_or(path, |(_, below)| below);
        let last = last_level(path);
        if has_double {
            let texts = [self.text.as_str()].into_iter().chain(self.below(upstream));
            return glob(&self.text, path)
                || glob(&self.text, last)
                || texts.into_iter().any(|text| glob(text, name) || glob(text, below_label));
        }
        let label = name::folded_name(upstream);
        glob(&self.folded, &folded_level(last))
            || [folded(name), folded(below_label)].iter().any(|name| {
                glob(&self.folded, name) || glob(&self.folded, &format!("{label}{LEVEL}{name}"))
            })
    }

    /// What stands in the pattern behind the label of an upstream, wherever that
    /// may end: a label may have dots in it.
    fn below(&self, upstream: &str) -> impl Iterator<Item = &str> {
        let label = name::folded_name(upstream);
        let ends = self.text.match_indices([':', '/', LEVEL]);
        ends.filter_map(move |(at, separator)| {
            let names = glob(&folded_level(&self.text[..at]), &label);
            names.then(|| &self.text[at + separator.len()..])
        })
    }

    /// Whether an address, in the one way to write it, is one that the pattern
    /// has, alone or behind the label of its upstream.
    fn leads_to(&self, upstream: &str, address: &str) -> bool {
        glob(&self.address, address)
            || self.below(upstream).any(|text| glob(&uri::normalized(text), address))
    }

    /// Whether the pattern means this, or something that may be taken for it: for
    /// what forbids something.
    pub fn may_mean(&self, named: Named<'_>) -> bool {
        let Named { id, upstream, name, shown } = named;
        if glob(&self.text, id) || glob(&self.text, bare(id)) || glob(&self.text, name) {
            return true;
        }
        if let Shown::Path { path, .. } = shown
            && (glob(&self.folded, &folded(path))
                || glob(&self.folded, &folded_level(last_level(path))))
        {
            return true;
        }
        if shown == Shown::Address
            && uri::readings(name).iter().any(|reading| self.leads_to(upstream, reading))
        {
            return true;
        }
        let own = folded(name);
        let (levels, last) = name::place(upstream, name);
        let shown = folded(&levels.into_iter().chain([last]).collect::<Vec<_>>().join("."));
        // Of tools that differ in spelling alone, all but one are shown so.
        let tagged = format!("{shown}{}", name::tag(name, TAG));
        let label = name::folded_name(upstream);
        [own, shown, tagged].iter().any(|name| {
            glob(&self.folded, name) || glob(&self.folded, &format!("{label}{LEVEL}{name}"))
        })
    }

    /// Whether the pattern means this upstream, or a namespace of it in which
    /// the tool `name` stands.
    pub fn names_namespace(&self, upstream: &str, name: &str) -> bool {
        if glob(&self.text, upstream) {
            return true;
        }
        let mut path = name::folded_name(upstream);
        // A label with a dot in it is one level for whoever reads it.
        let label = name::folded_name(&self.text);
        let is_plain = !self.text.contains(['*', '?']);
        if glob(&self.folded, &path) || (is_plain && label == path) {
            return true;
        }
        name::place(upstream, name).0.iter().any(|level| {
            path.push(LEVEL);
            path.push_str(&name::folded_name(level));
            glob(&self.folded, &path)
        })
    }

    /// Whether the pattern matches this text as a whole.
    pub fn matches(&self, text: &str) -> bool {
        glob(&self.text, text)
    }
}

/// The name that stands in the list of its namespace.
fn last_level(path: &str) -> &str {
    path.rsplit_once(LEVEL).map_or(path, |(_, last)| last)
}

/// An id without its version or hash.
fn bare(id: &str) -> &str {
    id.rsplit_once(['#', '@']).map_or(id, |(bare, _)| bare)
}

/// How many digits tell tools apart that differ in spelling alone.
const TAG: usize = 4;

/// What stands between the levels of a name.
const LEVEL: char = '.';

/// One level of a name or of a pattern, as it is compared.
///
/// One with `*` or `?` in it may be a part of any name, so it is not known which
/// name would stand in for it: its letters and digits stay.
pub(crate) fn folded_level(level: &str) -> String {
    match level.contains(['*', '?']) {
        false if level.is_empty() => String::new(),
        false => name::folded_name(level),
        true => {
            let kept = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '*' | '?');
            level.chars().filter(kept).map(|c| c.to_ascii_lowercase()).collect()
        }
    }
}

/// A name or a pattern with every level as it is compared.
fn folded(text: &str) -> String {
    // A label may have dots in it; before a colon or a slash nothing else can.
    let (label, name) = match text.split_once([':', '/']) {
        Some((label, name)) if !label.contains(['*', '?']) => (Some(folded_level(label)), name),
        Some(_) | None => (None, text),
    };
    let levels = name.split([':', '/', LEVEL]).map(folded_level);
    label.into_iter().chain(levels).collect::<Vec<_>>().join(&LEVEL.to_string())
}

/// Whether `text` is of the form `pattern`. Linear in the text for each `*`.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
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
        let named = Named {
            id: "github:issues.list#12345678",
            upstream: "github",
            name: "issues.list",
            shown: Shown::Path { path: "github.issues.list", has_double: false },
        };
        assert_eq!(Pattern::new(pattern).may_mean(named), expected, "{pattern}");
        assert_eq!(Pattern::new(pattern).means(named), expected, "{pattern}");
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
        check("Issues.*", true);
        check("", false);
    }

    #[track_caller]
    fn is_named(pattern: &str, upstream: &str, name: &str) {
        let id = format!("{}:{name}#12345678", name::alias(upstream));
        // The catalog knows an upstream by the legal name in place of its label.
        let label = name::alias(upstream);
        let (levels, last) = name::place(&label, name);
        let levels = std::iter::once(label.clone()).chain(levels).chain([last]);
        let path = levels.collect::<Vec<_>>().join(".");
        let shown = Shown::Path { path: &path, has_double: false };
        let named = Named { id: &id, upstream: &label, name, shown };
        let pattern = Pattern::new(pattern);
        assert!(pattern.may_mean(named), "{pattern:?} for {upstream} {name}");
        assert!(pattern.means(named), "{pattern:?} for {upstream} {name}");
    }

    #[test]
    fn what_help_shows_and_what_the_operator_wrote_both_name_a_tool() {
        for pattern in
            ["my-files/read_text_file", "my_files:read-text-file", "MyFiles.readTextFile"]
        {
            is_named(pattern, "my-files", "read_text_file");
        }
        is_named("get_sum", "everything", "get-sum");
        is_named("files:*", "Files", "read");
        is_named("brave search:*", "brave search", "web");
        is_named("a.b:tool", "a.b", "tool");
        is_named("a_b.tool", "a.b", "tool");
        is_named("up.get sum", "up", "get sum");
        let shown = Shown::AsNamed;
        let other = Named { id: "filesystem:read#1", upstream: "filesystem", name: "read", shown };
        assert!(!Pattern::new("files:*").may_mean(other));
        assert!(!Pattern::new("files*.write").may_mean(other));
    }

    #[test]
    fn what_allows_one_of_two_that_are_spelled_alike_does_not_allow_the_other() {
        // As a catalog shows them: the first keeps its name, the others are tagged.
        let tools = [("get_sum", "up.get_sum"), ("get-sum", "up.get_sum_1a2b")];
        let named = |(name, path): (&'static str, &'static str)| Named {
            id: "up:x#12345678",
            upstream: "up",
            name,
            shown: Shown::Path { path, has_double: true },
        };
        for (pattern, meant) in [
            ("get_sum", [true, false]),
            ("get-sum", [false, true]),
            ("up.get_sum", [true, false]),
            ("UP/get-sum", [false, true]),
            ("get_sum_1a2b", [false, true]),
            ("up:get_sum_1a2b", [false, true]),
            ("getSum", [false, false]),
            ("up.*", [true, true]),
            ("*", [true, true]),
            ("up.get_*", [true, true]),
            ("other.get_sum", [false, false]),
        ] {
            let found = tools.map(|tool| Pattern::new(pattern).means(named(tool)));
            assert_eq!(found, meant, "{pattern}");
        }
        for pattern in ["get_sum", "get-sum", "getSum", "up.GETSUM", "up/get-sum"] {
            let found = tools.map(|tool| Pattern::new(pattern).may_mean(named(tool)));
            assert_eq!(found, [true, true], "{pattern}");
        }
    }

    #[test]
    fn an_address_is_denied_wherever_it_leads_and_allowed_only_where_it_surely_leads() {
        let named = |name| Named { id: "res:x#1", upstream: "up", name, shown: Shown::Address };
        for (pattern, uri, means, may_mean) in [
            ("file:///srv/*", "file:///srv/x", true, true),
            ("up:file:///srv/*", "file:///srv/x", true, true),
            ("file:///srv/*", "file:///pub/../srv/x", false, true),
            ("file:///srv/*", "file:///%73rv/x", false, true),
            ("file:///srv/*", "file:////srv/x", false, true),
            ("up/file:///srv/*", "file:///pub/../srv/x", false, true),
            ("file:///pub/*", "file:///pub/x", true, true),
            ("file:///pub/*", "file:///pub/../srv/x", false, true),
            ("file:///pub/*", "file:///srv/x", false, false),
            ("*", "file:///pub/../srv/x", true, true),
        ] {
            let pattern = Pattern::new(pattern);
            let found = (pattern.means(named(uri)), pattern.may_mean(named(uri)));
            assert_eq!(found, (means, may_mean), "{pattern:?} {uri}");
        }
    }

    #[test]
    fn a_namespace_is_named_by_its_label_or_its_path() {
        for pattern in ["my-shop", "my_shop", "MyShop", "my-shop.retail", "my*", "*"] {
            let pattern = Pattern::new(pattern);
            assert!(pattern.names_namespace("my_shop", "retail.create"), "{pattern:?}");
        }
        for pattern in ["shop", "my", "my-shop.wholesale", "retail"] {
            let pattern = Pattern::new(pattern);
            assert!(!pattern.names_namespace("my_shop", "retail.create"), "{pattern:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_spelling_of_a_tool_names_it(
            label in "[a-zA-Z0-9 ._é-]{1,10}", tool in "[a-zA-Z0-9 ._/é-]{1,12}", upper: bool,
        ) {
            let alias = name::alias(&label);
            let (levels, shown) = name::place(&alias, &tool);
            let shown = levels.into_iter().chain([shown]).collect::<Vec<_>>().join(".");
            let case = |text: String| if upper { text.to_ascii_uppercase() } else { text };
            let mut spellings = vec![
                shown.clone(),
                format!("{alias}.{shown}"),
                format!("{alias}:{shown}"),
                format!("{alias}/{}", shown.replace('_', "-")),
                format!("{alias}.*"),
                tool.clone(),
            ];
            // The operator's own spelling has to be told apart from the tool's.
            if !label.contains(['/', ':']) {
                spellings.push(format!("{label}/{shown}"));
                spellings.push(format!("{label}:*"));
            }
            for spelling in spellings {
                is_named(&case(spelling), &label, &tool);
            }
        }
    }
}
