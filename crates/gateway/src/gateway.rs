//! The gateway as a whole: built from its parts, it connects to many upstreams and
//! serves them to clients as surfaces.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tool::{Finding, ProviderSource};

use crate::builtin::{BuiltinTools, Scripts};
use crate::choice::Surface;
use crate::dispatch::{DefaultPicks, Dispatcher, ScriptRunner};
use crate::learning::{Learning, LearningSink, NoLearning, UsageStore};
use crate::recipes::{RecipeStore, Recipes};
use crate::record::{Recorder, Sink};
use crate::search::Search;
use crate::surface::about::About;
use crate::surface::catalog_events::CatalogEvents;
use crate::surface::factory::{SurfaceFactory, SurfaceSource};
use crate::surface::listed::{self, ListedFunctions};
use crate::surface::meta;
use crate::unmatched::{self, ConfiguredPatterns};
use artifacts::gate;
use policy::Stages;
use policy::approval::{Approvals, InMemoryQueue, QueuedApproval, approvals, queued};
use policy::live::LiveStages;
use policy::visibility::{self, VisibilityFilter};
use roster::listing_check::ListingChecker;
use roster::{self, ListingStore, Observer, Roster, Upstream};
use skills::Library;
use skills::skill_index::SkillIndex;
use tool::clock::Clock;

pub use crate::surface::about::Manifest;

/// Everything that a gateway is built from, grouped by the component that uses it.
pub struct GatewayParts {
    pub upstreams: Vec<Upstream>,
    pub skills: Library,
    pub server: ServerParts,
    pub roster: RosterParts,
    pub policies: PolicyParts,
    pub answers: AnswerParts,
    pub observers: ObserverParts,
    pub clock: Arc<dyn Clock>,
}

/// How the gateway presents itself to clients.
pub struct ServerParts {
    /// gatelet's version, as clients see it.
    pub version: String,
    /// Returns the content of the resource `cash://server` whenever it is read; the
    /// resource is not listed when `None`.
    pub manifest: Option<Manifest>,
    /// The surface of clients that connect without naming one, for events.
    pub surface: Surface,
    /// How the gateway and proxy surfaces behave.
    pub meta: meta::Config,
    /// Which functions are listed whole beside gatelet's own tools.
    pub listed: listed::Config,
}

/// How upstreams are run and listed.
pub struct RosterParts {
    pub config: roster::Config,
    /// What the operator expects of listings.
    pub inspection: roster::listing_check::Config,
    /// Where listings are stored between runs.
    pub listing_store: Arc<dyn ListingStore>,
}

/// The policies that decide about calls.
pub struct PolicyParts {
    pub stages: Stages,
    /// Which callers see which functions, resources and prompts.
    pub visibility: VisibilityFilter,
    /// The calls that wait for approval, for whoever decides about them.
    pub approvals: Arc<Approvals>,
}

/// How answers are shortened, stored and computed by scripts.
pub struct AnswerParts {
    /// The size limit of answers.
    pub gate: gate::Config,
    /// Which part of an answer goes out where the caller does not say.
    pub default_picks: DefaultPicks,
    pub artifacts: Arc<dyn artifacts::Store>,
    /// Whether artifacts are stored with their unscrubbed result as well.
    pub raw: artifacts::RawResults,
    /// Runs scripts; `None` when scripts are switched off.
    pub scripting: Option<Arc<ScriptRunner>>,
    /// Scripts that are listed as functions.
    pub recipes: Recipes,
    /// Where models save recipes; `None` when they may not.
    pub recipe_store: Option<Arc<dyn RecipeStore>>,
}

/// Who is notified about calls.
pub struct ObserverParts {
    pub records: Arc<dyn Sink>,
    /// Which function was called after which search, for ranking.
    pub usage: Arc<dyn UsageStore>,
}

impl GatewayParts {
    /// Describes a gateway to these upstreams with defaults for everything else: all
    /// state in memory, no records.
    pub fn new(upstreams: Vec<Upstream>, clock: Arc<dyn Clock>) -> GatewayParts {
        let artifacts = artifacts::Memory::new(artifacts::Config::default(), Arc::clone(&clock));
        let queue = Arc::new(InMemoryQueue::default());
        let approvals = Arc::new(Approvals::new(queue, Arc::clone(&clock), approvals::LIFE));
        let approval = QueuedApproval::new(Arc::clone(&approvals), queued::Config::default());
        GatewayParts {
            upstreams,
            skills: Library::default(),
            server: ServerParts {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                manifest: None,
                surface: Surface::Cash,
                meta: meta::Config::default(),
                listed: listed::Config::default(),
            },
            roster: RosterParts {
                config: roster::Config::default(),
                inspection: roster::listing_check::Config::default(),
                listing_store: Arc::new(roster::listing_store::InMemory::default()),
            },
            policies: PolicyParts {
                stages: Stages { approval: Arc::new(approval), ..Stages::default() },
                visibility: VisibilityFilter::default(),
                approvals,
            },
            answers: AnswerParts {
                gate: gate::Config::default(),
                default_picks: DefaultPicks::default(),
                artifacts: Arc::new(artifacts),
                raw: artifacts::RawResults::Dropped,
                scripting: None,
                recipes: Recipes::default(),
                recipe_store: None,
            },
            observers: ObserverParts {
                records: Arc::new(crate::record::NoSink),
                usage: Arc::new(NoLearning),
            },
            clock,
        }
    }
}

/// The settings that an operator may change while the gateway runs.
pub struct Controls {
    pub stages: Stages,
    pub gate: gate::Config,
    /// Which part of an answer goes out where the caller does not say.
    pub default_picks: DefaultPicks,
    /// How the gateway and proxy surfaces behave.
    pub meta: meta::Config,
    /// Which functions are listed whole beside gatelet's own tools.
    pub listed: listed::Config,
    /// What the operator expects of listings, from an upstream's next one on.
    pub inspection: roster::listing_check::Config,
}

/// A gateway: many upstreams behind one server.
#[derive(Clone)]
pub struct Gateway {
    roster: Arc<Roster>,
    listing_checker: Arc<ListingChecker>,
    surfaces: SurfaceFactory,
    library: Arc<ArcSwap<Library>>,
    catalog_events: Arc<CatalogEvents>,
    approvals: Arc<Approvals>,
}

impl Gateway {
    /// Builds a gateway that lists what is remembered of the upstreams. It starts
    /// none of them: that happens with the first client, or with [`Gateway::warm`].
    pub fn new(parts: GatewayParts) -> Gateway {
        let GatewayParts { upstreams, skills, server, roster, policies, answers, observers, clock } =
            parts;
        let scrubber = Arc::clone(&policies.stages.scrubber);
        let live = Arc::new(LiveStages::new(policies.stages, policies.visibility));
        let library = Arc::new(ArcSwap::from_pointee(skills));
        let listed = Arc::new(ListedFunctions::new(server.listed, Arc::clone(&observers.usage)));
        let learning = Arc::new(Learning::new(observers.usage, Arc::clone(&clock)));
        let sink =
            Arc::new(LearningSink { learning: Arc::clone(&learning), sink: observers.records });
        let recorder = Arc::new(Recorder { sink, clock: Arc::clone(&clock) });
        let search = Arc::new(Search::new(Arc::clone(&live), learning, Arc::clone(&recorder)));
        let skills = Arc::new(SkillIndex::new(
            Arc::clone(&library),
            Arc::clone(&live),
            Arc::clone(&scrubber),
        ));
        let listing_checker = Arc::new(ListingChecker {
            config: ArcSwap::from_pointee(roster.inspection),
            scrubber: Arc::clone(&scrubber),
            check: Arc::clone(&live) as _,
        });
        let about = About {
            version: server.version,
            gatelet_id: Arc::clone(&roster.config.gatelet_id),
            manifest: server.manifest,
        };
        let recipes = Arc::new(ArcSwap::from_pointee(answers.recipes));
        let builtin = BuiltinTools::new(
            Arc::clone(&answers.artifacts),
            Arc::clone(&live),
            Arc::clone(&skills),
            Arc::clone(&search),
            if answers.scripting.is_some() { Scripts::On } else { Scripts::Off },
            Arc::clone(&recipes),
            answers.recipe_store.clone(),
        );
        let catalog_events =
            Arc::new(CatalogEvents { recorder: Arc::clone(&recorder), surface: server.surface });
        let roster_parts = roster::Collaborators {
            listings: roster.listing_store,
            builtin: Arc::new(builtin),
            listing_checker: Arc::clone(&listing_checker),
            observer: Arc::clone(&catalog_events) as _,
            clock,
        };
        let pipeline = Dispatcher {
            scrubber,
            live,
            gate: ArcSwap::from_pointee(answers.gate),
            default_picks: ArcSwap::from_pointee(answers.default_picks),
            artifacts: answers.artifacts,
            raw: answers.raw,
            scripting: answers.scripting,
            recipes: Arc::clone(&recipes),
            recipe_store: answers.recipe_store,
            recorder,
        };
        let surfaces = SurfaceFactory {
            pipeline: Arc::new(pipeline),
            skills,
            search,
            tasks: Arc::default(),
            about: Arc::new(about),
            meta: Arc::new(ArcSwap::from_pointee(server.meta)),
            listed,
        };
        let roster = Arc::new(Roster::new(upstreams, roster.config, roster_parts));
        let approvals = policies.approvals;
        Gateway { roster, listing_checker, surfaces, library, catalog_events, approvals }
    }

    /// Returns what gives every client its provider on this surface.
    pub fn surface(&self, surface: Surface) -> Arc<dyn ProviderSource> {
        let (roster, surfaces) = (Arc::clone(&self.roster), self.surfaces.clone());
        Arc::new(SurfaceSource { roster, factory: surfaces, surface })
    }

    /// Starts the eager upstreams for clients without capabilities, before
    /// any client comes. Not worth it where the only client is about to come
    /// and may have capabilities, such as on stdio.
    pub fn warm(&self) {
        self.roster.default_pool();
    }

    /// Reports the patterns of a configuration that match nothing, as far as is known
    /// without starting an upstream.
    pub fn unmatched(&self, configured: &ConfiguredPatterns<'_>) -> Vec<Finding> {
        unmatched::findings(&self.roster.current_snapshot(), &self.library.load(), configured)
    }

    /// Returns how much the artifacts use; `None` if the store does not know.
    pub async fn artifact_usage(&self) -> Option<artifacts::Usage> {
        self.surfaces.pipeline.artifacts.usage().await
    }

    /// Counts the calls that wait for their turn, by upstream; only upstreams with some.
    pub fn waiting_calls(&self) -> HashMap<String, usize> {
        self.surfaces.pipeline.live.now().stages.retry.waiting()
    }

    /// Reports the current catalog once more, for an observer that was added later.
    pub fn report_catalog(&self) {
        self.catalog_events.published(&self.roster.current_snapshot());
    }

    /// Where long answers are stored.
    pub fn artifacts(&self) -> &Arc<dyn artifacts::Store> {
        &self.surfaces.pipeline.artifacts
    }

    /// Returns the calls that wait for approval, for whoever decides about them.
    pub fn approvals(&self) -> &Arc<Approvals> {
        &self.approvals
    }

    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Replaces the visibility rules, and has every client list again if they changed.
    pub fn set_visibility(&self, rules: visibility::Config) {
        if self.surfaces.pipeline.live.set_visibility(rules) {
            self.roster.announce();
        }
    }

    /// Replaces the rules and limits of calls. Calls that are running keep the old
    /// ones.
    pub fn control(&self, controls: Controls) {
        let Controls { stages, gate, default_picks, meta, listed, inspection } = controls;
        let pipeline = &self.surfaces.pipeline;
        pipeline.scrubber.copy_settings_from(&stages.scrubber);
        pipeline.live.replace(stages);
        pipeline.gate.store(Arc::new(gate));
        pipeline.default_picks.store(Arc::new(default_picks));
        self.surfaces.meta.store(Arc::new(meta));
        let is_listing_changed = *self.surfaces.listed.config() != listed;
        self.surfaces.listed.replace(listed);
        if is_listing_changed {
            self.roster.announce();
        }
        self.listing_checker.config.store(Arc::new(inspection));
    }

    /// Replaces the recipes, which clients see from the next [`Gateway::reload`] on.
    pub fn set_recipes(&self, recipes: Recipes) {
        self.surfaces.pipeline.recipes.store(Arc::new(recipes));
    }

    /// Replaces upstreams and skills without dropping a session.
    pub fn reload(&self, upstreams: Vec<Upstream>, skills: Library) {
        self.library.store(Arc::new(skills));
        self.roster.reload(upstreams);
    }
}
