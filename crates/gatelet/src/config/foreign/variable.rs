//! Variables as other clients write them, written as we write them.

use std::path::Path as FilePath;

use super::super::text::{Environment, Process};

/// What a variable may stand for.
pub(super) struct Scope<'a> {
    /// The directory of the file.
    pub(super) base: &'a FilePath,
    /// What VS Code asks its user for: the id and what it is.
    pub(super) inputs: Vec<(String, String)>,
}

/// A text in our own form, and what to tell about it.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) note: Option<String>,
}

/// Rewrites `${input:x}`, `${VAR}`, `${VAR:-default}`, `$VAR`, `{env:VAR}`,
/// `${workspaceFolder}` and their kin to `${env:…}`, `${file:…}` and paths.
pub(super) fn rewrite(text: &str, scope: &Scope<'_>) -> Written {
    if let Some(name) = text.strip_prefix('$').filter(|name| is_variable(name)) {
        return Written { text: format!("${{env:{name}}}"), note: None };
    }
    let mut written = Written { text: String::with_capacity(text.len()), note: None };
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
                written.note = written.note.or(value.note);
            }
            None => written.text.push_str(&rest[..=end]),
        }
        rest = &rest[end + 1..];
    }
    written.text.push_str(rest);
    written
}

/// `${…}`: VS Code's variables, and `${VAR}` of everybody else.
fn placeholder(inside: &str, scope: &Scope<'_>) -> Option<Written> {
    let plain = |text: String| Some(Written { text, note: None });
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
        _ => {
            let name = inside.split(":-").next().unwrap_or_default();
            is_variable(name).then(|| Written { text: format!("${{env:{inside}}}"), note: None })
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
    Some(Written { text, note: None })
}

/// What VS Code would ask for must be in the environment instead.
fn input(id: &str, scope: &Scope<'_>) -> Written {
    let shout = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = id.chars().map(shout).collect();
    let asked = scope.inputs.iter().find(|(known, _)| known == id);
    let what = asked.map(|(_, what)| what.as_str()).filter(|what| !what.is_empty());
    let what = what.map(|what| format!(" ({what})")).unwrap_or_default();
    let note = format!("`${{input:{id}}}`{what} is read from the environment variable `{name}`");
    Written { text: format!("${{env:{name}}}"), note: Some(note) }
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
