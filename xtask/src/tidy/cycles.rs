//! Which nodes of a graph stand in a cycle: Tarjan's strongly connected
//! components.

use std::collections::BTreeSet;

/// Edges by node: `graph[a]` holds `b` when `a` uses `b`.
pub(super) type Graph = Vec<BTreeSet<usize>>;

/// Every strongly connected component of more than one node, each sorted, the
/// largest first. A node that only uses itself is not a cycle.
pub(super) fn cycles(graph: &Graph) -> Vec<Vec<usize>> {
    let mut search = Search {
        graph,
        order: vec![None; graph.len()],
        lowest: vec![0; graph.len()],
        open: Vec::new(),
        is_open: vec![false; graph.len()],
        visited: 0,
        found: Vec::new(),
    };
    for node in 0..graph.len() {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    search.found.sort_by_key(|component| (usize::MAX - component.len(), component[0]));
    search.found
}

struct Search<'a> {
    graph: &'a Graph,
    /// When each node was first visited.
    order: Vec<Option<usize>>,
    /// The earliest open node that can be reached from each node.
    lowest: Vec<usize>,
    /// Nodes whose component is not complete yet.
    open: Vec<usize>,
    is_open: Vec<bool>,
    visited: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, node: usize) {
        let number = self.visited;
        self.visited += 1;
        self.order[node] = Some(number);
        self.lowest[node] = number;
        self.open.push(node);
        self.is_open[node] = true;
        for &next in &self.graph[node] {
            match self.order[next] {
                None => {
                    self.visit(next);
                    self.lowest[node] = self.lowest[node].min(self.lowest[next]);
                }
                Some(seen) if self.is_open[next] => {
                    self.lowest[node] = self.lowest[node].min(seen);
                }
                Some(_) => {}
            }
        }
        if self.lowest[node] == number {
            self.close(node);
        }
    }

    /// Takes the component that starts at `first` off the open nodes.
    fn close(&mut self, first: usize) {
        let start = self.open.iter().rposition(|&node| node == first).expect("it was opened");
        let mut component = self.open.split_off(start);
        for &node in &component {
            self.is_open[node] = false;
        }
        if 1 < component.len() {
            component.sort_unstable();
            self.found.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(edges: &[(usize, usize)], expected: &[&[usize]]) {
        let size = edges.iter().map(|&(from, to)| from.max(to) + 1).max().unwrap_or(0);
        let mut graph: Graph = vec![BTreeSet::new(); size];
        for &(from, to) in edges {
            graph[from].insert(to);
        }
        assert_eq!(cycles(&graph), expected);
    }

    #[test]
    fn a_chain_has_no_cycle_and_neither_has_a_diamond() {
        check(&[(0, 1), (1, 2)], &[]);
        check(&[(0, 1), (0, 2), (1, 3), (2, 3)], &[]);
    }

    #[test]
    fn a_node_that_uses_itself_is_not_a_cycle() {
        check(&[(0, 0), (0, 1)], &[]);
    }

    #[test]
    fn two_loops_that_share_a_node_are_one_component() {
        check(&[(0, 1), (1, 0), (1, 2), (2, 1), (2, 3)], &[&[0, 1, 2]]);
    }

    #[test]
    fn separate_loops_are_told_apart_and_the_largest_comes_first() {
        check(&[(0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 2)], &[&[2, 3, 4], &[0, 1]]);
    }
}
