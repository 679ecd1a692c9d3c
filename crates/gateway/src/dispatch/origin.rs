//! The surface that a call came from, and how that surface writes calls.

use catalog::Catalog;

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

/// The longest URI that is repeated to the caller, in bytes.
pub(crate) const MAX_REPEATED_URI: usize = 400;
