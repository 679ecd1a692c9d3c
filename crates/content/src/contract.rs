//! Constants of the contract that several modules use.

/// The name under which the toolset presents itself.
pub const PLATFORM: &str = "eMCP";

/// The version of the contract that the toolset implements.
pub const TOOLSET_VERSION: &str = "1.0";

/// What `data.reason` of an error says when a result is over its limit.
pub(crate) const RESULT_TOO_LARGE: &str = "result_too_large";

/// What it says when the caller may not.
pub(crate) const FORBIDDEN: &str = "forbidden";

/// Where the same stands in the `_meta` of an error that is a result.
pub(crate) const REASON: &str = "gatelet/reason";
