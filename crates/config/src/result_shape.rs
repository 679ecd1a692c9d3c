//! `[[shape]]`: which part of a tool's result is returned when the caller does not choose
//! one.

use ::artifacts::pick::Pick;
use document::tree::Path;
use gateway::dispatch::DefaultPicks;
use policy::pattern::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problems;

/// Which part of a tool's results goes out where a caller does not say; `pick = "."` in a call gives all.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Shape")]
pub(crate) struct Raw {
    /// `github:list_issues`, `github.list_issues` or `list_issues`; `*` and `?` work.
    tool: String,
    /// A jq program over the result, such as `[.items[] | {number, title}]`.
    pick: String,
}

pub(crate) fn parse(raw: Vec<Raw>, problems: &mut Problems) -> DefaultPicks {
    let mut shapes = Vec::with_capacity(raw.len());
    for (at, Raw { tool, pick }) in raw.into_iter().enumerate() {
        let path = Path::default().key("shape").index(at);
        if tool.trim().is_empty() {
            problems.error(&path.key("tool"), "must name a tool".to_owned(), None);
            continue;
        }
        match Pick::parse(&tool::Json::encode(&pick)) {
            Ok(pick) => shapes.push((Pattern::new(&tool), pick)),
            Err(why) => problems.error(&path.key("pick"), why, None),
        }
    }
    DefaultPicks(shapes)
}

#[cfg(test)]
mod tests {
    use super::super::{ProcessEnvironment, SourceFile, parse};
    use std::path::Path;

    fn shapes(text: &str) -> Result<usize, String> {
        let source = SourceFile { name: "gatelet.toml".to_owned(), text: text.to_owned() };
        let read = parse(source, Path::new("/"), &ProcessEnvironment);
        read.map(|(config, _)| config.shapes.0.len()).map_err(|problems| problems.to_string())
    }

    #[test]
    fn a_shape_names_a_tool_and_a_program() {
        let text = "[[shape]]\ntool = \"a.b\"\npick = \"[.items[] | {id}]\"\n";
        assert_eq!(shapes(text), Ok(1));
        assert_eq!(shapes(""), Ok(0));
    }

    #[test]
    fn a_program_that_is_none_is_told_at_its_place() {
        let told = shapes("[[shape]]\ntool = \"a.b\"\npick = \".items[\"\n").unwrap_err();
        assert!(told.contains("gatelet.toml:3") && told.contains("jq"), "{told}");
        let told = shapes("[[shape]]\ntool = \"\"\npick = \".\"\n").unwrap_err();
        assert!(told.contains("must name a tool"), "{told}");
    }
}
