use serde_json::{Value, json};

use super::*;

#[track_caller]
fn masked(text: &str, expected: &str) {
    assert_eq!(Scrubber::default().scrub(text), expected);
}

#[track_caller]
fn kept(text: &str) {
    masked(text, text);
}

#[test]
fn secrets_are_masked_as_in_the_vectors() {
    let text = include_str!("../../tests/vectors/contextweaver_scrub_secrets.json");
    let vectors: Value = serde_json::from_str(text).unwrap();
    assert_eq!(vectors["mask"], MASK);
    for case in vectors["cases"].as_array().unwrap() {
        masked(case["in"].as_str().unwrap(), case["out"].as_str().unwrap());
    }
}

#[test]
fn every_form_of_credential_is_known() {
    let key = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0";
    masked(&format!("x ghp_{key} y"), "x [REDACTED-SECRET] y");
    masked(&format!("sk-ant-{key}"), MASK);
    masked("AKIAIOSFODNN7ABCDEFG", MASK);
    masked(&format!("AIza{}", &key[..35]), MASK);
    masked("xoxb-123456789012-abc", MASK);
    masked("postgres://user:hunter2@db/x", "postgres://user:[REDACTED-SECRET]@db/x");
    masked("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [REDACTED-SECRET]");
    masked("eyJhbGciOi.eyJzdWIiOi.SflKxwRJSM", MASK);
    masked(
        "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b",
        "a [REDACTED-SECRET] b",
    );
    masked("client_secret=Zm9vYmFyMTIz", "client_secret=[REDACTED-SECRET]");
}

#[test]
fn what_only_talks_about_secrets_stays() {
    kept("next_token: Optional");
    kept("next_token=previous_result['nextToken']");
    kept("pageToken=CAEQAA7fjk39fk");
    kept("\"input_tokens\": \"1,000,000\"");
    kept("max_tokens: Maximum");
    kept("access_token=<ACCESS_TOKEN>");
    kept("GITHUB_TOKEN=TOKEN_GLOBAL");
    kept("password: string");
    kept("\"password\": \"123456\"");
    kept("api_key: ${env:API_KEY}");
    kept("set API_KEY=your-api-key-here");
    kept("http://localhost:8080/@user");
}

#[test]
fn values_of_telling_keys_are_masked_in_json_too() {
    let json = Json::parse(r#"{"db":{"password":"s3cr3t-stuff","port":5432},"n":1e400}"#).unwrap();
    let scrubbed = Scrubber::default().scrub_json(&json);
    assert_eq!(
        scrubbed.as_str(),
        r#"{"db":{"password":"[REDACTED-SECRET]","port":5432},"n":1e+400}"#
    );
}

#[test]
fn a_value_without_secrets_comes_back_byte_for_byte() {
    let text = r#"{"a" : "token: string\n", "b":[1.0, 2]}"#;
    let json = Json::parse(text).unwrap();
    assert_eq!(Scrubber::default().scrub_json(&json).as_str(), text);
}

#[test]
fn a_secret_split_over_lines_of_a_json_text_is_found() {
    let scrub = |text: &str| {
        let json: Json = json!({"content": [{"type": "text", "text": text}]}).into();
        let scrubbed = Scrubber::default().scrub_json(&json).value().unwrap();
        scrubbed["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let pem = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----";
    assert_eq!(scrub(pem), MASK);
    let after_a_line = format!("line\nghp_{}", "a1".repeat(20));
    assert_eq!(scrub(&after_a_line), format!("line\n{MASK}"));
}

#[test]
fn what_the_operator_knows_to_be_secret_is_masked_whatever_it_looks_like() {
    let config = Config { enabled: true, known: vec!["plain-looking".into(), "a".into()] };
    assert_eq!(Scrubber::new(config).scrub("a plain-looking word"), "a [REDACTED-SECRET] word");
}

#[test]
fn switched_off_nothing_is_touched() {
    let scrubber = Scrubber::new(Config::default());
    let text = "password=hunter22";
    assert_eq!(scrubber.scrub(text), text);
}

#[test]
fn upstream_text_is_collapsed_as_in_the_vectors() {
    let text = include_str!("../../tests/vectors/contextweaver_errors.json");
    let vectors: Value = serde_json::from_str(text).unwrap();
    for case in vectors["redact"].as_array().unwrap() {
        assert_eq!(collapse(case["in"].as_str().unwrap()), case["out"].as_str().unwrap());
    }
}

#[test]
fn a_secret_at_the_cut_is_masked_whole() {
    let text = format!("{} sk-proj-{}", "x".repeat(240), "b".repeat(40));
    let shown = Scrubber::default().collapse(&text);
    assert!(!shown.contains("sk-proj"), "{shown}");
}
