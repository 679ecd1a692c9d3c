//! Prints what is found in documents: one line of JSON per file.
//!
//! `cargo run -p gatelet-toolspec --example outline -- FILE…`

#![expect(clippy::disallowed_methods, reason = "a program of its own, with files and a clock")]
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use serde_json::json;

fn main() -> std::io::Result<()> {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path)?;
        let (document, findings) = toolspec::parse(&text);
        let tools: Vec<_> = document
            .tools
            .iter()
            .map(|tool| {
                let sections: Vec<&str> =
                    tool.sections.iter().map(|section| section.title.as_str()).collect();
                let fields: Vec<&str> =
                    tool.input.fields.iter().map(|field| field.path.as_str()).collect();
                json!({
                    "name": tool.name, "heading": tool.heading.names, "sections": sections,
                    "fields": fields, "schema": tool.input.schema.is_some(),
                    "examples": tool.examples.len(),
                })
            })
            .collect();
        let codes: Vec<String> = findings
            .iter()
            .map(|finding| format!("{}:{}", finding.code, finding.place.line))
            .collect();
        let title = document.title.map(|title| title.value);
        let none = document.says_no_tools.is_some();
        let line =
            json!({"path": path, "title": title, "none": none, "tools": tools, "findings": codes});
        println!("{line}");
    }
    Ok(())
}
