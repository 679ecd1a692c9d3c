//! The static files of the console: a style sheet, a script and an icon.

use http::Response;

use crate::response::{Content, asset};

const STYLE: &str = include_str!("../assets/console.css");
const SCRIPT: &str = include_str!("../assets/console.js");
const ICON: &str = include_str!("../assets/icon.svg");

/// Returns the file of that name.
pub(crate) fn find(name: &str) -> Option<Response<Content>> {
    Some(match name {
        "console.css" => asset("text/css; charset=utf-8", STYLE),
        "console.js" => asset("text/javascript; charset=utf-8", SCRIPT),
        "icon.svg" => asset("image/svg+xml", ICON),
        _ => return None,
    })
}
