use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::id;

fn leaf<'a>((namespace, name): &'a (String, String)) -> Leaf<'a> {
    Leaf { namespace, name }
}

/// Every leaf has a path that leads to it and to nothing else, no branch but
/// the root is wider than `WIDTH`, and every branch can be walked to.
#[track_caller]
fn check(names: &[(String, String)]) {
    let leaves: Vec<Leaf<'_>> = names.iter().map(leaf).collect();
    let tree = Tree::build(&leaves);
    for at in 0..leaves.len() {
        let path = tree.path(at).parse::<Path>().unwrap();
        assert_eq!(tree.walk(&path), Some(PathTarget::Leaf(at)), "{path}");
    }
    let mut open: Vec<&Branch> = tree.namespaces().collect();
    let mut seen = 0;
    while let Some(branch) = open.pop() {
        let found = tree.walk(&branch.path.parse().unwrap());
        assert_eq!(found, Some(PathTarget::Children(&branch.children)));
        assert!(branch.children.len() <= WIDTH, "{} is too wide", branch.path);
        for child in &branch.children {
            match child {
                Node::Branch(below) => open.push(below),
                Node::Leaf { .. } => seen += 1,
            }
        }
    }
    assert_eq!(seen, leaves.len());
}

fn owned(names: &[(&str, &str)]) -> Vec<(String, String)> {
    names.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[test]
fn the_root_has_one_branch_per_namespace_however_few_tools() {
    let names = owned(&[("github", "create_issue"), ("mcp", "read_file"), ("github", "x.y")]);
    let leaves: Vec<Leaf<'_>> = names.iter().map(leaf).collect();
    let tree = Tree::build(&leaves);
    let Some(PathTarget::Branches(root)) = tree.walk(&"/".parse().unwrap()) else {
        panic!("no root")
    };
    let shown: Vec<_> = root.iter().map(|b| (b.path.as_str(), b.n_leaves)).collect();
    assert_eq!(shown, [("/github", 2), ("/mcp", 1)]);
    assert_eq!(tree.path(2), "/github/x-y");
    check(&names);
}

#[test]
fn a_large_namespace_is_divided_by_what_its_names_are_about() {
    let verbs = ["create", "get", "list", "update", "delete", "search", "close", "open"];
    let nouns = ["issue", "pull_request", "gist", "release"];
    let names: Vec<(String, String)> = nouns
        .iter()
        .flat_map(|noun| verbs.map(|verb| ("github".to_owned(), format!("{verb}_{noun}"))))
        .collect();
    let leaves: Vec<Leaf<'_>> = names.iter().map(leaf).collect();
    let tree = Tree::build(&leaves);
    let Some(PathTarget::Children(children)) = tree.walk(&"/github".parse().unwrap()) else {
        panic!("no children")
    };
    let segments: Vec<&str> = children.iter().map(Node::segment).collect();
    assert_eq!(segments, ["gist", "issue", "pull", "release"]);
    assert_eq!(tree.path(0), "/github/issue/create_issue");
    check(&names);
}

#[test]
fn nothing_is_lost_in_the_catalogs_of_the_vectors() {
    let text = include_str!("../../tests/vectors/contextweaver_path_tree_browse.json");
    let vectors: Value = serde_json::from_str(text).unwrap();
    for catalog in vectors["catalogs"].as_array().unwrap() {
        let names: Vec<(String, String)> = catalog["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .map(|name| (id::namespace_of(name).to_owned(), id::short_name(name).to_owned()))
            .collect();
        check(&names);
    }
}

#[test]
fn paths_are_read_as_in_the_vectors() {
    let text = include_str!("../../tests/vectors/contextweaver_path_tree_browse.json");
    let vectors: Value = serde_json::from_str(text).unwrap();
    for case in vectors["parse_path"].as_array().unwrap() {
        let text = case["path"].as_str().unwrap();
        let parsed = text.parse::<Path>();
        // The grammar knows no line feed; the reference lets one pass.
        if case["error"].is_string() || text.ends_with('\n') {
            assert!(parsed.is_err(), "{text:?}");
            continue;
        }
        let path = parsed.unwrap();
        let mut segments: Vec<&str> = path.segments().iter().map(String::as_str).collect();
        segments.extend(path.all().then_some("*"));
        assert_eq!(serde_json::json!(segments), case["segments"]);
        assert_eq!(path.to_string(), text);
    }
}

#[test]
fn a_star_asks_for_what_is_below() {
    let names = owned(&[("a", "b"), ("a", "c")]);
    let leaves: Vec<Leaf<'_>> = names.iter().map(leaf).collect();
    let tree = Tree::build(&leaves);
    let walk = |path: &str| tree.walk(&path.parse().unwrap());
    assert_eq!(walk("/a/*"), walk("/a"));
    assert_eq!(walk("/*"), walk("/"));
    assert_eq!(walk("/a/b/*"), None);
    assert_eq!(walk("/a/b/b"), None);
    let near = |path: &str, keep: &dyn Fn(usize) -> bool| {
        let (at, names) = tree.nearest(&path.parse().unwrap(), keep);
        format!("{at}: {}", names.join(" "))
    };
    assert_eq!(near("/a/x", &|_| true), "/a: b c");
    assert_eq!(near("/q/x", &|_| true), "/: a");
    assert_eq!(near("/a/x", &|leaf| leaf == 0), "/a: b");
    assert_eq!(near("/a/x", &|_| false), "/: ");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn everything_has_a_path(
        names in proptest::collection::vec(
            ("[a-c]", "(get|list|make)_[a-d]{1,2}(_[x-z])?[.]?|[A-Za-z_][A-Za-z0-9_.-]{0,127}"),
            0..400,
        )
    ) {
        check(&names);
    }

    #[test]
    fn names_that_are_all_alike_have_paths_too(n in 0usize..900) {
        check(&vec![("a".to_owned(), "same_name".to_owned()); n]);
    }
}
