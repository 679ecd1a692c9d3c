//! The surface that a call came from, and how that surface writes calls.

use catalog::Catalog;
use tool::Json;

use crate::choice::Surface;
use policy::validate::ValidCall;

/// The surface that a call came from.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) surface: Surface,
    /// Renders a call as a client of the surface writes it, without the closing
    /// parenthesis, so that an argument can be added. Empty if the surface has no
    /// such form.
    pub(crate) call_text: fn(&Catalog, &ValidCall) -> String,
}

/// The `call_text` of surfaces on which a model does not write calls as text.
pub(crate) fn no_call_text(_: &Catalog, _: &ValidCall) -> String {
    String::new()
}

/// The longest arguments that are repeated to the caller, in bytes.
pub(crate) const MAX_REPEATED_ARGUMENTS: usize = 400;

/// Returns the arguments of a call as they are repeated to the caller; long ones are
/// left out.
pub(crate) fn repeated_arguments(call: &ValidCall) -> &str {
    let arguments = call.arguments().map_or("{}", Json::as_str);
    if arguments.len() <= MAX_REPEATED_ARGUMENTS { arguments } else { "{…}" }
}
