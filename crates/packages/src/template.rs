//! Templates: text with placeholders for inputs that the operator provides.

use std::fmt;

/// Text with placeholders for inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(pub(crate) Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplatePart {
    Text(String),
    /// The name of an input.
    Input(String),
}

impl Template {
    pub fn text(text: &str) -> Template {
        Template(vec![TemplatePart::Text(text.to_owned())])
    }

    pub fn input(name: &str) -> Template {
        Template(vec![TemplatePart::Input(name.to_owned())])
    }

    /// Returns the names of its inputs.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePart::Input(name) => Some(name.as_str()),
            TemplatePart::Text(_) => None,
        })
    }

    /// Parses text in which placeholders stand between `open` and `close`. `resolve` returns
    /// the part for a name; an unknown placeholder stays as text.
    pub(crate) fn parse(
        text: &str,
        open: &str,
        close: &str,
        mut resolve: impl FnMut(&str) -> Option<TemplatePart>,
    ) -> Template {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(open) {
            let after = &rest[at + open.len()..];
            let Some(end) = after.find(close) else { break };
            plain.push_str(&rest[..at]);
            match resolve(&after[..end]) {
                Some(TemplatePart::Text(text)) => plain.push_str(&text),
                Some(found) => {
                    pieces.push(TemplatePart::Text(std::mem::take(&mut plain)));
                    pieces.push(found);
                }
                None => plain.push_str(&rest[at..at + open.len() + end + close.len()]),
            }
            rest = &after[end + close.len()..];
        }
        plain.push_str(rest);
        pieces.push(TemplatePart::Text(plain));
        pieces.retain(|piece| *piece != TemplatePart::Text(String::new()));
        Template(pieces)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            TemplatePart::Text(text) => f.write_str(text),
            TemplatePart::Input(name) => write!(f, "<{name}>"),
        })
    }
}
