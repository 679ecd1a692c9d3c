//! The gate as a whole: many upstreams in, one surface out.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tool::{Client, Identity, Provider, ProviderSource};

use crate::artifact;
use crate::clock::Clock;
use crate::dispatch::Dispatcher;
use crate::gate;
use crate::learning::{Closed, Learning, Listening, Notebook};
use crate::own::Own;
use crate::record::{Desk, Sink};
use crate::roster::inspect::Inspector;
use crate::roster::{self, Roster, Shelf, Upstream};
use crate::skill::Library;
use crate::skill::census::Census;
use crate::stage::approval::Consent;
use crate::stage::live::Live;
use crate::stage::{Stages, Trust};
use crate::surface::cash::Cash;
use crate::surface::direct::Direct;
use crate::surface::proxy::Proxy;
use crate::surface::{Surface, gateway as browsing, meta, tasks::Tasks};
use crate::visibility;

/// Says who this server is, as JSON.
pub type Manifest = Arc<dyn Fn() -> String + Send + Sync>;

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
    pub visibility: visibility::Config,
    /// How the gateway and proxy surfaces behave.
    pub meta: meta::Config,
    pub artifacts: Arc<dyn artifact::Store>,
    /// Whether kept answers are kept as they came, too.
    pub raw: artifact::Raw,
    pub shelf: Arc<dyn Shelf>,
    pub records: Arc<dyn Sink>,
    /// What searches learn from.
    pub notebook: Arc<dyn Notebook>,
    pub clock: Arc<dyn Clock>,
}

impl Parts {
    /// A gateway to these upstreams with everything else as it is by default:
    /// in memory, with no records.
    pub fn new(upstreams: Vec<Upstream>, clock: Arc<dyn Clock>) -> Parts {
        let artifacts = artifact::Memory::new(artifact::Config::default(), Arc::clone(&clock));
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
            visibility: visibility::Config::default(),
            meta: meta::Config::default(),
            artifacts: Arc::new(artifacts),
            raw: artifact::Raw::Dropped,
            shelf: Arc::new(roster::shelf::Memory::default()),
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
    /// What is expected of listings, from an upstream's next one on.
    pub inspection: roster::inspect::Config,
}

/// A function from many providers to one.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

/// What all surfaces share.
pub(crate) struct Shared {
    pub(crate) version: String,
    pub(crate) manifest: Option<Manifest>,
    pub(crate) roster: Roster,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) skills: Arc<ArcSwap<Library>>,
    pub(crate) census: Arc<Census>,
    pub(crate) learning: Arc<Learning>,
    pub(crate) tasks: Tasks,
    pub(crate) meta: ArcSwap<meta::Config>,
    inspector: Arc<Inspector>,
}

impl Gateway {
    /// Lists from memory at once and starts nothing: an upstream starts when
    /// the first client comes for whom it has to, or when it is [warmed].
    ///
    /// [warmed]: Gateway::warm
    pub fn new(parts: Parts) -> Gateway {
        let scrubber = Arc::clone(&parts.stages.scrubber);
        let live = Live::new(parts.stages, parts.visibility);
        let trust = Arc::clone(&live) as Arc<dyn Trust>;
        let skills = Arc::new(ArcSwap::from_pointee(parts.skills));
        let learning = Arc::new(Learning::new(parts.notebook, Arc::clone(&parts.clock)));
        let own =
            Own::new(Arc::clone(&parts.artifacts), Arc::clone(&trust), Arc::clone(&parts.clock));
        let census = Census::new(Arc::clone(&skills), Arc::clone(&trust), Arc::clone(&scrubber));
        let census = Arc::new(census);
        let own = Arc::new(own.with(Arc::clone(&census), Arc::clone(&learning)));
        let sink = Arc::new(Listening { learning: Arc::clone(&learning), sink: parts.records });
        let desk = Arc::new(Desk { sink, clock: parts.clock, surface: parts.surface });
        let inspector = Arc::new(Inspector {
            config: ArcSwap::from_pointee(parts.inspection),
            scrubber: Arc::clone(&scrubber),
            trust: Arc::clone(&trust),
            desk: Arc::clone(&desk),
        });
        let shared = Shared {
            version: parts.version,
            manifest: parts.manifest,
            roster: Roster::new(
                parts.upstreams,
                parts.roster,
                parts.shelf,
                own,
                Arc::clone(&inspector),
            ),
            dispatcher: Dispatcher {
                scrubber,
                live,
                gate: ArcSwap::from_pointee(parts.gate),
                artifacts: parts.artifacts,
                raw: parts.raw,
                desk,
            },
            skills,
            census,
            learning,
            tasks: Tasks::default(),
            meta: ArcSwap::from_pointee(parts.meta),
            inspector,
        };
        Gateway { shared: Arc::new(shared) }
    }

    /// What clients of this surface are served.
    pub fn surface(&self, surface: Surface) -> Arc<dyn ProviderSource> {
        Arc::new(SurfaceSource { shared: Arc::clone(&self.shared), surface })
    }

    /// Starts the eager upstreams for clients without capabilities, before
    /// any client comes. Not worth it where the only client is about to come
    /// and may have capabilities, such as on stdio.
    pub fn warm(&self) {
        self.shared.roster.default_hall();
    }

    pub fn roster(&self) -> &Roster {
        &self.shared.roster
    }

    /// Replaces the rules of who sees what, and has every client look again if
    /// they are others.
    pub fn veil(&self, visibility: visibility::Config) {
        if self.shared.dispatcher.live.veil(visibility) {
            self.shared.roster.announce();
        }
    }

    /// Replaces the rules and limits of calls. Calls under way end as they
    /// began.
    pub fn control(&self, controls: Controls) {
        let Controls { stages, gate, meta, inspection } = controls;
        let shared = &self.shared;
        shared.dispatcher.scrubber.follow(&stages.scrubber);
        shared.dispatcher.live.replace(stages);
        shared.dispatcher.gate.store(Arc::new(gate));
        shared.meta.store(Arc::new(meta));
        shared.inspector.config.store(Arc::new(inspection));
    }

    /// Replaces upstreams and skills without dropping a session.
    pub fn reload(&self, upstreams: Vec<Upstream>, skills: Library) {
        self.shared.skills.store(Arc::new(skills));
        self.shared.roster.reload(upstreams);
    }
}

struct SurfaceSource {
    shared: Arc<Shared>,
    surface: Surface,
}

impl ProviderSource for SurfaceSource {
    fn provider_for(&self, client: &Arc<Client>, caller: &Arc<Identity>) -> Arc<dyn Provider> {
        let caller = Arc::clone(caller);
        let hall = self.shared.roster.hall(client);
        let shared = Arc::clone(&self.shared);
        match self.surface.for_client(client) {
            Surface::Cash | Surface::Auto => Arc::new(Cash::new(shared, hall, caller)),
            Surface::Gateway => Arc::new(browsing::Gateway::new(shared, hall, caller)),
            Surface::Proxy => Arc::new(Proxy::new(shared, hall, caller)),
            Surface::Direct => Arc::new(Direct::new(shared, hall, caller)),
        }
    }
}
