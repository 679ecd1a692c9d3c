//! Converts the placeholders of other clients into ours.

use std::path::Path as FilePath;

use super::super::text::{Environment, Process};

/// What a variable may stand for.
pub(super) struct Scope<'a> {
    /// The directory of the file.
    pub(super) base: &'a FilePath,
    pub(super) inputs: Vec<Input>,
}

/// What VS Code asks its user for.
pub(super) struct Input {
    pub(super) id: String,
    pub(super) what: String,
    pub(super) default: Option<String>,
}

/// A text in our own form, and what to tell about it.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) notes: Vec<String>,
}

impl Written {
    fn plain(text: String) -> Written {
        Written { text, notes: Vec::new() }
    }
}

/// Rewrites `${input:x}`, `${VAR}`, `${VAR:-default}`, `$VAR`, `{env:VAR}`,
/// `${workspaceFolder}` and their kin to `${env:…}`, `${file:…}` and paths.
pub(super) fn rewrite(text: &str, scope: &Scope<'_>) -> Written {
    if let Some(name) = text.strip_prefix('$').filter(|name| is_variable(name)) {
        return Written::plain(format!("${{env:{name}}}"));
    }
    let mut written = Written::plain(String::with_capacity(text.len()));
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let dollar = rest[..at].ends_with('$');
        let Some(end) = rest[at..].find('}').map(|end| end + at) else { break };
        let inside = &rest[at + 1..end];
        let before = if dollar { &rest[..at - 1] } else { &rest[..at] };
        let value = if dollar { placeholder(inside, scope) } else { braces(inside, scope) };
        match value {
            Some(value) => {
                written.text.push_str(before);
                written.text.push_str(&value.text);
                written.notes.extend(value.notes);
            }
            // Only the operator's own file runs commands and names secrets.
            None if dollar && is_reserved(inside) => {
                written.text.push_str(before);
                written.text.push_str(&format!("$${{{inside}}}"));
                let note =
                    format!("`${{{inside}}}` stays as it is: only gatelet's own file may say that");
                written.notes.push(note);
            }
            None => {
                if dollar && !is_ours(inside) {
                    let note = format!("`${{{inside}}}` has no counterpart: write what it is");
                    written.notes.push(note);
                }
                written.text.push_str(&rest[..=end]);
            }
        }
        rest = &rest[end + 1..];
    }
    written.text.push_str(rest);
    for name in bare(text) {
        let note = format!("`${name}` stays as it is; `${{env:{name}}}` is the variable");
        written.notes.push(note);
    }
    written
}

/// What only an editor knows. These look like variables of the environment.
const OF_EDITOR: &[&str] = &[
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

/// What our own files fill in.
fn is_ours(inside: &str) -> bool {
    inside.starts_with("env:") || inside.starts_with("file:")
}

/// What our own files fill in, and nobody else's.
fn is_reserved(inside: &str) -> bool {
    inside.starts_with("keyring:") || inside.starts_with("cmd:")
}

/// Names after a `$` without braces. Some clients fill them in and others do
/// not, and in the script of a shell they are not ours to touch.
fn bare(text: &str) -> impl Iterator<Item = &str> {
    let name = |after: &'_ str| after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names =
        text.split('$').skip(1).map(move |after| &after[..name(after).unwrap_or(after.len())]);
    names.filter(|name| is_variable(name))
}

/// `${…}`: VS Code's variables, and `${VAR}` of everybody else.
fn placeholder(inside: &str, scope: &Scope<'_>) -> Option<Written> {
    let plain = |text: String| Some(Written::plain(text));
    if let Some(id) = inside.strip_prefix("input:") {
        return Some(input(id, scope));
    }
    match inside {
        "workspaceFolder" | "workspaceRoot" | "cwd" => plain(workspace(scope.base)),
        "workspaceFolderBasename" => {
            let folder = workspace(scope.base);
            plain(folder.rsplit('/').next().unwrap_or_default().to_owned())
        }
        "userHome" => plain("${env:HOME}".to_owned()),
        "pathSeparator" | "/" => plain(std::path::MAIN_SEPARATOR.to_string()),
        _ if OF_EDITOR.contains(&inside) => None,
        _ => {
            let name = inside.split(":-").next().unwrap_or_default();
            is_variable(name).then(|| Written::plain(format!("${{env:{inside}}}")))
        }
    }
}

/// `{env:VAR}` and `{file:PATH}`, as opencode has them.
fn braces(inside: &str, scope: &Scope<'_>) -> Option<Written> {
    let (kind, what) = inside.split_once(':')?;
    let text = match kind {
        "env" if is_variable(what) => format!("${{env:{what}}}"),
        "file" => {
            let home = what.strip_prefix("~/").zip(Process.get("HOME"));
            let path = match home {
                Some((below, home)) => FilePath::new(&home).join(below),
                None => scope.base.join(what),
            };
            format!("${{file:{}}}", path.display())
        }
        _ => return None,
    };
    Some(Written::plain(text))
}

/// Returns what VS Code would ask for must be in the environment instead.
fn input(id: &str, scope: &Scope<'_>) -> Written {
    let shout = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = id.chars().map(shout).collect();
    let asked = scope.inputs.iter().find(|input| input.id == id);
    let what = asked.map(|input| input.what.as_str()).filter(|what| !what.is_empty());
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
    Written { text: format!("${{env:{name}{default}}}"), notes: vec![note] }
}

/// A path that is meant from the workspace, as it means the same everywhere.
pub(super) fn place(path: &str, scope: &Scope<'_>) -> std::path::PathBuf {
    if path.starts_with(['~', '$']) {
        return path.into();
    }
    let path = FilePath::new(path);
    let below = path.strip_prefix(".").unwrap_or(path);
    FilePath::new(&workspace(scope.base)).join(below)
}

/// The folder that a file in `.vscode`, `.cursor` and the like belongs to.
fn workspace(base: &FilePath) -> String {
    let hidden = base.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let folder = if hidden { base.parent().unwrap_or(base) } else { base };
    let folder = if folder.as_os_str().is_empty() { FilePath::new(".") } else { folder };
    folder.display().to_string()
}

fn is_variable(name: &str) -> bool {
    let first = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    first && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
