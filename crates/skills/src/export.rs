//! A skill as other readers take it: the Agent Skills format, to the letter.

use serde_json::Value;

use super::read::{DESCRIPTION, is_strict};
use super::{Content, Skill};

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
    let name = strict_name(&skill.title, &skill.name);
    let words: String = skill.description.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = if words.is_empty() { format!("How to: {name}.") } else { words };
    let mut head = format!("name: {name}\n");
    let mut field = |key: &str, text: &str| head.push_str(&format!("{key}: {}\n", quoted(text)));
    field("description", &catalog::summary::cut(&words, DESCRIPTION));
    if let Some(license) = &skill.license {
        field("license", license);
    }
    if let Some(compatibility) = &skill.compatibility {
        field("compatibility", compatibility);
    }
    let version = skill.version.as_deref().map(|version| ("version", version.to_owned()));
    let functions: Vec<String> = skill.functions.iter().map(ToString::to_string).collect();
    let functions = (!functions.is_empty()).then(|| ("functions", functions.join(" ")));
    let metadata: Vec<(&str, String)> = [version, functions].into_iter().flatten().collect();
    if !metadata.is_empty() {
        head.push_str("metadata:\n");
        for (key, text) in metadata {
            head.push_str(&format!("  {key}: {}\n", quoted(&text)));
        }
    }
    let text = format!("---\n{head}---\n\n{}\n", body.trim());
    Some(Exported { directory: name, text })
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
