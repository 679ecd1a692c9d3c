//! Connecting to servers: good ones, odd ones, hostile ones, real ones.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;
mod web;

mod conformance;
mod faithful;
mod hostile;
mod http;
mod modern;
mod oauth;
mod processes;
mod real;
mod relayed;
mod sse;
