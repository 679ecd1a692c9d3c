//! The catalog as a tree of paths, for clients that browse instead of searching.
//!
//! `/` has one branch per namespace, always. A namespace with more than
//! [`WIDTH`] leaves is divided into clusters by the words its names share, and
//! again until no branch is wider. Segments are unique among siblings and every leaf
//! has a path ([`Tree::path`]), by which [`Tree::walk`] finds it. The tree knows names
//! only; leaves are positions in the caller's list.

mod cluster;
mod node;
mod path;

use std::collections::BTreeMap;

pub use node::{Branch, Leaf, Node, WIDTH};
pub use path::{InvalidPath, Path};

/// A tree over leaves, which are identified by their position.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    root: Vec<Branch>,
    /// The path of every leaf, by its position.
    paths: Vec<String>,
}

/// What is at a path: the namespaces (at the root), the children of a branch, or a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathTarget<'a> {
    Branches(Vec<&'a Branch>),
    Children(&'a [Node]),
    Leaf(usize),
}

impl Tree {
    pub fn build(leaves: &[Leaf<'_>]) -> Tree {
        let mut namespaces: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, leaf) in leaves.iter().enumerate() {
            namespaces.entry(leaf.namespace).or_default().push(at);
        }
        let mut tree = Tree { root: Vec::new(), paths: vec![String::new(); leaves.len()] };
        for (namespace, members) in namespaces {
            let path = format!("/{namespace}");
            let children = cluster::divide(leaves, namespace, members);
            let branch = branch(namespace.to_owned(), path, children);
            record(&branch, &mut tree.paths);
            tree.root.push(branch);
        }
        tree
    }

    /// Finds what is at `path`; `None` when there is nothing.
    pub fn walk(&self, path: &Path) -> Option<PathTarget<'_>> {
        let mut segments = path.segments().iter().peekable();
        let Some(first) = segments.next() else {
            return Some(PathTarget::Branches(self.root.iter().collect()));
        };
        let mut here = self.root.iter().find(|branch| branch.segment == *first)?;
        while let Some(segment) = segments.next() {
            match here.children.iter().find(|child| child.segment() == segment)? {
                Node::Branch(branch) => here = branch,
                // Nothing is below a leaf, `*` included.
                Node::Leaf { leaf, .. } => {
                    let last = segments.peek().is_none() && !path.all();
                    return last.then_some(PathTarget::Leaf(*leaf));
                }
            }
        }
        Some(PathTarget::Children(&here.children))
    }

    /// The path of a leaf.
    pub fn path(&self, leaf: usize) -> &str {
        &self.paths[leaf]
    }

    pub fn namespaces(&self) -> impl Iterator<Item = &Branch> {
        self.root.iter()
    }

    /// For a path that leads nowhere: the longest existing path along it, and the segments
    /// below that. Only leaves that `keep` accepts count.
    pub fn nearest(&self, path: &Path, keep: &dyn Fn(usize) -> bool) -> (String, Vec<&str>) {
        let mut at = String::from("/");
        let kept = self.root.iter().filter(|branch| branch.has(keep));
        let mut names: Vec<&str> = kept.clone().map(|branch| branch.segment.as_str()).collect();
        let mut segments = path.segments().iter();
        let first = segments.next();
        let mut here = kept.clone().find(|branch| Some(&branch.segment) == first);
        while let Some(branch) = here {
            at.clone_from(&branch.path);
            let kept = branch.children.iter().filter(|child| child.has(keep));
            names = kept.clone().map(Node::segment).collect();
            let next = segments.next();
            here = kept.clone().find_map(|child| match child {
                Node::Branch(branch) if Some(&branch.segment) == next => Some(branch),
                Node::Branch(_) | Node::Leaf { .. } => None,
            });
        }
        (at, names)
    }
}

/// A branch at `path`, with the paths of everything below it set.
fn branch(segment: String, path: String, children: Vec<Node>) -> Branch {
    let n_leaves = children.iter().map(Node::n_leaves).sum();
    let rooted = |child: Node| match child {
        Node::Branch(below) => {
            let path = format!("{path}/{}", below.segment);
            Node::Branch(branch(below.segment, path, below.children))
        }
        leaf @ Node::Leaf { .. } => leaf,
    };
    let children = children.into_iter().map(rooted).collect();
    Branch { segment, path, n_leaves, children }
}

fn record(branch: &Branch, paths: &mut [String]) {
    for child in &branch.children {
        match child {
            Node::Branch(below) => record(below, paths),
            Node::Leaf { segment, leaf } => paths[*leaf] = format!("{}/{segment}", branch.path),
        }
    }
}

#[cfg(test)]
mod tests;
