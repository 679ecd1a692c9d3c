//! Groups many names by the words they share.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::node::{Branch, Leaf, Node, WIDTH};

/// Verbs and function words, which make poor clusters.
const VERBS: &[&str] = &[
    "add", "all", "and", "append", "batch", "by", "cancel", "check", "clear", "close", "copy",
    "count", "create", "delete", "describe", "disable", "download", "enable", "execute", "export",
    "fetch", "find", "for", "from", "get", "import", "in", "insert", "list", "lookup", "make",
    "move", "new", "of", "open", "patch", "post", "put", "query", "read", "remove", "rename",
    "run", "search", "send", "set", "show", "start", "stop", "sync", "to", "update", "upload",
    "upsert", "validate", "view", "with", "write",
];

/// The children of a branch that holds `members`.
pub(super) fn divide(leaves: &[Leaf<'_>], namespace: &str, members: Vec<usize>) -> Vec<Node> {
    let mut taken: BTreeSet<String> = words(namespace).into_iter().collect();
    level(leaves, members, &mut taken)
}

/// One level: leaves when they are few, clusters otherwise. `taken` holds the words of
/// the clusters above, which all members share.
fn level(leaves: &[Leaf<'_>], members: Vec<usize>, taken: &mut BTreeSet<String>) -> Vec<Node> {
    if members.len() <= WIDTH {
        return leaf_nodes(leaves, members);
    }
    let (groups, rest) = by_word(leaves, &members, taken);
    // Where no word divides the members, the alphabet does.
    if groups.is_empty() {
        return by_letter(leaves, members);
    }
    let mut named: Vec<(String, Vec<Node>)> = Vec::new();
    for (word, group) in groups {
        taken.insert(word.clone());
        named.push((word.clone(), level(leaves, group, taken)));
        taken.remove(&word);
    }
    if !rest.is_empty() {
        named.push(("other".to_owned(), by_letter(leaves, rest)));
    }
    branches(named)
}

/// At most `WIDTH - 1` groups by the most common words, and the members without such a
/// word.
fn by_word(
    leaves: &[Leaf<'_>],
    members: &[usize],
    taken: &BTreeSet<String>,
) -> (BTreeMap<String, Vec<usize>>, Vec<usize>) {
    let own: HashMap<usize, Vec<String>> = members
        .iter()
        .map(|&at| {
            let useful = |word: &String| !taken.contains(word) && !VERBS.contains(&word.as_str());
            (at, words(leaves[at].name).into_iter().filter(useful).collect())
        })
        .collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for word in own.values().flat_map(|words| words.iter().collect::<BTreeSet<_>>()) {
        *counts.entry(word).or_default() += 1;
    }
    // A word that all members share divides nothing.
    let useful = |count: usize| 2 <= count && count < members.len();
    let mut ranked: Vec<(&str, usize)> =
        counts.into_iter().filter(|(_, count)| useful(*count)).collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    ranked.truncate(WIDTH - 1);
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut rest = Vec::new();
    for &at in members {
        match ranked.iter().find(|(word, _)| own[&at].iter().any(|own| own == word)) {
            Some((word, _)) => groups.entry((*word).to_owned()).or_default().push(at),
            None => rest.push(at),
        }
    }
    (groups, rest)
}

/// Groups of equal size in alphabetical order, named by their first and last letter.
fn by_letter(leaves: &[Leaf<'_>], mut members: Vec<usize>) -> Vec<Node> {
    if members.len() <= WIDTH {
        return leaf_nodes(leaves, members);
    }
    members.sort_by_key(|&at| (leaves[at].name.to_lowercase(), at));
    let parts = members.len().div_ceil(WIDTH).min(WIDTH);
    let size = members.len().div_ceil(parts);
    let letter = |at: usize| {
        let name = leaves[at].name.to_lowercase();
        name.chars().find(char::is_ascii_alphanumeric).unwrap_or('x')
    };
    let part = |part: &[usize]| {
        let ends = (letter(part[0]), letter(part[part.len() - 1]));
        let label = match ends.0 == ends.1 {
            true => ends.0.to_string(),
            false => format!("{}-{}", ends.0, ends.1),
        };
        (label, by_letter(leaves, part.to_vec()))
    };
    branches(members.chunks(size).map(part).collect())
}

fn branches(named: Vec<(String, Vec<Node>)>) -> Vec<Node> {
    let mut used = BTreeSet::new();
    let node = |(label, children): (String, Vec<Node>)| {
        let n_leaves = children.iter().map(Node::n_leaves).sum();
        let segment = unique(&label, &mut used);
        Node::Branch(Branch { segment, path: String::new(), n_leaves, children })
    };
    named.into_iter().map(node).collect()
}

/// The members as leaves, sorted by name.
fn leaf_nodes(leaves: &[Leaf<'_>], mut members: Vec<usize>) -> Vec<Node> {
    members.sort_by_key(|&at| (leaves[at].name, at));
    let mut used = BTreeSet::new();
    let node = |leaf: usize| Node::Leaf { segment: unique(leaves[leaf].name, &mut used), leaf };
    members.into_iter().map(node).collect()
}

/// A legal segment for `name` that no sibling has yet.
fn unique(name: &str, used: &mut BTreeSet<String>) -> String {
    let keep = |c: char| match c {
        'a'..='z' | '0'..='9' | '_' | '-' => c,
        '.' => '-',
        _ => '_',
    };
    let kept: String = name.to_lowercase().chars().map(keep).collect();
    let trimmed = kept.trim_start_matches(['_', '-']);
    let base: String = if trimmed.is_empty() { "x" } else { trimmed }.chars().take(60).collect();
    let numbered = |n: usize| if n == 1 { base.clone() } else { format!("{base}-{n}") };
    let free = (1..).map(numbered).find(|segment| !used.contains(segment));
    let segment = free.expect("numbers do not run out");
    used.insert(segment.clone());
    segment
}

/// The words of a name, lower-cased, plurals as singulars.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous = ' ';
    for c in name.chars() {
        let boundary = !c.is_alphanumeric() || (c.is_uppercase() && previous.is_lowercase());
        if boundary {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        previous = c;
    }
    let useful = |word: &String| 2 <= word.len() && !word.chars().all(|c| c.is_ascii_digit());
    words.into_iter().filter(useful).map(|word| singular(&word)).collect()
}

fn singular(word: &str) -> String {
    match word.strip_suffix("ies") {
        Some(stem) if 2 <= stem.len() => format!("{stem}y"),
        _ => match word.strip_suffix('s') {
            Some(stem) if 2 <= stem.len() && !stem.ends_with(['s', 'u', 'i']) => stem.to_owned(),
            _ => word.to_owned(),
        },
    }
}
