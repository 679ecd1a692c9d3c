use super::*;

fn args(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// What is found in a command line: name, version, and the line at 2.0.0.
#[track_caller]
fn check(line: &str, expected: Option<(&str, Option<&str>, &str)>) {
    let words = args(line);
    let found = RunPackage::find(&words[0], &words[1..]);
    let found = found.map(|package| {
        let changed = package.at_version(&words[1..], "2.0.0").unwrap().join(" ");
        (package.name.clone(), package.version.clone(), changed)
    });
    let expected = expected.map(|(name, version, changed)| {
        (name.to_owned(), version.map(str::to_owned), changed.to_owned())
    });
    assert_eq!(found, expected, "{line}");
}

#[test]
fn the_package_of_a_command_is_found_and_only_its_version_changes() {
    check("npx -y @a/b@1.0.0 x@1", Some(("@a/b", Some("1.0.0"), "-y @a/b@2.0.0 x@1")));
    check("npx -y some@latest", Some(("some", None, "-y some@2.0.0")));
    check("npx some@^1.2", Some(("some", None, "some@2.0.0")));
    check("npx -p real@1.0 other", Some(("real", Some("1.0"), "-p real@2.0.0 other")));
    check("npx --registry http://x/ some", Some(("some", None, "--registry http://x/ some@2.0.0")));
    check("/usr/bin/uvx mcp-git", Some(("mcp-git", None, "mcp-git@2.0.0")));
    check(
        "uvx --from mcp-git==1.0 git",
        Some(("mcp-git", Some("1.0"), "--from mcp-git==2.0.0 git")),
    );
    check("uvx --from=mcp-git@1.0 git", Some(("mcp-git", Some("1.0"), "--from=mcp-git@2.0.0 git")));
    check("uvx --python 3.12 x[cli]==1.0", Some(("x", Some("1.0"), "--python 3.12 x[cli]==2.0.0")));
    check("pipx run thing@1.1", Some(("thing", Some("1.1"), "run thing@2.0.0")));
    for other in ["node x.js", "npx -y", "npx ./here", "uvx --from git+https://x/y z", "uvx /a/b"] {
        check(other, None);
    }
    let package = RunPackage::find("npx", &args("a")).unwrap();
    assert!(package.at_version(&args("a"), "1 --registry=x").is_err());
}

#[test]
fn an_index_is_asked_where_the_package_is() {
    let ask = |line: &str, index: &str| {
        let words = args(line);
        let package = RunPackage::find(&words[0], &words[1..]).unwrap();
        package.index_request(&index.parse().unwrap()).0.to_string()
    };
    assert_eq!(ask("npx @a/b", NPM), "https://registry.npmjs.org/@a%2Fb/latest");
    assert_eq!(ask("uvx Some_Thing.x", PYPI), "https://pypi.org/simple/some-thing-x/");
    assert_eq!(
        ask("uvx x", "https://mirror.example/root/simple"),
        "https://mirror.example/root/simple/x/"
    );
    let words = args("--index-url https://own.example/simple x");
    let own = RunPackage::find("uvx", &words).unwrap();
    assert_eq!(own.custom_index(), Some("https://own.example/simple"));
}

#[test]
fn the_newest_version_is_final_and_was_not_withdrawn() {
    let package = RunPackage::find("uvx", &args("x==1.0")).unwrap();
    let answer = r#"{"versions": ["1.0", "1.9", "1.10", "2.0", "3.0rc1"], "files": [
        {"filename": "x-2.0-py3-none-any.whl", "yanked": "broken"},
        {"filename": "x-2.0.tar.gz", "yanked": true},
        {"filename": "x-1.10.tar.gz", "yanked": false}]}"#;
    assert_eq!(package.newest(answer).as_deref(), Some("1.10"));
    assert!(package.is_behind("1.10") && !package.is_behind("1.0.0") && !package.is_behind("0.9"));
    let npm = RunPackage::find("npx", &args("x")).unwrap();
    assert_eq!(npm.newest(r#"{"version": "4.1.2"}"#).as_deref(), Some("4.1.2"));
    assert!(!npm.is_behind("4.1.2"), "no version is no older one");
    for hostile in ["", "[]", r#"{"version": "1 --registry=x"}"#, r#"{"version": 1}"#] {
        assert_eq!(npm.newest(hostile), None, "{hostile}");
        assert_eq!(package.newest(hostile), None, "{hostile}");
    }
}
