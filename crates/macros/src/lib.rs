//! The attribute macro `#[tool]`, which turns a Rust function into a tool.
//!
//! The function stays as it is and can be called as before. The macro adds a
//! type of the same name (an empty enum: types and functions have separate
//! namespaces) that implements `native::Tool`, and, unless the tool is
//! `manual`, an entry for link-time discovery. Use the macro through the crate
//! `native`, which the generated code refers to.

mod options;
mod signature;

mod expand;

use proc_macro::TokenStream;

/// Turns a function into a tool.
///
/// | option | meaning |
/// |---|---|
/// | `name = "…"` | what clients call it; the function's name otherwise |
/// | `title = "…"` | a name for people |
/// | `description = "…"` | the doc comment otherwise; one of both must be there |
/// | `read_only`, `destructive`, `idempotent`, `open_world` | hints; also `= false` |
/// | `category = "…"`, `tags = ["…"]` | for finding it: searched with the description |
/// | `version = "…"`, `deprecated_in = "…"` | the tool's version; the version since which it is deprecated |
/// | `cache_ttl = "5m"` | how long gatelet may cache a result |
/// | `timeout = "10s"` | how long a call may take; 30 s otherwise |
/// | `manual` | not discovered; register it by hand |
///
/// Parameters become arguments: doc comments and `#[serde]` or `#[schemars]`
/// attributes on them describe the schema, `#[default(…)]` makes one optional.
/// A parameter of type `&Context`, `State<T>` or `Args<T>` is filled in by the
/// registry instead.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::tool(options.into(), function.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
