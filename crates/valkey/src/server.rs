//! What a server says of itself, and whether it is fit to hold state.

use redis::aio::ConnectionLike;
use redis::{InfoDict, RedisResult};

use crate::settings::Eviction;

/// The oldest server that has what the scripts use.
const OLDEST: u32 = 7;

/// What is known of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// Valkey says the version of Redis that it does everything of.
    version: String,
    /// What it drops when it is full.
    policy: String,
}

impl Server {
    pub(crate) async fn ask(connection: &mut impl ConnectionLike) -> RedisResult<Server> {
        let mut info = redis::cmd("INFO");
        info.arg("server");
        let server: InfoDict = info.query_async(connection).await?;
        let mut info = redis::cmd("INFO");
        info.arg("memory");
        let memory: InfoDict = info.query_async(connection).await?;
        let said = |info: &InfoDict, key: &str| info.get::<String>(key).unwrap_or_default();
        let version = said(&server, "redis_version");
        Ok(Server { version, policy: said(&memory, "maxmemory_policy") })
    }

    /// Why it must not be used, if it must not.
    pub(crate) fn fault(&self, eviction: Eviction) -> Option<String> {
        let major = self.version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        // A server behind a proxy may not say; it is taken at its word otherwise.
        if major.is_some_and(|major| major < OLDEST) {
            let version = &self.version;
            return Some(format!(
                "the store is version {version}, and gatelet needs Valkey or Redis {OLDEST} or newer"
            ));
        }
        let keeps = matches!(self.policy.as_str(), "" | "noeviction");
        (!keeps && eviction == Eviction::Refuse).then(|| {
            let policy = &self.policy;
            format!(
                "the store drops keys when it is full (maxmemory-policy {policy}), which would lose \
                 tokens, leases and limits without a word: set `maxmemory-policy noeviction` on the \
                 server, or `eviction = \"accept\"` under `[state]`"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(version: &str, policy: &str) -> Server {
        Server { version: version.to_owned(), policy: policy.to_owned() }
    }

    #[test]
    fn a_server_that_is_too_old_or_drops_keys_is_refused() {
        let fault = |version, policy| server(version, policy).fault(Eviction::Refuse);
        assert_eq!(fault("7.2.4", "noeviction"), None);
        assert_eq!(fault("", ""), None, "some do not say");
        assert!(fault("6.2.0", "noeviction").unwrap().contains("7 or newer"));
        for policy in ["allkeys-lru", "volatile-ttl", "volatile-lru", "allkeys-random"] {
            assert!(fault("7.2.4", policy).unwrap().contains("noeviction"), "{policy}");
            assert_eq!(server("7.2.4", policy).fault(Eviction::Accept), None);
        }
    }
}
