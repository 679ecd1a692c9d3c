//! The page of `help` about one function.

use catalog::signature::UNDECLARED;
use catalog::{Contract, Parameter, Sample, Slot, summary};
use serde_json::{Value, json};
use tool::text::{quoted, without_invisible};

use super::arguments::LenientArguments;
use super::help::Format;
use super::request::CashRequest;
use artifacts::gate::{self, thousands};

/// How many optional arguments are shown unless `params="full"`.
const MAX_OPTIONAL: usize = 8;
/// How many of the other arguments are named.
const MAX_NAMED: usize = 24;
/// The most characters of the description, and of a table cell, unless `params="full"`.
const MAX_DESCRIPTION: usize = 1_200;
const MAX_CELL: usize = 200;
/// The characters around the note that a page is not whole.
const NOTE_MARGIN: usize = 40;

impl CashRequest<'_> {
    /// Renders the page of a function, shortened to the size limit.
    pub(super) fn function_page(
        &self,
        slot: Slot,
        asked: &LenientArguments,
        format: Format,
    ) -> String {
        let full = asked.text("params").is_some_and(|params| params.eq_ignore_ascii_case("full"))
            || asked.is_true("detailed");
        let function_page =
            FunctionPage { request: self, slot, full, examples: asked.is_true("examples") };
        let page = function_page.page(format, None);
        let gate = self.cash.pipeline.gate.load();
        let limit = gate.limit(asked.number("sizelimit"));
        let chars = page.chars().count();
        if chars <= limit {
            return page;
        }
        // A schema may have megabytes. The caller can ask for the rest.
        let size = gate::suggested_limit(chars);
        let ask = match gate.ceiling {
            Some(ceiling) if ceiling < chars => format!("the operator allows at most {ceiling}"),
            Some(_) | None => format!("ask again with `sizelimit={size}`"),
        };
        let note = format!(
            "all of it exceeds the size limit (~{} characters; limit {}): {ask}",
            thousands(chars),
            thousands(limit),
        );
        let short = FunctionPage { full: false, examples: false, ..function_page }
            .page(format, Some(&note));
        if short.chars().count() <= limit + note.len() + NOTE_MARGIN {
            return short;
        }
        let catalog = &self.snapshot.catalog;
        let (path, name) = (catalog.path(slot), &catalog.function(slot).name);
        match format {
            Format::Markdown => format!("# {path}.{name}\n\n**Gated:** {note}.\n"),
            Format::Json => json!({"namespace": path, "function": name, "gated": note}).to_string(),
        }
    }
}

/// What the page of a function is rendered from.
struct FunctionPage<'a> {
    request: &'a CashRequest<'a>,
    slot: Slot,
    /// Whether every detail is shown.
    full: bool,
    /// Whether an example call is shown.
    examples: bool,
}

impl FunctionPage<'_> {
    /// Renders the page; `gated` says why it is not the whole page.
    fn page(&self, format: Format, gated: Option<&str>) -> String {
        match (format, gated) {
            (Format::Markdown, None) => self.markdown(),
            (Format::Markdown, Some(why)) => format!("{}\n**Gated:** {why}.\n", self.markdown()),
            (Format::Json, None) => self.json().to_string(),
            (Format::Json, Some(why)) => {
                let mut page = self.json();
                page["gated"] = json!(why);
                page.to_string()
            }
        }
    }

    fn contract(&self) -> &Contract {
        self.request.snapshot.catalog.contract(self.slot)
    }

    fn tool(&self) -> &tool::Tool {
        self.request.snapshot.catalog.tool(self.slot)
    }

    fn markdown(&self) -> String {
        let catalog = &self.request.snapshot.catalog;
        let mut text =
            format!("# {}.{}\n\n", catalog.path(self.slot), catalog.function(self.slot).name);
        let namespace = &catalog.namespaces()[catalog.function(self.slot).namespace];
        if let Some(reason) = self.request.unavailable_reason(namespace) {
            text.push_str(&format!("available: false — unavailable: {reason}\n\n"));
        }
        let description = self.description();
        if !description.is_empty() {
            text.push_str(&format!("{description}\n\n"));
        }
        let hints = hints(self.tool().annotations);
        if !hints.is_empty() {
            text.push_str(&format!("Hints: {hints}.\n\n"));
        }
        text.push_str(&self.parameters());
        text.push_str(&format!("\n## Returns\n\n{}\n", self.returns()));
        if self.full && self.is_nested() {
            let schema = self.tool().input_schema.as_str();
            text.push_str(&format!("\n## Schema\n\n```json\n{schema}\n```\n"));
        }
        if self.examples {
            text.push_str(&self.example());
        }
        let hidden = self.hidden_names();
        if !self.full {
            text.push_str(&format!(
                "\nkwargs: `params=\"full\"` for every detail{hidden}, `examples=true`.\n"
            ));
        }
        text
    }

    fn description(&self) -> String {
        let tool = self.tool();
        let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default().trim();
        server_text(text, if self.full { usize::MAX } else { MAX_DESCRIPTION })
    }

    /// Returns the server's description for JSON, where it needs no quotation marks.
    fn raw_description(&self) -> String {
        let tool = self.tool();
        let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default().trim();
        if self.full { text.to_owned() } else { clip(text) }
    }

    /// Returns all arguments, or the required ones and a few more.
    fn shown_parameters(&self) -> Vec<&Parameter> {
        self.split_parameters().0
    }

    /// Names the arguments that are not shown.
    fn hidden_names(&self) -> String {
        let (_, hidden) = self.split_parameters();
        let names = hidden.iter().take(MAX_NAMED).map(|parameter| cell(&parameter.display(), 64));
        let more = if MAX_NAMED < hidden.len() { ", …" } else { "" };
        match hidden.len() {
            0 => String::new(),
            n => format!(" ({n} more: {}{more})", names.collect::<Vec<_>>().join(", ")),
        }
    }

    /// Returns the arguments that are shown, and those that are not. Obsolete ones come
    /// last.
    fn split_parameters(&self) -> (Vec<&Parameter>, Vec<&Parameter>) {
        let mut all: Vec<&Parameter> = self.contract().parameters.iter().collect();
        if self.full {
            return (all, Vec::new());
        }
        let is_obsolete = |parameter: &&Parameter| {
            let words = parameter.description.as_deref().unwrap_or_default().to_lowercase();
            !parameter.required
                && ["obsolete", "deprecated", "reserved"].iter().any(|word| words.contains(word))
        };
        all.sort_by_key(is_obsolete);
        let required = all.iter().filter(|parameter| parameter.required).count();
        let hidden = all.split_off(all.len().min(required + MAX_OPTIONAL));
        (all, hidden)
    }

    /// Renders the table of arguments.
    fn parameters(&self) -> String {
        let shown = self.shown_parameters();
        if shown.is_empty() {
            return match self.contract().is_declared() {
                true => "No parameters.\n".to_owned(),
                false => format!("Parameters: {UNDECLARED}; the server may want some.\n"),
            };
        }
        let mut text = "## Parameters\n\n| Name | Type | Required | Description |\n\
                        |------|------|----------|-------------|\n"
            .to_owned();
        let shapes = self.contract().shapes();
        for parameter in shown {
            let required = if parameter.required { "yes" } else { "no" };
            text.push_str(&format!(
                "| {} | {} | {required} | {} |\n",
                cell(&parameter.display(), MAX_CELL),
                cell(type_text(parameter, &shapes), MAX_CELL),
                self.parameter_description(parameter),
            ));
        }
        text
    }

    fn parameter_description(&self, parameter: &Parameter) -> String {
        let mut words = parameter.description.clone().unwrap_or_default();
        if let Some(default) = &parameter.default {
            words.push_str(&format!(" Default: {default}."));
        }
        if parameter.display() != parameter.name {
            words.push_str(&format!(" Upstream: `{}`.", summary::echo(&parameter.name)));
        }
        if parameter.is_ambiguous() {
            words.push_str(" Needs this exact spelling.");
        }
        cell(words.trim(), if self.full { usize::MAX } else { MAX_CELL })
    }

    /// Describes the result.
    fn returns(&self) -> String {
        let Some(schema) = &self.tool().output_schema else {
            return "Not described by the server.".to_owned();
        };
        if self.full {
            return format!("```json\n{schema}\n```");
        }
        let members = Contract::parse(schema);
        let shown = members.parameters.iter().take(12);
        let shown =
            shown.map(|p| format!("`{}` ({})", summary::echo(&p.name), cell(&p.kind, MAX_CELL)));
        let shown: Vec<String> = shown.collect();
        if shown.is_empty() {
            return "Structured content.".to_owned();
        }
        format!("Object with {}.{}", shown.join(", "), pick_hint(&members))
    }

    /// Returns whether the arguments are more complex than the table shows.
    fn is_nested(&self) -> bool {
        let deep = |kind: &str| kind.contains("object") || kind.contains("any");
        let schema = &self.tool().input_schema;
        let chooses = ["oneOf", "anyOf"].iter().any(|key| schema.member(key).is_some());
        chooses || self.contract().parameters.iter().any(|parameter| deep(&parameter.kind))
    }

    /// Renders a call with valid arguments, or else one that shows the form of arguments.
    fn example(&self) -> String {
        let catalog = &self.request.snapshot.catalog;
        let Sample { arguments, fits } = self.contract().sample();
        let heading = match fits {
            true => "## Example",
            false => "## Shape\n\nThe values below do not keep every rule of the schema.",
        };
        let (path, name) = (catalog.path(self.slot), &catalog.function(self.slot).name);
        let call = format!("call(namespace=\"{path}\", function=\"{name}\", kwargs={arguments})");
        format!("\n{heading}\n\n`{call}`\n")
    }

    fn json(&self) -> Value {
        let catalog = &self.request.snapshot.catalog;
        let shapes = self.contract().shapes();
        let parameters = self.shown_parameters().into_iter().map(|parameter| {
            json!({
                "name": parameter.display(),
                "type": type_text(parameter, &shapes),
                "required": parameter.required,
                "description": self.parameter_description(parameter),
            })
        });
        let mut page = json!({
            "namespace": catalog.path(self.slot),
            "function": catalog.function(self.slot).name,
            "description": self.raw_description(),
            "hints": hints(self.tool().annotations),
            "parameters": parameters.collect::<Vec<_>>(),
            "returns": self.returns(),
        });
        if self.full {
            page["schema"] = self.tool().input_schema.to_value().unwrap_or(Value::Null);
        } else {
            page["arguments"] = json!(["params", "examples"]);
        }
        if self.examples {
            let Sample { arguments, fits } = self.contract().sample();
            page[if fits { "example" } else { "shape" }] = arguments;
        }
        if catalog.source(self.slot).unavailable().is_some() {
            page["available"] = json!(false);
        }
        page
    }
}

/// Says how to pick a part of the result: its first list, else its first member.
fn pick_hint(members: &Contract) -> String {
    let is_plain =
        |name: &str| !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphabetic());
    let mut named = members.parameters.iter().filter(|member| is_plain(&member.name));
    let list = named.clone().find(|member| member.kind.ends_with("[]"));
    match list.or_else(|| named.next()) {
        Some(member) => format!(" Only a part of it: `pick=\".{}\"` in the call.", member.name),
        None => String::new(),
    }
}

/// Returns the type of an argument; for a required object, with its members.
fn type_text<'p>(parameter: &'p Parameter, shapes: &'p [(&Parameter, String)]) -> &'p str {
    let own = shapes.iter().find(|(other, _)| other.name == parameter.name);
    own.map_or(&parameter.kind, |(_, shape)| shape)
}

/// Renders text for a cell of a Markdown table.
fn cell(text: &str, limit: usize) -> String {
    let line = without_invisible(text).split_whitespace().collect::<Vec<_>>().join(" ");
    summary::cut(&line, limit).replace('|', "\\|")
}

/// How gatelet's own lines of the page begin.
const OURS: [&str; 6] =
    ["Hints:", "available:", "kwargs:", "Here:", "No parameters", "Parameters:"];

/// Renders a server's text for the page: one plain sentence as it is, anything that could
/// be taken for gatelet's own words as a quotation.
fn server_text(text: &str, limit: usize) -> String {
    let is_sentence = !text.contains(['\n', '\r'])
        && text.starts_with(char::is_alphanumeric)
        && !OURS.iter().any(|word| text.starts_with(word));
    match is_sentence {
        true => summary::cut(&without_invisible(text), limit),
        false => quoted(text, limit),
    }
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(MAX_DESCRIPTION) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_owned(),
    }
}

/// Lists the effects that the annotations of a function declare.
pub(super) fn hints(annotations: tool::Annotations) -> String {
    let mut hints = Vec::new();
    if annotations.read_only == Some(true) {
        hints.push("read-only");
    }
    if annotations.destructive == Some(true) && annotations.read_only != Some(true) {
        hints.push("destructive");
    }
    if annotations.idempotent == Some(true) {
        hints.push("idempotent");
    }
    hints.join(", ")
}
