//! Which bucket is used, and how.

use std::fmt;

use url::Url;

/// How an object store is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub place: Place,
    pub region: String,
    /// Amazon's own when `None`.
    pub endpoint: Option<Url>,
    pub style: Style,
    /// What the environment or the machine says when `None`.
    pub credentials: Option<Credentials>,
    /// The longest blob, in bytes.
    pub limit: u64,
}

impl Config {
    pub const REGION: &'static str = "us-east-1";
    pub const LIMIT: u64 = 1 << 30;
}

/// Where the name of the bucket stands in an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `https://endpoint/bucket/object`, as most servers of one's own want it.
    Path,
    /// `https://bucket.endpoint/object`.
    Host,
}

/// Who asks.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub key: String,
    pub secret: String,
    pub token: Option<String>,
}

/// A secret must not reach a log.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A bucket and what its objects begin with: `s3://bucket/prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub bucket: String,
    pub prefix: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write `s3://bucket/prefix`")]
pub struct InvalidAddress(String);

impl Place {
    pub fn parse(text: &str) -> Result<Place, InvalidAddress> {
        let invalid = |why: &str| Err(InvalidAddress(why.to_owned()));
        let Some(rest) = text.strip_prefix("s3://") else {
            return invalid("an object store is named by `s3://`");
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-_".contains(c);
        if bucket.len() < 3 || 63 < bucket.len() || !bucket.chars().all(is_legal) {
            return invalid("the name of a bucket has 3 to 63 of a-z, 0-9, `.`, `-` and `_`");
        }
        let prefix = prefix.trim_matches('/');
        let is_part = |part: &str| {
            let legal = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
            !part.is_empty() && part != "." && part != ".." && part.chars().all(legal)
        };
        // Object names may have 1,024 bytes, most of which are for the blob.
        if 200 < prefix.len() || !(prefix.is_empty() || prefix.split('/').all(is_part)) {
            return invalid(
                "the prefix has letters, digits, `.`, `-`, `_` between `/`, at most 200",
            );
        }
        Ok(Place { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_bucket_and_what_its_objects_begin_with() {
        for (text, expected) in [
            ("s3://answers", "s3://answers/"),
            ("s3://answers/team/gate/", "s3://answers/team/gate"),
            ("s3://My", "the name of a bucket"),
            ("s3://answers/../other", "the prefix has"),
            ("s3://answers/a//b", "the prefix has"),
            ("s3://answers/a?b", "the prefix has"),
            ("http://answers", "an object store is named by"),
        ] {
            let parsed = Place::parse(text).map(|place| place.to_string());
            let said = parsed.unwrap_or_else(|error| error.to_string());
            assert!(said.starts_with(expected), "{text}: {said}");
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        let credentials = Credentials {
            key: "id".to_owned(),
            secret: "deep".to_owned(),
            token: Some("short".to_owned()),
        };
        let shown = format!("{credentials:?}");
        assert!(shown.contains("id") && !shown.contains("deep") && !shown.contains("short"));
    }
}
