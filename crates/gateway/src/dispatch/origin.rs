//! Where a call comes from.

use catalog::Catalog;
use tool::Json;

use crate::choice::Surface;
use policy::validate::ValidCall;

/// The surface that a call came in by, and how that surface writes calls.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) surface: Surface,
    /// A call as its surface has it written, open at the end for one more
    /// argument; empty where calls are not written in one way.
    pub(crate) call_text: fn(&Catalog, &ValidCall) -> String,
}

/// For surfaces whose calls are not written in one way.
pub(crate) fn unwritten(_: &Catalog, _: &ValidCall) -> String {
    String::new()
}

/// Arguments that are longer are not repeated to who made a call.
pub(crate) const REPEATED: usize = 400;

/// The arguments of a call as they are repeated to who made it.
pub(crate) fn repeated_arguments(call: &ValidCall) -> &str {
    let arguments = call.arguments().map_or("{}", Json::as_str);
    if arguments.len() <= REPEATED { arguments } else { "{…}" }
}
