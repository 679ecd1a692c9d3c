//! The reply cache of replicas: what one has cached, the others find in the store.
//!
//! Each replica looks into its own memory first. A call whose tool may not be cached does
//! not ask the store, and while the store is away each replica caches for itself. A reply
//! is signed like everything that replicas believe each other.

use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use futures::FutureExt;
use futures::future::BoxFuture;
use policy::cache::{Cache, ReplyCache, mark_as_hit};
use policy::validate::ValidCall;
use store::state::Expiring;
use tool::{Context, Json, Reply};

use super::cluster::Cluster;

/// How long a look into the store may delay a call, which the upstream answers otherwise.
const LOOK_TIMEOUT: Duration = Duration::from_millis(250);
/// How long it may take to store a reply, for which nobody waits.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The cache stage of one of several replicas.
pub(super) struct SharedReplies {
    own: ReplyCache,
    cluster: Cluster,
}

impl SharedReplies {
    pub(super) fn new(own: ReplyCache, cluster: Cluster) -> SharedReplies {
        SharedReplies { own, cluster }
    }

    async fn find(&self, name: &str) -> Option<Reply> {
        let found = Expiring::get(self.cluster.store(), name, LOOK_TIMEOUT).await;
        let signed =
            found.inspect_err(|error| tracing::debug!(%error, "no look into the shared cache"));
        let signed = signed.ok()??;
        let Ok(text) = self.cluster.signer().verify(name, &signed) else {
            tracing::warn!("a reply in the shared cache is not signed with the key of `[state]`");
            return None;
        };
        let json = Json::parse(signed.slice_ref(text)).ok()?;
        Some(mark_as_hit(Reply::Result(json)))
    }
}

fn value_name(key: &str) -> String {
    format!("reply {key}")
}

impl Cache for SharedReplies {
    fn get(&self, call: &ValidCall, catalog: &Arc<Catalog>, context: &Context) -> Option<Reply> {
        self.own.get(call, catalog, context)
    }

    /// The reply is not taken into the own cache, where it would live anew.
    fn get_shared<'a>(
        &'a self,
        call: &'a ValidCall,
        catalog: &'a Arc<Catalog>,
        context: &'a Context,
    ) -> Option<BoxFuture<'a, Option<Reply>>> {
        let entry = self.own.shared_entry(call, catalog, context)?;
        Some(async move { self.find(&value_name(&entry.key)).await }.boxed())
    }

    fn put(&self, call: &ValidCall, catalog: &Arc<Catalog>, context: &Context, reply: &Reply) {
        self.own.put(call, catalog, context, reply);
        let Reply::Result(json) = reply else { return };
        if !self.own.may_keep(reply) {
            return;
        }
        let Some(entry) = self.own.shared_entry(call, catalog, context) else { return };
        let name = value_name(&entry.key);
        let signed = self.cluster.signer().sign(&name, json.as_bytes());
        let cluster = self.cluster.clone();
        tokio::spawn(async move {
            let stored = cluster.store();
            let stored = Expiring::put(stored, &name, signed.into(), entry.life, STORE_TIMEOUT);
            if let Err(error) = stored.await {
                tracing::debug!(%error, "a reply is cached by this replica only");
            }
        });
    }
}
