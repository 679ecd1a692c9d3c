//! The login page.

use http::{Response, StatusCode};
use maud::html;

use crate::layout;
use crate::response::{self, Content};

/// Renders the login page; `next` is the path to go on to, `error` why a login failed.
pub(crate) fn page(status: StatusCode, next: &str, error: Option<&str>) -> Response<Content> {
    let content = html! {
        h1 { "Log in to gatelet" }
        @if let Some(error) = error { p.notice role="alert" { (error) } }
        div.panel {
            h2 { "On this machine" }
            p { "Run " code { "gatelet console" } " in a shell. It opens this page with a link that works once." }
        }
        div.panel {
            h2 { "With a key" }
            form method="post" action="/console/login" {
                input type="hidden" name="next" value=(next);
                div.field {
                    label for="key" { "Key or token" }
                    p.hint id="key-hint" { "Of an identity with the role " code { "operator" } "." }
                    input type="password" id="key" name="key" autocomplete="off" required aria-describedby="key-hint";
                }
                button.primary { "Log in" }
            }
        }
    };
    response::page(status, layout::bare("Log in", &content))
}
