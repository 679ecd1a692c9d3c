//! Cards: the short description of a tool, resource or prompt that a model reads
//! before it chooses.
//!
//! A [`Card`] has only the fields that the surface specification permits, so it cannot
//! carry a schema, an example or an annotation map. Every rendering is bounded in exact
//! tokens: 60 per card as the target, 80 as the cap. Cards do not know catalogs or
//! sessions.

mod render;
mod truncate;

use serde::{Serialize, Serializer};

pub use render::{AtWidth, CAP, Line, PREAMBLE, TARGET, budget_line, fit, listing, snippet};
pub use truncate::truncate;

/// A card, within its limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card(Draft);

/// The fields of a card, not yet checked against its limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Draft {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub kind: Kind,
    pub namespace: String,
    pub has_schema: bool,
    pub cost_hint: f64,
    pub side_effects: bool,
    pub safety: Safety,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// The kind of thing that a card describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Tool,
    Agent,
    Skill,
    /// A branch of the path tree, or a marker.
    Internal,
    Flow,
    Resource,
    Prompt,
}

/// What a tool says it does to the world. A hint, never a permission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Safety {
    #[default]
    Unknown,
    ReadOnly,
    Destructive,
}

/// Why a draft does not make a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCard {
    #[error("a card's name has at most {NAME} characters, this one has {0}")]
    Name(usize),
    #[error("a card has at most {TAGS} tags, this one has {0}")]
    Tags(usize),
    #[error("a card's tag has at most {TAG} characters, `{0}` has more")]
    Tag(String),
    #[error("`{0}` is no kind of card")]
    Kind(String),
    #[error("`{0}` is no safety class")]
    Safety(String),
    #[error("the card of `{id}` has {tokens} tokens with an empty description, {CAP} is the cap")]
    TooBig { id: String, tokens: usize },
}

/// The most characters of a name.
const NAME: usize = 64;
/// The most tags.
const TAGS: usize = 5;
/// The most characters of one tag.
const TAG: usize = 24;

impl Card {
    /// A card of exactly these fields, if they are within the limits.
    pub fn new(draft: Draft) -> Result<Card, InvalidCard> {
        let length = draft.name.chars().count();
        if NAME < length {
            return Err(InvalidCard::Name(length));
        }
        if TAGS < draft.tags.len() {
            return Err(InvalidCard::Tags(draft.tags.len()));
        }
        if let Some(long) = draft.tags.iter().find(|tag| TAG < tag.chars().count()) {
            return Err(InvalidCard::Tag(long.clone()));
        }
        Ok(Card(draft))
    }

    /// A card of these fields, truncated to the limits; the description becomes one line.
    pub fn truncated(draft: Draft) -> Card {
        let draft = Draft {
            name: head(&draft.name, NAME),
            description: one_line(&draft.description),
            safety: match draft.safety {
                Safety::Unknown => safety_of(&draft.tags),
                Safety::ReadOnly | Safety::Destructive => draft.safety,
            },
            tags: cap_tags(&draft.tags),
            ..draft
        };
        Card::new(draft).expect("every limit was just kept")
    }

    pub fn id(&self) -> &str {
        &self.0.id
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub fn description(&self) -> &str {
        &self.0.description
    }

    pub fn tags(&self) -> &[String] {
        &self.0.tags
    }

    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    pub fn safety(&self) -> Safety {
        self.0.safety
    }

    pub fn score(&self) -> Option<f64> {
        self.0.score
    }

    /// Sets the score.
    #[must_use]
    pub fn scored(mut self, score: Option<f64>) -> Card {
        self.0.score = score;
        self
    }

    fn described(&self, description: String) -> Card {
        Card(Draft { description, ..self.0.clone() })
    }
}

impl Draft {
    /// A draft with only the required fields.
    pub fn new(id: &str, name: &str, description: &str, kind: Kind) -> Draft {
        Draft {
            id: id.to_owned(),
            name: name.to_owned(),
            description: description.to_owned(),
            tags: Vec::new(),
            kind,
            namespace: String::new(),
            has_schema: false,
            cost_hint: 0.0,
            side_effects: false,
            safety: Safety::Unknown,
            score: None,
        }
    }
}

/// Sorts cards as a browse shows them: best score first, then by id.
pub fn sort(cards: &mut [Card]) {
    let score = |card: &Card| card.0.score.unwrap_or(0.0);
    cards.sort_by(|a, b| score(b).total_cmp(&score(a)).then_with(|| a.0.id.cmp(&b.0.id)));
}

/// The tags that a card keeps: truncated, without duplicates, at most five; tags about
/// safety are kept first.
pub fn cap_tags(tags: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = tags.iter().map(|tag| head(tag, TAG)).collect();
    kept.sort_unstable();
    kept.dedup();
    kept.sort_by_key(|tag| !is_safety(tag));
    kept.truncate(TAGS);
    kept.sort_unstable();
    kept
}

/// The safety class that tags imply; destructive wins.
pub fn safety_of(tags: &[String]) -> Safety {
    let any = |wanted: &[&str]| {
        tags.iter().any(|tag| wanted.iter().any(|wanted| tag.eq_ignore_ascii_case(wanted)))
    };
    match (any(&["destructive"]), any(&["read-only", "read_only"])) {
        (true, _) => Safety::Destructive,
        (false, true) => Safety::ReadOnly,
        (false, false) => Safety::Unknown,
    }
}

impl Kind {
    pub const ALL: [Kind; 7] = [
        Kind::Tool,
        Kind::Agent,
        Kind::Skill,
        Kind::Internal,
        Kind::Flow,
        Kind::Resource,
        Kind::Prompt,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Tool => "tool",
            Kind::Agent => "agent",
            Kind::Skill => "skill",
            Kind::Internal => "internal",
            Kind::Flow => "flow",
            Kind::Resource => "resource",
            Kind::Prompt => "prompt",
        }
    }
}

impl std::str::FromStr for Kind {
    type Err = InvalidCard;

    fn from_str(text: &str) -> Result<Kind, InvalidCard> {
        let known = Kind::ALL.into_iter().find(|kind| kind.as_str() == text);
        known.ok_or_else(|| InvalidCard::Kind(text.to_owned()))
    }
}

impl Safety {
    pub fn as_str(self) -> &'static str {
        match self {
            Safety::Unknown => "",
            Safety::ReadOnly => "read_only",
            Safety::Destructive => "destructive",
        }
    }
}

impl std::str::FromStr for Safety {
    type Err = InvalidCard;

    fn from_str(text: &str) -> Result<Safety, InvalidCard> {
        let all = [Safety::Unknown, Safety::ReadOnly, Safety::Destructive];
        let known = all.into_iter().find(|safety| safety.as_str() == text);
        known.ok_or_else(|| InvalidCard::Safety(text.to_owned()))
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Serialize for Safety {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

fn is_safety(tag: &str) -> bool {
    safety_of(std::slice::from_ref(&tag.to_owned())) != Safety::Unknown
}

fn head(text: &str, length: usize) -> String {
    text.chars().take(length).collect()
}

/// White space and control characters become single spaces, so that a description cannot
/// pretend to be another card.
fn one_line(text: &str) -> String {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    text.split(blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
