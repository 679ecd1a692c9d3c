//! The surface that a call came from.

use catalog::Catalog;
use tool::Json;

use crate::choice::Surface;
use policy::validate::ValidCall;

/// The surface that a call came in by, and how that surface writes calls.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) surface: Surface,
    /// A call as a client of the surface writes it, without the closing
    /// parenthesis, so that an argument can be added; empty where the surface has
    /// no such form.
    pub(crate) call_text: fn(&Catalog, &ValidCall) -> String,
}

/// For surfaces without a written form of calls.
pub(crate) fn no_call_text(_: &Catalog, _: &ValidCall) -> String {
    String::new()
}

/// Longer arguments are not repeated to the caller.
pub(crate) const MAX_REPEATED_ARGUMENTS: usize = 400;

/// The arguments of a call as they are repeated to the caller.
pub(crate) fn repeated_arguments(call: &ValidCall) -> &str {
    let arguments = call.arguments().map_or("{}", Json::as_str);
    if arguments.len() <= MAX_REPEATED_ARGUMENTS { arguments } else { "{…}" }
}
