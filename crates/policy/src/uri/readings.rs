//! What servers may make of one URI.

use std::collections::BTreeSet;

use super::{canonical, is_dropped, path};

/// How many ways to read a URI are compared. One that has more, by being full of
/// backslashes, escapes, users and parameters, is forbidden by whatever forbids a URI.
const MAX_READINGS: usize = 64;

/// All places that a URI may lead to, depending on the server that reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readings {
    /// With everything that was written: as a URI with a query and a fragment, and all
    /// of it as a path.
    pub(super) whole: BTreeSet<String>,
    /// Without what a server may ignore: a query, a fragment, a user, a slash at the end.
    pub(super) reduced: BTreeSet<String>,
    /// Whether there are more readings than are compared.
    pub(super) is_unclear: bool,
}

impl Readings {
    pub fn new(uri: &str) -> Readings {
        let mut readings =
            Readings { whole: BTreeSet::new(), reduced: BTreeSet::new(), is_unclear: false };
        for text in texts(uri) {
            readings.add_whole(&text);
            if !readings.add_reduced(&text) {
                readings.is_unclear = true;
                break;
            }
        }
        readings
    }

    /// Whether some server may take it for a URI with this scheme, written in lower case.
    pub(crate) fn may_have_scheme(&self, scheme: &str) -> bool {
        let has_scheme =
            |uri: &String| uri.strip_prefix(scheme).is_some_and(|rest| rest.starts_with(':'));
        self.is_unclear || self.whole.iter().chain(&self.reduced).any(has_scheme)
    }

    fn add_whole(&mut self, text: &str) {
        self.whole.insert(canonical::whole(text));
        if let Some(at) = text.find(['?', '#']) {
            self.whole.insert(format!("{}{}", canonical::whole(&text[..at]), &text[at..]));
        }
    }

    /// Returns whether there was room for all of them.
    fn add_reduced(&mut self, text: &str) -> bool {
        let fragment = text.find('#').unwrap_or(text.len());
        let query = text.find(['?', '#']).unwrap_or(text.len());
        let mut ends = vec![text.len(), fragment, query];
        ends.dedup();
        let reduced = &mut self.reduced;
        let mut add = |uri: String| {
            reduced.insert(uri);
            reduced.len() <= MAX_READINGS
        };
        ends.into_iter().all(|end| canonical::reduced(&text[..end], &mut add))
            // The path without the slash at its end, and the query behind it.
            && canonical::reduced(&text[..query], &mut |uri| add(uri + &text[query..]))
    }
}

/// The texts that a server may split: as it was written, or unescaped first, once or to
/// the end, perhaps without control characters; each with a backslash that is a slash, or
/// is none.
fn texts(uri: &str) -> BTreeSet<String> {
    let unescaped = path::unescaped(uri);
    let bare: String = unescaped.chars().filter(|c| !is_dropped(*c)).collect();
    let texts = BTreeSet::from([uri.to_owned(), path::unescaped_once(uri), unescaped, bare]);
    let slashed: Vec<String> = texts.iter().map(|text| text.replace('\\', "/")).collect();
    texts.into_iter().chain(slashed).collect()
}
