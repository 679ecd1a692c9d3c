//! Checks whether a server is new enough and does not drop keys.

use redis::aio::ConnectionLike;
use redis::{InfoDict, RedisResult};

use crate::settings::Eviction;

/// The oldest version with the commands that the scripts use.
const MIN_MAJOR_VERSION: u32 = 7;

/// The properties of a server that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// The version of Redis; Valkey says with which one it is compatible.
    version: String,
    /// Its `maxmemory-policy`: which keys it drops when it is full.
    policy: String,
}

impl Server {
    pub(crate) async fn query(connection: &mut impl ConnectionLike) -> RedisResult<Server> {
        let mut info = redis::cmd("INFO");
        info.arg("server");
        let server: InfoDict = info.query_async(connection).await?;
        let mut info = redis::cmd("INFO");
        info.arg("memory");
        let memory: InfoDict = info.query_async(connection).await?;
        let field = |info: &InfoDict, key: &str| info.get::<String>(key).unwrap_or_default();
        let version = field(&server, "redis_version");
        Ok(Server { version, policy: field(&memory, "maxmemory_policy") })
    }

    /// Returns why the server must not be used; `None` if it may be.
    pub(crate) fn find_fault(&self, eviction: Eviction) -> Option<String> {
        let major = self.version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        // A server behind a proxy may not say its version, and is accepted.
        if major.is_some_and(|major| major < MIN_MAJOR_VERSION) {
            let version = &self.version;
            return Some(format!(
                "the store is version {version}, and gatelet needs Valkey or Redis {MIN_MAJOR_VERSION} or newer"
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
        let fault = |version, policy| server(version, policy).find_fault(Eviction::Refuse);
        assert_eq!(fault("7.2.4", "noeviction"), None);
        assert_eq!(fault("", ""), None, "some do not say");
        assert!(fault("6.2.0", "noeviction").unwrap().contains("7 or newer"));
        for policy in ["allkeys-lru", "volatile-ttl", "volatile-lru", "allkeys-random"] {
            assert!(fault("7.2.4", policy).unwrap().contains("noeviction"), "{policy}");
            assert_eq!(server("7.2.4", policy).find_fault(Eviction::Accept), None);
        }
    }
}
