//! Makes the surface that a client sees.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tool::{Client, Identity, Provider, ProviderSource};

use super::about::About;
use super::cash::{self, Cash};
use super::direct::{self, Direct};
use super::gateway as browsing;
use super::listed::{ClientKind, Live};
use super::meta::{self, MetaTools};
use super::other_requests::OtherRequests;
use super::proxy::{self, Proxy};
use super::served_skills::ServedSkills;
use super::tasks::Tasks;
use crate::choice::Surface;
use crate::dispatch::{Dispatcher, Origin};
use crate::search::Search;
use roster::{Roster, UpstreamPool};
use skills::skill_index::SkillIndex;

/// Makes surfaces. Each gets only what it needs.
#[derive(Clone)]
pub(crate) struct SurfaceFactory {
    pub(crate) pipeline: Arc<Dispatcher>,
    pub(crate) skills: Arc<SkillIndex>,
    pub(crate) search: Arc<Search>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) about: Arc<About>,
    pub(crate) meta: Arc<ArcSwap<meta::Config>>,
    pub(crate) listed: Arc<Live>,
}

/// Gives every client its surface.
pub(crate) struct SurfaceSource {
    pub(crate) roster: Arc<Roster>,
    pub(crate) factory: SurfaceFactory,
    pub(crate) surface: Surface,
}

impl ProviderSource for SurfaceSource {
    fn provider_for(&self, client: &Arc<Client>, caller: &Arc<Identity>) -> Arc<dyn Provider> {
        let (pool, caller) = (self.roster.pool(client), Arc::clone(caller));
        let kind = ClientKind::of(client, self.surface == Surface::Auto);
        match self.surface.for_client(client) {
            Surface::Cash | Surface::Auto => Arc::new(self.factory.cash(pool, caller, kind)),
            Surface::Gateway => Arc::new(self.factory.browsing(pool, caller, kind)),
            Surface::Proxy => Arc::new(self.factory.proxy(pool, caller)),
            Surface::Direct => Arc::new(self.factory.direct(pool, caller)),
        }
    }
}

impl SurfaceFactory {
    fn cash(&self, pool: Arc<UpstreamPool>, caller: Arc<Identity>, client: ClientKind) -> Cash {
        let other_requests = self.other_requests(&pool, cash::ORIGIN);
        let SurfaceFactory { pipeline, skills, search, tasks, about, listed, .. } = self.clone();
        Cash {
            pool,
            caller,
            pipeline,
            skills,
            search,
            tasks,
            about,
            listed,
            client,
            other_requests,
        }
    }

    fn browsing(
        &self,
        pool: Arc<UpstreamPool>,
        caller: Arc<Identity>,
        client: ClientKind,
    ) -> browsing::Gateway {
        let other_requests = self.other_requests(&pool, browsing::ORIGIN);
        let tools = self.meta_tools(browsing::ORIGIN);
        browsing::Gateway { pool, caller, tools, client, other_requests }
    }

    fn proxy(&self, pool: Arc<UpstreamPool>, caller: Arc<Identity>) -> Proxy {
        let other_requests = self.other_requests(&pool, proxy::ORIGIN);
        Proxy { pool, caller, tools: self.meta_tools(proxy::ORIGIN), other_requests }
    }

    fn direct(&self, pool: Arc<UpstreamPool>, caller: Arc<Identity>) -> Direct {
        let other_requests = self.other_requests(&pool, direct::ORIGIN);
        let cash = self.cash(Arc::clone(&pool), Arc::clone(&caller), ClientKind::default());
        let SurfaceFactory { pipeline, tasks, .. } = self.clone();
        Direct { pool, caller, pipeline, tasks, cash, other_requests }
    }

    fn meta_tools(&self, origin: Origin) -> MetaTools {
        let SurfaceFactory { pipeline, search, tasks, about, skills, listed, meta: config } =
            self.clone();
        MetaTools { pipeline, search, tasks, about, skills, listed, config, origin }
    }

    fn other_requests(&self, pool: &Arc<UpstreamPool>, origin: Origin) -> OtherRequests {
        let SurfaceFactory { pipeline, tasks, about, listed, skills: index, .. } = self.clone();
        let skills = ServedSkills { index, pipeline: Arc::clone(&pipeline) };
        OtherRequests { pipeline, pool: Arc::clone(pool), tasks, about, skills, listed, origin }
    }
}
