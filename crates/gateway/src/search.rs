//! Runs every search of every surface: spends the quota, reports an event, and
//! learns from the query.

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

/// What a search is charged and reported as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchRequest<'a> {
    /// The meta-tool whose quota is spent.
    pub(crate) meta_tool: &'a str,
    pub(crate) query_chars: usize,
    pub(crate) path_depth: usize,
}

impl<'a> SearchRequest<'a> {
    /// Describes a search for functions.
    pub(crate) fn functions(query: &str) -> SearchRequest<'a> {
        SearchRequest::by_words("tool_browse", query)
    }

    pub(crate) fn by_words(meta_tool: &'a str, query: &str) -> SearchRequest<'a> {
        SearchRequest { meta_tool, query_chars: query.chars().count(), path_depth: 0 }
    }
}

/// What a search found, as ids and as the reply.
pub(crate) struct SearchAnswer {
    /// The canonical ids of what was found, best first.
    pub(crate) ids: Vec<String>,
    pub(crate) reply: Reply,
}

impl SearchAnswer {
    /// Makes an answer of the items that were found and the reply that shows them.
    pub(crate) fn new(
        snapshot: &Snapshot,
        items: impl IntoIterator<Item = ItemRef>,
        reply: Reply,
    ) -> SearchAnswer {
        SearchAnswer {
            ids: items.into_iter().filter_map(|item| id(snapshot, item)).collect(),
            reply,
        }
    }
}

/// An error that a search can end with.
pub(crate) trait SearchError {
    /// Makes the error for a search that the quota refuses.
    fn from_refusal(refusal: Refusal) -> Self;

    fn code(&self) -> Code;

    /// Returns the error as the client gets it.
    fn to_json(&self) -> Json;
}

impl SearchError for Refusal {
    fn from_refusal(refusal: Refusal) -> Refusal {
        refusal
    }

    fn code(&self) -> Code {
        self.code.code()
    }

    fn to_json(&self) -> Json {
        Json::encode(&self.message)
    }
}

/// Errors after which the quota of a search is refunded.
const REFUNDED: [Code; 4] =
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
        request: SearchRequest<'_>,
        check: Result<(), E>,
        snapshot: &Snapshot,
        context: &Context,
        answer: impl Future<Output = Result<SearchAnswer, E>>,
    ) -> Result<Reply, E> {
        let since = self.recorder.clock.elapsed();
        let spent = match check {
            Ok(()) => self.spend_quota(request.meta_tool, context).await.map_err(E::from_refusal),
            Err(error) => Err(error),
        };
        let answer = match spent {
            Ok(()) => self.refund_if_refused(request.meta_tool, context, answer.await).await,
            Err(error) => Err(error),
        };
        let code = answer.as_ref().err().map(SearchError::code);
        self.recorder.event(context, "", since, code, || {
            let ids = answer.as_ref().map(|found| found.ids.clone()).unwrap_or_default();
            EventKind::Browsed {
                query_chars: request.query_chars,
                path_depth: request.path_depth,
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

    /// Notes the query, and returns how often each tool was called after similar ones.
    pub(crate) fn priors(&self, context: &Context, query: &str) -> Priors {
        self.learning.note_query(context, query)
    }

    async fn spend_quota(&self, meta_tool: &str, context: &Context) -> Result<(), Refusal> {
        self.policies.now().stages.quota.spend_meta(meta_tool, context).await
    }

    /// Refunds the quota of a search that was refused after all, and returns its answer.
    async fn refund_if_refused<E: SearchError>(
        &self,
        meta_tool: &str,
        context: &Context,
        answer: Result<SearchAnswer, E>,
    ) -> Result<SearchAnswer, E> {
        if answer.as_ref().is_err_and(|error| REFUNDED.contains(&error.code())) {
            self.policies.now().stages.quota.refund_meta(meta_tool, context).await;
        }
        answer
    }
}

/// Returns the canonical id of an item; `None` for skills, which have none.
fn id(snapshot: &Snapshot, item: ItemRef) -> Option<String> {
    let directory = snapshot.directory();
    let section = match item {
        ItemRef::Tool(slot) => return Some(snapshot.target(slot).callee.id.clone()),
        ItemRef::Resource { .. } | ItemRef::Template { .. } => &directory.resources,
        ItemRef::Prompt { .. } => &directory.prompts,
        ItemRef::Skill { .. } => return None,
    };
    directory.position(item).map(|at| section.entries()[at].id.clone())
}

/// Returns the definitions of the tools among these ids.
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
