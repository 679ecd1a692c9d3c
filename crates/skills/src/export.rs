//! Writes a skill in the Agent Skills format.

use serde_json::{Map, Value};

use crate::read::{DESCRIPTION, is_strict};
use crate::skill::{Content, Skill};

/// A directory and the `SKILL.md` in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    pub directory: String,
    pub text: String,
}

/// Writes a skill: a name of `a-z`, `0-9` and hyphens that is also the name of
/// its directory, a description, and nothing beside the fields of the format.
/// `None` for a skill whose text is not here.
pub fn export(skill: &Skill) -> Option<Exported> {
    let Content::Text { body, .. } = &skill.content else { return None };
    let Head { name, fields, metadata } = Head::of(skill);
    let mut head = format!("name: {}\n", plain(&name));
    for (key, text) in fields {
        head.push_str(&format!("{key}: {}\n", quoted(&text)));
    }
    if !metadata.is_empty() {
        head.push_str("metadata:\n");
        for (key, text) in metadata {
            head.push_str(&format!("  {key}: {}\n", quoted(&text)));
        }
    }
    let text = format!("---\n{head}---\n\n{}\n", body.trim());
    Some(Exported { directory: name, text })
}

/// The frontmatter of what [`export`] writes, as JSON.
pub fn frontmatter(skill: &Skill) -> Option<Value> {
    let Content::Text { .. } = &skill.content else { return None };
    let Head { name, fields, metadata } = Head::of(skill);
    let mut all = Map::from_iter([("name".to_owned(), Value::from(name))]);
    all.extend(fields.into_iter().map(|(key, text)| (key.to_owned(), text.into())));
    if !metadata.is_empty() {
        let metadata = metadata.into_iter().map(|(key, text)| (key.to_owned(), text.into()));
        all.insert("metadata".to_owned(), Value::Object(metadata.collect()));
    }
    Some(Value::Object(all))
}

/// What the frontmatter says.
struct Head {
    name: String,
    fields: Vec<(&'static str, String)>,
    metadata: Vec<(&'static str, String)>,
}

impl Head {
    fn of(skill: &Skill) -> Head {
        let name = strict_name(&skill.title, &skill.name);
        let words: String = skill.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = if words.is_empty() { format!("How to: {name}.") } else { words };
        let words = catalog::summary::cut(&words, DESCRIPTION);
        let license = skill.license.clone().map(|license| ("license", license));
        let compatibility = skill.compatibility.clone().map(|text| ("compatibility", text));
        let fields = [Some(("description", words)), license, compatibility];
        let version = skill.version.clone().map(|version| ("version", version));
        let functions: Vec<String> = skill.functions.iter().map(ToString::to_string).collect();
        let functions = (!functions.is_empty()).then(|| ("functions", functions.join(" ")));
        Head {
            name,
            fields: fields.into_iter().flatten().collect(),
            metadata: [version, functions].into_iter().flatten().collect(),
        }
    }
}

/// A strict name as YAML; in quotes where YAML would take it for something that
/// is no text, such as `2024` or `true`.
fn plain(name: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_text = name.starts_with(|c: char| c.is_ascii_lowercase()) && !WORDS.contains(&name);
    if is_text { name.to_owned() } else { quoted(name) }
}

/// Any text as YAML: a JSON string is one.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn strict_name(title: &str, fallback: &str) -> String {
    let fold = |text: &str| {
        let lower = text.to_ascii_lowercase();
        let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
        words.collect::<Vec<_>>().join("-").chars().take(64).collect::<String>()
    };
    let names = [fold(title), fold(fallback)].map(|name| name.trim_matches('-').to_owned());
    names.into_iter().find(|name| is_strict(name)).unwrap_or_else(|| "skill".to_owned())
}
