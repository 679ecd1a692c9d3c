//! Text with placeholders for inputs of the operator.

use std::fmt;

/// Text and inputs, in turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(pub(crate) Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Input(String),
}

impl Template {
    pub fn text(text: &str) -> Template {
        Template(vec![Piece::Text(text.to_owned())])
    }

    pub fn input(name: &str) -> Template {
        Template(vec![Piece::Input(name.to_owned())])
    }

    /// The names of its inputs.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Input(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// Reads text in which inputs stand between `open` and `close`; `input` says
    /// what a name stands for, and what it does not know stays as it is.
    pub(crate) fn read(
        text: &str,
        open: &str,
        close: &str,
        mut input: impl FnMut(&str) -> Option<Piece>,
    ) -> Template {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(open) {
            let after = &rest[at + open.len()..];
            let Some(end) = after.find(close) else { break };
            plain.push_str(&rest[..at]);
            match input(&after[..end]) {
                Some(Piece::Text(text)) => plain.push_str(&text),
                Some(found) => {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    pieces.push(found);
                }
                None => plain.push_str(&rest[at..at + open.len() + end + close.len()]),
            }
            rest = &after[end + close.len()..];
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Template(pieces)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Input(name) => write!(f, "<{name}>"),
        })
    }
}
