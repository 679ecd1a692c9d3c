//! The gate as a whole: many upstreams in, one surface out.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tool::{Client, Finding, Identity, Provider, ProviderSource};

use crate::builtin::BuiltinTools;
use crate::choice::Surface;
use crate::dispatch::{Dispatcher, Origin};
use crate::learning::{Closed, Learning, Listening, Notebook};
use crate::record::{Recorder, Sink};
use crate::search::Search;
use crate::surface::about::About;
use crate::surface::cash::{self, Cash};
use crate::surface::direct::{self, Direct};
use crate::surface::listed::{self, ClientKind, Live};
use crate::surface::meta::{self, MetaTools};
use crate::surface::proxy::{self, Proxy};
use crate::surface::published::Published;
use crate::surface::rest::Rest;
use crate::surface::served_skills::ServedSkills;
use crate::surface::{gateway as browsing, tasks::Tasks};
use crate::unmatched::{self, Written};
use artifacts::gate;
use policy::Stages;
use policy::approval::Consent;
use policy::live::LiveStages;
use policy::visibility::{self, VisibilityFilter};
use roster::inspect::Inspector;
use roster::{self, ListingStore, Roster, Upstream, UpstreamPool};
use skills::Library;
use skills::skill_index::SkillIndex;
use tool::clock::Clock;

pub use crate::surface::about::Manifest;

/// What a gateway is made of.
pub struct Parts {
    /// Our version, as clients see it.
    pub version: String,
    /// What clients get who come in by no surface of their own, for the records.
    pub surface: Surface,
    pub upstreams: Vec<Upstream>,
    pub skills: Library,
    /// What `cash://server` says: who this server is, as JSON. Asked whenever it
    /// is read; not there when `None`.
    pub manifest: Option<Manifest>,
    pub gate: gate::Config,
    pub roster: roster::Config,
    /// What is expected of listings.
    pub inspection: roster::inspect::Config,
    pub stages: Stages,
    /// Who sees what.
    pub visibility: VisibilityFilter,
    /// How the gateway and proxy surfaces behave.
    pub meta: meta::Config,
    /// Which functions are listed whole beside our own tools.
    pub listed: listed::Config,
    pub artifacts: Arc<dyn artifacts::Store>,
    /// Whether kept answers are kept as they came, too.
    pub raw: artifacts::Raw,
    pub listing_store: Arc<dyn ListingStore>,
    pub records: Arc<dyn Sink>,
    /// What searches learn from.
    pub notebook: Arc<dyn Notebook>,
    pub clock: Arc<dyn Clock>,
}

impl Parts {
    /// A gateway to these upstreams with everything else as it is by default:
    /// in memory, with no records.
    pub fn new(upstreams: Vec<Upstream>, clock: Arc<dyn Clock>) -> Parts {
        let artifacts = artifacts::Memory::new(artifacts::Config::default(), Arc::clone(&clock));
        Parts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            surface: Surface::Cash,
            upstreams,
            skills: Library::default(),
            manifest: None,
            gate: gate::Config::default(),
            roster: roster::Config::default(),
            inspection: roster::inspect::Config::default(),
            stages: Stages {
                approval: Arc::new(Consent::new(Arc::clone(&clock))),
                ..Stages::default()
            },
            visibility: VisibilityFilter::default(),
            meta: meta::Config::default(),
            listed: listed::Config::default(),
            artifacts: Arc::new(artifacts),
            raw: artifacts::Raw::Dropped,
            listing_store: Arc::new(roster::listing_store::InMemory::default()),
            records: Arc::new(crate::record::Nowhere),
            notebook: Arc::new(Closed),
            clock,
        }
    }
}

/// What an operator may change while calls are made.
pub struct Controls {
    pub stages: Stages,
    pub gate: gate::Config,
    /// How the gateway and proxy surfaces behave.
    pub meta: meta::Config,
    /// Which functions are listed whole beside our own tools.
    pub listed: listed::Config,
    /// What is expected of listings, from an upstream's next one on.
    pub inspection: roster::inspect::Config,
}

/// A function from many providers to one.
#[derive(Clone)]
pub struct Gateway {
    roster: Arc<Roster>,
    inspector: Arc<Inspector>,
    surfaces: Surfaces,
    library: Arc<ArcSwap<Library>>,
}

/// What surfaces are made of.
#[derive(Clone)]
struct Surfaces {
    pipeline: Arc<Dispatcher>,
    skills: Arc<SkillIndex>,
    search: Arc<Search>,
    tasks: Arc<Tasks>,
    about: Arc<About>,
    meta: Arc<ArcSwap<meta::Config>>,
    listed: Arc<Live>,
}

impl Gateway {
    /// Lists from memory at once and starts nothing: an upstream starts when
    /// the first client comes for whom it has to, or when it is [warmed].
    ///
    /// [warmed]: Gateway::warm
    pub fn new(parts: Parts) -> Gateway {
        let Parts { clock, artifacts, .. } = parts;
        let scrubber = Arc::clone(&parts.stages.scrubber);
        let live = Arc::new(LiveStages::new(parts.stages, parts.visibility));
        let library = Arc::new(ArcSwap::from_pointee(parts.skills));
        let listed = Arc::new(Live::new(parts.listed, Arc::clone(&parts.notebook)));
        let learning = Arc::new(Learning::new(parts.notebook, Arc::clone(&clock)));
        let sink = Arc::new(Listening { learning: Arc::clone(&learning), sink: parts.records });
        let recorder = Arc::new(Recorder { sink, clock: Arc::clone(&clock) });
        let search = Search::new(Arc::clone(&live), learning, Arc::clone(&recorder));
        let search = Arc::new(search);
        let skills =
            SkillIndex::new(Arc::clone(&library), Arc::clone(&live), Arc::clone(&scrubber));
        let skills = Arc::new(skills);
        let inspector = Arc::new(Inspector {
            config: ArcSwap::from_pointee(parts.inspection),
            scrubber: Arc::clone(&scrubber),
            check: Arc::clone(&live) as _,
        });
        let about = About {
            version: parts.version,
            instance: Arc::clone(&parts.roster.instance),
            manifest: parts.manifest,
        };
        let builtin = BuiltinTools::new(
            Arc::clone(&artifacts),
            Arc::clone(&live),
            Arc::clone(&skills),
            Arc::clone(&search),
        );
        let published = Published { recorder: Arc::clone(&recorder), surface: parts.surface };
        let roster_parts = roster::Parts {
            listings: parts.listing_store,
            builtin: Arc::new(builtin),
            inspector: Arc::clone(&inspector),
            observer: Arc::new(published),
            clock,
        };
        let pipeline = Dispatcher {
            scrubber,
            live,
            gate: ArcSwap::from_pointee(parts.gate),
            artifacts,
            raw: parts.raw,
            recorder,
        };
        let surfaces = Surfaces {
            pipeline: Arc::new(pipeline),
            skills,
            search,
            tasks: Arc::default(),
            about: Arc::new(about),
            meta: Arc::new(ArcSwap::from_pointee(parts.meta)),
            listed,
        };
        let roster = Arc::new(Roster::new(parts.upstreams, parts.roster, roster_parts));
        Gateway { roster, inspector, surfaces, library }
    }

    /// What clients of this surface are served.
    pub fn surface(&self, surface: Surface) -> Arc<dyn ProviderSource> {
        let (roster, surfaces) = (Arc::clone(&self.roster), self.surfaces.clone());
        Arc::new(SurfaceSource { roster, surfaces, surface })
    }

    /// Starts the eager upstreams for clients without capabilities, before
    /// any client comes. Not worth it where the only client is about to come
    /// and may have capabilities, such as on stdio.
    pub fn warm(&self) {
        self.roster.default_pool();
    }

    /// What a configuration names and nothing is called by, as far as is known
    /// without starting anything.
    pub fn unmatched(&self, written: &Written<'_>) -> Vec<Finding> {
        unmatched::findings(&self.roster.known(), &self.library.load(), written)
    }

    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Replaces the rules of who sees what, and has every client look again if
    /// they are others.
    pub fn set_visibility(&self, rules: visibility::Config) {
        if self.surfaces.pipeline.live.set_visibility(rules) {
            self.roster.announce();
        }
    }

    /// Replaces the rules and limits of calls. Calls under way end as they
    /// began.
    pub fn control(&self, controls: Controls) {
        let Controls { stages, gate, meta, listed, inspection } = controls;
        let pipeline = &self.surfaces.pipeline;
        pipeline.scrubber.follow(&stages.scrubber);
        pipeline.live.replace(stages);
        pipeline.gate.store(Arc::new(gate));
        self.surfaces.meta.store(Arc::new(meta));
        let relists = *self.surfaces.listed.config() != listed;
        self.surfaces.listed.replace(listed);
        if relists {
            self.roster.announce();
        }
        self.inspector.config.store(Arc::new(inspection));
    }

    /// Replaces upstreams and skills without dropping a session.
    pub fn reload(&self, upstreams: Vec<Upstream>, skills: Library) {
        self.library.store(Arc::new(skills));
        self.roster.reload(upstreams);
    }
}

struct SurfaceSource {
    roster: Arc<Roster>,
    surfaces: Surfaces,
    surface: Surface,
}

impl ProviderSource for SurfaceSource {
    fn provider_for(&self, client: &Arc<Client>, caller: &Arc<Identity>) -> Arc<dyn Provider> {
        let (pool, caller) = (self.roster.pool(client), Arc::clone(caller));
        let kind = ClientKind::of(client, self.surface == Surface::Auto);
        match self.surface.for_client(client) {
            Surface::Cash | Surface::Auto => Arc::new(self.surfaces.cash(pool, caller, kind)),
            Surface::Gateway => Arc::new(self.surfaces.browsing(pool, caller, kind)),
            Surface::Proxy => Arc::new(self.surfaces.proxy(pool, caller)),
            Surface::Direct => Arc::new(self.surfaces.direct(pool, caller)),
        }
    }
}

impl Surfaces {
    fn cash(&self, pool: Arc<UpstreamPool>, caller: Arc<Identity>, client: ClientKind) -> Cash {
        let rest = self.rest(&pool, cash::ORIGIN);
        let Surfaces { pipeline, skills, search, tasks, about, listed, .. } = self.clone();
        Cash { pool, caller, pipeline, skills, search, tasks, about, listed, client, rest }
    }

    fn browsing(
        &self,
        pool: Arc<UpstreamPool>,
        caller: Arc<Identity>,
        client: ClientKind,
    ) -> browsing::Gateway {
        let rest = self.rest(&pool, browsing::ORIGIN);
        browsing::Gateway { pool, caller, tools: self.meta_tools(browsing::ORIGIN), client, rest }
    }

    fn proxy(&self, pool: Arc<UpstreamPool>, caller: Arc<Identity>) -> Proxy {
        let rest = self.rest(&pool, proxy::ORIGIN);
        Proxy { pool, caller, tools: self.meta_tools(proxy::ORIGIN), rest }
    }

    fn direct(&self, pool: Arc<UpstreamPool>, caller: Arc<Identity>) -> Direct {
        let rest = self.rest(&pool, direct::ORIGIN);
        let cash = self.cash(Arc::clone(&pool), Arc::clone(&caller), ClientKind::default());
        let Surfaces { pipeline, tasks, .. } = self.clone();
        Direct { pool, caller, pipeline, tasks, cash, rest }
    }

    fn meta_tools(&self, origin: Origin) -> MetaTools {
        let Surfaces { pipeline, search, tasks, about, skills, listed, meta: config } =
            self.clone();
        MetaTools { pipeline, search, tasks, about, skills, listed, config, origin }
    }

    fn rest(&self, pool: &Arc<UpstreamPool>, origin: Origin) -> Rest {
        let Surfaces { pipeline, tasks, about, listed, skills: index, .. } = self.clone();
        let skills = ServedSkills { index, pipeline: Arc::clone(&pipeline) };
        Rest { pipeline, pool: Arc::clone(pool), tasks, about, skills, listed, origin }
    }
}
