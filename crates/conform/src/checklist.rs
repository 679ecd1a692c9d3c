//! The 127 items of the CaSH checklist, as data.

use serde::Deserialize;

/// One normative statement that can be checked.
#[derive(Clone, Debug, Deserialize)]
pub struct Item {
    /// Such as `C001`.
    pub id: String,
    /// The section of the CaSH document.
    pub section: String,
    /// The keyword of the statement, such as `MUST`.
    pub level: String,
    /// Which kind of server it applies to, such as `aggregator`.
    pub applies: String,
    /// The statement itself.
    pub requirement: String,
}

/// What it means when a server does not fulfil an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Must hold: a breach fails the server.
    Must,
    /// Should or may hold: a breach is a warning.
    Should,
}

impl Item {
    /// Returns the level that follows from the keyword.
    pub fn strength(&self) -> Level {
        let strong = ["MUST", "REQUIRED", "declarative"];
        let is_strong = strong.iter().any(|word| self.level.starts_with(word));
        if is_strong { Level::Must } else { Level::Should }
    }
}

/// Returns all items, in order.
pub fn items() -> Vec<Item> {
    serde_json::from_str(include_str!("../assets/checklist.json"))
        .expect("the checklist is part of the program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_127_items_in_order() {
        let ids: Vec<String> = items().into_iter().map(|item| item.id).collect();
        let expected: Vec<String> = (1..=127).map(|n| format!("C{n:03}")).collect();
        assert_eq!(ids, expected);
    }

    #[test]
    fn the_words_of_the_document_decide_what_a_breach_means() {
        let level = |id: &str| {
            items().into_iter().find(|item| item.id == id).map(|item| item.strength()).unwrap()
        };
        assert_eq!(level("C002"), Level::Must);
        assert_eq!(level("C009"), Level::Must);
        assert_eq!(level("C001"), Level::Should);
        assert_eq!(level("C045"), Level::Should);
    }
}
