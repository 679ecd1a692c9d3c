//! What upstreams answer: masked, kept, and looked into with selectors and jq.

use ::skills::{File, Library};
use artifacts::view::{self, Budget, Selector};
use offload::StopFlag;
use redact::{Config, Scrubber};
use testkit::fuzz::Dictionary;
use tool::Json;

use crate::{JSON, Target, halves, text};

static RESULTS: Dictionary = Dictionary {
    seeds: &[
        r#"{"content":[{"type":"text","text":"api_key=sk-abcdefghijklmnopqrstuvwx"}]}"#,
        "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
        "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        "postgres://user:p@ss@host/db?password=\"x\"",
    ],
    words: &[
        "-----BEGIN PRIVATE KEY-----\"",
        "-----END",
        "password=",
        "token: ",
        "://",
        "@",
        "sk-",
        "ghp_",
        "AKIA",
        "eyJ",
        ".",
        "\\n",
        "\"",
        "{",
        "[",
        "=",
    ],
};

/// A selector, a line end, and what it looks into.
static SELECTORS: Dictionary = Dictionary {
    seeds: &[
        "{\"type\":\"jq\",\"filter\":\".a[]|select(.b>1)|{c}\"}\n{\"a\":[{\"b\":2,\"c\":3}]}",
        "{\"type\":\"jq\",\"filter\":\"(\\\"[\\\"*9000)+(\\\"]\\\"*9000)|fromjson\"}\nnull",
        "{\"type\":\"grep\",\"pattern\":\"(a|b)*c\",\"context\":1}\nabc\nabd",
        "{\"type\":\"lines\",\"start\":0,\"end\":9}\na\nb",
        "{\"type\":\"rows\",\"start\":0,\"end\":9}\na,b\n1,\"2\n3\"",
        "{\"type\":\"slice\",\"path\":\"a.b\",\"start\":0,\"end\":1}\n{\"a\":{\"b\":[1,2]}}",
        "{\"type\":\"json_keys\",\"keys\":[\"a\"]}\n{\"a\":1}",
        "{\"type\":\"bytes\",\"start\":0,\"length\":4}\nabcdef",
    ],
    words: &[
        "{",
        "}",
        "[",
        "]",
        "\"",
        "(",
        ")",
        "|",
        ".",
        "..",
        "*",
        "recurse",
        "fromjson",
        "tojson",
        "reduce .[] as $x (0;",
        "def f: f; f",
        "limit(9;",
        "range(1e9)",
        "implode",
        "test(\\\"",
        "splits(",
        "[.]",
        "{a:",
        "{9999}",
        "(?i)",
        "\\\\p{L}",
        ",",
        "\n",
        "getpath(",
        "-",
    ],
};

static SKILLS: Dictionary = Dictionary {
    seeds: &[
        "---\nname: a\ndescription: Does.\nversion: 1.0\n---\n# A\n\nUse `b.c`. {{ x|upper }}\n",
        "---\nname: b\n---\n{% for i in range(3) %}{{ i }}{% endfor %}<script>x</script>",
    ],
    words: &[
        "---\n",
        "{{",
        "}}",
        "{%",
        "%}",
        "{% for a in b %}",
        "{% if a %}",
        "<script>",
        "</script>",
        "`",
        "- ",
        ": ",
        "&a ",
        "*a",
        "[",
        "{",
        "|",
        "#",
        "\n",
        "> ",
        "x: ",
        "(((",
    ],
};

static LISTED: Dictionary = Dictionary {
    seeds: &[r#"{"skills":[{"name":"a","description":"b","uri":"skill://a"}],"ttlMs":5}"#],
    words: JSON,
};

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "redact", dictionary: &RESULTS, check: redact },
    Target { name: "view", dictionary: &SELECTORS, check: look },
    Target { name: "skill", dictionary: &SKILLS, check: skill },
    Target { name: "skill_listing", dictionary: &LISTED, check: skill_listing },
];

fn redact(bytes: &[u8]) {
    let scrubber =
        Scrubber::new(Config { enabled: true, known_secrets: vec!["hunter2hunter2".into()] });
    let text = text(bytes);
    let once = scrubber.scrub(&text).into_owned();
    assert_eq!(scrubber.scrub(&once), once, "what is masked stays as it is");
    if let Ok(json) = Json::parse(bytes.to_vec()) {
        let scrubbed = scrubber.scrub_json(&json);
        assert!(Json::parse(scrubbed.as_bytes().clone()).is_ok(), "JSON stays JSON");
    }
}

fn look(bytes: &[u8]) {
    let (selector, kept) = halves(bytes);
    let Ok(selector) = Json::parse(selector.to_vec()) else { return };
    let Ok(selector) = Selector::parse(&selector) else { return };
    let budget = Budget { chars: 2_000, jq_steps: 200_000, ..Budget::default() };
    for media_type in ["application/json", "text/csv", "text/plain"] {
        if let Ok(view) = view::view(kept, media_type, &selector, &budget, &StopFlag::never()) {
            assert!(view.to_text().chars().count() < 20_000, "a view is bounded");
        }
    }
}

fn skill(bytes: &[u8]) {
    let text = text(bytes).into_owned();
    let file = File { path: "a/SKILL.md".to_owned(), text };
    let (library, _) = Library::parse(&[file]);
    for skill in library.skills() {
        let value = Json::from(serde_json::json!("v"));
        let _ = (skill.placeholders(), skill.fill(&[("x", &value)]));
    }
}

fn skill_listing(bytes: &[u8]) {
    let Ok(page) = Json::parse(bytes.to_vec()) else { return };
    let _ = ::skills::upstream::from_page("a", &page);
    let _ = ::skills::upstream::lifetime(&page);
    let _ = ::skills::upstream::cash::from_list("a", &page);
}
