//! The lint rules of severity error: a document that is wrong, or useless to a machine.

use std::collections::HashMap;

use super::rule::{CLEAN, Example, Rule, changed, reported_by_parser, with_second};
use crate::diff::{diff, undocumented};
use crate::document::{DocumentedTool, IoSpec, Required, Topic};
use crate::example::{check_schema, has_dots, problems};
use crate::finding::{Edit, Finding, Position};
use crate::parse::parse;
use crate::rule_input::RuleInput;
use crate::types;

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: "E01",
        title: "every fence is closed",
        explanation: "A fence that is never closed swallows the rest of the document: every tool \
                      after it is invisible. Close it with the same marks on a line of their own.",
        fixable: false,
        example: || Example { text: format!("{}\n```json\n{{}}\n", CLEAN), ..Example::default() },
        check: reported_by_parser,
    },
    Rule {
        code: "E02",
        title: "the document has a title",
        explanation: "The first heading names the module: `# Module - MCP Tool Specification`. \
                      Without it nobody can tell what the tools belong to.",
        fixable: false,
        example: || changed("# Files - MCP Tool Specification\n", ""),
        check: check_title,
    },
    Rule {
        code: "E03",
        title: "every tool has an invocation name",
        explanation: "A tool is called by its invocation name, which section 2 gives in a code \
                      span. The heading is for people and may say something else.",
        fixable: true,
        example: || changed("### 2. Invocation Name\n\n`files.read_text`\n\n", ""),
        check: check_invocation,
    },
    Rule {
        code: "E04",
        title: "names are unique",
        explanation: "Two tools with the same invocation name cannot be told apart by a caller. \
                      Rename one, or remove the copy.",
        fixable: false,
        example: || {
            with_second("files.read_text", |text| {
                text.replace(
                    "Reads a text file below the root of the project and returns its first lines.",
                    "Reads another kind of file below the root of the project.",
                )
            })
        },
        check: check_unique,
    },
    Rule {
        code: "E05",
        title: "every tool says what goes in",
        explanation: "Without section 3, or with one that no machine can read, a caller has to \
                      guess the arguments. A tool without parameters says so: `No parameters.`",
        fixable: false,
        example: || {
            let from = CLEAN.find("### 3.").unwrap_or(0);
            let to = CLEAN.find("### 4.").unwrap_or(0);
            changed(&CLEAN[from..to], "")
        },
        check: check_input,
    },
    Rule {
        code: "E06",
        title: "table rows are whole",
        explanation: "A row with too many cells, an odd back-tick or a line break in a cell shifts \
                      its columns: the type ends up as the description. Write the row on one line \
                      and escape pipes in cells as `\\|`.",
        fixable: false,
        example: || {
            changed(
                "| `max_lines` | `integer` | No | How many lines to return at most. | `100` |",
                "| `max_lines` | `integer` | No | How many lines to return at most. | `100` |\n\
             | `extra | `integer` | No | Torn. | `1` |",
            )
        },
        check: reported_by_parser,
    },
    Rule {
        code: "E07",
        title: "JSON fences hold JSON",
        explanation: "A fence that says `json` is read by machines. Comments, `...` and trailing \
                      commas are not JSON; a sketch belongs in a fence without a language.",
        fixable: false,
        example: || changed("\"items\": { \"type\": \"string\" } } }\n}", "\"items\": ... } }\n}"),
        check: reported_by_parser,
    },
    Rule {
        code: "E08",
        title: "schemas are valid JSON Schema",
        explanation: "A schema that no validator accepts checks nothing. Frequent mistakes: \
                      `\"required\": true` inside a property instead of a list beside \
                      `properties`, and types that do not exist.",
        fixable: false,
        example: || {
            changed(
                "\"path\": { \"type\": \"string\", \"description\"",
                "\"path\": { \"type\": \"string\", \"required\": true, \"description\"",
            )
        },
        check: check_schemas,
    },
    Rule {
        code: "E09",
        title: "table and schema agree",
        explanation: "Readers use the table, machines the schema. Names, types and which \
                      parameters are required must be the same in both, and each parameter has one row.",
        fixable: false,
        example: || {
            changed("\"required\": [\"path\"]\n", "\"required\": [\"path\", \"max_lines\"]\n").also(
                "\"path\": \"src/main.rs\" }",
                "\"path\": \"src/main.rs\", \"max_lines\": 9 }",
            )
        },
        check: check_agreement,
    },
    Rule {
        code: "E10",
        title: "usage examples work",
        explanation: "Callers copy examples. Each must be readable JSON, name this tool, and have \
                      arguments that fit the input schema, with everything that is required.",
        fixable: false,
        example: || {
            changed(
                "\"arguments\": { \"path\": \"src/main.rs\" }",
                "\"arguments\": { \"max_lines\": 5 }",
            )
        },
        check: check_examples,
    },
    Rule {
        code: "E11",
        title: "no placeholders are left",
        explanation: "`[YourToolName]`, `tool_name`, `Yes/No` or `...` come from the template. A \
                      caller takes them for the truth. Fill them in or remove them.",
        fixable: false,
        example: || changed("**Idempotent**: Yes\n", "**Idempotent**: Yes/No\n"),
        check: check_placeholders,
    },
    Rule {
        code: "E12",
        title: "names follow the grammar",
        explanation: "MCP allows 1 to 128 of `A-Z a-z 0-9 _ - . /` in a tool's name. Clients \
                      refuse anything else.",
        fixable: false,
        example: || Example {
            text: CLEAN.replace("files.read_text", "files.read text"),
            ..Example::default()
        },
        check: check_grammar,
    },
    Rule {
        code: "E13",
        title: "document and server have the same tools",
        explanation: "A documented tool that the server does not have, or a tool of the server \
                      that is not documented, misleads callers. So does a document that says \
                      there are no tools and then describes some.",
        fixable: false,
        example: || Example {
            text: CLEAN.to_owned(),
            live: Some(Vec::new()),
            ..Example::default()
        },
        check: check_live,
    },
    Rule {
        code: "E14",
        title: "breaking changes raise the major version",
        explanation: "A removed or newly required parameter, a changed type or a removed field of \
                      the result breaks callers. The tool's major version tells them; compare with \
                      the previous revision to see what changed.",
        fixable: false,
        example: || {
            let old = CLEAN.replace(
                "| `max_lines` | `integer`",
                "| `encoding` | `string` | No | How the file is encoded. | `\"utf-8\"` |\n| `max_lines` | `integer`",
            );
            let old = old.replace(
                "\"max_lines\": { \"type\": \"integer\"",
                "\"encoding\": { \"type\": \"string\" },\n    \"max_lines\": { \"type\": \"integer\"",
            );
            Example { text: CLEAN.to_owned(), previous: Some(parse(&old).0), ..Example::default() }
        },
        check: check_bump,
    },
];

impl Example {
    fn also(mut self, from: &str, to: &str) -> Example {
        self.text = self.text.replacen(from, to, 1);
        self
    }
}

fn check_title(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    if subject.document.title.is_none() {
        let finding = Finding::new("E02", Position::line(1), "the document has no title");
        findings.push(finding.hint("start with `# Module - MCP Tool Specification`"));
    }
}

fn check_invocation(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    for tool in subject.document.tools.iter().filter(|tool| tool.invocation.is_none()) {
        let message = format!("`{}` has no invocation name", tool.name);
        let finding = Finding::new("E03", tool.heading.place, message).in_tool(&tool.name);
        let hint =
            format!("add `### {}` with the name in a code span", Topic::Invocation.heading());
        findings.push(finding.hint(hint).fix(invocation_fix(tool)));
    }
}

/// Inserts the invocation name, if the tool has a heading of its own with just one name.
fn invocation_fix(tool: &DocumentedTool) -> Option<Edit> {
    let [name] = tool.heading.names.as_slice() else { return None };
    if tool.heading.level == 0 || !is_tool_name(name) {
        return None;
    }
    let later = tool.sections.iter().find(|section| {
        Topic::Invocation < section.topic && section.form != crate::document::SectionMark::Implied
    });
    let line = later.map_or(tool.end, |section| section.place.line);
    let marks = "#".repeat(tool.heading.level + 1);
    let text = format!("{marks} {}\n\n`{name}`\n", Topic::Invocation.heading());
    Some(Edit { from: line, end: line, text })
}

fn check_unique(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for tool in &subject.document.tools {
        let line = tool.heading.place.line;
        if let Some(first) = seen.insert(&tool.name, line) {
            let message = format!("`{}` is documented already in line {first}", tool.name);
            findings.push(Finding::new("E04", tool.heading.place, message).in_tool(&tool.name));
        }
    }
}

fn check_input(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    for tool in &subject.document.tools {
        if tool.section(Topic::Input).is_none() && tool.input.schema.is_none() {
            let message = format!("`{}` does not say what goes in", tool.name);
            let finding = Finding::new("E05", tool.heading.place, message).in_tool(&tool.name);
            findings.push(
                finding.hint(format!(
                    "add `### {}`, or `No parameters.` in it",
                    Topic::Input.heading()
                )),
            );
        } else if is_unusable(&tool.input) {
            let place = tool.section(Topic::Input).map_or(tool.heading.place, |input| input.place);
            let message = format!("no parameter of `{}` can be read from this", tool.name);
            let finding = Finding::new("E05", place, message).in_tool(&tool.name);
            findings.push(finding.hint(
                "give a table, a JSON Schema or bullets such as `` - `path` (string, required): … ``; \
                 without parameters say `No parameters.`",
            ));
        }
    }
}

/// Returns whether the section about the input has nothing that a machine can use.
fn is_unusable(input: &IoSpec) -> bool {
    input.schema.is_none() && input.fields.is_empty() && input.tables.is_empty() && !input.nothing
}

fn check_schemas(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    for tool in &subject.document.tools {
        for (which, side) in [("input", &tool.input), ("output", &tool.output)] {
            if let Some(schema) = &side.schema
                && let Err(reason) = check_schema(&schema.value)
            {
                let message = format!("the {which} schema of `{}` is invalid {reason}", tool.name);
                findings.push(Finding::new("E08", schema.place, message).in_tool(&tool.name));
            }
        }
        for field in &tool.input.fields {
            let unknown = field.type_text.as_ref().filter(|text| !types::parse(text).is_known);
            if let Some(text) = unknown {
                let message = format!("no type is called `{text}`");
                let hint =
                    "use string, integer, number, boolean, array[T], object or enum[\"a\",\"b\"]";
                findings
                    .push(Finding::new("E08", field.place, message).in_tool(&tool.name).hint(hint));
            }
        }
    }
}

fn check_agreement(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    for tool in &subject.document.tools {
        for side in [&tool.input, &tool.output] {
            findings
                .extend(conflicting_duplicates(side).map(|finding| finding.in_tool(&tool.name)));
            let Some(schema) = &side.schema else { continue };
            if side.tables.is_empty() || subject.is_damaged(tool.heading.place.line, tool.end) {
                continue;
            }
            let Some(properties) = types::properties(&schema.value) else { continue };
            let required = types::required(&schema.value);
            let mut disagree = |place: Position, message: String| {
                findings.push(Finding::new("E09", place, message).in_tool(&tool.name));
            };
            for field in side.fields.iter().filter(|field| !field.path.contains(['.', '['])) {
                let Some(property) = properties.get(&field.path) else {
                    disagree(field.place, format!("the schema has no `{}`", field.path));
                    continue;
                };
                let is_required = required.contains(&field.path.as_str());
                match field.required {
                    Some(Required::Yes) if !is_required => {
                        disagree(
                            field.place,
                            format!("the schema does not require `{}`", field.path),
                        );
                    }
                    Some(Required::No) if is_required => {
                        disagree(field.place, format!("the schema requires `{}`", field.path));
                    }
                    Some(_) | None => {}
                }
                if !types::agree(&field.schema, property) {
                    let said = field.type_text.clone().unwrap_or_default();
                    let meant = types::write(property);
                    let message =
                        format!("`{}` is `{said}` here and `{meant}` in the schema", field.path);
                    disagree(field.place, message);
                }
            }
            let known = |name: &String| {
                side.fields.iter().any(|field| {
                    field.path.split(['.', '[']).next() == Some(name) || field.path == *name
                })
            };
            for name in properties.keys().filter(|name| !known(name)) {
                disagree(schema.place, format!("the table has no `{name}`"));
            }
        }
    }
}

/// Returns a finding for each field that is listed twice with different content.
fn conflicting_duplicates(side: &IoSpec) -> impl Iterator<Item = Finding> {
    side.fields.iter().enumerate().filter_map(|(at, field)| {
        let first = side.fields[..at].iter().find(|other| other.path == field.path)?;
        let differs = first.schema != field.schema || first.required != field.required;
        differs.then(|| {
            let message = format!(
                "`{}` stands in line {} already, and differs",
                field.path, first.place.line
            );
            Finding::new("E09", field.place, message).hint("keep the one that is true")
        })
    })
}

fn check_examples(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    for tool in &subject.document.tools {
        for example in &tool.examples {
            let wrong =
                |message: String| Finding::new("E10", example.place, message).in_tool(&tool.name);
            let call = match &example.call {
                Ok(call) => call,
                Err(reason) => {
                    findings.push(wrong(format!("this example cannot be read: {reason}")));
                    continue;
                }
            };
            if call.tool != tool.name && !tool.heading.names.contains(&call.tool) {
                findings.push(wrong(format!(
                    "this example calls `{}`, not `{}`",
                    call.tool, tool.name
                )));
                continue;
            }
            let Some(schema) = tool.input.effective() else { continue };
            for problem in problems(&schema, &call.arguments) {
                findings
                    .push(wrong(format!("this example does not fit the input schema: {problem}")));
            }
        }
    }
}

fn check_placeholders(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let mut left = |place: Position, text: &str, tool: Option<&DocumentedTool>| {
        let finding = Finding::new("E11", place, format!("`{text}` is left from the template"));
        findings.push(match tool {
            Some(tool) => finding.in_tool(&tool.name),
            None => finding,
        });
    };
    if let Some(title) = &subject.document.title
        && (title.value.contains("[Module Name]") || title.value.contains("[ModuleName]"))
    {
        left(title.place, &title.value, None);
    }
    for tool in &subject.document.tools {
        let brackets = |name: &String| name.starts_with('[') && name.ends_with(']');
        if let Some(name) =
            tool.heading.names.iter().find(|name| brackets(name) || *name == "tool_name")
        {
            left(tool.heading.place, name, Some(tool));
        }
        if let Some(value) = tool.idempotency.as_ref().filter(|value| {
            let text = value.value.replace(' ', "").to_lowercase();
            text.starts_with("yes/no") || text.starts_with("[yes/no")
        }) {
            left(value.place, &value.value, Some(tool));
        }
        for example in &tool.examples {
            if let Ok(call) = &example.call
                && has_dots(&call.arguments)
            {
                left(example.place, "...", Some(tool));
            }
        }
        for field in tool.input.fields.iter().filter(|field| brackets(&field.path)) {
            left(field.place, &field.path, Some(tool));
        }
    }
}

/// Returns whether MCP allows this as the name of a tool.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/');
    !name.is_empty() && name.len() <= 128 && name.bytes().all(legal)
}

fn check_grammar(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    for tool in &subject.document.tools {
        // A placeholder is reported as one.
        let placeholder = tool.name.starts_with('[') && tool.name.ends_with(']');
        if !is_tool_name(&tool.name) && !placeholder {
            let place = tool.invocation.as_ref().map_or(tool.heading.place, |name| name.place);
            let message = format!("`{}` cannot be the name of a tool", tool.name);
            let finding = Finding::new("E12", place, message).in_tool(&tool.name);
            findings.push(finding.hint("use 1 to 128 of `A-Z a-z 0-9 _ - . /`"));
        }
    }
}

fn check_live(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    if let (Some(place), Some(tool)) =
        (subject.document.says_no_tools, subject.document.tools.first())
    {
        let message =
            format!("the document says that there are no tools, and describes `{}`", tool.name);
        findings.push(Finding::new("E13", place, message));
    }
    if let Some(live) = subject.context.live {
        findings.extend(undocumented(subject.document, live));
    }
}

fn check_bump(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let Some(previous) = subject.context.previous else { return };
    let report = diff(&previous.definitions(), &subject.document.definitions());
    for missing in
        report.missing_bumps.iter().filter(|missing| missing.needed == crate::Bump::Major)
    {
        let tool = subject.document.tool(&missing.tool);
        let place = tool.map_or(Position::line(1), |tool| {
            tool.version.as_ref().map_or(tool.heading.place, |version| version.place)
        });
        let because: Vec<&str> = report
            .changes
            .iter()
            .filter(|change| change.tool == missing.tool && change.bump == crate::Bump::Major)
            .map(|change| change.what.as_str())
            .collect();
        let message = format!(
            "`{}` broke its callers ({}) and is still {}",
            missing.tool,
            because.join("; "),
            missing.to
        );
        let finding = Finding::new("E14", place, message).in_tool(&missing.tool);
        findings.push(finding.hint(format!("raise it to {}", missing.expected)));
    }
}
