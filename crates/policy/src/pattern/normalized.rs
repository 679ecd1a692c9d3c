//! Normal forms of names, labels and paths, and how a pattern is compared with them.

use catalog::name;

use crate::glob::glob;

/// The separator between the levels of a path.
pub(super) const LEVEL: char = '.';

/// The separators that a pattern may use between a label and a name, or between levels.
pub(super) const SEPARATORS: [char; 3] = [':', '/', LEVEL];

/// How generously a pattern is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breadth {
    /// Lookalikes match as well: for rules that forbid.
    Wide,
    /// Lookalikes do not match: for rules that allow.
    Exact,
}

/// A name or a pattern in its normal forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NormalizedName {
    pub(super) raw: String,
    /// Whether `*` or `?` is in it.
    has_wildcard: bool,
    /// In lower case, without `_` and `-`.
    canonical: String,
    /// In lower case, with `_` for everything between words. Used for wildcards, so that
    /// `get_*` does not allow `getaway`.
    words: String,
    /// Its levels as `help` shows them, split at every separator and joined by dots.
    /// `None` where a level with a wildcard would lose all its other characters.
    levels: Option<String>,
    /// Its levels as `help` shows them, split at dots only.
    dotted: String,
}

impl NormalizedName {
    pub(super) fn new(raw: &str) -> NormalizedName {
        let has_wildcard = has_wildcard(raw);
        let levels = raw.split(SEPARATORS).map(checked_level).collect::<Option<Vec<_>>>();
        NormalizedName {
            raw: raw.to_owned(),
            has_wildcard,
            canonical: name::canonical(raw),
            words: words(raw),
            levels: levels.map(join),
            dotted: join(raw.split(LEVEL).map(folded_level).collect()),
        }
    }

    /// Whether this pattern matches a name.
    pub(super) fn fits(&self, name: &NormalizedName, breadth: Breadth) -> bool {
        if self.raw == name.raw || (self.has_wildcard && glob(&self.raw, &name.raw)) {
            return true;
        }
        match (breadth, self.has_wildcard) {
            (Breadth::Exact, true) => glob(&self.words, &name.words),
            (Breadth::Exact, false) => !self.dotted.is_empty() && self.dotted == name.dotted,
            (Breadth::Wide, true) => {
                let levels = self.levels.as_ref().zip(name.levels.as_ref());
                glob(&self.canonical, &name.canonical)
                    || levels.is_some_and(|(pattern, name)| glob(pattern, name))
            }
            (Breadth::Wide, false) => {
                let is_some = |form: &String| !form.is_empty();
                (is_some(&self.canonical) && self.canonical == name.canonical)
                    || (is_some(&self.dotted) && self.dotted == name.dotted)
                    || (self.levels.as_ref().is_some_and(is_some) && self.levels == name.levels)
            }
        }
    }
}

impl NormalizedName {
    /// Whether this pattern matches a path or a level above it.
    pub(super) fn matches_path_or_above(&self, path: &NormalizedPath, breadth: Breadth) -> bool {
        let is_start = |levels: &String| {
            let rest = path.canonical.strip_prefix(levels.as_str());
            !levels.is_empty()
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(LEVEL))
        };
        match (breadth, self.has_wildcard) {
            (_, false) => {
                is_start(&self.dotted)
                    || (breadth == Breadth::Wide && self.levels.as_ref().is_some_and(is_start))
            }
            (Breadth::Exact, true) => {
                path_and_above(&path.words).any(|start| glob(&self.words, start))
            }
            (Breadth::Wide, true) => {
                let fits =
                    |form: &String| path_and_above(&path.canonical).any(|start| glob(form, start));
                fits(&self.canonical) || self.levels.as_ref().is_some_and(fits)
            }
        }
    }
}

/// A path and every level above it.
fn path_and_above(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices(LEVEL).map(|(at, _)| at).chain([path.len()]);
    ends.map(|end| &path[..end])
}

/// A dotted path in its normal forms.
#[derive(Clone, Debug)]
pub(super) struct NormalizedPath {
    canonical: String,
    words: String,
}

impl NormalizedPath {
    pub(super) fn new(path: &str) -> NormalizedPath {
        NormalizedPath { canonical: name::canonical(path), words: words(path) }
    }
}

/// The label of an upstream, or a pattern of labels, in its normal forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NormalizedLabel {
    raw: String,
    has_wildcard: bool,
    words: String,
    folded: Option<String>,
}

impl NormalizedLabel {
    pub(super) fn new(raw: &str) -> NormalizedLabel {
        NormalizedLabel {
            raw: raw.to_owned(),
            has_wildcard: has_wildcard(raw),
            words: words(raw),
            folded: checked_level(raw),
        }
    }

    /// Whether this pattern matches the label of an upstream.
    pub(super) fn fits(&self, upstream: &NormalizedLabel, breadth: Breadth) -> bool {
        let folded = || self.folded.as_ref().zip(upstream.folded.as_ref());
        match (self.has_wildcard, breadth) {
            (false, _) => {
                folded().is_some_and(|(pattern, label)| !pattern.is_empty() && pattern == label)
            }
            (true, Breadth::Exact) => glob(&self.words, &upstream.words),
            (true, Breadth::Wide) => {
                glob(&self.words, &upstream.words)
                    || folded().is_some_and(|(pattern, label)| glob(pattern, label))
            }
        }
    }
}

fn join(levels: Vec<String>) -> String {
    let levels = levels.into_iter().filter(|level| !level.is_empty());
    levels.collect::<Vec<_>>().join(&LEVEL.to_string())
}

pub(super) fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// The text in lower case, with `_` for every character between words.
fn words(text: &str) -> String {
    let is_kept = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "*?".contains(c);
    let one = |c: char| match c {
        c if SEPARATORS.contains(&c) => LEVEL,
        c if is_kept(c) => c.to_ascii_lowercase(),
        _ => '_',
    };
    text.chars().map(one).collect()
}

/// The normal form of one level. `None` where a level with a wildcard would lose all its
/// other characters, and so match every name.
fn checked_level(level: &str) -> Option<String> {
    let folded = folded_level(level);
    let is_everything = folded.chars().all(|c| matches!(c, '*' | '?'));
    let says_more = level.chars().any(|c| !matches!(c, '*' | '?' | '_' | '-'));
    (!(has_wildcard(level) && is_everything && says_more)).then_some(folded)
}

/// The normal form of one level of a name or of a pattern.
///
/// A level with a wildcard stands for many names, so it has no alias: its letters and
/// digits are kept.
fn folded_level(level: &str) -> String {
    match has_wildcard(level) {
        false if level.is_empty() => String::new(),
        false => name::folded_name(level),
        true => {
            let kept = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '*' | '?');
            level.chars().filter(kept).map(|c| c.to_ascii_lowercase()).collect()
        }
    }
}
