//! Tools as the proxy surface lists them: a name that every host accepts, a short
//! description and no schema.

use std::collections::HashMap;

use catalog::{ItemRef, Slot, card};
use serde_json::json;
use sha2::{Digest, Sha256};
use tool::{Finding, Json, Tool, hex};

use crate::surface::cuts;
use crate::surface::meta::definition::tools;
use roster::Snapshot;

/// The meta-tools beside the stripped entries.
pub(crate) const OWN: [&str; 3] = ["tool_hydrate", "tool_execute", "tool_view"];
/// Tokens that a stripped description may have.
const DESCRIPTION: usize = 40;
/// Characters that a host accepts in a name.
const LONGEST: usize = 64;

/// An id as a name of at most 64 letters, digits, `_` and `-`.
///
/// `-` introduces what a name cannot hold, so [`decode`] gives the id back. An
/// id that is too long keeps its beginning and gets a digest of the whole; such
/// a name is known only beside its id.
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
    if name.len() <= LONGEST {
        return name;
    }
    let digest = Sha256::digest(id.as_bytes());
    let digest = hex::encode(&digest[..8]);
    let head: String = name.chars().take(LONGEST - digest.len() - 2).collect();
    format!("{}-x{digest}", head.trim_end_matches('-'))
}

/// The id that a name encodes; `None` when the name was shortened or encodes none.
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

/// The stripped definitions, in the order of the directory, and the ids of the
/// names that were shortened.
pub(crate) struct Stripped {
    /// The meta-tools belong to nobody; the others to a function each.
    pub(crate) tools: Vec<(Option<Slot>, Tool)>,
    shortened: HashMap<String, String>,
    /// The names that hosts would not accept.
    pub(crate) findings: Vec<Finding>,
}

impl Stripped {
    /// Those of a snapshot, made when first needed.
    pub(crate) fn of(snapshot: &Snapshot) -> &Stripped {
        snapshot.derived(|| Stripped::make(snapshot))
    }

    fn make(snapshot: &Snapshot) -> Stripped {
        let own = tools(&OWN, "").into_iter().map(|tool| (None, tool));
        let mut stripped =
            Stripped { tools: own.collect(), shortened: HashMap::new(), findings: Vec::new() };
        for entry in snapshot.directory().tools.entries() {
            let name = encode(&entry.id);
            let shortened = decode(&name).as_ref() != Some(&entry.id);
            if shortened {
                stripped.shortened.insert(name.clone(), entry.id.clone());
            }
            let raw = json!({
                "name": name,
                "description": card::truncate(entry.card.description(), DESCRIPTION),
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

    /// The id that a name stands for.
    pub(crate) fn id(&self, name: &str) -> Option<String> {
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
