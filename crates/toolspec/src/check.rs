//! Compares a document with the tools of a live server, in both directions.

use crate::diff::{Change, diff, undocumented};
use crate::document::{Definition, Document};
use crate::finding::{Finding, Position};

/// Reports missing tools, undocumented tools, and schemas that disagree.
pub fn check(document: &Document, live: &[Definition]) -> Vec<Finding> {
    let mut findings = undocumented(document, live);
    let documented = document.definitions();
    let both: Vec<Definition> = live
        .iter()
        .filter(|tool| documented.iter().any(|known| known.name == tool.name))
        .cloned()
        .collect();
    let known: Vec<Definition> = documented
        .into_iter()
        .filter(|tool| both.iter().any(|other| other.name == tool.name))
        .collect();
    for change in diff(&known, &both).changes.into_iter().filter(|change| !change.is_wording) {
        findings.push(disagreement(document, &change));
    }
    findings.sort_by_key(|finding| finding.place);
    findings
}

fn disagreement(document: &Document, change: &Change) -> Finding {
    let tool = document.tool(&change.tool);
    let place = tool.map_or(Position::line(1), |tool| {
        let input = tool.input.schema.as_ref().map(|schema| schema.place);
        input
            .or_else(|| tool.input.tables.first().map(|table| table.place))
            .unwrap_or(tool.heading.place)
    });
    let message = format!("the server disagrees with the document: {}", change.what);
    Finding::new("E13", place, message)
        .in_tool(&change.tool)
        .hint("generate the document again, or correct it")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parse::parse;
    use crate::rules::CLEAN;

    #[test]
    fn a_document_is_compared_both_ways() {
        let (document, _) = parse(CLEAN);
        let mut live = document.definitions();
        assert_eq!(check(&document, &live), []);
        live[0].input["properties"]["path"]["type"] = json!("integer");
        live.push(Definition { name: "new_one".to_owned(), ..live[0].clone() });
        let messages: Vec<String> =
            check(&document, &live).into_iter().map(|finding| finding.message).collect();
        assert_eq!(
            messages,
            [
                "the server has `new_one`, which is not documented",
                "the server disagrees with the document: type of input `path` changed from `string` to `integer`",
            ]
        );
        let gone = check(&document, &[]);
        assert_eq!(
            gone[0].message,
            "`files.read_text` is documented, but the server does not have it"
        );
    }
}
