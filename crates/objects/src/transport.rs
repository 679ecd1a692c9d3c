//! Sends S3 requests through the HTTP client of the program.

use async_trait::async_trait;
use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};

/// Provides the HTTP client to the S3 library.
#[derive(Debug)]
pub(crate) struct Connector(pub(crate) reqwest::Client);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Transport(self.0.clone())))
    }
}

#[derive(Debug)]
struct Transport(reqwest::Client);

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let invalid = |error| HttpError::new(HttpErrorKind::Unknown, error);
        let url: url::Url = parts.uri.to_string().parse().map_err(invalid)?;
        let mut request = reqwest::Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        *request.body_mut() = Some(reqwest::Body::wrap(body));
        let answer = self.0.execute(request).await.map_err(to_http_error)?;
        let answer: http::Response<reqwest::Body> = answer.into();
        Ok(answer.map(|body| HttpResponseBody::new(body.map_err(to_http_error))))
    }
}

/// Converts an error into the kind by which the S3 library decides on retries: a
/// request that was not sent is repeated, any other only if it is idempotent.
fn to_http_error(error: reqwest::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else if error.is_decode() {
        HttpErrorKind::Decode
    } else {
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error.without_url())
}
