//! The pages, one file each: what it shows, and what its forms do.

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

use maud::html;

use crate::layout::Page;

/// The page that is not there.
pub(crate) fn missing() -> Page {
    plain("Nothing here", "There is no such page, or what it was about is gone.")
}

/// The page for what cannot be understood.
pub(crate) fn bad(why: &str) -> Page {
    plain("That did not work", why)
}

fn plain(title: &str, text: &str) -> Page {
    let content = html! { h1 { (title) } p.lead { (text) } };
    Page { title: title.to_owned(), section: None, topics: "approvals", content }
}
