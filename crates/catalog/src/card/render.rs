//! Renders cards in several formats, each within a token budget.

use serde::Serialize;

use super::truncate::truncate;
use super::{Card, Draft, InvalidCard, Kind, Safety};
use crate::tokens;

/// The tokens that a card should not exceed.
pub const TARGET: usize = 60;
/// The tokens that a card must not exceed.
pub const CAP: usize = 80;
/// The most tokens of a reply apart from its cards.
pub const PREAMBLE: usize = 32;

/// One rendered card, at most [`CAP`] tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line(String);

impl Line {
    /// The card as compact text: id, description, safety notes, and the signature (names
    /// and types of the arguments).
    ///
    /// A card that is too big even without its description has its id shortened around
    /// `…`, which [`crate::selection::resolve`] understands.
    pub fn text(card: &Card, signature: Option<AtWidth<'_>>) -> Line {
        let within = |target: usize| {
            let with = |description: &str| render_text(card, &card.0.id, description);
            render_within(&card.0.description, target, with)
                .unwrap_or_else(|| render_text(card, &short_id(card), ""))
        };
        let join = |line: &str, signature: &str| format!("{line}\n  {signature}");
        Line(with_signature(within, signature, join))
    }

    /// The card as a JSON object, without empty fields.
    pub fn json(card: &Card) -> Line {
        Line::json_with_signature(card, None)
    }

    /// The card as a JSON object with a `signature` (names and types of the arguments).
    pub fn json_with_signature(card: &Card, signature: Option<AtWidth<'_>>) -> Line {
        let within = |target: usize| {
            let with = |description: &str| render_json(card, &card.0.id, description);
            render_within(&card.0.description, target, with)
                .unwrap_or_else(|| render_json(card, &short_id(card), ""))
        };
        let join = |line: &str, signature: &str| {
            let open = line.strip_suffix('}').unwrap_or(line);
            format!("{open},\"signature\":{}}}", serde_json::Value::from(signature))
        };
        Line(with_signature(within, signature, join))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

/// A signature in as many characters as are given.
pub type AtWidth<'a> = &'a dyn Fn(usize) -> String;

/// The characters of the signature and the tokens of the card before it, widest first:
/// sentences are cut before arguments.
const WIDTHS: [(usize, usize); 9] = [
    (200, TARGET),
    (120, TARGET),
    (120, 45),
    (70, TARGET),
    (70, 45),
    (40, 45),
    (20, 30),
    (20, 15),
    (20, 0),
];

/// What stands for arguments where none fits.
const NO_ROOM: &str = "(…)";

/// The card with as much of its signature as fits into the cap; without any where the id
/// alone fills it.
fn with_signature(
    within: impl Fn(usize) -> String,
    signature: Option<AtWidth<'_>>,
    join: impl Fn(&str, &str) -> String,
) -> String {
    let line = within(TARGET);
    let Some(signature) = signature else { return line };
    let of_width = |(width, target): (usize, usize)| join(&within(target), &signature(width));
    let fits = |longer: &String| tokens::fits(longer, CAP);
    WIDTHS
        .into_iter()
        .map(of_width)
        .find(fits)
        .or_else(|| Some(join(&within(0), NO_ROOM)).filter(fits))
        .unwrap_or(line)
}

/// The rendering on which the specification counts the token budget.
pub fn budget_line(card: &Card) -> String {
    numbered(card, 1, 1, &card.0.tags)
}

/// Truncates the description so that the card's budget line is within the target.
pub fn fit(card: &Card) -> Result<Card, InvalidCard> {
    if tokens::count(&budget_line(card)) <= TARGET {
        return Ok(card.clone());
    }
    let overhead = tokens::count(&budget_line(&card.described(String::new())));
    let budget = TARGET.saturating_sub(overhead).max(1);
    let fitted = card.described(truncate(&card.0.description, budget));
    let tokens = tokens::count(&budget_line(&fitted));
    match tokens <= CAP {
        true => Ok(fitted),
        false => Err(InvalidCard::TooBig { id: card.0.id.clone(), tokens }),
    }
}

/// Cards as a numbered list, one per line.
pub fn listing(cards: &[Card]) -> String {
    let line = |(at, card): (usize, &Card)| {
        let mut tags = card.0.tags.clone();
        tags.sort_unstable();
        numbered(card, at + 1, cards.len(), &tags)
    };
    cards.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// One card over several lines, for a prompt that shows a single tool.
pub fn snippet(card: &Card) -> String {
    let mut lines = vec![format!("[{}] {}", card.0.id, card.0.name), card.0.description.clone()];
    if !card.0.tags.is_empty() {
        lines.push(format!("tags: {}", card.0.tags.join(", ")));
    }
    match card.0.safety {
        Safety::Destructive => lines.push("⚠ destructive".to_owned()),
        Safety::ReadOnly | Safety::Unknown if card.0.side_effects => {
            lines.push("! has side effects".to_owned());
        }
        Safety::ReadOnly | Safety::Unknown => {}
    }
    if card.0.safety == Safety::ReadOnly {
        lines.push("read-only".to_owned());
    }
    if card.0.cost_hint != 0.0 {
        lines.push(format!("cost: {:.2}", card.0.cost_hint));
    }
    lines.join("\n  ")
}

fn numbered(card: &Card, at: usize, total: usize, tags: &[String]) -> String {
    let Draft { id, description, .. } = &card.0;
    let mut line = format!("[{at}/{total}] {id} ({}) — {description}", card.0.kind.as_str());
    if !tags.is_empty() {
        line.push_str(&format!(" [{}]", tags.join(", ")));
    }
    if let Some(score) = card.0.score {
        line.push_str(&format!(" score={score:.2}"));
    }
    line
}

/// Renders with the longest description within `target`, or without any description
/// within the cap; `None` when even that is too big.
fn render_within(
    description: &str,
    target: usize,
    render: impl Fn(&str) -> String,
) -> Option<String> {
    let whole = render(description);
    if tokens::fits(&whole, target) {
        return Some(whole);
    }
    let overhead = tokens::count(&render(""));
    let mut budget = target.saturating_sub(overhead);
    // Joining a description with the text after it may add a token or two.
    for _ in 0..4 {
        let cut = render(&truncate(description, budget));
        if tokens::fits(&cut, target) {
            return Some(cut);
        }
        budget = budget.saturating_sub(1);
    }
    Some(render("")).filter(|bare| tokens::fits(bare, CAP))
}

fn render_text(card: &Card, id: &str, description: &str) -> String {
    let mut line = id.to_owned();
    if !description.is_empty() {
        line.push_str(&format!(" {description}"));
    }
    let mut notes = Vec::new();
    match card.0.safety {
        Safety::Destructive => notes.push("destructive".to_owned()),
        Safety::ReadOnly if card.0.kind == Kind::Tool => notes.push("read-only".to_owned()),
        Safety::ReadOnly | Safety::Unknown => {}
    }
    if 0.0 < card.0.cost_hint {
        notes.push(format!("cost {}", card.0.cost_hint));
    }
    if !notes.is_empty() {
        line.push_str(&format!(" [{}]", notes.join(", ")));
    }
    line
}

/// The JSON form of a card, without empty fields.
#[derive(Serialize)]
struct SparseCard<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "is_tool")]
    kind: Kind,
    #[serde(skip_serializing_if = "str::is_empty")]
    safety: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_hint: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
}

fn render_json(card: &Card, id: &str, description: &str) -> String {
    let sparse = SparseCard {
        id,
        description,
        kind: card.0.kind,
        safety: card.0.safety.as_str(),
        cost_hint: Some(card.0.cost_hint).filter(|cost| 0.0 < *cost),
        // Two decimals rank as well as seventeen and cost a fifth.
        score: card.0.score.map(|score| (score * 100.0).round() / 100.0),
    };
    serde_json::to_string(&sparse).expect("strings and numbers always serialise")
}

fn is_tool(kind: &Kind) -> bool {
    *kind == Kind::Tool
}

/// An id shortened around `…` so that its card is within the cap: as much of its
/// beginning as fits, and all of its version or hash.
fn short_id(card: &Card) -> String {
    let tail_at = card.0.id.rfind(['@', '#']).unwrap_or(card.0.id.len());
    let (head, tail) = card.0.id.split_at(tail_at);
    let shortened = |length: usize| {
        let kept: String = head.chars().take(length).collect();
        format!("{kept}…{tail}")
    };
    let (mut low, mut high) = (0, head.chars().count());
    while low < high {
        let middle = (low + high).div_ceil(2);
        match tokens::fits(&render_json(card, &shortened(middle), ""), CAP) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    shortened(low)
}
