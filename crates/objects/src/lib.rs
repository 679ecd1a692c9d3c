//! Large bytes in an object store that speaks S3.
//!
//! [`Objects`] implements [`Blobs`] of `store` on a bucket of Amazon, MinIO, Ceph
//! and the like, each blob an object `prefix/owner/name`. It speaks through the
//! HTTP client that it is given (`transport`), so there is one TLS stack and one
//! set of trusted certificates in the program.
//!
//! The crate knows nothing of tools and callers. It is the only one that speaks S3.

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
use store::state::{BlobInfo, Blobs, StateError, StateFuture, fits, later, ready};

pub use settings::{Config, Credentials, InvalidAddress, Place, Style};

/// How long what the server says about a failure may be.
const REASON: usize = 300;

/// A bucket, or a part of one. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Objects {
    bucket: Arc<AmazonS3>,
    prefix: Path,
    limit: u64,
}

impl Objects {
    /// Connects when something is first asked. Fails when the settings cannot be
    /// used with each other.
    pub fn new(config: &Config, client: reqwest::Client) -> Result<Objects, String> {
        let Config { place, region, endpoint, style, credentials, limit } = config;
        // A program of Amazon finds its identity in the environment or asks the
        // machine for it; so do we where none is given.
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
        let bucket = builder.build().map_err(|error| reason(&error))?;
        let prefix = Path::from(place.prefix.as_str());
        Ok(Objects { bucket: Arc::new(bucket), prefix, limit: *limit })
    }

    /// Whether the bucket is there and may be used.
    pub async fn check(&self, within: Duration) -> Result<(), StateError> {
        self.list("check", within).await.map(drop)
    }

    fn of_owner(&self, owner: &str) -> Path {
        self.prefix.clone().join(tool::hex::encode(owner.as_bytes()))
    }

    /// Owners and blobs may be called anything.
    fn object(&self, owner: &str, name: &str) -> Path {
        self.of_owner(owner).join(tool::hex::encode(name.as_bytes()))
    }

    /// Looks at an object without reading it.
    async fn head(&self, object: &Path) -> Result<ObjectMeta, object_store::Error> {
        self.bucket.head(object).await
    }

    async fn part(&self, object: &Path, range: Range<u64>) -> Result<Bytes, object_store::Error> {
        if range.start < range.end {
            match self.bucket.get_range(object, range.clone()).await {
                // What lies behind the end is an error to some servers.
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
        within: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = fits(bytes.len(), self.limit) {
            return ready(Err(error));
        }
        let object = self.object(owner, name);
        later(within_time(
            within,
            async move { self.bucket.put(&object, bytes.into()).await.map(drop) },
        ))
    }

    fn get<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        range: Range<u64>,
        within: Duration,
    ) -> StateFuture<'a, Bytes> {
        let object = self.object(owner, name);
        // More than may be kept need not be read.
        let range = range.start..range.end.min(self.limit);
        later(within_time(within, async move { self.part(&object, range).await }))
    }

    /// Two that delete one object at the same time may both hear that it was there.
    fn delete<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        within: Duration,
    ) -> StateFuture<'a, bool> {
        let object = self.object(owner, name);
        later(within_time(within, async move {
            match self.head(&object).await {
                Err(object_store::Error::NotFound { .. }) => return Ok(false),
                looked => drop(looked?),
            }
            self.bucket.delete(&object).await.map(|()| true)
        }))
    }

    fn list<'a>(&'a self, owner: &'a str, within: Duration) -> StateFuture<'a, Vec<BlobInfo>> {
        let prefix = self.of_owner(owner);
        later(within_time(within, async move {
            let found = self.bucket.list(Some(&prefix)).try_collect::<Vec<_>>().await?;
            let mut blobs: Vec<BlobInfo> = found.iter().filter_map(info).collect();
            blobs.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(blobs)
        }))
    }
}

/// What else lies in the bucket has a name that is none of a blob.
fn info(object: &ObjectMeta) -> Option<BlobInfo> {
    let name = tool::hex::decode(object.location.filename()?)?;
    Some(BlobInfo { name: String::from_utf8(name).ok()?, n_bytes: object.size })
}

async fn within_time<T>(
    within: Duration,
    answer: impl Future<Output = Result<T, object_store::Error>>,
) -> Result<T, StateError> {
    match tokio::time::timeout(within, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(object_store::Error::NotFound { source, .. })) if is_object(&source.to_string()) => {
            Err(StateError::Gone)
        }
        Ok(Err(error)) => Err(StateError::unavailable(reason(&error))),
        Err(_) => {
            let reason = format!("the object store did not answer within {within:?}");
            Err(StateError::unavailable(reason))
        }
    }
}

/// Whether it is an object that is missing. A bucket that is missing is a fault of
/// the settings.
fn is_object(reason: &str) -> bool {
    !reason.contains("NoSuchBucket")
}

/// Why, in one line of a bounded length.
fn reason(error: &object_store::Error) -> String {
    let text = error.to_string();
    let line: Vec<&str> = text.split_whitespace().collect();
    line.join(" ").chars().take(REASON).collect()
}
