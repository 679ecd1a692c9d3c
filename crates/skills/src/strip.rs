//! Removes executable content from the text of a skill.

mod code_ranges;
mod scripts;

#[cfg(test)]
mod tests;

/// The languages of fenced blocks that are data, and stay.
const DATA_LANGUAGES: [&str; 18] = [
    "",
    "json",
    "jsonc",
    "json5",
    "yaml",
    "yml",
    "toml",
    "text",
    "txt",
    "plain",
    "plaintext",
    "md",
    "markdown",
    "mermaid",
    "csv",
    "tsv",
    "xml",
    "ini",
];

/// Replaces executable content by notes; returns the text, and how many pieces were
/// replaced.
///
/// Executable are fenced blocks in a programming or shell language, untagged ones that
/// look like a shell session, script elements, commands that a host runs when it reads a
/// skill, links to bundled scripts, and data URIs.
pub(crate) fn executable(text: &str) -> (String, usize) {
    let mut kept: Vec<String> = Vec::new();
    let mut omitted = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = Fence::open(line) else {
            let (line, count) = strip_line(line);
            omitted += count;
            kept.push(line);
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| !fence.closes(line)).collect();
        if fence.is_code(&block) {
            omitted += 1;
            let language = if fence.language.is_empty() { "code" } else { &fence.language };
            kept.push(format!(
                "{}[code omitted: {} lines of {language}]",
                fence.indent,
                block.len()
            ));
        } else {
            kept.push(line.to_owned());
            kept.extend(block.iter().map(|line| (*line).to_owned()));
            kept.push(format!("{}{}", fence.indent, fence.mark));
        }
    }
    let (text, scripts) = scripts::omit(&kept.join("\n"));
    (text, omitted + scripts)
}

/// The opening line of a fenced block.
struct Fence {
    indent: String,
    mark: String,
    language: String,
}

impl Fence {
    fn open(line: &str) -> Option<Fence> {
        // A block may be in a quotation or in a list item.
        let trimmed = line.trim_start_matches([' ', '\t', '>', '-', '+']);
        let first = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = trimmed.chars().take_while(|c| *c == first).count();
        let info = trimmed[length..].trim();
        if length < 3 || (first == '`' && info.contains('`')) {
            return None;
        }
        let word = info.split([' ', ',', '{', ':']).find(|part| !part.is_empty());
        Some(Fence {
            indent: line[..line.len() - trimmed.len()].to_owned(),
            mark: trimmed[..length].to_owned(),
            language: word.unwrap_or_default().trim_matches(['.', '}']).to_ascii_lowercase(),
        })
    }

    fn closes(&self, line: &str) -> bool {
        let trimmed = line.trim_start_matches([' ', '\t', '>']).trim_end();
        trimmed.starts_with(&self.mark) && trimmed.chars().all(|c| self.mark.starts_with(c))
    }

    fn is_code(&self, block: &[&str]) -> bool {
        let first = block.iter().map(|line| line.trim()).find(|line| !line.is_empty());
        let session = first.is_some_and(|line| line.starts_with("#!") || line.starts_with("$ "));
        !DATA_LANGUAGES.contains(&self.language.as_str()) || (self.language.is_empty() && session)
    }
}

/// Replaces, in a line of prose, commands that some hosts run when they read it
/// (`` !`date` ``), links to scripts, and data URIs.
fn strip_line(line: &str) -> (String, usize) {
    let (line, commands) =
        replace_between(line, "!`", "`", |_| Some("[command omitted]".to_owned()));
    let (line, links) = replace_between(&line, "](", ")", |target| {
        let target = target.trim().trim_start_matches("./");
        let runs = target.starts_with("scripts/") || target.starts_with("data:");
        runs.then(|| "] (omitted)".to_owned())
    });
    let (line, embedded) = strip_data_uris(&line);
    (line, commands + links + embedded)
}

/// Replaces data URIs.
fn strip_data_uris(line: &str) -> (String, usize) {
    let (mut kept, mut rest, mut count) = (String::new(), line, 0);
    while let Some(start) = rest.find("data:") {
        let uri = &rest[start + "data:".len()..];
        let length = uri.find(|c: char| c.is_whitespace() || "\"'<>)`".contains(c));
        let (uri, after) = uri.split_at(length.unwrap_or(uri.len()));
        kept.push_str(&rest[..start]);
        if uri.contains(',') && (uri.contains('/') || uri.contains(";base64")) {
            kept.push_str("[data omitted]");
            count += 1;
        } else {
            kept.push_str("data:");
            kept.push_str(uri);
        }
        rest = after;
    }
    kept.push_str(rest);
    (kept, count)
}

/// Replaces the texts between two delimiters for which `replacement` returns something.
fn replace_between(
    line: &str,
    open: &str,
    close: &str,
    replacement: impl Fn(&str) -> Option<String>,
) -> (String, usize) {
    let (mut kept, mut rest, mut count) = (String::new(), line, 0);
    while let Some(start) = rest.find(open) {
        let inner = &rest[start + open.len()..];
        let Some(length) = inner.find(close) else { break };
        kept.push_str(&rest[..start]);
        match replacement(&inner[..length]) {
            Some(other) => {
                kept.push_str(&other);
                count += 1;
            }
            None => kept.push_str(&rest[start..start + open.len() + length + close.len()]),
        }
        rest = &inner[length + close.len()..];
    }
    kept.push_str(rest);
    (kept, count)
}
