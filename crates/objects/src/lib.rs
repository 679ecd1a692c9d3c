//! Blobs in an S3 bucket.
//!
//! [`Objects`] implements [`Blobs`] of `store` on a bucket of Amazon, MinIO, Ceph
//! and the like; each blob is an object `prefix/owner/name`. It uses the HTTP client
//! that it is given (`transport`), so the program has one TLS stack and one set of
//! trusted certificates.
//!
//! The crate does not know tools or callers. It is the only one that speaks S3.

mod settings;

mod transport;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig};
use store::state::{BlobMeta, Blobs, StateError, StateFuture, check_size, later, ready};

pub use settings::{BucketPath, Config, Credentials, InvalidAddress, Style};

/// The maximum length of the reason in an error.
const MAX_REASON_CHARS: usize = 300;

/// A bucket, or the part of one under a prefix. Cheap to clone.
#[derive(Clone)]
pub struct Objects {
    bucket: Arc<AmazonS3>,
    prefix: Path,
    /// The maximum size of a blob in bytes.
    limit: u64,
}

impl Objects {
    /// Creates the store; it connects when it is first used. Fails if the settings
    /// contradict each other.
    pub fn new(config: &Config, client: reqwest::Client) -> Result<Objects, String> {
        let Config { place, region, endpoint, style, credentials, limit } = config;
        // Without credentials the environment or the machine provides them, as usual
        // on Amazon.
        let builder = match credentials {
            None => AmazonS3Builder::from_env(),
            Some(Credentials { key, secret, token }) => {
                let builder = AmazonS3Builder::new().with_access_key_id(key);
                let builder = builder.with_secret_access_key(secret);
                token.iter().fold(builder, |builder, token| builder.with_token(token))
            }
        };
        let retries = RetryConfig { max_retries: 2, ..RetryConfig::default() };
        let mut builder = builder
            .with_bucket_name(&place.bucket)
            .with_region(region)
            .with_virtual_hosted_style_request(*style == Style::Host)
            .with_retry(retries)
            .with_http_connector(transport::Connector(client));
        if let Some(endpoint) = endpoint {
            let is_plain = endpoint.scheme() == "http";
            let endpoint = endpoint.as_str().trim_end_matches('/');
            builder = builder.with_endpoint(endpoint).with_allow_http(is_plain);
        }
        let bucket = builder.build().map_err(|error| render_error(&error))?;
        let prefix = Path::from(place.prefix.as_str());
        Ok(Objects { bucket: Arc::new(bucket), prefix, limit: *limit })
    }

    /// Fails if the bucket does not exist or may not be used.
    pub async fn check(&self, timeout: Duration) -> Result<(), StateError> {
        self.list("check", timeout).await.map(drop)
    }

    fn owner_prefix(&self, owner: &str) -> Path {
        self.prefix.clone().join(BlobMeta::encode_name(owner))
    }

    fn object_path(&self, owner: &str, name: &str) -> Path {
        self.owner_prefix(owner).join(BlobMeta::encode_name(name))
    }

    /// Fetches the metadata of an object.
    async fn head(&self, object: &Path) -> Result<ObjectMeta, object_store::Error> {
        self.bucket.head(object).await
    }

    async fn read_range(
        &self,
        object: &Path,
        range: Range<u64>,
    ) -> Result<Bytes, object_store::Error> {
        if range.start < range.end {
            match self.bucket.get_range(object, range.clone()).await {
                // Some servers refuse a range after the end of the object.
                Err(error) if !matches!(error, object_store::Error::NotFound { .. }) => {
                    if range.start < self.head(object).await?.size {
                        return Err(error);
                    }
                }
                answer => return answer,
            }
        }
        self.head(object).await.map(|_| Bytes::new())
    }
}

impl Blobs for Objects {
    fn put<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        bytes: Bytes,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = check_size(bytes.len(), self.limit) {
            return ready(Err(error));
        }
        let object = self.object_path(owner, name);
        later(with_timeout(timeout, async move {
            self.bucket.put(&object, bytes.into()).await.map(drop)
        }))
    }

    fn get<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        range: Range<u64>,
        timeout: Duration,
    ) -> StateFuture<'a, Bytes> {
        let object = self.object_path(owner, name);
        // No blob is longer than the limit.
        let range = range.start..range.end.min(self.limit);
        later(with_timeout(timeout, async move { self.read_range(&object, range).await }))
    }

    /// If two delete one object at the same time, both may get `true`.
    fn delete<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        timeout: Duration,
    ) -> StateFuture<'a, bool> {
        let object = self.object_path(owner, name);
        later(with_timeout(timeout, async move {
            match self.head(&object).await {
                Err(object_store::Error::NotFound { .. }) => return Ok(false),
                looked => drop(looked?),
            }
            self.bucket.delete(&object).await.map(|()| true)
        }))
    }

    fn list<'a>(&'a self, owner: &'a str, timeout: Duration) -> StateFuture<'a, Vec<BlobMeta>> {
        let prefix = self.owner_prefix(owner);
        later(with_timeout(timeout, async move {
            let found = self.bucket.list(Some(&prefix)).try_collect::<Vec<_>>().await?;
            // Other objects in the bucket have other names, and are left out.
            let blobs = found
                .iter()
                .filter_map(|object| BlobMeta::decode(object.location.filename()?, object.size));
            Ok(BlobMeta::sorted(blobs))
        }))
    }
}

/// Awaits a request for at most `timeout`, and converts its error.
async fn with_timeout<T>(
    timeout: Duration,
    answer: impl Future<Output = Result<T, object_store::Error>>,
) -> Result<T, StateError> {
    match tokio::time::timeout(timeout, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(object_store::Error::NotFound { source, .. }))
            if is_missing_object(&source.to_string()) =>
        {
            Err(StateError::Gone)
        }
        Ok(Err(error)) => Err(StateError::unavailable(render_error(&error))),
        Err(_) => {
            let reason = format!("the object store did not answer within {timeout:?}");
            Err(StateError::unavailable(reason))
        }
    }
}

/// Returns whether an error is about a missing object. A missing bucket is an error
/// in the settings.
fn is_missing_object(reason: &str) -> bool {
    !reason.contains("NoSuchBucket")
}

/// Renders an error as one line of limited length.
fn render_error(error: &object_store::Error) -> String {
    let text = error.to_string();
    let line: Vec<&str> = text.split_whitespace().collect();
    line.join(" ").chars().take(MAX_REASON_CHARS).collect()
}
