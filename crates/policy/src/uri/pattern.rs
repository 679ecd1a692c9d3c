//! A pattern of URIs, as an operator writes it.

use std::collections::BTreeSet;

use super::{Readings, canonical};
use crate::glob::{glob, glob_ignoring_case};

/// A pattern of URIs in its canonical forms. `*` stands for anything, `?` for one character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UriPattern {
    /// What was written, with the host in each of its spellings.
    whole: BTreeSet<String>,
    /// Its forms for servers that ignore some of a URI.
    reduced: BTreeSet<String>,
}

impl UriPattern {
    pub(crate) fn new(text: &str) -> UriPattern {
        let text = text.replace('\\', "/");
        let mut whole: BTreeSet<String> = canonical::with_every_host(&text).into_iter().collect();
        // Any port may be the default one, which is not written.
        let without_port: Vec<String> =
            whole.iter().filter_map(|form| without_any_port(form)).collect();
        whole.extend(without_port);
        let mut reduced = BTreeSet::new();
        let query = text.find(['?', '#']).unwrap_or(text.len());
        for end in [text.len(), query] {
            canonical::reduced(&text[..end], &mut |form| {
                reduced.insert(form);
                true
            });
        }
        UriPattern { whole, reduced }
    }

    /// Whether a server may read a URI as one that fits: for what forbids. Case does not
    /// matter, because there are file systems where it does not.
    pub(crate) fn may_match(&self, uri: &Readings) -> bool {
        let fits = |reading: &String| {
            let with_slash = format!("{reading}/");
            let mut forms = self.whole.iter();
            forms.any(|form| {
                glob_ignoring_case(form, reading) || glob_ignoring_case(form, &with_slash)
            })
        };
        uri.is_unclear || uri.reduced.iter().chain(&uri.whole).any(fits)
    }

    /// Whether a URI fits however a server reads it: for what allows.
    pub(crate) fn matches_exactly(&self, uri: &Readings) -> bool {
        let fits_as_written = |reading: &String| self.whole.iter().any(|form| glob(form, reading));
        let fits = |reading: &String| {
            let with_slash = format!("{reading}/");
            let mut forms = self.whole.iter().chain(&self.reduced);
            forms.any(|form| glob(form, reading) || glob(form, &with_slash))
        };
        !uri.is_unclear && uri.whole.iter().all(fits_as_written) && uri.reduced.iter().all(fits)
    }
}

/// A form without the `:*` behind its host.
fn without_any_port(form: &str) -> Option<String> {
    let (scheme, rest) = form.split_once("://")?;
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].strip_suffix(":*")?;
    Some(format!("{scheme}://{host}{}", &rest[end..]))
}
