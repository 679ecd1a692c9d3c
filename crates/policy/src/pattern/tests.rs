use super::*;

#[track_caller]
fn check(pattern: &str, expected: bool) {
    check_both(pattern, expected, expected);
}

#[track_caller]
fn check_both(pattern: &str, may_mean: bool, means: bool) {
    let named = Names {
        id: "github:issues.list#12345678",
        upstream: "github",
        name: "issues.list",
        exposed: ExposedNameRef::Path { path: "github.issues.list", has_lookalike: false },
    };
    assert_eq!(Pattern::new(pattern).may_match(named), may_mean, "{pattern}");
    assert_eq!(Pattern::new(pattern).matches_exactly(named), means, "{pattern}");
}

#[test]
fn tools_are_named_by_id_by_full_name_or_by_their_own() {
    check("github:issues.list#12345678", true);
    check("github:issues.list#87654321", false);
    check("github:issues.list", true);
    check("github.issues.list", true);
    check("*.issues.*", true);
    check("*list", true);
    check("git*:*", true);
    check("lis?", true);
    check("*", true);
    check("gitlab:*", false);
    check("issues", false);
    // Any server may call a tool so: enough to forbid it, too little to allow it.
    check_both("issues.*", true, false);
    check_both("issues.lis?", true, false);
    check_both("Issues.*", true, false);
    check("", false);
}

#[track_caller]
fn is_named(pattern: &str, upstream: &str, name: &str) {
    names(pattern, upstream, name, Breadth::Exact);
    names(pattern, upstream, name, Breadth::Wide);
}

#[track_caller]
fn may_be_named(pattern: &str, upstream: &str, name: &str) {
    names(pattern, upstream, name, Breadth::Wide);
}

#[track_caller]
fn names(pattern: &str, upstream: &str, name: &str, breadth: Breadth) {
    let id = format!("{}:{name}#12345678", name::alias(upstream));
    // The catalog knows an upstream by the legal name in place of its label.
    let label = name::alias(upstream);
    let (levels, last) = name::place(&label, name);
    let levels = std::iter::once(label.clone()).chain(levels).chain([last]);
    let path = levels.collect::<Vec<_>>().join(".");
    let exposed = ExposedNameRef::Path { path: &path, has_lookalike: false };
    let named = Names { id: &id, upstream: &label, name, exposed };
    let pattern = Pattern::new(pattern);
    let fits = match breadth {
        Breadth::Wide => pattern.may_match(named),
        Breadth::Exact => pattern.matches_exactly(named),
    };
    assert!(fits, "{pattern:?} for {upstream} {name}");
}

#[test]
fn what_help_shows_and_what_the_operator_wrote_both_name_a_tool() {
    for pattern in ["my-files/read_text_file", "my_files:read-text-file", "MyFiles.readTextFile"] {
        is_named(pattern, "my-files", "read_text_file");
    }
    is_named("get_sum", "everything", "get-sum");
    is_named("files:*", "Files", "read");
    is_named("brave search:*", "brave search", "web");
    is_named("a.b:tool", "a.b", "tool");
    is_named("a_b.tool", "a.b", "tool");
    is_named("up.get sum", "up", "get sum");
    let exposed = ExposedNameRef::UpstreamName;
    let other = Names { id: "filesystem:read#1", upstream: "filesystem", name: "read", exposed };
    assert!(!Pattern::new("files:*").may_match(other));
    assert!(!Pattern::new("files*.write").may_match(other));
}

#[test]
fn what_allows_one_of_two_that_are_spelled_alike_does_not_allow_the_other() {
    // As a catalog shows them: the first keeps its name, the others are tagged.
    let tools = [("get_sum", "up.get_sum"), ("get-sum", "up.get_sum_1a2b")];
    let named = |(name, path): (&'static str, &'static str)| Names {
        id: "up:x#12345678",
        upstream: "up",
        name,
        exposed: ExposedNameRef::Path { path, has_lookalike: true },
    };
    for (pattern, meant) in [
        ("get_sum", [true, false]),
        ("get-sum", [false, true]),
        ("up.get_sum", [true, false]),
        ("UP/get-sum", [false, true]),
        ("get_sum_1a2b", [false, true]),
        ("up:get_sum_1a2b", [false, true]),
        ("getSum", [false, false]),
        ("up.*", [true, true]),
        ("*", [true, true]),
        ("up.get_*", [true, true]),
        ("other.get_sum", [false, false]),
    ] {
        let found = tools.map(|tool| Pattern::new(pattern).matches_exactly(named(tool)));
        assert_eq!(found, meant, "{pattern}");
    }
    for pattern in ["get_sum", "get-sum", "getSum", "up.GETSUM", "up/get-sum"] {
        let found = tools.map(|tool| Pattern::new(pattern).may_match(named(tool)));
        assert_eq!(found, [true, true], "{pattern}");
    }
}

#[test]
fn an_address_is_denied_wherever_it_leads_and_allowed_only_where_it_surely_leads() {
    for (pattern, uri, means, may_mean) in [
        ("file:///srv/*", "file:///srv/x", true, true),
        ("up:file:///srv/*", "file:///srv/x", true, true),
        ("file:///srv/*", "file:///pub/../srv/x", false, true),
        ("file:///srv/*", "file:///%73rv/x", false, true),
        ("file:///srv/*", "file:////srv/x", false, true),
        ("up/file:///srv/*", "file:///pub/../srv/x", false, true),
        ("file:///pub/*", "file:///pub/x", true, true),
        ("file:///pub/*", "file:///pub/../srv/x", false, true),
        ("file:///pub/*", "file:///srv/x", false, false),
        ("*", "file:///pub/../srv/x", true, true),
    ] {
        let (pattern, readings) = (Pattern::new(pattern), Readings::new(uri));
        let exposed = ExposedNameRef::Uri(&readings);
        let names = Names { id: "res:x#1", upstream: "up", name: uri, exposed };
        let found = (pattern.matches_exactly(names), pattern.may_match(names));
        assert_eq!(found, (means, may_mean), "{pattern:?} {uri}");
    }
}

#[test]
fn a_namespace_is_named_by_its_label_or_its_path() {
    for pattern in ["my-shop", "my_shop", "MyShop", "my-shop.retail", "my*", "*"] {
        let pattern = Pattern::new(pattern);
        assert!(
            pattern.matches_namespace("my_shop", "retail.create", Breadth::Wide),
            "{pattern:?}"
        );
    }
    for pattern in ["shop", "my", "my-shop.wholesale", "retail"] {
        let pattern = Pattern::new(pattern);
        assert!(
            !pattern.matches_namespace("my_shop", "retail.create", Breadth::Wide),
            "{pattern:?}"
        );
    }
}

#[test]
fn what_stands_at_the_ends_of_a_name_does_not_matter() {
    for pattern in ["a/.a/", "a:.a/", "a..a/", "A/a", "a.a", ".a/", "a"] {
        may_be_named(pattern, "a", ".a/");
    }
    for pattern in ["pb/x/", "pbé--/x/", "pb.x", "pbé--:x/"] {
        is_named(pattern, "pbé--", "x/");
    }
}

#[test]
fn what_allows_everything_that_begins_with_a_letter_of_no_alphabet_here_allows_nothing_else() {
    let exposed = ExposedNameRef::Path { path: "up.list", has_lookalike: false };
    let named = Names { id: "up:list#12345678", upstream: "up", name: "list", exposed };
    for pattern in ["é*", "up:é*", "é*:list", "-é?*", "_*", "up._*", "日*.*", "up.l_*"] {
        assert!(!Pattern::new(pattern).matches_exactly(named), "{pattern}");
    }
    let path = ExposedNameRef::Path { path: "up.t", has_lookalike: false };
    let named = Names { id: "up:t#12345678", upstream: "up", name: "été", exposed: path };
    for pattern in ["é*", "up:é*", "UP.*", "up.t", "t", "up/été"] {
        assert!(Pattern::new(pattern).matches_exactly(named), "{pattern}");
        assert!(Pattern::new(pattern).may_match(named), "{pattern}");
    }
    assert!(!Pattern::new("é*").matches_namespace("up", "list", Breadth::Exact));
    assert!(!Pattern::new("_*").matches_namespace("up", "list", Breadth::Exact));
}

#[test]
fn what_allows_a_word_and_anything_behind_it_does_not_allow_longer_words() {
    let named = |name: &'static str, path: &'static str| Names {
        id: "up:x#12345678",
        upstream: "up",
        name,
        exposed: ExposedNameRef::Path { path, has_lookalike: false },
    };
    for (name, path, means) in [
        ("get_sum", "up.get_sum", true),
        ("get-sum", "up.get_sum", true),
        ("Get-Sum", "up.Get_Sum", true),
        ("getaway", "up.getaway", false),
    ] {
        for pattern in ["get_*", "up.get-*", "U?/GET_*"] {
            assert_eq!(
                Pattern::new(pattern).matches_exactly(named(name, path)),
                means,
                "{pattern} {name}"
            );
            assert!(Pattern::new(pattern).may_match(named(name, path)), "{pattern} {name}");
        }
    }
}

#[test]
fn a_server_is_not_allowed_what_another_is_by_the_name_of_its_tool() {
    for (name, path) in [
        ("files.read", "evil.files.read"),
        ("files/read", "evil.files_read"),
        ("files:read", "evil.files_read"),
        ("files:read#12345678", "evil.files_read_12345678"),
    ] {
        let exposed = ExposedNameRef::Path { path, has_lookalike: false };
        let named = Names { id: "evil:files_read#12345678", upstream: "evil", name, exposed };
        for pattern in ["files.read", "files:read", "files/read", "files.*", "files:*", "f*.r*"] {
            assert!(!Pattern::new(pattern).matches_exactly(named), "{pattern} for {name}");
        }
        assert!(Pattern::new(&format!("evil:{name}")).matches_exactly(named), "{name}");
    }
    // Two places, one sign apart.
    let exposed = ExposedNameRef::Path { path: "up.a_b", has_lookalike: false };
    let named = Names { id: "up:a_b#12345678", upstream: "up", name: "a/b", exposed };
    assert!(!Pattern::new("up.a.b").matches_exactly(named));
    assert!(Pattern::new("up.a.b").may_match(named));
    assert!(Pattern::new("up/a/b").matches_exactly(named));
}

/// Letters, signs that part names, and characters that change when their case does.
const ODD: &str = "[a-zA-Z0-9 ._/:#@|é\u{301}ßİıſKς日-]{1,12}";

proptest::proptest! {
    #[test]
    fn every_spelling_of_a_tool_names_it(
        label in ODD, tool in ODD, upper: bool,
    ) {
        let alias = name::alias(&label);
        let (levels, shown) = name::place(&alias, &tool);
        let shown = levels.into_iter().chain([shown]).collect::<Vec<_>>().join(".");
        let case = |text: String| if upper { text.to_ascii_uppercase() } else { text };
        let spellings = [
            format!("{alias}.{shown}"),
            format!("{alias}:{shown}"),
            format!("{alias}/{}", shown.replace('_', "-")),
            format!("{alias}.*"),
            format!("{alias}:{tool}"),
            format!("{label}/{shown}"),
            format!("{label}:{tool}"),
            format!("{label}:*"),
        ];
        for spelling in spellings {
            is_named(&case(spelling), &label, &tool);
        }
        for spelling in [shown, tool.clone()] {
            may_be_named(&case(spelling), &label, &tool);
        }
    }
}
