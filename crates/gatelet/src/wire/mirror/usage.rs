//! What searches learned as entries that replicas merge, one for each word of a query and
//! the tool that was chosen after it. What was forgotten at one replica is forgotten.

use std::path::PathBuf;

use catalog::usage::UsageHistory;
use serde_json::{Map, Value, json};

use super::local_copy::LocalCopy;
use super::merge::Entries;
use crate::usage_file::UsageFile;

/// Stands between word and tool in the name of an entry.
const BETWEEN: char = '\u{1f}';

/// The usage history of a state directory.
pub(crate) struct UsageEntries(pub(crate) UsageFile);

impl LocalCopy for UsageEntries {
    fn name(&self) -> &'static str {
        "usage"
    }

    fn file(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    /// It changes with every search, and nobody waits for it.
    fn is_urgent(&self) -> bool {
        false
    }

    fn read(&self) -> Result<Entries, String> {
        let history = self.0.load().map_err(|error| format!("{error:#}"))?;
        Ok(entries(&history))
    }

    fn change(&self, change: &mut (dyn FnMut(&mut Entries) + Send)) -> Result<(), String> {
        let changed = self.0.change(|history| {
            let mut entries = entries(history);
            change(&mut entries);
            // What a later release wrote in another form is left as it was.
            if let Ok(after) = parse(&entries) {
                *history = after;
            }
        });
        changed.map_err(|error| format!("{error:#}"))
    }

    /// The choice that was made last, and of those of one day the one that was made more
    /// often.
    fn stricter<'a>(&self, one: Option<&'a Value>, other: Option<&'a Value>) -> Option<&'a Value> {
        let (one, other) = (one?, other?);
        let order = |entry: &Value| {
            let number = |name: &str| entry.get(name).and_then(Value::as_f64).unwrap_or_default();
            (number("day"), number("times"))
        };
        Some(if order(other) <= order(one) { one } else { other })
    }
}

fn entries(history: &UsageHistory) -> Entries {
    let json = serde_json::to_value(history).unwrap_or_default();
    let words = json.get("words").and_then(Value::as_object).into_iter().flatten();
    let choices = words.flat_map(|(word, choices)| {
        let choices = choices.as_object().into_iter().flatten();
        choices.map(move |(tool, choice)| (format!("{word}{BETWEEN}{tool}"), choice.clone()))
    });
    choices.collect()
}

fn parse(entries: &Entries) -> serde_json::Result<UsageHistory> {
    let mut words = Map::new();
    for (name, choice) in entries {
        let Some((word, tool)) = name.split_once(BETWEEN) else { continue };
        words.entry(word).or_insert_with(|| json!({}))[tool] = choice.clone();
    }
    serde_json::from_value(json!({"words": words}))
}
