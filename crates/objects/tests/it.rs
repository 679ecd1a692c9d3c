//! The engine against a real server that speaks S3: the tests that every store of
//! blobs passes, and what only a server can do to its users.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use objects::{BucketPath, Config, Credentials, Objects, Style};
use store::conformance;
use store::state::{Blobs, StateError};
use testkit::object_store::{BUCKET, ObjectStore};

const TIMEOUT: Duration = Duration::from_secs(10);

fn config(server: &ObjectStore, place: &str) -> Config {
    Config {
        place: BucketPath::parse(place).expect("a place"),
        region: Config::REGION.to_owned(),
        endpoint: Some(server.endpoint().parse().expect("an address")),
        style: Style::Path,
        credentials: Some(Credentials {
            key: "key".to_owned(),
            secret: "deep-secret".to_owned(),
            token: None,
        }),
        limit: 1 << 20,
    }
}

fn open(server: &ObjectStore, place: &str) -> Objects {
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    Objects::new(&config(server, place), client).expect("a store")
}

#[tokio::test]
async fn a_bucket_does_what_every_store_of_blobs_does() {
    testkit::needs!(ObjectStore);
    let server = ObjectStore::start();
    let place = format!("s3://{BUCKET}/team/gate");
    conformance::blobs(&|| Arc::new(open(&server, &place)) as _).await;
    let other = open(&server, &format!("s3://{BUCKET}/team"));
    assert_eq!(other.list("ann", TIMEOUT).await, Ok(Vec::new()), "another prefix");
    let too_long = Bytes::from(vec![0; (1 << 20) + 1]);
    let refused = other.put("ann", "long", too_long, TIMEOUT).await;
    assert_eq!(refused, Err(StateError::TooLarge { limit: 1 << 20 }));
    let longest = Bytes::from(vec![7; 1 << 20]);
    assert_eq!(other.put("ann", "long", longest.clone(), TIMEOUT).await, Ok(()));
    assert_eq!(other.get("ann", "long", 0..u64::MAX, TIMEOUT).await, Ok(longest));
    assert_eq!(other.put("ann", "none", Bytes::new(), TIMEOUT).await, Ok(()));
    assert_eq!(other.get("ann", "none", 0..u64::MAX, TIMEOUT).await, Ok(Bytes::new()));
}

#[tokio::test]
async fn a_bucket_that_is_missing_is_told_from_a_blob_that_is_gone() {
    testkit::needs!(ObjectStore);
    let server = ObjectStore::start();
    let missing = open(&server, "s3://no-such-bucket");
    for answer in
        [missing.check(TIMEOUT).await, missing.get("a", "b", 0..1, TIMEOUT).await.map(drop)]
    {
        let said = answer.unwrap_err().to_string();
        assert!(said.contains("no-such-bucket") || said.contains("NoSuchBucket"), "{said}");
        assert!(!said.contains("deep-secret"), "{said}");
    }
    let there = open(&server, &format!("s3://{BUCKET}"));
    assert_eq!(there.check(TIMEOUT).await, Ok(()));
    assert_eq!(there.get("a", "b", 0..1, TIMEOUT).await, Err(StateError::Gone));
}

#[tokio::test]
async fn a_server_that_is_away_holds_nobody_longer_than_they_wait_and_comes_back_by_itself() {
    testkit::needs!(ObjectStore);
    let server = ObjectStore::start();
    let bucket = open(&server, &format!("s3://{BUCKET}"));
    server.kill();
    let short = Duration::from_millis(200);
    let away = bucket.put("ann", "x", Bytes::from_static(b"1"), short).await;
    assert!(matches!(away, Err(StateError::Unavailable { .. })), "{away:?}");
    server.resume();
    assert_eq!(bucket.put("ann", "x", Bytes::from_static(b"1"), TIMEOUT).await, Ok(()));
}
