//! Parses the namespaces, functions and parameters that a help text lists.
//!
//! An agent has nothing but the Markdown text, so this parser uses nothing else: a
//! heading names a group, a bullet is an entry, a table row is a parameter.

/// One listed name with its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub description: String,
    /// The whole line.
    pub line: String,
}

/// The entries of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    pub namespaces: Vec<Entry>,
    pub functions: Vec<Entry>,
}

/// One documented parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    /// Its type, as it is written.
    pub kind: String,
    pub required: bool,
}

/// Parses a listing. Entries under a heading that names no group are namespaces at
/// the root, and functions below it.
pub fn listing(text: &str, is_root: bool) -> Outline {
    let mut outline = Outline::default();
    let mut group = is_root;
    for line in text.lines() {
        let line = line.trim();
        if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.to_ascii_lowercase();
            if heading.contains("function") {
                group = false;
            } else if heading.contains("namespace") {
                group = true;
            }
        } else if let Some(entry) = entry(line) {
            let list = if group { &mut outline.namespaces } else { &mut outline.functions };
            list.push(entry);
        }
    }
    outline
}

fn entry(line: &str) -> Option<Entry> {
    let rest = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?.trim();
    let (name, description) = if let Some(marked) = rest.strip_prefix("**") {
        marked.split_once("**")?
    } else if let Some(marked) = rest.strip_prefix('`') {
        marked.split_once('`')?
    } else {
        rest.split_at(rest.find([' ', ':']).unwrap_or(rest.len()))
    };
    let name = name.trim_matches('`').trim_end_matches("()");
    if name.is_empty() || name.contains(char::is_whitespace) {
        return None;
    }
    let description = description.trim_start_matches([' ', '—', '–', '-', ':']).trim();
    Some(Entry {
        name: name.to_owned(),
        description: description.to_owned(),
        line: line.to_owned(),
    })
}

/// The most columns of a table that are looked at, and the most parameters of a function:
/// every row looks for its columns.
const MAX_COLUMNS: usize = 32;
const MAX_PARAMETERS: usize = 1_000;

/// Parses the parameters of a function's page from its first table.
pub fn parameters(text: &str) -> Vec<Parameter> {
    let mut columns: Option<Vec<String>> = None;
    let mut parameters = Vec::new();
    for line in text.lines().map(str::trim) {
        let Some(row) = line.strip_prefix('|') else {
            if columns.is_some() && !parameters.is_empty() {
                break;
            }
            continue;
        };
        if MAX_PARAMETERS <= parameters.len() {
            break;
        }
        let cells = row.trim_end_matches('|').split('|').take(MAX_COLUMNS);
        let cells: Vec<String> = cells.map(|cell| cell.trim().to_owned()).collect();
        if cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| "-: ".contains(c))) {
            continue;
        }
        let Some(columns) = &columns else {
            let names = cells.iter().map(|cell| cell.to_ascii_lowercase()).collect();
            columns = Some(names);
            continue;
        };
        let cell = |title: &str| {
            let at = columns.iter().position(|column| column.contains(title))?;
            cells.get(at).map(|cell| cell.trim_matches(['`', '*']).to_owned())
        };
        if let Some(name) = cell("name").or_else(|| cell("param")) {
            let required = cell("required").unwrap_or_default().to_ascii_lowercase();
            parameters.push(Parameter {
                name,
                kind: cell("type").unwrap_or_default(),
                required: matches!(required.as_str(), "yes" | "true" | "required" | "✓" | "y"),
            });
        }
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_grouped_by_their_heading() {
        let text = "# orders\n\n## Sub-namespaces\n\n- **retail** — Retail.\n\n## Functions\n\n- **cancel** — Cancel.\n";
        let outline = listing(text, false);
        assert_eq!(outline.namespaces[0].name, "retail");
        assert_eq!(outline.functions[0].description, "Cancel.");
    }

    #[test]
    fn bullets_are_read_in_the_common_spellings() {
        for line in ["- **a** — x", "- `a`: x", "* a - x", "- a: x"] {
            let entry = entry(line).unwrap();
            assert_eq!((entry.name.as_str(), entry.description.as_str()), ("a", "x"), "{line}");
        }
    }

    #[test]
    fn a_parameter_table_gives_names_types_and_need() {
        let text = "| Name | Type | Required | Description |\n|---|---|---|---|\n| id | string | yes | It. |\n| n | integer | no | N. |\n\nReturns";
        let found = parameters(text);
        assert_eq!(found.len(), 2);
        assert!(found[0].required && !found[1].required);
        assert_eq!(found[1].kind, "integer");
    }
}
