//! Serves MCP's skills extension: `skills/list`, `skills/get`, and the files of skills as
//! resources.
//!
//! Files at an upstream are not read here but by the caller of this module, like every
//! other resource.

use std::sync::Arc;

use serde_json::{Value, json};
use tool::{Ask, Context, Json, Reply, RpcError};

use crate::dispatch::Dispatcher;
use policy::visibility::CallerView;
use roster::Snapshot;
use skills::served::{self, FileLocation, ListedFile, SkillEntries};
use skills::skill_index::SkillIndex;
use skills::upstream;

/// The methods of the extension.
pub(crate) const LIST: &str = "skills/list";
pub(crate) const GET: &str = "skills/get";

/// Answers the requests of the extension, for one surface.
pub(crate) struct ServedSkills {
    pub(crate) index: Arc<SkillIndex>,
    pub(crate) pipeline: Arc<Dispatcher>,
}

/// A file of a skill.
pub(crate) enum SkillFile {
    /// It is in gatelet: the reply with its content.
    Local(Reply),
    Upstream(Box<UpstreamFile>),
}

/// A file of a skill at an upstream.
pub(crate) struct UpstreamFile {
    /// The index of the upstream among the catalog's sources.
    pub(crate) source: usize,
    /// Its URI at the upstream.
    pub(crate) upstream_uri: String,
    /// Its URI in gatelet.
    uri: String,
    /// What the upstream listed of it.
    listed: Option<ListedFile>,
}

/// Returns whether a URI may be a file of a skill.
pub(crate) fn is_skill_uri(uri: &str) -> bool {
    uri.starts_with(served::SCHEME)
}

/// Returns whether a URI is one that only gatelet gives to files: below its own label or
/// below that of an upstream with skills, and not listed by any upstream.
pub(crate) fn is_gatelets_own(snapshot: &Snapshot, uri: &str) -> bool {
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
    /// Answers `skills/list` or `skills/get`.
    pub(crate) async fn answer(&self, snapshot: &Snapshot, ask: &Ask, context: &Context) -> Reply {
        let served = self.served_skills(snapshot, context).await;
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

    /// Returns the file with this URI; `None` if no served skill has it.
    pub(crate) async fn file(
        &self,
        snapshot: &Snapshot,
        uri: &str,
        context: &Context,
    ) -> Option<SkillFile> {
        Some(match self.served_skills(snapshot, context).await.locate(uri)? {
            FileLocation::Here { text } => {
                SkillFile::Local(Reply::Result(served::contents(uri, &text)))
            }
            FileLocation::Upstream { label, uri: upstream_uri, listed } => {
                let mut sources = snapshot.catalog.sources().iter();
                let source = sources.position(|source| source.label == label)?;
                let uri = uri.to_owned();
                SkillFile::Upstream(Box::new(UpstreamFile { source, upstream_uri, uri, listed }))
            }
        })
    }

    /// Returns the skills that this caller sees and that can be served.
    async fn served_skills(&self, snapshot: &Snapshot, context: &Context) -> SkillEntries {
        let known = self.index.of_extension(snapshot, context).await;
        let visible = self.pipeline.live.visible_to(&context.caller);
        SkillEntries::new(known.library.newest().filter(|skill| self.index.shows(&visible, skill)))
    }
}

impl UpstreamFile {
    /// Checks the upstream's answer and renames its URI to gatelet's.
    pub(crate) fn check_and_rename(&self, reply: Reply) -> Reply {
        let Reply::Result(result) = &reply else { return reply };
        match served::with_own_uri(result, &self.upstream_uri, &self.uri, self.listed.as_ref()) {
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

/// Returns the name and the settings of the extension, to be declared if this caller sees
/// a skill of gatelet, or an upstream with the extension.
pub(crate) fn extension(
    index: &SkillIndex,
    snapshot: &Snapshot,
    visible: &CallerView<'_>,
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
