//! Parses a skill from a file and reports its problems.

use catalog::{name, summary};
use tool::{Finding, Severity};

use crate::reference::{self, Reference};
use crate::skill::{Content, File, Form, MAX_LINE, Skill, spelling};
use crate::{frontmatter, strip, template};

/// The size of the largest file.
const MAX_BYTES: usize = 1 << 20;
/// The limits that the format sets or recommends.
const MAX_LINES: usize = 500;
const MAX_TOKENS: usize = 5_000;
pub(super) const MAX_NAME: usize = 64;
pub(super) const MAX_VERSION: usize = 32;
pub(super) const MAX_DESCRIPTION: usize = 1024;

/// Collects the findings about one file.
struct Notes<'a> {
    path: &'a str,
    findings: &'a mut Vec<Finding>,
}

impl Notes<'_> {
    fn add(&mut self, severity: Severity, code: &str, message: impl Into<String>) {
        self.findings.push(Finding::new(severity, code, self.path, message));
    }
}

/// Parses a file. Returns `None` only for one that is too large.
pub(super) fn parse(file: &File, findings: &mut Vec<Finding>) -> Option<Skill> {
    let mut notes = Notes { path: &file.path, findings };
    if MAX_BYTES < file.text.len() {
        notes.add(Severity::Error, "skill-size", "is over 1 MiB and was left out");
        return None;
    }
    let (namespace, directory) = location(&file.path);
    let (front, body) = frontmatter::split(&file.text);
    for (severity, message) in &front.problems {
        notes.add(*severity, "skill-frontmatter", message.clone());
    }
    let body = body_text(body, &mut notes);
    let title = title(front.name, &directory, &mut notes);
    let description = description(front.description, &body, &mut notes);
    let functions = functions(&front.functions, &body, &mut notes);
    let (license, compatibility) = (short(front.license), short(front.compatibility));
    let body = with_header(&title, &body, license.as_deref(), compatibility.as_deref());
    let form = form(&body, &mut notes);
    Some(Skill {
        namespace,
        name: name::alias(&title),
        title,
        description,
        version: front.version.map(|version| spelling(&version, MAX_VERSION)),
        functions,
        license,
        compatibility,
        content: Content::Text { body, form },
    })
}

/// Returns the body without executable content, and notes what is odd about it.
fn body_text(body: &str, notes: &mut Notes<'_>) -> String {
    if MAX_LINES < body.lines().count() {
        notes.add(Severity::Warning, "skill-length", format!("has over {MAX_LINES} lines"));
    } else if MAX_TOKENS * 4 < body.len() {
        let about = body.len() / 4;
        notes.add(Severity::Warning, "skill-length", format!("takes about {about} tokens"));
    }
    let (body, stripped) = strip::executable(body.trim());
    if 0 < stripped {
        let message = format!("{stripped} pieces of code were left out");
        notes.add(Severity::Info, "skill-code", message);
    }
    if body.trim().is_empty() {
        notes.add(Severity::Warning, "skill-empty", "has no instructions");
    }
    body
}

fn title(name: Option<String>, directory: &str, notes: &mut Notes<'_>) -> String {
    let title = name.unwrap_or_else(|| directory.to_owned());
    let title = spelling(&title, MAX_NAME);
    let title = if name::canonical(&title).is_empty() { name::alias(&title) } else { title };
    if !directory.is_empty() && title != directory {
        let message = format!("is called `{title}` in `{directory}`");
        notes.add(Severity::Info, "skill-name", message);
    }
    if !is_strict(&title) {
        let message = format!("`{title}` should be a-z, 0-9 and single hyphens");
        notes.add(Severity::Info, "skill-name", message);
    }
    title
}

/// Returns whether a name follows the rules of the Agent Skills format.
pub(super) fn is_strict(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty()
        && name.len() <= MAX_NAME
        && name.bytes().all(legal)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

fn description(given: Option<String>, body: &str, notes: &mut Notes<'_>) -> String {
    let Some(description) = given else {
        notes.add(Severity::Warning, "skill-description", "has no description");
        return summary::sentence(body, MAX_LINE);
    };
    if MAX_DESCRIPTION < description.chars().count() {
        let message = format!("has a description of over {MAX_DESCRIPTION} characters: cut");
        notes.add(Severity::Warning, "skill-description", message);
    }
    if description.contains(['<', '>']) {
        let message = "has `<` or `>` in its description, which some readers refuse";
        notes.add(Severity::Info, "skill-description", message);
    }
    summary::cut(&description, MAX_DESCRIPTION)
}

/// Returns the declared functions, then others that the text mentions.
fn functions(declared: &[String], body: &str, notes: &mut Notes<'_>) -> Vec<Reference> {
    let mut all: Vec<Reference> = Vec::new();
    for path in declared {
        match Reference::parse(path) {
            Some(reference) => all.push(reference),
            None => {
                let message = format!("`{}` names no function", summary::cut(path, 60));
                notes.add(Severity::Warning, "skill-function", message);
            }
        }
    }
    for mentioned in reference::mentioned(body) {
        if !all.iter().any(|known| known.is(&mentioned)) {
            all.push(mentioned);
        }
    }
    all
}

/// Returns whether the body is a template. One that is not valid is served unchanged.
fn form(body: &str, notes: &mut Notes<'_>) -> Form {
    match template::placeholders(body) {
        Ok(placeholders) if placeholders.is_empty() && !template::has_placeholders(body) => {
            Form::Plain
        }
        Ok(_) => Form::Template,
        Err(error) => {
            let message = format!("{error}; served as it is");
            notes.add(Severity::Info, "skill-template", message);
            Form::Plain
        }
    }
}

fn short(text: Option<String>) -> Option<String> {
    text.map(|text| summary::cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), 500))
}

/// Adds a title before the body, and requirements and licence in one line after it.
fn with_header(name: &str, body: &str, license: Option<&str>, needs: Option<&str>) -> String {
    let title = if body.starts_with("# ") { String::new() } else { format!("# {name}\n\n") };
    let needs = needs.map(|needs| format!("Needs: {needs}"));
    let license = license.map(|license| format!("Licence: {license}"));
    let notes: Vec<String> = [needs, license].into_iter().flatten().collect();
    let notes = if notes.is_empty() { String::new() } else { format!("\n\n{}", notes.join("; ")) };
    format!("{title}{body}{notes}")
}

/// Returns the namespace and the directory name of a file.
fn location(path: &str) -> (String, String) {
    let mut parts: Vec<&str> =
        path.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect();
    parts.pop();
    let directory = parts.pop().unwrap_or_default().to_owned();
    let levels: Vec<String> = parts.into_iter().map(name::alias).collect();
    (levels.join("."), directory)
}
