//! Renders a skill as a strictly valid `SKILL.md` of the Agent Skills format.

use serde_json::{Map, Value};

use crate::parse::{MAX_DESCRIPTION, is_strict};
use crate::skill::{Content, Skill};

/// The name of a directory and the text of the `SKILL.md` in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    pub directory: String,
    pub text: String,
}

/// Renders a skill with a valid name, which is also that of its directory, a description,
/// and only fields of the format. Returns `None` if its text is at an upstream.
pub fn export(skill: &Skill) -> Option<Exported> {
    let Content::Text { body, .. } = &skill.content else { return None };
    let Head { name, fields, metadata } = Head::new(skill);
    let mut head = format!("name: {}\n", yaml_name(&name));
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

/// Returns the front matter that [`export`] writes, as JSON.
pub fn frontmatter(skill: &Skill) -> Option<Value> {
    let Content::Text { .. } = &skill.content else { return None };
    let Head { name, fields, metadata } = Head::new(skill);
    let mut all = Map::from_iter([("name".to_owned(), Value::from(name))]);
    all.extend(fields.into_iter().map(|(key, text)| (key.to_owned(), text.into())));
    if !metadata.is_empty() {
        let metadata = metadata.into_iter().map(|(key, text)| (key.to_owned(), text.into()));
        all.insert("metadata".to_owned(), Value::Object(metadata.collect()));
    }
    Some(Value::Object(all))
}

/// The fields of the front matter.
struct Head {
    name: String,
    fields: Vec<(&'static str, String)>,
    metadata: Vec<(&'static str, String)>,
}

impl Head {
    fn new(skill: &Skill) -> Head {
        let name = strict_name(&skill.title, &skill.name);
        let words: String = skill.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = if words.is_empty() { format!("How to: {name}.") } else { words };
        let words = catalog::summary::cut(&words, MAX_DESCRIPTION);
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

/// Renders a name as YAML, quoted if YAML would not take it for text, such as `2024` or
/// `true`.
fn yaml_name(name: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_text = name.starts_with(|c: char| c.is_ascii_lowercase()) && !WORDS.contains(&name);
    if is_text { name.to_owned() } else { quoted(name) }
}

/// Renders any text as YAML, for which a JSON string will do.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Derives a name that follows the rules of the format.
fn strict_name(title: &str, fallback: &str) -> String {
    let fold = |text: &str| {
        let lower = text.to_ascii_lowercase();
        let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
        words.collect::<Vec<_>>().join("-").chars().take(64).collect::<String>()
    };
    let names = [fold(title), fold(fallback)].map(|name| name.trim_matches('-').to_owned());
    names.into_iter().find(|name| is_strict(name)).unwrap_or_else(|| "skill".to_owned())
}
