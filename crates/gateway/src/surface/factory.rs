//! Makes the surface that a client sees, as a provider.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tool::{Client, Identity, Provider, ProviderSource};

use super::about::About;
use super::cash::{self, Cash};
use super::direct::{self, Direct};
use super::gateway as browsing;
use super::listed::{ClientKind, ListedFunctions};
use super::meta::{self, MetaTools};
use super::other_requests::OtherRequests;
use super::provider::{SurfaceProvider, ToolSurface};
use super::proxy::{self, Proxy};
use super::served_skills::ServedSkills;
use super::tasks::Tasks;
use crate::choice::Surface;
use crate::dispatch::{Dispatcher, Origin};
use crate::search::Search;
use roster::{Roster, UpstreamPool};
use skills::skill_index::SkillIndex;

/// Makes surfaces from the parts of the gateway that they share.
#[derive(Clone)]
pub(crate) struct SurfaceFactory {
    pub(crate) pipeline: Arc<Dispatcher>,
    pub(crate) skills: Arc<SkillIndex>,
    pub(crate) search: Arc<Search>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) about: Arc<About>,
    pub(crate) meta: Arc<ArcSwap<meta::Config>>,
    pub(crate) listed: Arc<ListedFunctions>,
}

/// Gives every client the provider of its surface.
pub(crate) struct SurfaceSource {
    pub(crate) roster: Arc<Roster>,
    pub(crate) factory: SurfaceFactory,
    pub(crate) surface: Surface,
}

impl ProviderSource for SurfaceSource {
    fn provider_for(&self, client: &Arc<Client>, caller: &Arc<Identity>) -> Arc<dyn Provider> {
        let (pool, caller) = (self.roster.pool(client), Arc::clone(caller));
        let kind = ClientKind::new(client, self.surface == Surface::Auto);
        let factory = &self.factory;
        match self.surface.for_client(client) {
            Surface::Cash | Surface::Auto => {
                let cash = factory.cash(Arc::clone(&pool), kind);
                factory.provider(cash, pool, caller, cash::ORIGIN)
            }
            Surface::Gateway => {
                let browsing = factory.browsing(Arc::clone(&pool), kind);
                factory.provider(browsing, pool, caller, browsing::ORIGIN)
            }
            Surface::Proxy => {
                let tools = factory.meta_tools(proxy::ORIGIN);
                let proxy = Proxy { pool: Arc::clone(&pool), tools };
                factory.provider(proxy, pool, caller, proxy::ORIGIN)
            }
            Surface::Direct => {
                let direct = factory.direct(Arc::clone(&pool));
                factory.provider(direct, pool, caller, direct::ORIGIN)
            }
        }
    }
}

impl SurfaceFactory {
    /// Makes a surface the provider of one caller's session.
    fn provider(
        &self,
        surface: impl ToolSurface + 'static,
        pool: Arc<UpstreamPool>,
        caller: Arc<Identity>,
        origin: Origin,
    ) -> Arc<dyn Provider> {
        let other_requests = self.other_requests(pool, origin);
        Arc::new(SurfaceProvider { surface, caller, other_requests })
    }

    fn cash(&self, pool: Arc<UpstreamPool>, client: ClientKind) -> Cash {
        let SurfaceFactory { pipeline, skills, search, tasks, about, listed, .. } = self.clone();
        Cash { pool, pipeline, skills, search, tasks, about, listed, client }
    }

    fn browsing(&self, pool: Arc<UpstreamPool>, client: ClientKind) -> browsing::Gateway {
        browsing::Gateway { pool, tools: self.meta_tools(browsing::ORIGIN), client }
    }

    fn direct(&self, pool: Arc<UpstreamPool>) -> Direct {
        let cash = self.cash(Arc::clone(&pool), ClientKind::default());
        let SurfaceFactory { pipeline, tasks, .. } = self.clone();
        Direct { pool, pipeline, tasks, cash }
    }

    fn meta_tools(&self, origin: Origin) -> MetaTools {
        let SurfaceFactory { pipeline, search, tasks, about, skills, listed, meta: config } =
            self.clone();
        MetaTools { pipeline, search, tasks, about, skills, listed, config, origin }
    }

    fn other_requests(&self, pool: Arc<UpstreamPool>, origin: Origin) -> OtherRequests {
        let SurfaceFactory { pipeline, tasks, about, listed, skills: index, .. } = self.clone();
        let skills = ServedSkills { index, pipeline: Arc::clone(&pipeline) };
        OtherRequests { pipeline, pool, tasks, about, skills, listed, origin }
    }
}
