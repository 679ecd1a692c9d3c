//! Patterns by which an operator names tools in rules: ids or names, with `*` as a
//! wildcard.
//!
//! Rules that forbid match widely: [`Pattern::may_match`] accepts every spelling by
//! which a tool could be called. Rules that allow match exactly:
//! [`Pattern::matches_exactly`] accepts only the one tool that `call` would find, not
//! its lookalikes.

mod normalized;

use catalog::name;

use crate::glob::glob;
use crate::uri::{Readings, UriPattern};
use normalized::{LEVEL, NormalizedLabel, NormalizedName, NormalizedPath, SEPARATORS};

pub use normalized::Breadth;

/// A pattern over tools, resources and prompts.
///
/// Matches a canonical id, whole (`github:create_issue#34afee88`, so only in
/// that shape) or without its version or hash (`github:create_issue`), the
/// upstream's label and the tool's name joined by a dot, a colon or a slash
/// (`github.create_issue`), or the tool's own name; `*` stands for anything,
/// `?` for one character. Names are compared as `help` and `call` compare them:
/// in the upstream's spelling or in the one that `help` shows, whatever the
/// case, `_` and `-`. URIs of resources are compared by the place that they lead to.
///
/// A pattern with a separator that allows a function has to name the upstream: any
/// server may call a tool `files.read`, but only the operator labels an upstream `files`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: NormalizedName,
    /// The whole text as the label of an upstream.
    label: NormalizedLabel,
    /// The text split at each separator into a label and a name: both may have dots in
    /// them, so all splits are possible until the upstream is known.
    splits: Vec<(NormalizedLabel, NormalizedName)>,
    /// The text as a pattern of URIs.
    uri: UriPattern,
}

/// All names of a tool, resource or prompt, which a pattern is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The canonical id.
    pub id: &'a str,
    /// The operator's label for the upstream.
    pub upstream: &'a str,
    /// The upstream's own name for it.
    pub name: &'a str,
    pub exposed: ExposedNameRef<'a>,
}

/// The name under which callers know an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExposedNameRef<'a> {
    /// The namespace and name of a function, as `help` shows them.
    Path {
        path: &'a str,
        /// Whether another function's path differs from it only in spelling. Then each
        /// can be called only as its upstream spells it, or as `help` shows it.
        has_lookalike: bool,
    },
    /// The URI of a resource, as servers may read it.
    Uri(&'a Readings),
    /// The upstream's own name.
    UpstreamName,
}

/// A dotted path, as `help` shows it, parsed for comparison level by level.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    label: NormalizedLabel,
    whole: NormalizedPath,
    below: NormalizedPath,
}

impl Path {
    pub(crate) fn new(path: &str) -> Path {
        let (label, below) = path.split_once(LEVEL).unwrap_or((path, ""));
        Path {
            label: NormalizedLabel::new(label),
            whole: NormalizedPath::new(path),
            below: NormalizedPath::new(below),
        }
    }
}

impl Pattern {
    pub fn new(text: &str) -> Pattern {
        let ends = text.match_indices(SEPARATORS).take(MAX_SPLITS);
        let splits = ends.map(|(at, separator)| {
            (NormalizedLabel::new(&text[..at]), NormalizedName::new(&text[at + separator.len()..]))
        });
        Pattern {
            text: NormalizedName::new(text),
            label: NormalizedLabel::new(text),
            splits: splits.collect(),
            uri: UriPattern::new(text),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text.raw
    }

    /// Whether the pattern matches exactly this item, not a lookalike: for rules that
    /// allow something.
    pub fn matches_exactly(&self, item: Names<'_>) -> bool {
        let Names { id, upstream, name, exposed } = item;
        if self.matches(id) || self.matches(without_hash(id)) {
            return true;
        }
        let upstream = NormalizedLabel::new(upstream);
        match exposed {
            ExposedNameRef::Uri(readings) => {
                let mut below = self.below(&upstream, Breadth::Exact);
                let has_name = self.matches(name) || below.any(|text| glob(&text.raw, name));
                let mut patterns = self.uri_patterns(&upstream, Breadth::Exact).into_iter();
                has_name && patterns.any(|pattern| pattern.matches_exactly(readings))
            }
            ExposedNameRef::Path { path, has_lookalike: true } => {
                let spellings = [name, below_label(path)];
                let mut below = self.below(&upstream, Breadth::Exact);
                self.matches(path)
                    || (self.is_one_name()
                        && (self.matches(name) || self.matches(last_level(path))))
                    || below.any(|text| spellings.iter().any(|name| glob(&text.raw, name)))
            }
            ExposedNameRef::Path { path, has_lookalike: false } => {
                let names = [NormalizedName::new(name), NormalizedName::new(below_label(path))];
                self.names_with_label(&upstream, path, &names, Breadth::Exact)
                    || self.names_alone(&[
                        NormalizedName::new(name),
                        NormalizedName::new(last_level(path)),
                    ])
            }
            ExposedNameRef::UpstreamName => {
                let names = [NormalizedName::new(name)];
                let path = format!("{}{LEVEL}{name}", item.upstream);
                self.names_with_label(&upstream, &path, &names, Breadth::Exact)
                    || self.text.fits(&names[0], Breadth::Exact)
            }
        }
    }

    /// Whether the pattern matches this item or a lookalike of it: for rules that forbid
    /// something.
    pub fn may_match(&self, item: Names<'_>) -> bool {
        let Names { id, name, exposed, .. } = item;
        if self.matches(id) || self.matches(without_hash(id)) || self.matches(name) {
            return true;
        }
        if let ExposedNameRef::Uri(readings) = exposed {
            let upstream = NormalizedLabel::new(item.upstream);
            let mut patterns = self.uri_patterns(&upstream, Breadth::Wide).into_iter();
            return patterns.any(|pattern| pattern.may_match(readings));
        }
        let names = every_name(item);
        let mut alone = names.iter().cloned().chain(match exposed {
            ExposedNameRef::Path { path, .. } => Some(NormalizedName::new(last_level(path))),
            ExposedNameRef::Uri(_) | ExposedNameRef::UpstreamName => None,
        });
        alone.any(|name| self.text.fits(&name, Breadth::Wide))
            || self.may_match_with_label(item, &names)
    }

    /// Whether the pattern matches a tool and also names its upstream.
    pub fn matches_with_label(&self, item: Names<'_>, breadth: Breadth) -> bool {
        let exact = || match item.exposed {
            // Lookalikes differ only in the text itself.
            ExposedNameRef::Path { has_lookalike: true, .. } => {
                self.is_split_or_has_wildcard() && self.matches_exactly(item)
            }
            ExposedNameRef::Path { path, has_lookalike: false } => {
                let names =
                    [NormalizedName::new(item.name), NormalizedName::new(below_label(path))];
                self.names_with_label(
                    &NormalizedLabel::new(item.upstream),
                    path,
                    &names,
                    Breadth::Exact,
                )
            }
            ExposedNameRef::Uri(_) | ExposedNameRef::UpstreamName => self.matches_exactly(item),
        };
        match breadth {
            Breadth::Wide => self.may_match_with_label(item, &every_name(item)),
            Breadth::Exact => exact(),
        }
    }

    /// Whether the pattern matches this upstream, or a namespace of it that contains the
    /// tool `name`.
    pub fn matches_namespace(&self, upstream: &str, name: &str, breadth: Breadth) -> bool {
        let levels = name::place(upstream, name).0;
        let levels = std::iter::once(name::alias(upstream)).chain(levels).collect::<Vec<_>>();
        self.matches_path_or_above(&Path::new(&levels.join(".")), breadth)
    }

    /// Whether the pattern matches a path, or a level above it.
    pub(crate) fn matches_path_or_above(&self, path: &Path, breadth: Breadth) -> bool {
        let mut below = self.below(&path.label, breadth);
        self.label.fits(&path.label, breadth)
            || self.text.matches_path_or_above(&path.whole, breadth)
            || below.any(|text| text.matches_path_or_above(&path.below, breadth))
    }

    /// Whether the pattern matches this text as a whole.
    pub fn matches(&self, text: &str) -> bool {
        glob(&self.text.raw, text)
    }

    fn may_match_with_label(&self, item: Names<'_>, names: &[NormalizedName]) -> bool {
        let label = NormalizedLabel::new(item.upstream);
        let path = match item.exposed {
            ExposedNameRef::Path { path, .. } => path.to_owned(),
            ExposedNameRef::Uri(_) | ExposedNameRef::UpstreamName => {
                format!("{}{LEVEL}{}", item.upstream, item.name)
            }
        };
        let with_label = |name: &NormalizedName| {
            self.text.fits(
                &NormalizedName::new(&format!("{}{LEVEL}{}", item.upstream, name.raw)),
                Breadth::Wide,
            )
        };
        self.names_with_label(&label, &path, names, Breadth::Wide) || names.iter().any(with_label)
    }

    /// Whether the pattern is the label with one of the names behind it, or matches the
    /// whole path.
    fn names_with_label(
        &self,
        upstream: &NormalizedLabel,
        path: &str,
        names: &[NormalizedName],
        breadth: Breadth,
    ) -> bool {
        let mut below = self.below(upstream, breadth);
        self.text.fits(&NormalizedName::new(path), breadth)
            || below.any(|text| names.iter().any(|name| text.fits(name, breadth)))
    }

    /// Whether the pattern is exactly one of the names, without a label.
    fn names_alone(&self, names: &[NormalizedName]) -> bool {
        self.is_one_name() && names.iter().any(|name| self.text.fits(name, Breadth::Exact))
    }

    /// Whether the pattern has no separator.
    fn is_one_name(&self) -> bool {
        self.splits.is_empty()
    }

    fn is_split_or_has_wildcard(&self) -> bool {
        !self.splits.is_empty() || normalized::has_wildcard(&self.text.raw)
    }

    /// The parts of the pattern behind the label of an upstream, for every split whose
    /// label matches.
    fn below(
        &self,
        upstream: &NormalizedLabel,
        breadth: Breadth,
    ) -> impl Iterator<Item = &NormalizedName> {
        let has_label =
            move |(label, _): &&(NormalizedLabel, NormalizedName)| label.fits(upstream, breadth);
        self.splits.iter().filter(has_label).map(|(_, name)| name)
    }

    /// The pattern as one of URIs, and each part of it behind the label of an upstream.
    fn uri_patterns(&self, upstream: &NormalizedLabel, breadth: Breadth) -> Vec<UriPattern> {
        let below = self.below(upstream, breadth).map(|text| UriPattern::new(&text.raw));
        std::iter::once(self.uri.clone()).chain(below).collect()
    }

    /// The pattern as one of URIs.
    pub(crate) fn as_uri(&self) -> &UriPattern {
        &self.uri
    }
}

/// All names of a tool below its upstream's label: the upstream's own name and those that
/// `help` may show.
fn every_name(item: Names<'_>) -> Vec<NormalizedName> {
    let Names { upstream, name, exposed, .. } = item;
    let (levels, last) = name::place(upstream, name);
    let placed = levels.into_iter().chain([last]).collect::<Vec<_>>().join(".");
    // Of several lookalikes, `help` shows all but one with a tag.
    let tagged = format!("{placed}{}", name::tag(name, TAG_DIGITS));
    let shown = match exposed {
        ExposedNameRef::Path { path, .. } => Some(below_label(path).to_owned()),
        ExposedNameRef::Uri(_) | ExposedNameRef::UpstreamName => None,
    };
    let mut names = vec![name.to_owned(), placed, tagged];
    names.extend(shown);
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| NormalizedName::new(name)).collect()
}

/// The part of a path below its first level.
fn below_label(path: &str) -> &str {
    path.split_once(LEVEL).map_or(path, |(_, below)| below)
}

/// The last level of a path: the name within its namespace.
fn last_level(path: &str) -> &str {
    path.rsplit_once(LEVEL).map_or(path, |(_, last)| last)
}

/// An id without its version or hash.
fn without_hash(id: &str) -> &str {
    id.rsplit_once(['#', '@']).map_or(id, |(start, _)| start)
}

/// How many digits the tag of a lookalike has.
const TAG_DIGITS: usize = 4;

/// The most separators at which a pattern is split.
const MAX_SPLITS: usize = 16;

#[cfg(test)]
mod tests;
