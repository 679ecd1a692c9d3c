//! Rewrites the placeholders of other clients, such as `${input:x}` and `$VAR`, to
//! gatelet's `${env:…}`.
//!
//! Such a file may come with a project that somebody else wrote. It runs no commands,
//! names no secrets and reads no files: what a URL or a header holds goes to a server
//! of its choice.

use std::path::Path as FilePath;

/// The file that placeholders are in, as far as their meaning depends on it.
pub(super) struct Scope<'a> {
    /// The directory of the file.
    pub(super) base: &'a FilePath,
    pub(super) inputs: Vec<Input>,
}

/// A value that VS Code prompts its user for.
pub(super) struct Input {
    pub(super) id: String,
    pub(super) description: String,
    pub(super) default: Option<String>,
}

/// A text with gatelet's placeholders.
pub(super) struct Rewritten {
    pub(super) text: String,
    /// Warnings about placeholders that changed or could not be rewritten.
    pub(super) notes: Vec<String>,
}

impl Rewritten {
    fn plain(text: String) -> Rewritten {
        Rewritten { text, notes: Vec::new() }
    }

    /// Adds a piece. A `$` at the end of what is there and a `{` at its beginning do not
    /// become a placeholder together: a directory may be called `a$`, or `{cmd:x}`.
    fn push(&mut self, piece: &str) {
        if self.text.ends_with('$') && piece.starts_with('{') {
            self.text.push('$');
        }
        self.text.push_str(piece);
    }
}

/// Rewrites `${input:x}`, `${VAR}`, `${VAR:-default}`, `$VAR`, `{env:VAR}`,
/// `${workspaceFolder}` and their kin to `${env:…}` and paths.
pub(super) fn rewrite(text: &str, scope: &Scope<'_>) -> Rewritten {
    if let Some(name) = text.strip_prefix('$').filter(|name| is_variable_name(name)) {
        return Rewritten::plain(format!("${{env:{name}}}"));
    }
    let mut written = Rewritten::plain(String::with_capacity(text.len()));
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let dollar = rest[..at].ends_with('$');
        let Some(end) = rest[at..].find('}').map(|end| end + at) else { break };
        let inside = &rest[at + 1..end];
        let before = if dollar { &rest[..at - 1] } else { &rest[..at] };
        let value =
            if dollar { rewrite_placeholder(inside, scope) } else { rewrite_braces(inside) };
        match value {
            Some(value) => {
                written.push(before);
                written.push(&value.text);
                written.notes.extend(value.notes);
            }
            // Only gatelet's own file may run commands, name secrets and read files.
            None if dollar && is_only_ours(inside) => {
                written.text.push_str(before);
                written.text.push_str(&format!("$${{{inside}}}"));
                let note =
                    format!("`${{{inside}}}` stays as it is: only gatelet's own file may say that");
                written.notes.push(note);
            }
            None => {
                if !dollar && inside.starts_with("file:") {
                    let note = format!(
                        "`{{{inside}}}` stays as it is: only gatelet's own file may read files, by `${{{inside}}}`"
                    );
                    written.notes.push(note);
                }
                if dollar && !is_ours(inside) {
                    let note = format!("`${{{inside}}}` has no counterpart: write what it is");
                    written.notes.push(note);
                }
                written.push(&rest[..=end]);
            }
        }
        rest = &rest[end + 1..];
    }
    written.push(rest);
    for name in bare_variables(text) {
        let note = format!("`${name}` stays as it is; `${{env:{name}}}` is the variable");
        written.notes.push(note);
    }
    written
}

/// Variables that only an editor knows, though they look like environment variables.
const EDITOR_VARIABLES: &[&str] = &[
    "file",
    "fileBasename",
    "fileBasenameNoExtension",
    "fileDirname",
    "fileDirnameBasename",
    "fileExtname",
    "fileWorkspaceFolder",
    "relativeFile",
    "relativeFileDirname",
    "lineNumber",
    "columnNumber",
    "selectedText",
    "execPath",
    "defaultBuildTask",
];

/// Returns whether this is a placeholder of gatelet's that other files may use, too.
fn is_ours(inside: &str) -> bool {
    inside.starts_with("env:")
}

/// Returns whether this is a placeholder that only gatelet's own file may use.
fn is_only_ours(inside: &str) -> bool {
    ["keyring:", "cmd:", "file:"].iter().any(|kind| inside.starts_with(kind))
}

/// Returns the names after a `$` without braces. They are not rewritten: only some clients
/// expand them, and they may belong to a shell script.
fn bare_variables(text: &str) -> impl Iterator<Item = &str> {
    let name = |after: &'_ str| after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names =
        text.split('$').skip(1).map(move |after| &after[..name(after).unwrap_or(after.len())]);
    names.filter(|name| is_variable_name(name))
}

/// Rewrites the inside of `${…}`: VS Code's variables, and `${VAR}` of other clients.
fn rewrite_placeholder(inside: &str, scope: &Scope<'_>) -> Option<Rewritten> {
    // A directory may have the name of a placeholder.
    let path = |text: &str| Some(Rewritten::plain(text.replace("${", "$${")));
    let plain = |text: String| Some(Rewritten::plain(text));
    if let Some(id) = inside.strip_prefix("input:") {
        return Some(rewrite_input(id, scope));
    }
    match inside {
        "workspaceFolder" | "workspaceRoot" | "cwd" => path(&workspace_folder(scope.base)),
        "workspaceFolderBasename" => {
            let folder = workspace_folder(scope.base);
            path(folder.rsplit('/').next().unwrap_or_default())
        }
        "userHome" => plain("${env:HOME}".to_owned()),
        "pathSeparator" | "/" => plain(std::path::MAIN_SEPARATOR.to_string()),
        _ if EDITOR_VARIABLES.contains(&inside) => None,
        _ => {
            let name = inside.split(":-").next().unwrap_or_default();
            is_variable_name(name).then(|| Rewritten::plain(format!("${{env:{inside}}}")))
        }
    }
}

/// Rewrites the inside of opencode's `{env:VAR}`.
fn rewrite_braces(inside: &str) -> Option<Rewritten> {
    let name = inside.strip_prefix("env:").filter(|name| is_variable_name(name))?;
    Some(Rewritten::plain(format!("${{env:{name}}}")))
}

/// Rewrites `${input:id}`: the value that VS Code prompts for comes from an environment
/// variable instead.
fn rewrite_input(id: &str, scope: &Scope<'_>) -> Rewritten {
    let shout = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = id.chars().map(shout).collect();
    let asked = scope.inputs.iter().find(|input| input.id == id);
    let what = asked.map(|input| input.description.as_str()).filter(|what| !what.is_empty());
    let what = what.map(|what| format!(" ({what})")).unwrap_or_default();
    let mut note =
        format!("`${{input:{id}}}`{what} is read from the environment variable `{name}`");
    let default = match asked.and_then(|input| input.default.as_deref()) {
        // A brace would end the variable.
        Some(default) if default.contains('}') => {
            note += &format!("; its default `{default}` cannot be written here");
            String::new()
        }
        Some(default) => format!(":-{default}"),
        None => String::new(),
    };
    Rewritten { text: format!("${{env:{name}{default}}}"), notes: vec![note] }
}

/// Resolves a path that is relative to the workspace.
pub(super) fn resolve_path(path: &str, scope: &Scope<'_>) -> std::path::PathBuf {
    if path.starts_with(['~', '$']) {
        return path.into();
    }
    let path = FilePath::new(path);
    let below = path.strip_prefix(".").unwrap_or(path);
    FilePath::new(&workspace_folder(scope.base)).join(below)
}

/// Returns the folder that a file in `.vscode`, `.cursor` and the like belongs to.
fn workspace_folder(base: &FilePath) -> String {
    let hidden = base.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let folder = if hidden { base.parent().unwrap_or(base) } else { base };
    let folder = if folder.as_os_str().is_empty() { FilePath::new(".") } else { folder };
    folder.display().to_string()
}

pub(super) fn is_variable_name(name: &str) -> bool {
    let first = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    first && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_directory_becomes_a_placeholder_with_what_stands_beside_it() {
        let written = |base: &str, text: &str| {
            rewrite(text, &Scope { base: FilePath::new(base), inputs: Vec::new() }).text
        };
        assert_eq!(written("/a$", "${workspaceFolder}{cmd:id}"), "/a$${cmd:id}");
        assert_eq!(written("/{cmd:id}", "$${workspaceFolderBasename}"), "$${cmd:id}");
        assert_eq!(written("/a", "${workspaceFolder}{x}"), "/a{x}");
    }
}
