//! Constants of the eMCP contract that several modules use.

/// The name under which the toolset presents itself.
pub const PLATFORM: &str = "eMCP";

/// The version of the contract that the toolset implements.
pub const TOOLSET_VERSION: &str = "1.0";

/// The `data.reason` of an error for a result over its size limit.
pub(crate) const RESULT_TOO_LARGE: &str = "result_too_large";

/// The `data.reason` of an error for a caller who lacks a right on the site.
pub(crate) const FORBIDDEN: &str = "forbidden";

/// The key of the reason in the `_meta` of an error that is reported as a result.
pub(crate) const REASON_META_KEY: &str = "gatelet/reason";
