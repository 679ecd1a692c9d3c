//! The forms in which a text of a rule and a name are compared.

use catalog::name;

/// What stands between the levels of a name.
pub(super) const LEVEL: char = '.';

/// What may stand between a label and a name, or between levels.
pub(super) const SEPARATORS: [char; 3] = [':', '/', LEVEL];

/// How much a rule fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breadth {
    /// Everything that may be meant: for what forbids.
    Wide,
    /// Nothing that only looks like what is meant: for what allows.
    Exact,
}

/// A name or a pattern, ready to be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) raw: String,
    /// Whether `*` or `?` is in it.
    is_open: bool,
    /// Without case, `_` and `-`.
    canonical: String,
    /// Without case, and with one sign for everything that stands between words. A
    /// pattern with `*` keeps it: `get_*` does not allow `getaway`.
    words: String,
    /// Its levels as `help` shows them, wherever a separator may part them. None
    /// where the characters before a `*` are such that nothing is left of them.
    levels: Option<String>,
    /// The same, parted by dots alone.
    dotted: String,
}

impl Form {
    pub(super) fn new(raw: &str) -> Form {
        let is_open = is_open(raw);
        let levels = raw.split(SEPARATORS).map(level).collect::<Option<Vec<_>>>();
        Form {
            raw: raw.to_owned(),
            is_open,
            canonical: name::canonical(raw),
            words: words(raw),
            levels: levels.map(join),
            dotted: join(raw.split(LEVEL).map(folded_level).collect()),
        }
    }

    /// Whether this, as a pattern, fits a name.
    pub(super) fn fits(&self, name: &Form, breadth: Breadth) -> bool {
        if self.raw == name.raw || (self.is_open && glob(&self.raw, &name.raw)) {
            return true;
        }
        match (breadth, self.is_open) {
            (Breadth::Exact, true) => glob(&self.words, &name.words),
            (Breadth::Exact, false) => !self.dotted.is_empty() && self.dotted == name.dotted,
            (Breadth::Wide, true) => {
                let levels = self.levels.as_ref().zip(name.levels.as_ref());
                glob(&self.canonical, &name.canonical)
                    || levels.is_some_and(|(levels, known)| glob(levels, known))
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

impl Form {
    /// Whether this, as a pattern, fits a path or a level above it.
    pub(super) fn leads_through(&self, path: &Levels, breadth: Breadth) -> bool {
        let is_start = |levels: &String| {
            let rest = path.canonical.strip_prefix(levels.as_str());
            !levels.is_empty()
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(LEVEL))
        };
        match (breadth, self.is_open) {
            (_, false) => {
                is_start(&self.dotted)
                    || (breadth == Breadth::Wide && self.levels.as_ref().is_some_and(is_start))
            }
            (Breadth::Exact, true) => starts(&path.words).any(|start| glob(&self.words, start)),
            (Breadth::Wide, true) => {
                let fits = |form: &String| starts(&path.canonical).any(|start| glob(form, start));
                fits(&self.canonical) || self.levels.as_ref().is_some_and(fits)
            }
        }
    }
}

/// A path, and every level above it.
fn starts(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices(LEVEL).map(|(at, _)| at).chain([path.len()]);
    ends.map(|end| &path[..end])
}

/// A path of legal names, in the forms in which patterns are held against it.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    canonical: String,
    words: String,
}

impl Levels {
    pub(super) fn new(path: &str) -> Levels {
        Levels { canonical: name::canonical(path), words: words(path) }
    }
}

/// The label of an upstream, as a pattern has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Label {
    raw: String,
    is_open: bool,
    words: String,
    folded: Option<String>,
}

impl Label {
    pub(super) fn new(raw: &str) -> Label {
        Label { raw: raw.to_owned(), is_open: is_open(raw), words: words(raw), folded: level(raw) }
    }

    /// Whether it names an upstream.
    pub(super) fn fits(&self, upstream: &Label, breadth: Breadth) -> bool {
        let folded = || self.folded.as_ref().zip(upstream.folded.as_ref());
        match (self.is_open, breadth) {
            (false, _) => folded().is_some_and(|(own, known)| !own.is_empty() && own == known),
            (true, Breadth::Exact) => glob(&self.words, &upstream.words),
            (true, Breadth::Wide) => {
                glob(&self.words, &upstream.words)
                    || folded().is_some_and(|(own, known)| glob(own, known))
            }
        }
    }
}

fn join(levels: Vec<String>) -> String {
    let levels = levels.into_iter().filter(|level| !level.is_empty());
    levels.collect::<Vec<_>>().join(&LEVEL.to_string())
}

pub(super) fn is_open(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// In lower case, with `_` for every sign between words.
fn words(text: &str) -> String {
    let is_kept = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "*?".contains(c);
    let one = |c: char| match c {
        c if SEPARATORS.contains(&c) => LEVEL,
        c if is_kept(c) => c.to_ascii_lowercase(),
        _ => '_',
    };
    text.chars().map(one).collect()
}

/// One level as it is compared. `None` for one with `*` or `?` in it of which nothing
/// else would be left, though there is more: it would fit every name.
fn level(level: &str) -> Option<String> {
    let folded = folded_level(level);
    let is_everything = folded.chars().all(|c| matches!(c, '*' | '?'));
    let says_more = level.chars().any(|c| !matches!(c, '*' | '?' | '_' | '-'));
    (!(is_open(level) && is_everything && says_more)).then_some(folded)
}

/// One level of a name or of a pattern, as it is compared.
///
/// One with `*` or `?` in it may be a part of any name, so it is not known which
/// name would stand in for it: its letters and digits stay.
fn folded_level(level: &str) -> String {
    match is_open(level) {
        false if level.is_empty() => String::new(),
        false => name::folded_name(level),
        true => {
            let kept = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '*' | '?');
            level.chars().filter(kept).map(|c| c.to_ascii_lowercase()).collect()
        }
    }
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
