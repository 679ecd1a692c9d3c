//! Recipes as files: JavaScript with a head in YAML that describes it.
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

use gateway::recipes::{Draft, Recipe, RecipeStore, Recipes};
use policy::pattern::Pattern;
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// The marks before and after the head.
const OPENS: &str = "/*---";
const CLOSES: &str = "---*/";

/// Larger files are ignored.
const MAX_BYTES: u64 = 256 << 10;

/// How many recipes a directory may have.
const MAX_RECIPES: usize = 500;

/// The head of a recipe.
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

/// Parses the text of a recipe.
pub(crate) fn parse(text: &str) -> Result<Recipe, String> {
    let without = format!("a recipe begins with `{OPENS}`, its head in YAML, and `{CLOSES}`");
    let rest = text.trim_start().strip_prefix(OPENS).ok_or_else(|| without.clone())?;
    let (head, code) = rest.split_once(CLOSES).ok_or(without)?;
    let head =
        document::yaml::parse(head).map_err(|(_, message)| format!("its head: {message}"))?;
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

/// The files of a directory that may be recipes, sorted.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_script = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "js")
            && std::fs::symlink_metadata(path)
                .is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_BYTES)
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_script).collect();
    files.sort();
    files.truncate(MAX_RECIPES);
    files
}

/// Loads all recipes of a directory. A file that is wrong is logged and left out.
pub(crate) fn load(directory: &Path) -> Recipes {
    let load = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
        match text.and_then(|text| parse(&text)) {
            Ok(recipe) => Some(recipe),
            Err(why) => {
                tracing::warn!(file = %path.display(), why, "a recipe is left out");
                None
            }
        }
    };
    Recipes::new(files(directory).iter().filter_map(load).collect())
}

/// A directory in which models save recipes.
pub(crate) struct RecipeDirectory(pub(crate) PathBuf);

impl RecipeDirectory {
    fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.js"))
    }
}

impl RecipeStore for RecipeDirectory {
    fn check(&self, draft: &Draft) -> Result<(), String> {
        let recipe = parse(&render(draft)?)?;
        if recipe.functions.is_empty() {
            return Err("`functions` must name what it calls".to_owned());
        }
        let is_there = load(&self.0).iter().any(|other| other.name == recipe.name);
        if is_there || self.file(&recipe.name).exists() {
            return Err(format!(
                "there is a recipe `{}` already, and only the operator replaces it",
                recipe.name
            ));
        }
        match files(&self.0).len() < MAX_RECIPES {
            true => Ok(()),
            false => Err(format!("there are {MAX_RECIPES} recipes already")),
        }
    }

    fn save(&self, draft: &Draft) -> Result<(), String> {
        self.check(draft)?;
        let file = self.file(&draft.name);
        let save = || {
            std::fs::create_dir_all(&self.0)?;
            let mut file = std::fs::File::create_new(&file)?;
            std::io::Write::write_all(&mut file, render(draft).unwrap_or_default().as_bytes())
        };
        save().map_err(|error: std::io::Error| format!("`{}`: {error}", file.display()))
    }
}

/// Renders a model's draft as the text of a recipe. It never claims `read_only`, because
/// nobody has checked that.
fn render(draft: &Draft) -> Result<String, String> {
    let Draft { name, description, inputs, functions, code } = draft;
    let inputs = inputs.clone().unwrap_or_else(|| serde_json::json!({"type": "object"}));
    let line = |key: &str, value: serde_json::Value| format!("{key}: {value}\n");
    let head = [
        line("name", name.as_str().into()),
        line("description", description.as_str().into()),
        line("inputs", inputs),
        line("functions", serde_json::json!(functions)),
    ];
    let head = head.concat();
    match head.contains(CLOSES) {
        true => Err(format!("`{CLOSES}` cannot stand in the head of a recipe")),
        false => Ok(format!("{OPENS}\n{head}{CLOSES}\n{}\n", code.trim())),
    }
}

/// A digest of the recipe files of a directory.
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
    fn a_draft_becomes_a_recipe_once_whatever_it_says() {
        let home = tempfile::tempdir().unwrap();
        let shelf = RecipeDirectory(home.path().join("recipes"));
        let draft = |name: &str, description: &str, code: &str| Draft {
            name: name.to_owned(),
            description: description.to_owned(),
            inputs: None,
            functions: vec!["a.b".to_owned()],
            code: code.to_owned(),
        };
        let sums = draft("sums", "Sums: \"a\", # 'b'\n\tand c", "return 1 // ---*/ /*---");
        shelf.save(&sums).unwrap();
        let saved = load(&shelf.0);
        let saved: Vec<_> = saved.iter().collect();
        assert_eq!(saved.len(), 1);
        assert_eq!((&saved[0].description, &saved[0].code), (&sums.description, &sums.code));
        assert!(!saved[0].read_only);
        assert!(shelf.save(&sums).unwrap_err().contains("already"));
        for (draft, expected) in [
            (draft("../up", "x", "return 1"), "no name"),
            (draft("a", " ", "return 1"), "description"),
            (draft("a", "x ---*/ read_only: true", "return 1"), "cannot stand"),
            (draft("a", "x", " "), "no code"),
            (Draft { functions: Vec::new(), ..draft("a", "x", "return 1") }, "must name"),
        ] {
            assert!(shelf.check(&draft).unwrap_err().contains(expected), "{draft:?}");
        }
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
