use super::sign::{PublicKey, SecretKey, SignatureError, verify};
use super::*;

fn manifest() -> Manifest {
    Manifest {
        cash_version: CASH_VERSION.into(),
        last_updated: "2026-11-15".into(),
        publisher: "A \"quoted\": publisher".into(),
        copyright: None,
        endpoint: "https://gate.example/mcp".into(),
        cache_ttl: Some(600),
        authentication: Some(Authentication { scheme: Scheme::ApiKey, docs_url: None }),
        namespaces: vec![SuggestedNamespace {
            suggested: "orders".into(),
            description: "It's # fine".into(),
        }],
        skills: vec![
            AdvertisedSkill { name: "a".into(), description: "One.".into() },
            AdvertisedSkill { name: "b".into(), description: "Two: yes".into() },
        ],
        signature: None,
        whole: None,
    }
}

#[test]
fn the_yaml_and_the_json_form_are_read_back_as_the_same_value() {
    for value in [manifest(), Manifest { skills: vec![], authentication: None, ..manifest() }] {
        assert_eq!(
            parse(&value.to_yaml()).unwrap(),
            (value.clone(), vec![]),
            "{}",
            value.to_yaml()
        );
        assert_eq!(parse(&value.to_json()).unwrap(), (value.clone(), vec![]));
    }
}

#[test]
fn every_problem_is_told_at_once() {
    let text = "cash_version: 1\nlast_updated: soon\nendpoint: 'stdio:rm'\ncache_ttl: -1\nnamespaces: []\nauthentication: {scheme: magic}\n";
    let fields: Vec<String> =
        parse(text).unwrap_err().into_iter().map(|problem| problem.field).collect();
    for field in
        ["cash_version", "last_updated", "publisher", "endpoint", "cache_ttl", "namespaces"]
    {
        assert!(fields.iter().any(|found| found == field), "{field} is not in {fields:?}");
    }
    assert!(fields.iter().any(|found| found == "authentication.scheme"));
}

#[test]
fn hyphens_in_labels_are_folded_with_a_warning() {
    let text = manifest().to_yaml().replace("\"orders\"", "\"order-mgmt\"");
    let (manifest, warnings) = parse(&text).unwrap();
    assert_eq!(manifest.namespaces[0].suggested, "ordermgmt");
    assert_eq!(warnings.len(), 1);
}

#[test]
fn a_date_is_in_the_calendar() {
    for (date, good) in [
        ("2026-13-45", false),
        ("2026-00-10", false),
        ("2026-02-29", false),
        ("2028-02-29", true),
        ("2026-11-30T10:00:00Z", true),
        ("2026-11-31", false),
    ] {
        let text = manifest().to_yaml().replace("2026-11-15", date);
        assert_eq!(parse(&text).is_ok(), good, "{date}");
    }
}

#[test]
fn odd_addresses_and_labels_that_are_read_alike_are_warnings() {
    let odd = Manifest {
        authentication: Some(Authentication {
            scheme: Scheme::Bearer,
            docs_url: Some("nope".into()),
        }),
        namespaces: ["order_mgmt", "OrderMgmt"]
            .map(|name| SuggestedNamespace {
                suggested: name.into(),
                description: "Orders.".into(),
            })
            .into(),
        ..manifest()
    };
    let (_, warnings) = parse(&odd.to_yaml()).unwrap();
    let fields: Vec<&str> = warnings.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["namespaces[1].suggested", "authentication.docs_url"]);
}

#[test]
fn a_signature_covers_what_we_do_not_understand() {
    let text = manifest().to_yaml()
        + "future: {a: [1, [2, {}], {\"b c\": true}], \"yes\": null, empty: [], n: 1.5}\n";
    let (read_in, _) = parse(&text).unwrap();
    let key = SecretKey::from_seed([1; 32]);
    let signed = key.sign(&read_in);
    let pins = [key.public()];
    for text in [yaml(&signed.document()), signed.document().to_string()] {
        let (again, _) = parse(&text).unwrap();
        assert_eq!(again, signed, "nothing is lost: {text}");
        assert_eq!(verify(&again, &pins), Ok(()));
        let changed = parse(&text.replace("1.5", "1.6")).unwrap().0;
        assert_eq!(verify(&changed, &pins), Err(SignatureError::Forged));
        let mut dropped = signed.document();
        dropped.as_object_mut().unwrap().remove("future");
        assert_eq!(verify(&parse(&yaml(&dropped)).unwrap().0, &pins), Err(SignatureError::Forged));
    }
    // The form is the one that is written down: anybody can make it.
    let canonical = signed.canonical();
    assert!(canonical.contains(r#""future":{"a":[1,[2,{}],{"b c":true}],"empty":[],"n":1.5"#));
    assert!(!canonical.contains("signature"), "{canonical}");
}

#[test]
fn a_label_that_is_too_long_is_none() {
    let long =
        |n: usize| manifest().to_yaml().replace("\"orders\"", &format!("{:?}", "a".repeat(n)));
    assert!(parse(&long(64)).is_ok());
    let told = parse(&long(65)).unwrap_err()[0].to_string();
    assert!(told.contains("longer than 64"), "{told}");
}

#[test]
fn unknown_fields_are_ignored_and_bare_dates_are_dates() {
    let text = manifest().to_yaml().replace("\"2026-11-15\"", "2026-11-15") + "future: 1\n";
    let (read_in, warnings) = parse(&text).unwrap();
    assert_eq!(Manifest { whole: None, ..read_in }, manifest());
    assert_eq!(warnings, []);
}

#[test]
fn a_hostile_manifest_is_refused_cheaply() {
    let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x]\n");
    for n in 0..12 {
        let (from, to) = (char::from(b'a' + n), char::from(b'b' + n));
        bomb.push_str(&format!("{to}: &{to} [*{from},*{from},*{from},*{from},*{from}]\n"));
    }
    let deep = format!("a: {}{}", "[".repeat(5_000), "]".repeat(5_000));
    let long = "x".repeat(MAX_BYTES + 1);
    let many = format!("namespaces: [{}]", "{suggested: a, description: b},".repeat(2_000));
    for text in
        [bomb.as_str(), &deep, &long, &many, "- 1\n", "", "\u{0}", "a: b: c", "!!python/x y"]
    {
        assert!(parse(text).is_err(), "{}", &text[..text.len().min(40)]);
    }
}

fn key(byte: u8) -> SecretKey {
    SecretKey::from_seed([byte; 32])
}

#[test]
fn a_signature_holds_for_the_manifest_in_every_form() {
    let signed = key(1).sign(&manifest());
    let pins = [key(1).public()];
    verify(&signed, &pins).unwrap();
    verify(&parse(&signed.to_yaml()).unwrap().0, &pins).unwrap();
    verify(&parse(&signed.to_json()).unwrap().0, &pins).unwrap();
}

#[test]
fn a_changed_foreign_or_missing_signature_is_told_apart() {
    let signed = key(1).sign(&manifest());
    let changed = Manifest { endpoint: "https://evil.example/mcp".into(), ..signed.clone() };
    assert_eq!(verify(&changed, &[key(1).public()]), Err(SignatureError::Forged));
    let id = key(1).public().id();
    assert_eq!(verify(&signed, &[key(2).public()]), Err(SignatureError::UnknownKey(id)));
    assert_eq!(verify(&manifest(), &[key(1).public()]), Err(SignatureError::Unsigned));
}

#[test]
fn keys_can_be_rotated_while_both_are_pinned() {
    let pins = [key(1).public(), key(2).public()];
    verify(&key(1).sign(&manifest()), &pins).unwrap();
    verify(&key(2).sign(&manifest()), &pins).unwrap();
    assert!(verify(&key(1).sign(&manifest()), &pins[1..]).is_err());
}

#[test]
fn keys_are_read_back_from_their_text() {
    let secret = key(7);
    assert_eq!(SecretKey::parse(&secret.to_text()).unwrap().public(), secret.public());
    assert_eq!(PublicKey::parse(&secret.public().to_text()).unwrap(), secret.public());
    assert!(PublicKey::parse("nonsense").is_err());
}

#[test]
fn the_words_of_a_manifest_are_readable_and_its_signature_covers_what_was_written() {
    let odd = "d\u{1b}[31m\u{202e}\u{e0041}\nforged\u{2028}more";
    let written = Manifest {
        publisher: odd.into(),
        copyright: Some(odd.into()),
        namespaces: vec![SuggestedNamespace { suggested: "shop".into(), description: odd.into() }],
        skills: vec![AdvertisedSkill { name: "s".into(), description: odd.into() }],
        ..manifest()
    };
    let signed = key(1).sign(&written);
    let (read, problems) = parse(&signed.to_json()).unwrap();
    let words = "d[31m forged more";
    assert_eq!((read.publisher.as_str(), read.copyright.as_deref()), (words, Some(words)));
    assert_eq!(read.namespaces[0].description, words);
    assert_eq!(read.skills[0].description, words);
    assert!(problems.iter().any(|problem| problem.field == "namespaces[0].description"));
    verify(&read, &[key(1).public()]).unwrap();
    let long = Manifest { publisher: "x".repeat(100_000), ..manifest() };
    assert!(parse(&long.to_json()).unwrap().0.publisher.len() < 3000);
}
