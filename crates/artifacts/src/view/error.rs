//! Errors of a view. Each message says what to do instead.

/// A line for models with every selector and its parameters.
pub const USAGE: &str = "use one of head{chars,start} tail{chars} lines{start,end} \
     rows{start,end} json_keys{keys} slice{path,start,end} grep{pattern,context,ignore_case} \
     jq{filter} bytes{start,length} image{}";

/// Why a result could not be viewed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    #[error("a selector must be an object such as {{\"type\":\"head\",\"chars\":500}}")]
    NoObject,
    #[error("`{0}` is not a selector; {USAGE}")]
    Unknown(String),
    #[error("`{selector}` takes `{parameter}` as {expected}")]
    Parameter { selector: &'static str, parameter: &'static str, expected: &'static str },
    #[error("`{selector}` needs `{parameter}`, {expected}")]
    Missing { selector: &'static str, parameter: &'static str, expected: &'static str },
    #[error("the artifact is not JSON ({media_type}); use `head`, `lines` or `grep`")]
    NotJson { media_type: String },
    #[error("the artifact cannot be parsed as JSON: {0}; use `head`, `lines` or `grep`")]
    /// The JSON is nested too deeply or has a number that is too long.
    InputTooComplex(String),
    #[error("the artifact has no `{0}`; use `jq` with `paths` to list its paths")]
    NoPath(String),
    #[error("`{0}` is not an array; use `json_keys` or `jq`")]
    NoArray(String),
    #[error("the pattern is not a regular expression: {0}")]
    Pattern(String),
    #[error("this is not a jq filter: {0}")]
    InvalidFilter(String),
    #[error("the filter failed: {0}")]
    Jq(String),
    #[error("the filter takes too many steps or creates too much data; select less first")]
    StepLimit,
    #[error("the view took too long; select less first")]
    Stopped,
    #[error(
        "the artifact is {media_type}, not an image or audio of at most {limit} bytes; use `bytes`"
    )]
    NoImage { media_type: String, limit: usize },
}
