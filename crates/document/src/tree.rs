//! The parsed form of a document: a tree in which every value has its position.
//!
//! JSON with comments, TOML and YAML all become this tree, so that errors can be
//! reported, and values edited, at their position in any of the formats.

use std::ops::Range;

/// A range of bytes of the document.
pub type Span = Range<usize>;

/// One value and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub span: Span,
    pub value: Value,
}

/// A value of any of the formats.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    /// A number as JSON has it. A long one in TOML or YAML is rounded; infinity and NaN,
    /// which JSON does not have, are [`Value::Text`].
    Number(serde_json::Number),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Member>),
    /// A date or time, which only TOML has, as its text.
    DateTime(String),
}

/// A key of a table and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub key: String,
    pub key_span: Span,
    pub node: Node,
}

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// The keys and indices that lead to a value: `upstream[1].env.TOKEN`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Step>);

impl Path {
    /// Returns the path of a member of the table at this path.
    pub fn key(&self, key: &str) -> Path {
        self.then(Step::Key(key.to_owned()))
    }

    /// Returns the path of an item of the list at this path.
    pub fn index(&self, index: usize) -> Path {
        self.then(Step::Index(index))
    }

    fn then(&self, step: Step) -> Path {
        let mut steps = self.0.clone();
        steps.push(step);
        Path(steps)
    }

    /// Translates a path into a document from which the list items at `dropped` were
    /// removed to the path of the same value in the whole document.
    pub fn in_whole_document(&self, dropped: &[Path]) -> Path {
        self.0.iter().fold(Path::default(), |path, step| match step {
            Step::Key(key) => path.key(key),
            Step::Index(index) => {
                let mut kept = (0..).filter(|at| !dropped.contains(&path.index(*at)));
                path.index(kept.nth(*index).unwrap_or(*index))
            }
        })
    }

    /// Returns the keys of the path, without its indices.
    pub fn keys(&self) -> Vec<String> {
        let key = |step: &Step| match step {
            Step::Key(key) => Some(key.clone()),
            Step::Index(_) => None,
        };
        self.0.iter().filter_map(key).collect()
    }

    pub fn is_root(&self) -> bool {
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
    /// Returns the value at `path`, or at the longest beginning of it that leads to one.
    pub fn nearest(&self, path: &Path) -> &Node {
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

    /// Returns the value of a table's member; `None` if there is no such member, or this is
    /// not a table.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.members().iter().find(|member| member.key == key).map(|member| &member.node)
    }

    /// Returns the members of a table; none for any other value.
    pub fn members(&self) -> &[Member] {
        if let Value::Table(members) = &self.value { members } else { &[] }
    }

    /// Returns the items of a list; none for any other value.
    pub fn items(&self) -> &[Node] {
        if let Value::List(items) = &self.value { items } else { &[] }
    }

    /// Returns the text; `None` if this is another type of value.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// Returns the type of the value in words, for a message.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::DateTime(_) => "a date",
        }
    }

    /// Returns the value without positions.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(number) => serde_json::Value::Number(number.clone()),
            Value::Text(text) | Value::DateTime(text) => text.clone().into(),
            Value::List(items) => items.iter().map(Node::to_json).collect(),
            Value::Table(members) => members
                .iter()
                .map(|member| (member.key.clone(), member.node.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}
