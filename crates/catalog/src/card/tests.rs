use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::tokens;

fn vectors() -> Value {
    let text = include_str!("../../tests/vectors/contextweaver_choice_card.json");
    serde_json::from_str(text).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn tags(value: &Value) -> Vec<String> {
    value.as_array().map(|tags| tags.iter().map(text).collect()).unwrap_or_default()
}

fn draft(item: &Value, score: Option<f64>) -> Draft {
    Draft {
        tags: tags(&item["tags"]),
        namespace: text(&item["namespace"]),
        has_schema: item["args_schema"].as_object().is_some_and(|schema| !schema.is_empty()),
        cost_hint: item["cost_hint"].as_f64().unwrap_or(0.0),
        side_effects: item["side_effects"] == true,
        score,
        ..Draft::new(
            &text(&item["id"]),
            &text(&item["name"]),
            &text(&item["description"]),
            item["kind"].as_str().unwrap_or("tool").parse().unwrap(),
        )
    }
}

/// The card of a vector as our type, through its fields.
#[track_caller]
fn check(card: &Card, expected: &Value) {
    let written: Value = serde_json::to_value(card).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&written), keys(expected));
    for (key, value) in expected.as_object().unwrap() {
        match value.as_f64() {
            Some(number) => assert_eq!(written[key].as_f64(), Some(number), "{key}"),
            None => assert_eq!(&written[key], value, "{key}"),
        }
    }
}

#[test]
fn cards_lines_and_counts_are_those_of_the_vectors() {
    let vectors = vectors();
    for case in vectors["single"].as_array().unwrap() {
        let card = Card::truncated(draft(&case["item"], case["score"].as_f64()));
        check(&card, &case["card_unbounded"]);
        assert_eq!(tokens::count(&budget_line(&card)) as u64, case["card_tokens_unbounded"]);
        let fitted = fit(&card).unwrap();
        check(&fitted, &case["card"]);
        assert_eq!(budget_line(&fitted), case["budget_line"]);
        assert_eq!(tokens::count(&budget_line(&fitted)) as u64, case["card_tokens"]);
        assert_eq!(listing(std::slice::from_ref(&fitted)), case["render_text_single"]);
        assert_eq!(snippet(&fitted), case["prompt_snippet"]);
    }
}

#[test]
fn a_listing_is_ordered_and_numbered() {
    let listing_case = &vectors()["listing"];
    let mut cards: Vec<Card> = listing_case["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            let score = listing_case["scores"][text(&item["id"])].as_f64();
            fit(&Card::truncated(draft(item, score))).unwrap()
        })
        .collect();
    sort(&mut cards);
    for (card, expected) in cards.iter().zip(listing_case["cards"].as_array().unwrap()) {
        check(card, expected);
    }
    assert_eq!(listing(&cards), listing_case["render_cards_text"]);
}

#[test]
fn the_hard_cap_is_where_the_vectors_have_it() {
    for case in vectors()["hard_cap"].as_array().unwrap() {
        let expected = &case["card"];
        let mut draft = Draft::new(&text(&case["id"]), "n", "", Kind::Tool);
        draft.namespace = "n".to_owned();
        draft.tags = vec!["mcp".to_owned()];
        draft.description = "Does one thing well and says so in a long sentence.".to_owned();
        let fitted = fit(&Card::truncated(draft.clone()));
        match expected.is_object() {
            true => assert!(tokens::count(&budget_line(&fitted.unwrap())) <= CAP),
            false => assert!(matches!(fitted, Err(InvalidCard::TooBig { .. }))),
        }
        // On the wire the same tool is shown, within the cap, whatever its id.
        let line = Line::text(&Card::truncated(draft.clone()), None);
        assert!(tokens::count(line.as_str()) <= CAP, "{line:?}");
        assert!(line.as_str().starts_with("n:Zq9x_") && line.as_str().contains("#0e6e16a2"));
    }
}

#[test]
fn fields_over_the_limits_make_no_card() {
    for case in vectors()["validation"].as_array().unwrap() {
        let fields = &case["fields"];
        let made = || -> Result<Card, InvalidCard> {
            let kind = fields["kind"].as_str().unwrap_or("tool").parse()?;
            let mut draft = Draft::new(&text(&fields["id"]), &text(&fields["name"]), "d", kind);
            draft.tags = tags(&fields["tags"]);
            draft.safety = fields["safety"].as_str().unwrap_or("").parse()?;
            Card::new(draft)
        };
        match case["ok"].is_object() {
            true => check(&made().unwrap(), &case["ok"]),
            false => assert!(made().is_err(), "{case}"),
        }
    }
}

#[test]
fn tags_are_capped_but_safety_stays() {
    for case in vectors()["cap_tags"].as_array().unwrap() {
        assert_eq!(cap_tags(&tags(&case["tags"])), tags(&case["capped"]));
    }
}

#[test]
fn descriptions_are_cut_as_in_the_vectors() {
    let text_ = include_str!("../../tests/vectors/contextweaver_truncate_description.json");
    let vectors: Value = serde_json::from_str(text_).unwrap();
    for case in vectors["cases"].as_array().unwrap() {
        let (whole, limit) = (text(&case["text"]), case["max_tokens"].as_i64().unwrap());
        assert_eq!(tokens::count(&whole) as u64, case["tokens"], "{whole}");
        let cut = truncate(&whole, usize::try_from(limit).unwrap_or(0));
        assert_eq!(cut, text(&case["out"]), "{limit}");
        assert_eq!(tokens::count(&cut) as u64, case["out_tokens"]);
    }
}

#[test]
fn a_long_description_of_short_sentences_costs_no_more_than_what_is_kept() {
    let cut = truncate(&"a. ".repeat(100_000), 2_000);
    assert_eq!(cut, "a. ".repeat(1_000).trim_end());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_sentences_kept_are_the_most_that_fit(
        text in "([a-z0-9]{1,3}[.!?] ?[ \n\u{1d}]?){1,40}", limit in 1_usize..60,
    ) {
        let cut = truncate(&text, limit);
        let is_blank = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
        let mut ends: Vec<usize> = text
            .char_indices()
            .filter(|(at, c)| {
                let next = text[at + 1..].chars().next();
                matches!(c, '.' | '!' | '?') && next.is_none_or(is_blank)
            })
            .map(|(at, _)| at + 1)
            .collect();
        ends.reverse();
        let most = ends.into_iter().map(|end| &text[..end]).find(|kept| tokens::fits(kept, limit));
        if tokens::fits(&text, limit) {
            prop_assert_eq!(cut, text);
        } else if let Some(most) = most {
            prop_assert_eq!(cut, most);
        }
    }
}

#[test]
fn a_description_cannot_pretend_to_be_another_card() {
    let card = Card::truncated(Draft::new(
        "a:b#00000000",
        "b",
        "one\n\nevil:c#1 two\u{1b}[0m",
        Kind::Tool,
    ));
    assert_eq!(card.description(), "one evil:c#1 two [0m");
}

#[test]
fn the_wire_line_says_what_a_model_needs_and_no_more() {
    let mut draft = Draft::new("a:rm#00000000", "a.rm", "Delete a file.", Kind::Tool);
    draft.tags = vec!["mcp".into(), "destructive".into()];
    let card = Card::truncated(draft).scored(Some(0.123_456));
    assert_eq!(
        Line::text(&card, Some(&|_| "(path: string)".to_owned())).as_str(),
        "a:rm#00000000 Delete a file. [destructive]\n  (path: string)"
    );
    assert_eq!(
        Line::json(&card).as_str(),
        r#"{"id":"a:rm#00000000","description":"Delete a file.","safety":"destructive","score":0.12}"#
    );
}

#[test]
fn a_signature_that_does_not_fit_is_shortened_after_the_description() {
    let words = "Files a report about one of the many things that can go wrong. ".repeat(4);
    let card = Card::truncated(Draft::new("a:b#00000000", "b", &words, Kind::Tool));
    let signature = |width: usize| format!("({}…)", "argument, ".repeat(width / 10));
    let rendered =
        [Line::text(&card, Some(&signature)), Line::json_with_signature(&card, Some(&signature))];
    for line in rendered {
        assert!(tokens::fits(line.as_str(), CAP), "{line:?}");
        assert_eq!(line.as_str().matches("argument, ").count(), 12, "{line:?}");
        assert!(line.as_str().contains("Files a report about"), "{line:?}");
    }
    // Even where nothing but the id fits, it is seen that there are arguments.
    let endless = |_| "argument: string, ".repeat(40);
    let card = Card::truncated(Draft::new("a:b#00000000", "b", "Short.", Kind::Tool));
    assert_eq!(Line::text(&card, Some(&endless)).as_str(), "a:b#00000000\n  (…)");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_wire_line_keeps_the_cap(
        namespace in "[a-z][a-z0-9_-]{0,63}",
        name in "[A-Za-z_][A-Za-z0-9_.-]{0,127}",
        description in ".{0,400}",
        destructive: bool,
        signature in proptest::option::of(".{0,200}"),
    ) {
        let id = format!("{namespace}:{name}#0123abcd");
        let mut draft = Draft::new(&id, &name, &description, Kind::Tool);
        if destructive {
            draft.tags.push("destructive".into());
        }
        let card = Card::truncated(draft);
        let fixed = |_| signature.clone().unwrap_or_default();
        let signature: Option<AtWidth<'_>> = if signature.is_some() { Some(&fixed) } else { None };
        let json = Line::json_with_signature(&card, signature);
        serde_json::from_str::<serde_json::Value>(json.as_str()).unwrap();
        for line in [Line::text(&card, signature), Line::json(&card), json] {
            prop_assert!(tokens::count(line.as_str()) <= CAP, "{:?}", line);
            prop_assert!(line.as_str().contains("#0123abcd"));
        }
    }
}
