//! A document as a tree that remembers where everything stands.
//!
//! TOML and JSON with comments both become this tree, so that whatever is
//! found wrong later, in whichever format, can be shown at its place.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Bytes of the document.
pub(crate) type Span = Range<usize>;

/// One value, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// A number, as it must be written in JSON.
    Number(serde_json::Number),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Member>),
    /// A date or time, which only TOML has, as its text.
    Moment(String),
}

/// A key, where it stands, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

/// One step of the way into a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// The way to a value: `upstream[1].env.TOKEN`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path(Vec<Step>);

impl Path {
    pub(crate) fn key(&self, key: &str) -> Path {
        self.then(Step::Key(key.to_owned()))
    }

    pub(crate) fn index(&self, index: usize) -> Path {
        self.then(Step::Index(index))
    }

    fn then(&self, step: Step) -> Path {
        let mut steps = self.0.clone();
        steps.push(step);
        Path(steps)
    }

    /// This way in the document, where it was counted without the items at
    /// `gaps`.
    pub(super) fn across(&self, gaps: &[Path]) -> Path {
        self.0.iter().fold(Path::default(), |across, step| match step {
            Step::Key(key) => across.key(key),
            Step::Index(index) => {
                let mut kept = (0..).filter(|at| !gaps.contains(&across.index(*at)));
                across.index(kept.nth(*index).unwrap_or(*index))
            }
        })
    }

    pub(crate) fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if at == 0 => write!(f, "{key}")?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl Node {
    /// The value at `path`, or the nearest one around it that is there.
    pub(crate) fn nearest(&self, path: &Path) -> &Node {
        let mut node = self;
        for step in &path.0 {
            let below = match step {
                Step::Key(key) => node.get(key),
                Step::Index(index) => node.items().get(*index),
            };
            match below {
                Some(below) => node = below,
                None => break,
            }
        }
        node
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.members().iter().find(|member| member.key == key).map(|member| &member.node)
    }

    /// The members of a table; none of anything else.
    pub(crate) fn members(&self) -> &[Member] {
        if let Value::Table(members) = &self.value { members } else { &[] }
    }

    /// The items of a list; none of anything else.
    pub(crate) fn items(&self) -> &[Node] {
        if let Value::List(items) = &self.value { items } else { &[] }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// What kind of value this is, for a message.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Moment(_) => "a date",
        }
    }

    /// The value without its places.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(number) => serde_json::Value::Number(number.clone()),
            Value::Text(text) | Value::Moment(text) => text.clone().into(),
            Value::List(items) => items.iter().map(Node::to_json).collect(),
            Value::Table(members) => members
                .iter()
                .map(|member| (member.key.clone(), member.node.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

/// Reads TOML as far as it can be read, with every syntax error in it.
pub(crate) fn read_toml(text: &str) -> (Node, Vec<(Span, String)>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let span = table.span();
    let errors = errors
        .into_iter()
        .map(|error| (error.span().unwrap_or(0..0), error.message().to_owned()))
        .collect();
    (Node { span, value: from_table(table.into_inner()) }, errors)
}

fn from_table(table: DeTable<'_>) -> Value {
    let mut members: Vec<Member> = table
        .into_iter()
        .map(|(key, value)| Member {
            key_span: key.span(),
            key: key.into_inner().into_owned(),
            node: from_toml(value),
        })
        .collect();
    // The parser sorts by key; people read in the order they wrote.
    members.sort_by_key(|member| member.key_span.start);
    Value::Table(members)
}

fn from_toml(value: Spanned<DeValue<'_>>) -> Node {
    let span = value.span();
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(integer) => integer_value(integer.as_str(), integer.radix()),
        DeValue::Float(float) => {
            let number = float.as_str().parse().ok().and_then(serde_json::Number::from_f64);
            number.map_or_else(|| Value::Text(float.as_str().to_owned()), Value::Number)
        }
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Datetime(moment) => Value::Moment(moment.to_string()),
        DeValue::Array(items) => Value::List(items.into_iter().map(from_toml).collect()),
        DeValue::Table(table) => from_table(table),
    };
    Node { span, value }
}

fn integer_value(digits: &str, radix: u32) -> Value {
    if let Ok(integer) = i64::from_str_radix(digits, radix) {
        return Value::Number(integer.into());
    }
    // Too large to count with is still a number, and is judged as one.
    let about = digits.chars().filter_map(|digit| digit.to_digit(radix));
    let about = about.fold(0.0, |sum, digit| sum * f64::from(radix) + f64::from(digit));
    let about = if digits.starts_with('-') { -about } else { about };
    let number = serde_json::Number::from_f64(about);
    number.map_or_else(|| Value::Text(digits.to_owned()), Value::Number)
}
