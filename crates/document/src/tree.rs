//! A document as a tree that remembers where everything stands.
//!
//! JSON with comments, TOML and YAML all become this tree, so that whatever is
//! found wrong later, in whichever format, can be shown and changed at its place.

use std::ops::Range;

/// Bytes of the document.
pub type Span = Range<usize>;

/// One value, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub span: Span,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
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
pub struct Member {
    pub key: String,
    pub key_span: Span,
    pub node: Node,
}

/// One step of the way into a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// The way to a value: `upstream[1].env.TOKEN`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Step>);

impl Path {
    pub fn key(&self, key: &str) -> Path {
        self.then(Step::Key(key.to_owned()))
    }

    pub fn index(&self, index: usize) -> Path {
        self.then(Step::Index(index))
    }

    fn then(&self, step: Step) -> Path {
        let mut steps = self.0.clone();
        steps.push(step);
        Path(steps)
    }

    /// This way in the document, where it was counted without the items at
    /// `gaps`.
    pub fn across(&self, gaps: &[Path]) -> Path {
        self.0.iter().fold(Path::default(), |across, step| match step {
            Step::Key(key) => across.key(key),
            Step::Index(index) => {
                let mut kept = (0..).filter(|at| !gaps.contains(&across.index(*at)));
                across.index(kept.nth(*index).unwrap_or(*index))
            }
        })
    }

    /// The keys on the way, without the places in lists.
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
    /// The value at `path`, or the nearest one around it that is there.
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

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.members().iter().find(|member| member.key == key).map(|member| &member.node)
    }

    /// The members of a table; none of anything else.
    pub fn members(&self) -> &[Member] {
        if let Value::Table(members) = &self.value { members } else { &[] }
    }

    /// The items of a list; none of anything else.
    pub fn items(&self) -> &[Node] {
        if let Value::List(items) = &self.value { items } else { &[] }
    }

    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// Returns what kind of value this is, for a message.
    pub fn kind(&self) -> &'static str {
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
    pub fn to_json(&self) -> serde_json::Value {
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
