//! Logs: a stream each, cut at about so many lines.

use std::time::Duration;

use bytes::Bytes;
use redis::cmd;
use store::state::{Lines, StateFuture, fits, later, ready};

use crate::Valkey;

/// One entry of a stream: its id, and names with values.
type Entry = (String, Vec<Bytes>);

impl Lines for Valkey {
    fn append<'a>(&'a self, log: &'a str, line: Bytes, within: Duration) -> StateFuture<'a, ()> {
        if let Err(error) = fits(line.len(), self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        later(async move {
            let mut add = cmd("XADD");
            add.arg(self.key("s", log)).arg("MAXLEN").arg("~").arg(self.0.limits.n_lines);
            add.arg("*").arg("line").arg(line.as_ref());
            self.0.link.command::<String>(within, &add).await.map(drop)
        })
    }

    fn last<'a>(
        &'a self,
        log: &'a str,
        n_lines: usize,
        within: Duration,
    ) -> StateFuture<'a, Vec<Bytes>> {
        later(async move {
            let mut range = cmd("XREVRANGE");
            range.arg(self.key("s", log)).arg("+").arg("-").arg("COUNT").arg(n_lines);
            let newest_first: Vec<Entry> = self.0.link.command(within, &range).await?;
            let line = |(_, fields): Entry| fields.into_iter().nth(1);
            Ok(newest_first.into_iter().rev().filter_map(line).collect())
        })
    }
}
