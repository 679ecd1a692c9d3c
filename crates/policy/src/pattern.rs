//! Patterns by which an operator names tools in rules: ids, names, and `*` in
//! either.
//!
//! What forbids is wide: [`Pattern::may_mean`] takes every spelling by which a
//! tool could be called. What allows is exact: [`Pattern::means`] takes the one
//! tool that `call` would find, and nothing that only looks like it.

mod form;

use catalog::name;

use crate::uri;
use form::{Form, LEVEL, Label, Levels, SEPARATORS};

pub use form::Breadth;
pub(crate) use form::glob;

/// A pattern over tools, resources and prompts.
///
/// Matches a canonical id, whole (`github:create_issue#34afee88`, so only in
/// that shape) or without its version or hash (`github:create_issue`), the
/// upstream's label and the tool's name joined by a dot, a colon or a slash
/// (`github.create_issue`), or the tool's own name; `*` stands for anything,
/// `?` for one character. Names are compared as `help` and `call` compare them:
/// in the upstream's spelling or in the one that `help` shows, whatever the
/// case, `_` and `-`. Addresses of resources are compared by where they lead.
///
/// What allows a function and has a separator in it has to name the upstream, too: nobody
/// but the operator decides what `files.read` is, and any server may call a tool so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: Form,
    /// The text as the label of an upstream.
    label: Label,
    /// What stands before and behind each separator: a label may have dots in it, and so
    /// may a name, so only who knows the label can tell where it ends.
    parted: Vec<(Label, Form)>,
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

/// A path of legal names, as `help` shows it, ready to be compared level by level.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    label: Label,
    whole: Levels,
    below: Levels,
}

impl Path {
    pub(crate) fn new(path: &str) -> Path {
        let (label, below) = path.split_once(LEVEL).unwrap_or((path, ""));
        Path { label: Label::new(label), whole: Levels::new(path), below: Levels::new(below) }
    }
}

impl Pattern {
    pub fn new(text: &str) -> Pattern {
        let ends = text.match_indices(SEPARATORS).take(LABEL_SEPARATORS);
        let parted = ends.map(|(at, separator)| {
            (Label::new(&text[..at]), Form::new(&text[at + separator.len()..]))
        });
        Pattern {
            text: Form::new(text),
            label: Label::new(text),
            parted: parted.collect(),
            address: uri::normalized(text),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text.raw
    }

    /// Whether the pattern means this and nothing that only looks like it: for
    /// what allows something.
    pub fn means(&self, named: Named<'_>) -> bool {
        let Named { id, upstream, name, shown } = named;
        if self.matches(id) || self.matches(bare(id)) {
            return true;
        }
        let upstream = Label::new(upstream);
        match shown {
            Shown::Address => {
                // Its server may read it in another way than it is written.
                let mut readings = uri::readings(name).into_iter();
                let mut below = self.below(&upstream, Breadth::Exact);
                let has_name = self.matches(name) || below.any(|text| glob(&text.raw, name));
                has_name
                    && readings.all(|reading| self.leads_to(&upstream, &reading, Breadth::Exact))
            }
            Shown::Path { path, has_double: true } => {
                let shown = [name, below_label(path)];
                let mut below = self.below(&upstream, Breadth::Exact);
                self.matches(path)
                    || (self.is_one_name()
                        && (self.matches(name) || self.matches(last_level(path))))
                    || below.any(|text| shown.iter().any(|name| glob(&text.raw, name)))
            }
            Shown::Path { path, has_double: false } => {
                let names = [Form::new(name), Form::new(below_label(path))];
                self.names_with_label(&upstream, path, &names, Breadth::Exact)
                    || self.names_alone(&[Form::new(name), Form::new(last_level(path))])
            }
            Shown::AsNamed => {
                let names = [Form::new(name)];
                let path = format!("{}{LEVEL}{name}", named.upstream);
                self.names_with_label(&upstream, &path, &names, Breadth::Exact)
                    || self.text.fits(&names[0], Breadth::Exact)
            }
        }
    }

    /// Whether the pattern means this, or something that may be taken for it: for
    /// what forbids something.
    pub fn may_mean(&self, named: Named<'_>) -> bool {
        let Named { id, name, shown, .. } = named;
        if self.matches(id) || self.matches(bare(id)) || self.matches(name) {
            return true;
        }
        if shown == Shown::Address {
            let upstream = Label::new(named.upstream);
            let mut readings = uri::readings(name).into_iter();
            return readings.any(|reading| self.leads_to(&upstream, &reading, Breadth::Wide));
        }
        let names = every_name(named);
        let mut alone = names.iter().cloned().chain(match shown {
            Shown::Path { path, .. } => Some(Form::new(last_level(path))),
            Shown::Address | Shown::AsNamed => None,
        });
        alone.any(|name| self.text.fits(&name, Breadth::Wide))
            || self.may_mean_with_label(named, &names)
    }

    /// Whether the pattern means a tool of which it also names the upstream.
    pub fn means_with_label(&self, named: Named<'_>, breadth: Breadth) -> bool {
        let exact = || match named.shown {
            // Nothing but the text itself is exact there.
            Shown::Path { has_double: true, .. } => self.is_parted_or_open() && self.means(named),
            Shown::Path { path, has_double: false } => {
                let names = [Form::new(named.name), Form::new(below_label(path))];
                self.names_with_label(&Label::new(named.upstream), path, &names, Breadth::Exact)
            }
            Shown::Address | Shown::AsNamed => self.means(named),
        };
        match breadth {
            Breadth::Wide => self.may_mean_with_label(named, &every_name(named)),
            Breadth::Exact => exact(),
        }
    }

    /// Whether the pattern means this upstream, or a namespace of it in which
    /// the tool `name` stands.
    pub fn names_namespace(&self, upstream: &str, name: &str, breadth: Breadth) -> bool {
        let levels = name::place(upstream, name).0;
        let levels = std::iter::once(name::alias(upstream)).chain(levels).collect::<Vec<_>>();
        self.leads_through(&Path::new(&levels.join(".")), breadth)
    }

    /// Whether the pattern means what is at a path, or a level above it.
    pub(crate) fn leads_through(&self, path: &Path, breadth: Breadth) -> bool {
        let mut below = self.below(&path.label, breadth);
        self.label.fits(&path.label, breadth)
            || self.text.leads_through(&path.whole, breadth)
            || below.any(|text| text.leads_through(&path.below, breadth))
    }

    /// Whether the pattern matches this text as a whole.
    pub fn matches(&self, text: &str) -> bool {
        glob(&self.text.raw, text)
    }

    fn may_mean_with_label(&self, named: Named<'_>, names: &[Form]) -> bool {
        let label = Label::new(named.upstream);
        let path = match named.shown {
            Shown::Path { path, .. } => path.to_owned(),
            Shown::Address | Shown::AsNamed => format!("{}{LEVEL}{}", named.upstream, named.name),
        };
        let with_label = |name: &Form| {
            self.text
                .fits(&Form::new(&format!("{}{LEVEL}{}", named.upstream, name.raw)), Breadth::Wide)
        };
        self.names_with_label(&label, &path, names, Breadth::Wide) || names.iter().any(with_label)
    }

    /// Whether the pattern has the label and one of the names below it, or fits the
    /// whole path.
    fn names_with_label(
        &self,
        upstream: &Label,
        path: &str,
        names: &[Form],
        breadth: Breadth,
    ) -> bool {
        let mut below = self.below(upstream, breadth);
        self.text.fits(&Form::new(path), breadth)
            || below.any(|text| names.iter().any(|name| text.fits(name, breadth)))
    }

    /// Whether the pattern is exactly one of the names, without a label.
    fn names_alone(&self, names: &[Form]) -> bool {
        self.is_one_name() && names.iter().any(|name| self.text.fits(name, Breadth::Exact))
    }

    /// Whether it is one name, or a pattern of such, with nothing that could part it.
    fn is_one_name(&self) -> bool {
        self.parted.is_empty()
    }

    fn is_parted_or_open(&self) -> bool {
        !self.parted.is_empty() || form::is_open(&self.text.raw)
    }

    /// What stands in the pattern behind the label of an upstream, wherever that
    /// may end.
    fn below(&self, upstream: &Label, breadth: Breadth) -> impl Iterator<Item = &Form> {
        let named = move |(label, _): &&(Label, Form)| label.fits(upstream, breadth);
        self.parted.iter().filter(named).map(|(_, name)| name)
    }

    /// Whether an address, in the one way to write it, is one that the pattern
    /// has, alone or behind the label of its upstream.
    fn leads_to(&self, upstream: &Label, address: &str, breadth: Breadth) -> bool {
        let mut below = self.below(upstream, breadth);
        glob(&self.address, address) || below.any(|text| glob(&uri::normalized(&text.raw), address))
    }
}

/// Everything below its label that a tool may be called: as its upstream calls it, and
/// as `help` shows it.
fn every_name(named: Named<'_>) -> Vec<Form> {
    let Named { upstream, name, shown, .. } = named;
    let (levels, last) = name::place(upstream, name);
    let placed = levels.into_iter().chain([last]).collect::<Vec<_>>().join(".");
    // Of tools that differ in spelling alone, all but one are shown so.
    let tagged = format!("{placed}{}", name::tag(name, TAG));
    let shown = match shown {
        Shown::Path { path, .. } => Some(below_label(path).to_owned()),
        Shown::Address | Shown::AsNamed => None,
    };
    let mut names = vec![name.to_owned(), placed, tagged];
    names.extend(shown);
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| Form::new(name)).collect()
}

/// What stands below the first level of a path.
fn below_label(path: &str) -> &str {
    path.split_once(LEVEL).map_or(path, |(_, below)| below)
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

/// How many separators a label has at most; names with more are long enough to be
/// named by a part and `*`.
const LABEL_SEPARATORS: usize = 16;

#[cfg(test)]
mod tests;
