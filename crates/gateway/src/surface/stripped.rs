//! Stripped tool definitions for the proxy surface: a name that every host accepts, a
//! short description and no schema.

use std::collections::HashMap;

use catalog::{ItemRef, Slot, card};
use serde_json::json;
use sha2::{Digest, Sha256};
use tool::{Finding, Json, Tool, hex};

use crate::surface::cuts;
use crate::surface::meta::definition::tools;
use roster::Snapshot;

/// The meta-tools that the proxy surface lists beside the stripped tools.
pub(crate) const META_TOOLS: [&str; 3] = ["tool_hydrate", "tool_execute", "tool_view"];
/// The most tokens of a stripped description.
const MAX_DESCRIPTION_TOKENS: usize = 40;
/// The most characters that hosts accept in a name.
const MAX_NAME_CHARS: usize = 64;

/// Encodes an id as a name of at most 64 letters, digits, `_` and `-`.
///
/// `-` escapes characters that names cannot have, so that [`decode`] returns the id. An
/// id that is too long is cut and gets a hash of the whole; such a name cannot be
/// decoded.
pub(crate) fn encode(id: &str) -> String {
    let mut name = String::with_capacity(id.len() + 4);
    for c in id.chars() {
        match c {
            '-' => name.push_str("--"),
            ':' => name.push_str("-_"),
            '.' => name.push_str("-d"),
            '#' => name.push_str("-h"),
            '@' => name.push_str("-v"),
            '~' => name.push_str("-t"),
            _ => name.push(c),
        }
    }
    if name.len() <= MAX_NAME_CHARS {
        return name;
    }
    let digest = Sha256::digest(id.as_bytes());
    let digest = hex::encode(&digest[..8]);
    let head: String = name.chars().take(MAX_NAME_CHARS - digest.len() - 2).collect();
    format!("{}-x{digest}", head.trim_end_matches('-'))
}

/// Decodes a name to its id; `None` if the name was shortened or is not an encoded id.
pub(crate) fn decode(name: &str) -> Option<String> {
    let mut id = String::with_capacity(name.len());
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        id.push(match c {
            '-' => match chars.next()? {
                '-' => '-',
                '_' => ':',
                'd' => '.',
                'h' => '#',
                'v' => '@',
                't' => '~',
                _ => return None,
            },
            _ => c,
        });
    }
    Some(id)
}

/// The stripped definitions of a snapshot's tools, in the order of the directory.
pub(crate) struct StrippedTools {
    /// The definitions, each with its function; meta-tools have none.
    pub(crate) tools: Vec<(Option<Slot>, Tool)>,
    /// The ids of shortened names.
    shortened: HashMap<String, String>,
    /// Which names had to be shortened for hosts.
    pub(crate) findings: Vec<Finding>,
}

impl StrippedTools {
    /// Returns the stripped tools of a snapshot, computed when first needed.
    pub(crate) fn of(snapshot: &Snapshot) -> &StrippedTools {
        snapshot.derived(|| StrippedTools::compute(snapshot))
    }

    fn compute(snapshot: &Snapshot) -> StrippedTools {
        let own = tools(&META_TOOLS, "").into_iter().map(|tool| (None, tool));
        let mut stripped =
            StrippedTools { tools: own.collect(), shortened: HashMap::new(), findings: Vec::new() };
        for entry in snapshot.directory().tools.entries() {
            let name = encode(&entry.id);
            let shortened = decode(&name).as_ref() != Some(&entry.id);
            if shortened {
                stripped.shortened.insert(name.clone(), entry.id.clone());
            }
            let raw = json!({
                "name": name,
                "description": card::truncate(entry.card.description(), MAX_DESCRIPTION_TOKENS),
                "inputSchema": {"type": "object"},
            });
            if let (ItemRef::Tool(slot), Ok(tool)) = (entry.item, Tool::parse(raw.into())) {
                let label = &snapshot.catalog.source(slot).label;
                // Descriptions are shorter here than any host's cut.
                let whole = Tool { description: None, ..snapshot.catalog.tool(slot).clone() };
                stripped.findings.extend(cuts::findings(label, &whole, &name, shortened));
                stripped.tools.push((Some(slot), tool));
            }
        }
        stripped
    }

    pub(crate) fn definitions(&self) -> Vec<Json> {
        self.tools.iter().map(|(_, tool)| tool.raw.clone()).collect()
    }

    /// Returns the id of the tool with this name.
    pub(crate) fn id_of_name(&self, name: &str) -> Option<String> {
        self.shortened.get(name).cloned().or_else(|| decode(name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepted(name: &str) -> bool {
        (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    }

    #[test]
    fn names_are_readable_and_lead_back() {
        let name = encode("github:create_issue#34afee88");
        assert_eq!(name, "github-_create_issue-h34afee88");
        assert_eq!(decode(&name).as_deref(), Some("github:create_issue#34afee88"));
        assert_eq!(decode("tool-xff"), None);
    }

    proptest! {
        #[test]
        fn every_id_has_a_name_that_hosts_accept(
            id in "[a-z][a-z0-9_-]{0,63}:[A-Za-z_][A-Za-z0-9_.-]{0,127}(@[A-Za-z0-9._-]{1,32}|#[0-9a-f]{8})(~[2-9])?"
        ) {
            let name = encode(&id);
            prop_assert!(accepted(&name), "{name}");
            match decode(&name) {
                Some(back) => prop_assert_eq!(back, id),
                None => prop_assert!(name.contains("-x")),
            }
        }
    }
}
