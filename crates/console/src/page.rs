//! The pages of the console, one file each: the content of the page, and the actions of
//! its forms. An action returns the path to go to and a notice to show there.

pub(crate) mod login;

pub(crate) mod overview;

pub(crate) mod approvals;
pub(crate) mod artifacts;
pub(crate) mod callers;
pub(crate) mod calls;
pub(crate) mod config;
pub(crate) mod findings;
pub(crate) mod tools;
pub(crate) mod upstreams;

mod look_as;

use maud::html;

use crate::layout::Page;

/// Renders the page for a path that does not exist.
pub(crate) fn missing() -> Page {
    plain("Nothing here", "There is no such page, or what it was about is gone.")
}

/// Renders the page for an invalid request.
pub(crate) fn bad(why: &str) -> Page {
    plain("That did not work", why)
}

fn plain(title: &str, text: &str) -> Page {
    let content = html! { h1 { (title) } p.lead { (text) } };
    Page { title: title.to_owned(), section: None, topics: "approvals", content }
}
