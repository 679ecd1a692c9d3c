//! Logs: one stream each, trimmed to about a number of lines.

use std::time::Duration;

use bytes::Bytes;
use redis::cmd;
use store::state::{Lines, StateFuture, check_size, later, ready};

use crate::Valkey;

/// One entry of a stream: its id, and its names and values in turn.
type Entry = (String, Vec<Bytes>);

impl Lines for Valkey {
    fn append<'a>(&'a self, log: &'a str, line: Bytes, timeout: Duration) -> StateFuture<'a, ()> {
        if let Err(error) = check_size(line.len(), self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        later(async move {
            let mut add = cmd("XADD");
            add.arg(self.key("s", log)).arg("MAXLEN").arg("~").arg(self.0.limits.n_lines);
            add.arg("*").arg("line").arg(line.as_ref());
            self.0.link.command::<String>(timeout, &add).await.map(drop)
        })
    }

    fn last<'a>(
        &'a self,
        log: &'a str,
        n_lines: usize,
        timeout: Duration,
    ) -> StateFuture<'a, Vec<Bytes>> {
        later(async move {
            let mut range = cmd("XREVRANGE");
            range.arg(self.key("s", log)).arg("+").arg("-").arg("COUNT").arg(n_lines);
            let newest_first: Vec<Entry> = self.0.link.command(timeout, &range).await?;
            let line = |(_, fields): Entry| fields.into_iter().nth(1);
            Ok(newest_first.into_iter().rev().filter_map(line).collect())
        })
    }
}
