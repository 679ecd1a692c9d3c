//! The text of a tool result.

use std::borrow::Cow;

use tool::Json;
use tool::reply::ToolResult;

/// The text and the structured content of a result, extracted once.
pub struct ResultText<'a> {
    /// The text of the result, or its structured content when it has no text.
    pub text: Option<Cow<'a, str>>,
    structured: Option<&'a str>,
}

impl<'a> ResultText<'a> {
    pub fn new(result: &'a ToolResult) -> ResultText<'a> {
        let block = |block: &Json| {
            let own = block.member_as::<String>("text");
            own.or_else(|| block.member("resource")?.member_as("text"))
        };
        let mut texts = result.content.iter().filter_map(block);
        let structured = result.structured.as_ref().map(Json::as_str);
        // Most have one text, which need not be copied.
        let text = match texts.next() {
            Some(mut first) => {
                for next in texts {
                    first.push('\n');
                    first.push_str(&next);
                }
                Some(Cow::Owned(first))
            }
            None => structured.map(Cow::Borrowed),
        };
        ResultText { text, structured }
    }

    /// The line at which each text of a result begins where they stand one after
    /// another, and the resource that it is of, if it is of one.
    pub fn starts(result: &ToolResult) -> Vec<(usize, Option<String>)> {
        let mut line = 0;
        let mut starts = Vec::new();
        for block in &result.content {
            let resource = block.member("resource");
            let own = block.member_as::<String>("text");
            let text = own.or_else(|| resource.as_ref()?.member_as("text"));
            let Some(text) = text else { continue };
            starts.push((line, resource.and_then(|resource| resource.member_as("uri"))));
            // The next text begins on a line of its own.
            line += text.matches('\n').count() + 1;
        }
        starts
    }

    /// Whether the structured content of a result is what it consists of, and
    /// its text says only a little about it.
    pub fn is_structured(&self) -> bool {
        let text = self.text.as_ref().map_or(0, |text| text.len());
        self.structured.is_some_and(|structured| text < structured.len() / 2)
    }

    /// What a result mainly is: its text, or its structured content where that
    /// is much longer.
    pub fn main(&self) -> Option<&str> {
        let structured = self.structured.filter(|_| self.is_structured());
        structured.or(self.text.as_deref())
    }
}
