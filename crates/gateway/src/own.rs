//! The gate's own functions, in the reserved namespace `gatelet`.
//!
//! They are listed, documented, checked and called like any other function;
//! only who answers is different.

mod find;
mod look;

use std::sync::Arc;

use catalog::source::Role;
use catalog::{Catalog, Slot, Source};
use serde_json::json;
use tool::{Ask, Context, CredentialHealth, Failure, Json, Listing, Reply, RpcError, Tool};

use crate::artifact::Store;
use crate::clock::Clock;
use crate::gate::thousands;
use crate::learning::{Closed, Learning};
use crate::roster::{Phase, Snapshot};
use crate::skill::census::Census;
use crate::stage::{Trust, ValidCall};
use crate::visibility::Thing;

pub(crate) use find::{found, unsearched};
pub(crate) use look::{Room, is_media};

/// The reserved label.
pub const LABEL: &str = "gatelet";

/// The handle that a call of our own looks at, if it does.
pub(crate) fn looks_at(call: &ValidCall) -> Option<String> {
    if call.callee.upstream != LABEL || call.callee.tool != "view" {
        return None;
    }
    call.arguments()?.member_as("handle")
}

/// Whether a call of our own looks at what is kept, so that its answer is
/// bounded by itself.
pub(crate) fn is_look(call: &ValidCall) -> bool {
    call.callee.upstream == LABEL && call.slot().is_some() && call.callee.tool == "view"
}

/// How many functions a search names unless more are asked for.
pub(crate) const FOUND: usize = 5;
pub(crate) const MOST_FOUND: usize = 50;

/// Answers for the namespace `gatelet`.
pub struct Own {
    listing: Arc<Listing>,
    artifacts: Arc<dyn Store>,
    trust: Arc<dyn Trust>,
    census: Arc<Census>,
    learning: Arc<Learning>,
}

impl Own {
    /// Without skills, and learning nothing.
    pub fn new(artifacts: Arc<dyn Store>, trust: Arc<dyn Trust>, clock: Arc<dyn Clock>) -> Own {
        let census = Census::new(Arc::default(), Arc::clone(&trust), Arc::default());
        Own {
            listing: Arc::new(listing()),
            artifacts,
            trust,
            census: Arc::new(census),
            learning: Arc::new(Learning::new(Arc::new(Closed), clock)),
        }
    }

    /// With the skills that there are, and what searches learn from.
    pub(crate) fn with(self, census: Arc<Census>, learning: Arc<Learning>) -> Own {
        Own { census, learning, ..self }
    }

    pub(crate) fn source(&self) -> Source {
        let words = "This gate: search everything, read long results in parts, upstream health.";
        Source {
            description: Some(words.to_owned()),
            role: Role::Own,
            skills: self.census.here().listed(),
            ..Source::new(LABEL, Arc::clone(&self.listing))
        }
    }

    /// Answers one call.
    pub(crate) async fn answer(
        &self,
        ask: Ask,
        snapshot: &Snapshot,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let Ask::Call(call) = ask else {
            return Ok(Reply::Error(RpcError::new(-32601, "the gate itself has functions only")));
        };
        let arguments = call.arguments.unwrap_or_else(Json::empty_object);
        Ok(match call.name.as_str() {
            "find" => self.find(&arguments, snapshot, context).await,
            "view" => look::view(&*self.artifacts, &arguments, &Room::default(), context).await,
            "status" => Reply::text(&self.status(snapshot, context)),
            other => Reply::error_text(&format!("the gate has no function `{other}`")),
        })
    }

    /// Answers a look in so much room.
    pub(crate) async fn look(&self, ask: Ask, room: &Room, context: &Context) -> Reply {
        let arguments = match ask {
            Ask::Call(call) => call.arguments.unwrap_or_else(Json::empty_object),
            Ask::Read(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                Json::empty_object()
            }
        };
        look::view(&*self.artifacts, &arguments, room, context).await
    }
}

impl Own {
    /// What is unavailable and why, then what is there; of what the caller
    /// sees.
    fn status(&self, snapshot: &Snapshot, context: &Context) -> String {
        let catalog = &snapshot.catalog;
        let caller = &context.caller;
        status(snapshot, &|at, label| {
            let mut own = catalog.slots().filter(|slot| catalog.function(*slot).source == at);
            self.trust.knows(caller, &Thing::Namespace(label))
                || own.any(|slot| self.trust.sees(caller, catalog, slot))
        })
    }
}

/// `- orders / create(customer_id: string) — Create an order.`
pub(crate) fn line(catalog: &Catalog, slot: Slot) -> String {
    let away = catalog.source(slot).unavailable().map_or("", |_| " (unavailable)");
    let summary = catalog.summary(slot, 120);
    let dash = if summary.is_empty() { "" } else { " — " };
    format!("- {} / {}{dash}{summary}{away}", catalog.path(slot), catalog.signature(slot, 160))
}

fn status(snapshot: &Snapshot, shows: &dyn Fn(usize, &str) -> bool) -> String {
    let mut lines = Vec::new();
    let mut has_unread = false;
    for (at, source) in snapshot.catalog.sources().iter().enumerate() {
        let Some(link) = snapshot.link(at).filter(|_| shows(at, &source.label)) else { continue };
        let status = link.status();
        let tools = thousands(status.listing.tools.len());
        let phase = match &status.phase {
            Phase::Up => format!("up, {tools} functions"),
            Phase::Asleep if status.seen => {
                format!("asleep, {tools} functions, starts when called")
            }
            Phase::Asleep => format!("from memory, {tools} functions, starts when called"),
            Phase::Starting => format!("starting, {tools} functions known"),
            Phase::Down { reason, .. } => format!("UNAVAILABLE: {reason}; retried by itself"),
        };
        let phase = match unread(&status.listing) {
            Some(unread) => format!("{phase}; {unread}"),
            None => phase,
        };
        let phase = match status.credential {
            None | Some(CredentialHealth::Fine) => phase,
            Some(health) => format!("{phase}; credentials: {health}"),
        };
        let fare = Fare::of(&status.phase);
        has_unread |= !status.listing.unread.is_empty();
        lines.push((fare, format!("- {}: {phase}", source.label)));
    }
    lines.sort_by_key(|(fare, _)| *fare);
    let count = |wanted: Fare| lines.iter().filter(|(fare, _)| *fare == wanted).count();
    let mut first = tally(lines.len(), count(Fare::Away), count(Fare::Starting));
    if has_unread {
        first.push_str(" Not every list of theirs can be read.");
    }
    let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
    format!("{first}\n\n{}", lines.join("\n"))
}

/// How an upstream fares, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fare {
    Away,
    Starting,
    There,
}

impl Fare {
    /// As its line says it.
    fn of(phase: &Phase) -> Fare {
        match phase {
            Phase::Down { .. } => Fare::Away,
            Phase::Starting => Fare::Starting,
            Phase::Up | Phase::Asleep => Fare::There,
        }
    }
}

/// How all upstreams fare, in a sentence.
fn tally(all: usize, away: usize, starting: usize) -> String {
    let upstreams = if all == 1 { "upstream" } else { "upstreams" };
    let is = |count: usize| if count == 1 { "is" } else { "are" };
    match (all, away, starting) {
        (0, _, _) => "No upstreams are configured.".to_owned(),
        (1, 0, 0) => "The only upstream is available.".to_owned(),
        (_, 0, 0) => format!("All {all} upstreams are available."),
        (_, away, 0) => format!("{away} of {all} {upstreams} {} unavailable.", is(away)),
        (_, 0, starting) => {
            format!("{starting} of {all} {upstreams} {} still starting.", is(starting))
        }
        (_, away, starting) => format!(
            "{away} of {all} upstreams {} unavailable, {starting} {} still starting.",
            is(away),
            is(starting)
        ),
    }
}

/// Which lists are not what the upstream has.
fn unread(listing: &Listing) -> Option<String> {
    let word = |kind: &tool::Kind| match kind {
        tool::Kind::Tools => "functions",
        tool::Kind::Resources => "resources",
        tool::Kind::Templates => "resource templates",
        tool::Kind::Prompts => "prompts",
    };
    let words: Vec<&str> = listing.unread.iter().map(word).collect();
    (!words.is_empty())
        .then(|| format!("its {} cannot be read and are as last seen", words.join(", ")))
}

fn listing() -> Listing {
    let read_only = json!({"readOnlyHint": true});
    let tools = [
        json!({
            "name": "find",
            "description": "Find functions in all namespaces by what they do.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What you want to do, in words."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": FOUND},
                    "kind": {
                        "type": "string",
                        "enum": ["function", "resource", "prompt", "skill", "all"],
                        "default": "function",
                    },
                },
                "required": ["query"],
                "additionalProperties": false,
            },
            "annotations": read_only,
        }),
        json!({
            "name": "view",
            "description": "Read a part of a result that was too long.\n\nGive the handle and one of \
                `head`, `tail`, `lines`, `grep`, `jq`. Without one, the beginning. Without a handle, \
                what is kept.",
            "inputSchema": look::schema(),
            "annotations": read_only,
        }),
        json!({
            "name": "status",
            "description": "Which upstreams are unavailable and why.",
            "inputSchema": {
                "type": "object",
                "properties": {},
                "additionalProperties": false,
            },
            "annotations": read_only,
        }),
    ];
    let read = |raw: serde_json::Value| Tool::read(raw.into()).expect("our own tools have names");
    Listing { tools: tools.into_iter().map(read).collect(), ..Listing::default() }
}

#[cfg(test)]
mod tests {
    use super::{Fare, tally};
    use crate::roster::Phase;

    #[test]
    fn what_is_listed_as_starting_is_counted_as_starting() {
        assert_eq!(Fare::of(&Phase::Starting), Fare::Starting);
        let down = Phase::Down { reason: String::new(), failures: 1 };
        assert_eq!(Fare::of(&down), Fare::Away);
        assert_eq!([Phase::Up, Phase::Asleep].map(|phase| Fare::of(&phase)), [Fare::There; 2]);
    }

    #[test]
    fn what_is_still_starting_is_not_said_to_be_available() {
        for (all, away, starting, expected) in [
            (0, 0, 0, "No upstreams are configured."),
            (1, 0, 0, "The only upstream is available."),
            (22, 0, 0, "All 22 upstreams are available."),
            (22, 0, 1, "1 of 22 upstreams is still starting."),
            (1, 1, 0, "1 of 1 upstream is unavailable."),
            (3, 2, 1, "2 of 3 upstreams are unavailable, 1 is still starting."),
        ] {
            assert_eq!(tally(all, away, starting), expected);
        }
    }
}
