//! The nodes of the tree.

/// More children than this under one namespace or cluster are divided.
pub const WIDTH: usize = 20;

/// One thing to be placed.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    /// A legal namespace, as in an id.
    pub namespace: &'a str,
    /// The name below the namespace, as in an id.
    pub name: &'a str,
}

/// A place with things below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    pub segment: String,
    /// The path that leads here.
    pub path: String,
    /// How many leaves are below, at any depth.
    pub n_leaves: usize,
    pub children: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Branch(Branch),
    Leaf { segment: String, leaf: usize },
}

impl Branch {
    /// Returns whether a leaf to `keep` is below.
    pub fn has(&self, keep: &dyn Fn(usize) -> bool) -> bool {
        self.children.iter().any(|child| child.has(keep))
    }
}

impl Node {
    pub fn segment(&self) -> &str {
        match self {
            Node::Branch(branch) => &branch.segment,
            Node::Leaf { segment, .. } => segment,
        }
    }

    /// Returns whether this is a leaf to `keep`, or one is below.
    pub fn has(&self, keep: &dyn Fn(usize) -> bool) -> bool {
        match self {
            Node::Branch(branch) => branch.has(keep),
            Node::Leaf { leaf, .. } => keep(*leaf),
        }
    }

    pub(super) fn n_leaves(&self) -> usize {
        match self {
            Node::Branch(branch) => branch.n_leaves,
            Node::Leaf { .. } => 1,
        }
    }
}
