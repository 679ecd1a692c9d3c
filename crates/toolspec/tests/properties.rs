//! What holds for every listing, and for every text.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tool::Severity;
use toolspec::{Definition, LintContext, Options, fix, generate, lint, parse};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z][A-Za-z0-9 ,.'()-]{0,60}",
        "[\\PC\n`|#*_ -]{0,80}",
        Just("## Tool: `x`\n\n### 3. Input\n\n```json\n{".to_owned()),
        Just("**Returns**: a | b\n\n---\n<!-- open".to_owned()),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer", "minimum": 3, "maximum": 7})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({})),
        Just(json!({"enum": [1, "a|b", null]})),
        Just(json!({"type": "string", "enum": ["x", "y`z"]})),
        text().prop_map(|text| json!({"type": "string", "description": text})),
        Just(
            json!({"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "string"}}]})
        ),
        Just(json!({"type": "string", "pattern": "^[A-Z]{3}$"})),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            object(inner),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let member = ("[A-Za-z_$-][A-Za-z0-9_.-]{0,8}", inner, any::<bool>());
    prop::collection::vec(member, 0..4).prop_map(|members| {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, schema, is_required) in members {
            if is_required && !properties.contains_key(&name) {
                required.push(Value::from(name.as_str()));
            }
            properties.entry(name).or_insert(schema);
        }
        json!({"type": "object", "properties": properties, "required": required})
    })
}

fn definition() -> impl Strategy<Value = Definition> {
    let hints = prop::option::of((any::<bool>(), any::<bool>()).prop_map(|(read, idempotent)| {
        json!({"readOnlyHint": read, "idempotentHint": idempotent, "title": "a `b` | c"})
    }));
    (
        "[a-z][a-z0-9_.-]{0,20}",
        prop::option::of(text()),
        prop::option::of(text()),
        object(schema()),
        prop::option::of(object(schema())),
        hints,
    )
        .prop_map(|(name, title, description, input, output, annotations)| Definition {
            name,
            title,
            description,
            input,
            output,
            annotations,
            version: Some("1.0.0".to_owned()),
        })
}

fn listing() -> impl Strategy<Value = Vec<Definition>> {
    prop::collection::vec(definition(), 0..4).prop_map(|mut tools| {
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools.dedup_by(|a, b| a.name == b.name);
        tools
    })
}

fn options() -> Options {
    Options {
        module: "m".to_owned(),
        version: "1.0.0".to_owned(),
        updated: "November 2026".to_owned(),
    }
}

/// A golden case with lines dropped, doubled, swapped and cut.
fn damaged() -> impl Strategy<Value = String> {
    let cases: Vec<&str> = vec![
        include_str!("cases/labels-under-code-headings.md"),
        include_str!("cases/bare-headings.md"),
        include_str!("cases/definitions-in-fences.md"),
        include_str!("cases/yaml.md"),
        include_str!("cases/bullets.md"),
        include_str!("cases/broken-tables.md"),
        include_str!("cases/nested.md"),
        include_str!("cases/template-left-over.md"),
        include_str!("cases/contradiction.md"),
        include_str!("cases/noise.md"),
        toolspec::rules::CLEAN,
    ];
    let cut = (0..6_u8, any::<prop::sample::Index>(), any::<prop::sample::Index>());
    (prop::sample::select(cases), prop::collection::vec(cut, 0..12)).prop_map(|(case, cuts)| {
        let mut lines: Vec<String> = case.lines().map(str::to_owned).collect();
        for (kind, at, other) in cuts {
            if lines.is_empty() {
                break;
            }
            let (at, other) = (at.index(lines.len()), other.index(lines.len()));
            match kind {
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, lines[other].clone()),
                2 => lines.swap(at, other),
                3 => {
                    let half = lines[at].chars().count() / 2;
                    lines[at] = lines[at].chars().take(half).collect();
                }
                4 => lines[at].insert_str(0, "- "),
                _ => lines[at] = format!("{}|`{}", lines[at], lines[other]),
            }
        }
        lines.join("\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn what_is_generated_is_read_back_and_has_no_error(tools in listing()) {
        let document = generate(&tools, &options());
        prop_assert_eq!(parse(&document).0.definitions(), tools);
        let (_, findings) = lint(&document, &LintContext::default());
        let errors: Vec<_> =
            findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
        prop_assert!(errors.is_empty(), "{:?}\n{}", errors, document);
    }

    #[test]
    fn generating_is_deterministic(tools in listing()) {
        prop_assert_eq!(generate(&tools, &options()), generate(&tools, &options()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_reader_fail(text in "\\PC{0,200}|[#|`*\\-: \n\\[\\]{}a-z_.0-9]{0,400}") {
        let (document, findings) = lint(&text, &LintContext::default());
        let n_lines = text.lines().count().max(1);
        prop_assert!(findings.iter().all(|finding| (1..=n_lines + 1).contains(&finding.place.line)));
        prop_assert!(document.tools.iter().all(|tool| tool.heading.place.line <= n_lines));
    }

    #[test]
    fn damaged_documents_are_read_and_fixing_settles(text in damaged()) {
        let (fixed, _) = fix(&text);
        prop_assert_eq!(fix(&fixed).0, fixed);
    }
}
