//! The protocol's skills extension: `skills/list`, `skills/get`, and the files of
//! skills as resources.
//!
//! What is at an upstream is read by the caller of this module, the way of every
//! resource.

use std::sync::Arc;

use serde_json::{Value, json};
use tool::{Ask, Context, Json, Reply, RpcError};

use crate::dispatch::Dispatcher;
use policy::visibility::Visible;
use roster::Snapshot;
use skills::served::{self, Original, Place, Served};
use skills::skill_index::SkillIndex;
use skills::upstream;

/// The methods of the extension.
pub(crate) const LIST: &str = "skills/list";
pub(crate) const GET: &str = "skills/get";

/// Answers the extension, for one surface.
pub(crate) struct ServedSkills {
    pub(crate) index: Arc<SkillIndex>,
    pub(crate) pipeline: Arc<Dispatcher>,
}

/// Where a file of a skill is.
pub(crate) enum SkillFile {
    /// Here: what is answered.
    Here(Reply),
    Distant(Box<Distant>),
}

/// A file of a skill that is at an upstream.
pub(crate) struct Distant {
    /// Which source of the catalog has it.
    pub(crate) source: usize,
    /// What it is called there, and here.
    pub(crate) original: String,
    uri: String,
    listed: Option<Original>,
}

/// Whether this may be a file of a skill.
pub(crate) fn is_file(uri: &str) -> bool {
    uri.starts_with(served::SCHEME)
}

/// Whether a URI is one that only we give to files: below our own name or below
/// the label of an upstream with skills, and listed by no upstream itself.
pub(crate) fn owns(snapshot: &Snapshot, uri: &str) -> bool {
    let sources = snapshot.catalog.sources();
    let path = uri.strip_prefix(served::SCHEME).unwrap_or_default();
    let first = path.split('/').next().unwrap_or_default();
    let is_label = |source: &catalog::Source| {
        source.label == first && upstream::offers(&source.listing.server)
    };
    let is_ours = first == roster::BUILTIN || sources.iter().any(is_label);
    let mut listed = sources.iter().flat_map(|source| &source.listing.resources);
    is_ours && !listed.any(|resource| resource.uri == uri)
}

impl ServedSkills {
    /// Answers one of the two methods.
    pub(crate) async fn answer(&self, snapshot: &Snapshot, ask: &Ask, context: &Context) -> Reply {
        let served = self.served(snapshot, context).await;
        let text = |key: &str| ask.other_params().get(key).and_then(Json::string_value);
        if ask.method() == LIST {
            return Reply::Result(served.list(text("cursor").as_deref()));
        }
        let uri = text("uri").unwrap_or_default();
        let unknown = || {
            let uri = catalog::summary::echo(&uri);
            let message = format!("no skill `{uri}`; skills/list names those there are");
            Reply::Error(RpcError::new(-32602, message))
        };
        served.get(&uri).map_or_else(unknown, Reply::Result)
    }

    /// The file of a URI; `None` when it is no served skill's.
    pub(crate) async fn file(
        &self,
        snapshot: &Snapshot,
        uri: &str,
        context: &Context,
    ) -> Option<SkillFile> {
        Some(match self.served(snapshot, context).await.place(uri)? {
            Place::Here { text } => SkillFile::Here(Reply::Result(served::contents(uri, &text))),
            Place::Upstream { label, uri: original, listed } => {
                let mut sources = snapshot.catalog.sources().iter();
                let source = sources.position(|source| source.label == label)?;
                let uri = uri.to_owned();
                SkillFile::Distant(Box::new(Distant { source, original, uri, listed }))
            }
        })
    }

    /// Every skill that this caller sees and that can be served.
    async fn served(&self, snapshot: &Snapshot, context: &Context) -> Served {
        let known = self.index.of_extension(snapshot, context).await;
        let visible = self.pipeline.live.visible_to(&context.caller);
        Served::new(known.library.newest().filter(|skill| self.index.shows(&visible, skill)))
    }
}

impl Distant {
    /// The upstream's answer as it goes out.
    pub(crate) fn reply(&self, reply: Reply) -> Reply {
        let Reply::Result(result) = &reply else { return reply };
        match served::renamed(result, &self.original, &self.uri, self.listed.as_ref()) {
            Some(result) => Reply::Result(result),
            None => {
                let message = format!(
                    "what the server gave for `{}` is not what it listed; ask skills/get again",
                    catalog::summary::echo(&self.uri)
                );
                Reply::Error(RpcError::new(-32603, message))
            }
        }
    }
}

/// What is declared of the extension: it is served where this caller sees a
/// skill here, or an upstream that has the extension.
pub(crate) fn declared(
    index: &SkillIndex,
    snapshot: &Snapshot,
    visible: &Visible<'_>,
) -> Option<(&'static str, Value)> {
    let here = index.own();
    let shown = here.newest().any(|skill| index.shows(visible, skill));
    let offers = |(at, source): (usize, &catalog::Source)| {
        upstream::offers(&source.listing.server) && visible.shows_source(&snapshot.catalog, at)
    };
    let any = shown || snapshot.catalog.sources().iter().enumerate().any(offers);
    any.then(|| (upstream::EXTENSION, json!({})))
}

#[cfg(test)]
mod tests;
