//! Recipes as files: JavaScript with a head that says what it is.
//!
//! ```js
//! /*---
//! name: open_totals
//! description: Sums of open orders by city.
//! inputs: {type: object, properties: {status: {type: string}}}
//! functions: [orders.list_orders, crm.get_customer]
//! read_only: true
//! ---*/
//! return (await tools.orders.list_orders({})).orders.length
//! ```

use std::path::{Path, PathBuf};

use gateway::recipes::{Recipe, Recipes};
use policy::pattern::Pattern;
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// What stands around the head.
const OPENS: &str = "/*---";
const CLOSES: &str = "---*/";

/// Larger files are no recipes.
const LARGEST: u64 = 256 << 10;

/// How many recipes there are at most.
const MOST: usize = 500;

/// The head of a recipe, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    name: String,
    description: String,
    #[serde(default)]
    inputs: Option<serde_json::Value>,
    #[serde(default)]
    functions: Vec<String>,
    #[serde(default)]
    read_only: bool,
}

/// Reads a recipe; the error says what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Recipe, String> {
    let without = format!("a recipe begins with `{OPENS}`, its head in YAML, and `{CLOSES}`");
    let rest = text.trim_start().strip_prefix(OPENS).ok_or_else(|| without.clone())?;
    let (head, code) = rest.split_once(CLOSES).ok_or(without)?;
    let head = document::yaml::read(head).map_err(|(_, message)| format!("its head: {message}"))?;
    let head: Head = serde_json::from_value(head.to_json()).map_err(|error| {
        format!("its head: {error}; it has name, description, inputs, functions and read_only")
    })?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let Head { name, description, inputs, functions, read_only } = head;
    if name.is_empty() || 64 < name.len() || !name.chars().all(is_name) {
        return Err(format!("`{name}` is no name: 1 to 64 lower case letters, digits and `_`"));
    }
    if description.trim().is_empty() {
        return Err("it needs a `description`, by which models find it".to_owned());
    }
    let inputs = inputs.unwrap_or_else(|| serde_json::json!({"type": "object"}));
    if !inputs.is_object() {
        return Err("`inputs` must be a JSON Schema of an object".to_owned());
    }
    if code.trim().is_empty() {
        return Err("it has no code below its head".to_owned());
    }
    let functions = functions.iter().map(|function| Pattern::new(function)).collect();
    let (inputs, code) = (inputs.into(), code.trim().to_owned());
    Ok(Recipe { name, description, inputs, functions, read_only, code })
}

/// The files of a directory that may be recipes, in order.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_script = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "js")
            && std::fs::symlink_metadata(path)
                .is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST)
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_script).collect();
    files.sort();
    files.truncate(MOST);
    files
}

/// All recipes of a directory. What is wrong with a file goes to the log.
pub(crate) fn read(directory: &Path) -> Recipes {
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
        match text.and_then(|text| parse(&text)) {
            Ok(recipe) => Some(recipe),
            Err(why) => {
                tracing::warn!(file = %path.display(), why, "a recipe is left out");
                None
            }
        }
    };
    Recipes::new(files(directory).iter().filter_map(read).collect())
}

/// Changes whenever the files do.
pub(crate) fn digest(directory: &Path) -> [u8; 32] {
    let mut digest = Sha256::new();
    for path in files(directory) {
        let text = std::fs::read(&path).unwrap_or_default();
        digest.update(text.len().to_le_bytes());
        digest.update(text);
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "/*---\nname: sums\ndescription: Sums.\ninputs: {type: object, properties: {n: {type: integer}}}\nfunctions: [a.b]\n---*/\nreturn inputs.n\n";

    #[test]
    fn a_recipe_has_a_head_and_code() {
        let recipe = parse(WHOLE).unwrap();
        assert_eq!((recipe.name.as_str(), recipe.code.as_str()), ("sums", "return inputs.n"));
        assert_eq!(recipe.functions.len(), 1);
        assert!(!recipe.read_only);
    }

    #[test]
    fn what_is_wrong_with_a_recipe_is_told() {
        for (text, expected) in [
            ("return 1", "begins with"),
            ("/*---\nname: a\n", "begins with"),
            ("/*---\nname: a\n---*/\nreturn 1", "description"),
            ("/*---\nname: A b\ndescription: x\n---*/\nreturn 1", "no name"),
            ("/*---\nname: a\ndescription: ''\n---*/\nreturn 1", "needs a `description`"),
            ("/*---\nname: a\ndescription: x\nodd: 1\n---*/\nreturn 1", "odd"),
            ("/*---\nname: a\ndescription: x\ninputs: 3\n---*/\nreturn 1", "JSON Schema"),
            ("/*---\nname: a\ndescription: x\n---*/\n", "no code"),
        ] {
            let told = parse(text).unwrap_err();
            assert!(told.contains(expected), "{text}: {told}");
        }
    }
}
