//! The one path of every search, on every surface: it meets the quota of
//! browsing, leaves an event, and is learnt from.

use std::sync::Arc;

use catalog::{ItemRef, Priors};
use tool::{Context, Json, Reply};

use crate::learning::Learning;
use crate::record::{EventKind, Recorder};
use policy::code::Code;
use policy::live::LiveStages;
use policy::refusal::Refusal;
use roster::Snapshot;

/// Runs searches.
pub(crate) struct Search {
    policies: Arc<LiveStages>,
    learning: Arc<Learning>,
    recorder: Arc<Recorder>,
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The meta-tool whose quota it meets.
    pub(crate) meta_tool: &'a str,
    pub(crate) query_chars: usize,
    pub(crate) path_depth: usize,
}

impl<'a> Wanted<'a> {
    /// A search for functions by words.
    pub(crate) fn functions(query: &str) -> Wanted<'a> {
        Wanted::by_words("tool_browse", query)
    }

    pub(crate) fn by_words(meta_tool: &'a str, query: &str) -> Wanted<'a> {
        Wanted { meta_tool, query_chars: query.chars().count(), path_depth: 0 }
    }
}

/// What a search found.
pub(crate) struct SearchAnswer {
    /// The canonical ids, best first.
    pub(crate) ids: Vec<String>,
    pub(crate) reply: Reply,
}

impl SearchAnswer {
    /// What stands at these places, and how it is told.
    pub(crate) fn at(
        snapshot: &Snapshot,
        places: impl IntoIterator<Item = ItemRef>,
        reply: Reply,
    ) -> SearchAnswer {
        SearchAnswer {
            ids: places.into_iter().filter_map(|place| id(snapshot, place)).collect(),
            reply,
        }
    }
}

/// Why a search has no answer.
pub(crate) trait SearchError {
    fn refused(refusal: Refusal) -> Self;

    fn code(&self) -> Code;

    /// The error as it goes out.
    fn to_json(&self) -> Json;
}

impl SearchError for Refusal {
    fn refused(refusal: Refusal) -> Refusal {
        refusal
    }

    fn code(&self) -> Code {
        self.code.code()
    }

    fn to_json(&self) -> Json {
        Json::encode(&self.message)
    }
}

/// Errors after which a search has cost nothing.
const FREE: [Code; 4] =
    [Code::ArgsInvalid, Code::AuthRequired, Code::PolicyDenied, Code::PermissionDenied];

impl Search {
    pub(crate) fn new(
        policies: Arc<LiveStages>,
        learning: Arc<Learning>,
        recorder: Arc<Recorder>,
    ) -> Search {
        Search { policies, learning, recorder }
    }

    /// Spends the quota, answers the search, and reports it. A search that `check`
    /// rejects costs nothing.
    pub(crate) async fn run<E: SearchError>(
        &self,
        wanted: Wanted<'_>,
        check: Result<(), E>,
        snapshot: &Snapshot,
        context: &Context,
        answer: impl Future<Output = Result<SearchAnswer, E>>,
    ) -> Result<Reply, E> {
        let since = self.recorder.clock.elapsed();
        let spent = match check {
            Ok(()) => self.quota(wanted.meta_tool, context).await.map_err(E::refused),
            Err(error) => Err(error),
        };
        let answer = match spent {
            Ok(()) => self.refunded(wanted.meta_tool, context, answer.await).await,
            Err(error) => Err(error),
        };
        let code = answer.as_ref().err().map(SearchError::code);
        self.recorder.event(context, "", since, code, || {
            let ids = answer.as_ref().map(|found| found.ids.clone()).unwrap_or_default();
            EventKind::Browsed {
                query_chars: wanted.query_chars,
                path_depth: wanted.path_depth,
                definitions: definitions(snapshot, &ids),
                ids,
                sent: match &answer {
                    Ok(SearchAnswer { reply: Reply::Result(json), .. }) => json.clone(),
                    Ok(SearchAnswer { reply: Reply::Error(error), .. }) => error.raw.clone(),
                    Err(error) => error.to_json(),
                },
            }
        });
        answer.map(|found| found.reply)
    }

    /// Notes the query, and returns what was chosen after similar ones before.
    pub(crate) fn priors(&self, context: &Context, query: &str) -> Priors {
        self.learning.asked(context, query)
    }

    async fn quota(&self, meta_tool: &str, context: &Context) -> Result<(), Refusal> {
        self.policies.now().stages.quota.spend_meta(meta_tool, context).await
    }

    /// Refunds the quota of a search that was refused after all.
    async fn refunded<E: SearchError>(
        &self,
        meta_tool: &str,
        context: &Context,
        answer: Result<SearchAnswer, E>,
    ) -> Result<SearchAnswer, E> {
        if answer.as_ref().is_err_and(|error| FREE.contains(&error.code())) {
            self.policies.now().stages.quota.refund_meta(meta_tool, context).await;
        }
        answer
    }
}

/// The canonical id of what is at a place; `None` for skills, which have none.
fn id(snapshot: &Snapshot, place: ItemRef) -> Option<String> {
    let directory = snapshot.directory();
    let section = match place {
        ItemRef::Tool(slot) => return Some(snapshot.target(slot).callee.id.clone()),
        ItemRef::Resource { .. } | ItemRef::Template { .. } => &directory.resources,
        ItemRef::Prompt { .. } => &directory.prompts,
        ItemRef::Skill { .. } => return None,
    };
    directory.at(place).map(|at| section.entries()[at].id.clone())
}

/// The definitions of the tools among these ids.
fn definitions(snapshot: &Snapshot, ids: &[String]) -> Vec<Json> {
    let tools = &snapshot.directory().tools;
    let raw = |id: &String| match tools.entries()[tools.get(id)?].item {
        ItemRef::Tool(slot) => Some(snapshot.catalog.tool(slot).raw.clone()),
        ItemRef::Resource { .. }
        | ItemRef::Template { .. }
        | ItemRef::Prompt { .. }
        | ItemRef::Skill { .. } => None,
    };
    ids.iter().filter_map(raw).collect()
}
