//! One function, documented.

use catalog::signature::UNDECLARED;
use catalog::{Contract, Parameter, Sample, Slot, summary};
use serde_json::{Value, json};
use tool::text::{quoted, without_invisible};

use super::arguments::LenientArguments;
use super::help::Format;
use super::request::CashRequest;
use artifacts::gate::{self, thousands};

/// How many optional arguments are shown without being asked for all.
const OPTIONAL: usize = 8;
/// How many of the others are named.
const NAMED: usize = 24;
/// How long descriptions are without being asked for all.
const WORDS: usize = 1_200;
const CELL: usize = 200;
/// What stands around the note that a page is not whole.
const GATED: usize = 40;

impl CashRequest<'_> {
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
        // A schema may have megabytes. The rest can be asked for.
        let size = gate::suggestion(chars);
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
        if short.chars().count() <= limit + note.len() + GATED {
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

struct FunctionPage<'a> {
    request: &'a CashRequest<'a>,
    slot: Slot,
    full: bool,
    examples: bool,
}

impl FunctionPage<'_> {
    /// The page; `gated` says why it is not all of it.
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
        let hidden = self.hidden();
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
        theirs(text, if self.full { usize::MAX } else { WORDS })
    }

    /// The description as it came, within bounds, where nothing can be taken for
    /// ours.
    fn words_of_server(&self) -> String {
        let tool = self.tool();
        let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default().trim();
        if self.full { text.to_owned() } else { clip(text) }
    }

    /// All arguments, or the required ones and a few more.
    fn shown(&self) -> Vec<&Parameter> {
        self.ordered().0
    }

    /// The names of arguments that are not shown, as far as they fit a line.
    fn hidden(&self) -> String {
        let (_, hidden) = self.ordered();
        let names = hidden.iter().take(NAMED).map(|parameter| cell(&parameter.display(), 64));
        let more = if NAMED < hidden.len() { ", …" } else { "" };
        match hidden.len() {
            0 => String::new(),
            n => format!(" ({n} more: {}{more})", names.collect::<Vec<_>>().join(", ")),
        }
    }

    /// The arguments that are shown, and those that are not. What nobody should give
    /// any more comes last.
    fn ordered(&self) -> (Vec<&Parameter>, Vec<&Parameter>) {
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
        let hidden = all.split_off(all.len().min(required + OPTIONAL));
        (all, hidden)
    }

    fn parameters(&self) -> String {
        let shown = self.shown();
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
                cell(&parameter.display(), CELL),
                cell(kind(parameter, &shapes), CELL),
                self.words(parameter),
            ));
        }
        text
    }

    fn words(&self, parameter: &Parameter) -> String {
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
        cell(words.trim(), if self.full { usize::MAX } else { CELL })
    }

    fn returns(&self) -> String {
        let Some(schema) = &self.tool().output_schema else {
            return "Not described by the server.".to_owned();
        };
        if self.full {
            return format!("```json\n{schema}\n```");
        }
        let members = Contract::read(schema);
        let told = members.parameters.iter().take(12);
        let told = told.map(|p| format!("`{}` ({})", summary::echo(&p.name), cell(&p.kind, CELL)));
        let told: Vec<String> = told.collect();
        if told.is_empty() {
            return "Structured content.".to_owned();
        }
        format!("Object with {}.{}", told.join(", "), picking(&members))
    }

    fn is_nested(&self) -> bool {
        let deep = |kind: &str| kind.contains("object") || kind.contains("any");
        let schema = &self.tool().input_schema;
        let chooses = ["oneOf", "anyOf"].iter().any(|key| schema.member(key).is_some());
        chooses || self.contract().parameters.iter().any(|parameter| deep(&parameter.kind))
    }

    /// A call that would be let through, or else one that shows the shape.
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
        let parameters = self.shown().into_iter().map(|parameter| {
            json!({
                "name": parameter.display(),
                "type": kind(parameter, &shapes),
                "required": parameter.required,
                "description": self.words(parameter),
            })
        });
        let mut told = json!({
            "namespace": catalog.path(self.slot),
            "function": catalog.function(self.slot).name,
            "description": self.words_of_server(),
            "hints": hints(self.tool().annotations),
            "parameters": parameters.collect::<Vec<_>>(),
            "returns": self.returns(),
        });
        if self.full {
            told["schema"] = self.tool().input_schema.to_value().unwrap_or(Value::Null);
        } else {
            told["arguments"] = json!(["params", "examples"]);
        }
        if self.examples {
            let Sample { arguments, fits } = self.contract().sample();
            told[if fits { "example" } else { "shape" }] = arguments;
        }
        if catalog.source(self.slot).unavailable().is_some() {
            told["available"] = json!(false);
        }
        told
    }
}

/// How a part of a result is asked for: its first list, else its first member.
fn picking(members: &Contract) -> String {
    let is_plain =
        |name: &str| !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphabetic());
    let mut named = members.parameters.iter().filter(|member| is_plain(&member.name));
    let list = named.clone().find(|member| member.kind.ends_with("[]"));
    match list.or_else(|| named.next()) {
        Some(member) => format!(" Only a part of it: `pick=\".{}\"` in the call.", member.name),
        None => String::new(),
    }
}

/// The members of an object that has to be given, else the type alone.
fn kind<'p>(parameter: &'p Parameter, shapes: &'p [(&Parameter, String)]) -> &'p str {
    let own = shapes.iter().find(|(other, _)| other.name == parameter.name);
    own.map_or(&parameter.kind, |(_, shape)| shape)
}

fn cell(text: &str, limit: usize) -> String {
    let line = without_invisible(text).split_whitespace().collect::<Vec<_>>().join(" ");
    summary::cut(&line, limit).replace('|', "\\|")
}

/// How lines of ours begin that say what a function is and does.
const OURS: [&str; 6] =
    ["Hints:", "available:", "kwargs:", "Here:", "No parameters", "Parameters:"];

/// A server's words on a page of ours: one plain sentence as it is, and as a
/// quotation whatever could be taken for a part of the page.
fn theirs(text: &str, limit: usize) -> String {
    let is_sentence = !text.contains(['\n', '\r'])
        && text.starts_with(char::is_alphanumeric)
        && !OURS.iter().any(|word| text.starts_with(word));
    match is_sentence {
        true => summary::cut(&without_invisible(text), limit),
        false => quoted(text, limit),
    }
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(WORDS) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_owned(),
    }
}

/// What a function may do, as far as its server is believed.
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
