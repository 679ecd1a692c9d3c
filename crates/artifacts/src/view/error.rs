//! Why a view has nothing to show.

/// One line that tells a model every selector and its parameters.
pub const USAGE: &str = "use one of head{chars,start} tail{chars} lines{start,end} \
     rows{start,end} json_keys{keys} slice{path,start,end} grep{pattern,context,ignore_case} \
     jq{filter} bytes{start,length} image{}";

/// Why there is nothing to see. Each says what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    #[error("a selector is an object such as {{\"type\":\"head\",\"chars\":500}}")]
    NoObject,
    #[error("`{0}` is no selector; {USAGE}")]
    Unknown(String),
    #[error("`{selector}` takes `{parameter}` as {expected}")]
    Parameter { selector: &'static str, parameter: &'static str, expected: &'static str },
    #[error("`{selector}` needs `{parameter}`, {expected}")]
    Missing { selector: &'static str, parameter: &'static str, expected: &'static str },
    #[error("the artifact is no JSON ({media_type}); use `head`, `lines` or `grep`")]
    NoJson { media_type: String },
    #[error("the artifact cannot be read as JSON: {0}; use `head`, `lines` or `grep`")]
    Unread(String),
    #[error("nothing is at `{0}`; use `jq` with `paths` to see what there is")]
    NoPath(String),
    #[error("`{0}` is no array; use `json_keys` or `jq`")]
    NoArray(String),
    #[error("the pattern is no regular expression: {0}")]
    Pattern(String),
    #[error("this is no jq filter: {0}")]
    Filter(String),
    #[error("the filter failed: {0}")]
    Jq(String),
    #[error("the filter takes too many steps or makes too much; select less first")]
    Steps,
    #[error("it takes too long; select less first")]
    Stopped,
    #[error(
        "the artifact is {media_type}, not an image or audio of at most {limit} bytes; use `bytes`"
    )]
    NoImage { media_type: String, limit: usize },
}
