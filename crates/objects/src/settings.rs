//! The settings of an object store: the bucket, its address and the credentials.

use std::fmt;

use url::Url;

/// The settings of an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub place: BucketPath,
    pub region: String,
    /// The address of the server; Amazon's if `None`.
    pub endpoint: Option<Url>,
    pub style: Style,
    /// If `None`, those of the environment or the machine.
    pub credentials: Option<Credentials>,
    /// The maximum size of a blob in bytes.
    pub limit: u64,
}

impl Config {
    pub const REGION: &'static str = "us-east-1";
    pub const LIMIT: u64 = 1 << 30;
}

/// Where the name of the bucket is in a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `https://endpoint/bucket/object`, as most self-hosted servers need it.
    Path,
    /// `https://bucket.endpoint/object`.
    Host,
}

/// The access key, its secret, and a session token if it has one.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub key: String,
    pub secret: String,
    pub token: Option<String>,
}

/// Hides the secret and the token, so that they do not reach a log.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A bucket and the prefix of its object names: `s3://bucket/prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketPath {
    pub bucket: String,
    pub prefix: String,
}

/// A text that is not a [`BucketPath`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write `s3://bucket/prefix`")]
pub struct InvalidAddress(String);

impl BucketPath {
    pub fn parse(text: &str) -> Result<BucketPath, InvalidAddress> {
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
        Ok(BucketPath { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl fmt::Display for BucketPath {
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
            let parsed = BucketPath::parse(text).map(|place| place.to_string());
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
