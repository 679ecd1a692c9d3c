//! The nodes of the tree.

/// The most children of a branch; more are divided into clusters.
pub const WIDTH: usize = 20;

/// The names of one leaf from which the tree is built.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    /// A legal namespace, as in an id.
    pub namespace: &'a str,
    /// The name below the namespace, as in an id.
    pub name: &'a str,
}

/// An inner node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    pub segment: String,
    /// The path that leads here.
    pub path: String,
    /// How many leaves are below, at any depth.
    pub n_leaves: usize,
    pub children: Vec<Node>,
}

/// A branch, or a leaf by its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Branch(Branch),
    Leaf { segment: String, leaf: usize },
}

impl Branch {
    /// Whether there is a leaf below that `keep` accepts.
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

    /// Whether `keep` accepts this leaf, or one below this branch.
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
