//! Parses the skills that upstreams list, and the texts that they return.
//!
//! There are three kinds: skills of MCP's skills extension, skills of [`cash`] servers, and
//! prompts of upstreams whose prompts the operator wants as skills. A text is fetched when
//! a reader asks for it. It is not trusted: limited in size, checked against the listed
//! digest, and stripped of executable content like any other skill.

mod cache;
pub mod cash;

use std::time::Duration;

use catalog::name;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tool::listing::PromptArgument;
use tool::{Json, Listing, Prompt, Server, hex};

pub use cache::SkillCache;

pub use crate::route::Route;

use crate::reference::Reference;
use crate::skill::{Content, File, Form, Skill, spelling};
use crate::{parse, strip};

/// The name of MCP's skills extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// How many skills one upstream may have.
pub const MAX_SKILLS: usize = 1_000;
/// The size of the largest entry that is stored: enough for 512 files.
const MAX_ENTRY_BYTES: usize = 256 << 10;
/// How many pages of skills are fetched.
pub const MAX_PAGES: usize = 50;

/// Returns whether a server has the extension.
pub fn offers(server: &Server) -> bool {
    has_extension(server, EXTENSION)
}

fn has_extension(server: &Server, name: &str) -> bool {
    let extensions = server.capabilities.member("extensions");
    extensions.and_then(|extensions| extensions.member(name)).is_some_and(|it| it.is_object())
}

/// Makes skills of the prompts of an upstream, in its namespace.
pub fn from_prompts(label: &str, listing: &Listing) -> Vec<Skill> {
    let skill = |prompt: &Prompt| {
        let words = prompt.description.as_deref().or(prompt.title.as_deref()).unwrap_or_default();
        let route =
            Route::Prompt { name: prompt.name.clone(), arguments: prompt.arguments.clone() };
        let words = with_arguments(words, &prompt.arguments);
        at_upstream(label, label.to_owned(), &prompt.name, &words, route)
    };
    listing.prompts.iter().take(MAX_SKILLS).map(skill).collect()
}

fn with_arguments(words: &str, arguments: &[PromptArgument]) -> String {
    let needed: Vec<&str> =
        arguments.iter().filter(|a| a.required).map(|a| a.name.as_str()).collect();
    match needed.as_slice() {
        [] => words.to_owned(),
        needed => format!("{} Needs kwargs: {}.", words.trim(), needed.join(", ")),
    }
}

/// Parses a page of `skills/list`: the skills, and the cursor of the next page.
pub fn from_page(label: &str, page: &Json) -> (Vec<Skill>, Option<String>) {
    let entries: Vec<Json> = page.member_as("skills").unwrap_or_default();
    let skills =
        entries.iter().take(MAX_SKILLS).filter_map(|entry| from_entry(label, entry)).collect();
    (skills, page.member_as("nextCursor"))
}

/// Returns how long a page may be cached.
pub fn lifetime(page: &Json) -> Duration {
    let declared: Option<u64> = page.member_as("ttlMs");
    let declared = declared.map(Duration::from_millis).unwrap_or(Duration::from_secs(60));
    declared.clamp(Duration::from_secs(5), Duration::from_secs(3600))
}

/// Returns whether a page is the same for every caller.
pub fn is_public(page: &Json) -> bool {
    page.member_as::<String>("cacheScope").as_deref() == Some("public")
}

fn from_entry(label: &str, entry: &Json) -> Option<Skill> {
    let uri: String = entry.member_as("uri")?;
    let front: Map<String, Value> = entry.member_as("frontmatter")?;
    let text = |key: &str| front.get(key).and_then(Value::as_str);
    let title = text("name")?.trim();
    let more = front.get("metadata").and_then(Value::as_object);
    let either = |key: &str| text(key).or_else(|| more?.get(key)?.as_str());
    let resources: Vec<Json> = entry.member_as("resources").unwrap_or_default();
    let own = resources.iter().find(|one| one.member_as::<String>("uri").as_ref() == Some(&uri));
    let digest = own.and_then(|own| own.member_as("digest"));
    let namespace = namespace(label, &uri);
    let kept = entry.as_str().len() <= MAX_ENTRY_BYTES;
    let entry = if kept { entry.clone() } else { Json::null() };
    let route = Route::Resource { uri, digest, entry };
    let words = text("description").unwrap_or_default();
    let mut skill = at_upstream(label, namespace, title, words, route);
    skill.version = either("version").map(|version| spelling(version, parse::MAX_VERSION));
    let functions = either("functions").unwrap_or_default();
    let functions = functions.split([' ', ',']).take(64).filter_map(Reference::parse);
    skill.functions = functions.map(|reference| in_namespace_of(label, reference)).collect();
    Some(skill)
}

/// Puts a function that an upstream names without a namespace into that of the upstream.
fn in_namespace_of(label: &str, reference: Reference) -> Reference {
    if reference.namespace.is_empty() {
        return Reference { namespace: label.to_owned(), ..reference };
    }
    reference
}

/// Derives a namespace from a URI: `skill://acme/billing/refunds/SKILL.md` of the upstream
/// `shop` is in `shop.acme.billing`.
fn namespace(label: &str, uri: &str) -> String {
    let path = uri.split_once("://").map_or(uri, |(_, path)| path);
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.truncate(parts.len().saturating_sub(2));
    let levels = parts.iter().take(4).map(|part| name::alias(part));
    std::iter::once(label.to_owned()).chain(levels).collect::<Vec<_>>().join(".")
}

fn at_upstream(label: &str, namespace: String, title: &str, words: &str, route: Route) -> Skill {
    let title = spelling(title, parse::MAX_NAME);
    Skill {
        namespace,
        name: name::alias(&title),
        title,
        description: catalog::summary::cut(words.trim(), 1024),
        version: None,
        functions: Vec::new(),
        license: None,
        compatibility: None,
        content: Content::Upstream { label: label.to_owned(), route },
    }
}

/// Returns the arguments for a prompt, from the values that a reader gave; the error names
/// those that are missing.
pub fn arguments(wanted: &[PromptArgument], given: &[(&str, &Json)]) -> Result<Json, String> {
    let mut all = Map::new();
    let mut missing = Vec::new();
    for argument in wanted {
        let value = given.iter().find(|(key, _)| name::same(key, &argument.name));
        match value {
            Some((_, value)) => {
                let text = value.string_value().unwrap_or_else(|| value.to_string());
                all.insert(argument.name.clone(), text.into());
            }
            None if argument.required => missing.push(argument.name.as_str()),
            None => {}
        }
    }
    if missing.is_empty() {
        return Ok(Value::Object(all).into());
    }
    Err(format!("it needs kwargs: {}", missing.join(", ")))
}

/// Returns the skill with the text of a `prompts/get` result.
pub fn from_prompt_result(skill: &Skill, result: &Json) -> Result<Skill, String> {
    let messages: Vec<Json> = result.member_as("messages").unwrap_or_default();
    let text = |message: &Json| {
        let content = message.member("content")?;
        let blocks = content.parse_as::<Vec<Json>>().unwrap_or_else(|_| vec![content.clone()]);
        let block = |block: &Json| {
            let resource = block.member("resource");
            let text: Option<String> = block.member_as("text");
            text.or_else(|| resource?.member_as("text")).unwrap_or_else(|| {
                let kind: String = block.member_as("type").unwrap_or_default();
                format!("[{} omitted]", catalog::summary::cut(&kind, 20))
            })
        };
        Some(blocks.iter().map(block).collect::<Vec<_>>().join("\n"))
    };
    let body = messages.iter().filter_map(text).collect::<Vec<_>>().join("\n\n");
    bounded(&body)?;
    let (body, _) = strip::executable(body.trim());
    let body = format!("# {}\n\n{body}", skill.title);
    Ok(Skill { content: Content::Text { body, form: Form::Plain }, ..skill.clone() })
}

/// Returns the skill with the text of a `resources/read` result for its `SKILL.md`.
pub fn from_read_result(
    skill: &Skill,
    digest: Option<&str>,
    result: &Json,
) -> Result<Skill, String> {
    let contents: Vec<Json> = result.member_as("contents").unwrap_or_default();
    let text: Option<String> = contents.iter().find_map(|content| content.member_as("text"));
    let text = text.ok_or("the upstream gave no text")?;
    bounded(&text)?;
    if let Some(digest) = digest {
        let hex = hex::encode(&Sha256::digest(&text));
        let listed = digest.strip_prefix("sha256:").unwrap_or(digest);
        if !listed.eq_ignore_ascii_case(&hex) {
            return Err("the text is not the one that the upstream listed".to_owned());
        }
    }
    let file = File { path: format!("{}/SKILL.md", skill.title), text };
    let parsed = parse::parse(&file, &mut Vec::new()).ok_or("the text is over 1 MiB")?;
    Ok(Skill { content: parsed.content, ..skill.clone() })
}

/// Checks that a text is not too long.
fn bounded(text: &str) -> Result<(), String> {
    if 1 << 20 < text.len() { Err("the text is over 1 MiB".to_owned()) } else { Ok(()) }
}
