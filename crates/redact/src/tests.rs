use std::sync::LazyLock;

use proptest::prelude::*;
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
    let text = include_str!("../tests/vectors/contextweaver_scrub_secrets.json");
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
        let scrubbed = Scrubber::default().scrub_json(&json).to_value().unwrap();
        scrubbed["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let pem = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----";
    assert_eq!(scrub(pem), MASK);
    let after_a_line = format!("line\nghp_{}", "a1".repeat(20));
    assert_eq!(scrub(&after_a_line), format!("line\n{MASK}"));
}

#[test]
fn what_the_operator_knows_to_be_secret_is_masked_whatever_it_looks_like() {
    let config = Config { enabled: true, known_secrets: vec!["plain-looking".into(), "a".into()] };
    assert_eq!(Scrubber::new(config).scrub("a plain-looking word"), "a [REDACTED-SECRET] word");
}

#[test]
fn a_known_secret_is_found_however_json_writes_it() {
    let secret = "p\"a\\ss/word é";
    let scrubber = Scrubber::new(Config { enabled: true, known_secrets: vec![secret.into()] });
    let plain = json!({"text": format!("is {secret}.")}).to_string();
    for written in [plain.replace('/', "\\/"), plain] {
        let json = Json::parse(written).unwrap();
        assert_eq!(scrubber.scrub_json(&json).as_str(), r#"{"text":"is [REDACTED-SECRET]."}"#);
    }
}

#[test]
fn a_known_secret_is_found_in_every_form_that_programs_write() {
    let secret = "op3rator/pass+99";
    let scrubber = Scrubber::new(Config { enabled: true, known_secrets: vec![secret.into()] });
    for written in [
        "op3rator%2Fpass%2B99",
        "99+ssap/rotar3po",
        "6f70337261746f722f706173732b3939",
        "6F70337261746F722F706173732B3939",
        "o p 3 r a t o r / p a s s + 9 9",
        "o\np\n3\nr\na\nt\no\nr\n/\np\na\ns\ns\n+\n9\n9",
        "o-p-3-r-a-t-o-r-/-p-a-s-s-+-9-9",
        // base64, in either alphabet, with nothing, one and two bytes before it.
        "b3AzcmF0b3IvcGFzcys5OQ==",
        "Om9wM3JhdG9yL3Bhc3MrOTk=",
        "dTpvcDNyYXRvci9wYXNzKzk5",
        "dTpvcDNyYXRvci9wYXNzKzk5Cg==",
    ] {
        let shown = scrubber.scrub(&format!("it is {written} here")).into_owned();
        assert!(shown.contains(MASK), "{written}: {shown}");
        assert!(shown.len() < 40, "{written}: {shown}");
        let json = Json::encode(&json!({"text": format!("it is {written} here")}));
        assert!(scrubber.scrub_json(&json).as_str().contains(MASK), "{written} in JSON");
    }
}

#[test]
fn a_known_secret_is_found_whatever_stands_between_its_characters() {
    let secret = "s3cr3tTOKENvalue42zz";
    let scrubber = Scrubber::new(Config { enabled: true, known_secrets: vec![secret.into()] });
    let characters: Vec<String> = secret.chars().map(String::from).collect();
    let bytes = |form: &dyn Fn(u8) -> String| secret.bytes().map(form).collect::<Vec<_>>();
    let mut forms: Vec<String> = [
        "\u{200b}", "\r\n", "--", " ... ", "\u{b7}", "\u{301}", ", ", "\", \"", "\u{3164}", "\\n",
        "\\u200b",
    ]
    .iter()
    .map(|between| characters.join(between))
    .collect();
    let base64 = "czNjcjN0VE9LRU52YWx1ZTQyeno=";
    forms.extend([
        bytes(&|byte| format!("%{byte:02x}")).concat(),
        format!("https://x.example/?t={}", bytes(&|byte| format!("%{byte:02X}")).concat()),
        format!("%73{}", &secret[1..]),
        format!("%5Cu0073{}", &secret[1..]).replace("%5C", "\\"),
        bytes(&|byte| format!("{byte:02x}")).join(" "),
        bytes(&|byte| format!("{byte:02X}")).join(":"),
        bytes(&|byte| format!("0x{byte:02x}")).join(", "),
        bytes(&|byte| format!("\\x{byte:02x}")).concat(),
        format!("{}\n{}", &base64[..14], &base64[14..]),
        secret.chars().rev().map(String::from).collect::<Vec<_>>().join(" "),
        format!("{} {}", &secret[..10], &secret[10..]),
    ]);
    for written in forms {
        let shown = scrubber.scrub(&format!("it is {written} here")).into_owned();
        assert!(shown.contains(MASK), "{written}: {shown}");
        assert!(shown.len() < 60, "{written}: {shown}");
        for json in [
            json!({"text": format!("it is {written} here")}),
            json!([{"text": json!({"inner": written}).to_string()}]),
            json!({written.clone(): 1}),
        ] {
            let scrubbed = scrubber.scrub_json(&Json::encode(&json));
            assert!(scrubbed.as_str().contains(MASK), "{written} in {json}: {scrubbed:?}");
            assert!(serde_json::from_str::<serde_json::Value>(scrubbed.as_str()).is_ok());
        }
    }
    let list = json!({"before": ["x", "y"], "characters": characters, "pairs": ["a", &secret[..2], &secret[2..], "b"]});
    let scrubbed = scrubber.scrub_json(&Json::encode(&list)).to_value().unwrap();
    assert_eq!(scrubbed["before"], json!(["x", "y"]));
    assert!(scrubbed["characters"].as_array().unwrap().iter().all(|one| one == MASK), "{scrubbed}");
    assert_eq!(scrubbed["pairs"], json!(["a", MASK, MASK, "b"]));
    let twice = json!({secret: 1, format!("{secret} "): 2, format!(" {secret} "): 3});
    let scrubbed = scrubber.scrub_json(&Json::encode(&twice));
    assert!(!scrubbed.as_str().contains(secret));
    assert_eq!(scrubbed.to_value().unwrap().as_object().unwrap().len(), 3);
}

#[test]
fn what_is_like_a_known_secret_in_few_characters_only_stays() {
    let known = ["a!!!!!!b", "12345678", "correct-horse-9"].map(str::to_owned).to_vec();
    let scrubber = Scrubber::new(Config { enabled: true, known_secrets: known });
    for text in ["a b", "[12, 34, 56, 78]", "1234.5678", "correct the horse 9"] {
        assert_eq!(scrubber.scrub(text), text);
    }
    for text in ["a!!!!!!b", "1 2 3 4 5 6 7 8", "Correct: correct horse (9)"] {
        assert!(scrubber.scrub(text).contains(MASK), "{text}");
    }
}

#[test]
fn a_long_text_is_searched_for_what_is_spelt_out_from_chunk_to_chunk() {
    let secret = "s3cr3tTOKENvalue42zz";
    let scrubber = Scrubber::new(Config { enabled: true, known_secrets: vec![secret.into()] });
    let spelt = secret.chars().map(String::from).collect::<Vec<_>>().join("~");
    for n_before in (65_400..65_700).step_by(7) {
        let text = format!("{}~{spelt}~{}", "x".repeat(n_before), "y".repeat(70_000));
        let json = Json::encode(&json!({"text": text}));
        assert!(scrubber.scrub_json(&json).as_str().contains(MASK), "{n_before}");
    }
}

proptest! {
    #[test]
    fn nothing_between_the_characters_hides_a_known_secret(
        secret in "[a-zA-Z]{4,8}[0-9]{4,8}[a-zA-Z]{4,8}",
        between in prop::collection::vec("[^a-zA-Z0-9%\\\\]{0,3}", 24),
        before in "[^a-zA-Z0-9%\\\\]{0,5}", backwards: bool,
    ) {
        let scrubber =
            Scrubber::new(Config { enabled: true, known_secrets: vec![secret.clone()] });
        let written: String = match backwards {
            true => secret.chars().rev().zip(&between).map(|(c, gap)| format!("{c}{gap}")).collect(),
            false => secret.chars().zip(&between).map(|(c, gap)| format!("{c}{gap}")).collect(),
        };
        let text = format!("{before}{written}");
        prop_assert!(scrubber.scrub(&text).contains(MASK), "{}", text);
        let json = Json::encode(&json!([text]));
        prop_assert!(scrubber.scrub_json(&json).as_str().contains(MASK), "{}", text);
    }

    #[test]
    fn base64_hides_no_known_secret(
        before in prop::collection::vec(any::<u8>(), 0..7),
        secret in "[!-~]{8,40}",
        after in prop::collection::vec(any::<u8>(), 0..7),
    ) {
        use base64::Engine;
        use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
        let whole = [&before[..], secret.as_bytes(), &after[..]].concat();
        let scrubber =
            Scrubber::new(Config { enabled: true, known_secrets: vec![secret] });
        for text in [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
            prop_assert!(scrubber.scrub(&text).contains(MASK), "{}", text);
        }
    }
}

#[test]
fn what_is_known_to_be_secret_can_change() {
    let scrubber = Scrubber::default();
    let known = vec!["plain-looking".to_owned()];
    scrubber.copy_settings_from(&Scrubber::new(Config { enabled: true, known_secrets: known }));
    assert_eq!(scrubber.scrub("plain-looking"), MASK);
}

#[test]
fn only_what_has_a_telling_name_and_is_no_everyday_word_is_known_to_be_secret() {
    for (name, value, expected) in [
        ("GITHUB_TOKEN", "Zm9vYmFyMTIz", true),
        ("DB_PASSWORD", "p$ss(w0rd", true),
        ("DB_PASSWORD", "password", false),
        ("DB_PASSWORD", "short1", false),
        ("HOME", "/home/somebody", false),
        ("TOKEN_FILE", "/run/secrets/token1", false),
        ("SECRET_WORDS", "two words 123", false),
    ] {
        assert_eq!(looks_like_secret(name, value), expected, "{name}={value}");
    }
}

#[test]
fn switched_off_nothing_is_touched() {
    let scrubber = Scrubber::new(Config::default());
    let text = "password=hunter22";
    assert_eq!(scrubber.scrub(text), text);
}

#[test]
fn upstream_text_is_collapsed_as_in_the_vectors() {
    let text = include_str!("../tests/vectors/contextweaver_collapse.json");
    let vectors: Value = serde_json::from_str(text).unwrap();
    for case in vectors["redact"].as_array().unwrap() {
        assert_eq!(one_line_excerpt(case["in"].as_str().unwrap()), case["out"].as_str().unwrap());
    }
}

#[test]
fn a_secret_at_the_cut_is_masked_whole() {
    let text = format!("{} sk-proj-{}", "x".repeat(240), "b".repeat(40));
    let shown = Scrubber::default().scrub_to_line(&text);
    assert!(!shown.contains("sk-proj"), "{shown}");
}

#[test]
fn only_the_value_is_masked_whatever_it_stands_in() {
    let secret = "Zq8vT3nLw0XyR7bK";
    let cases = [
        r#"{"user":"bob","password":"Zq8vT3nLw0XyR7bK","email":"a@b.c","n":5}"#,
        r#"{"password":"Zq8vT3nLw0XyR7bK","rows":[1,2,3]}"#,
        r#"{"password": "Zq8vT3nLw0XyR7bK", "rows": [1, 2, 3]}"#,
        r#"[{"access_token":"Zq8vT3nLw0XyR7bK","id":[1]},{"access_token":"Zq8vT3nLw0XyR7bK"}]"#,
        r#"{"body":"{\"password\":\"Zq8vT3nLw0XyR7bK\",\"n\":[5]}","m":6}"#,
        r#"{"log":"password=Zq8vT3nLw0XyR7bK\nnext {1}"}"#,
        r#"{'password': 'Zq8vT3nLw0XyR7bK', 'rows': [1]}"#,
        "https://x.y/z?token=Zq8vT3nLw0XyR7bK&page=2&user=bob",
        r#"<a password="Zq8vT3nLw0XyR7bK" id="3">text</a>"#,
        "<a href=/x?token=Zq8vT3nLw0XyR7bK>text</a>",
        "password=Zq8vT3nLw0XyR7bK; path=/",
        "(secret: Zq8vT3nLw0XyR7bK).",
        "token_url=https://x.y/?password=Zq8vT3nLw0XyR7bK",
        r#"{"password":"Zq8vT3nLw0XyR7bK"#,
    ];
    for text in cases {
        masked(text, &text.replace(secret, MASK));
        masked(&text.replace(secret, MASK), &text.replace(secret, MASK));
    }
    masked(r#"{"secret":"a \"quoted\\"}"#, r#"{"secret":"a \"quoted\\"}"#);
    masked(r#"{"secret":"a\"quoted\\","n":1}"#, r#"{"secret":"[REDACTED-SECRET]","n":1}"#);
}

#[test]
fn members_beside_a_secret_and_numbers_stay() {
    kept(r#"{"token":1234567,"password":["a","b"],"secret":{"next":"abcdefgh"}}"#);
    kept(r#"{"a":"http://x:1","b":"me@example.org"}"#);
    masked(
        r#"{"key":"-----BEGIN PRIVATE KEY-----\nMIIE","n":5}"#,
        r#"{"key":"[REDACTED-SECRET]","n":5}"#,
    );
}

#[test]
fn a_text_full_of_beginnings_is_read_in_a_moment() {
    let scrubber = Scrubber::default();
    for piece in [
        "-----BEGIN PRIVATE KEY-----\"",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN A PRIVATE KEY",
        "-----END PRIVATE KEY-----\"",
        "-----END PRIVATE KEY----------BEGIN PRIVATE KEY-----\" ",
        "AKIA",
        "AIza",
        "ghp_",
        "xoxb-",
        "sk-ant-",
        "sk-proj-",
        "github_pat_",
        "xapp-1-",
        "sk_live_",
        "SG.aaaaaaaaaaaaaaaa",
        "SG.aaaaaaaaaaaaaaaa.",
        "eyJaaaaa",
        "eyJaaaaa.",
        "eyJaaaaa.eyJaaaaa",
        "a://b:",
        "a://b:c",
        "a://b:c@",
        "a",
        "://",
        "bearer ",
        "bearer aaaaaaaaaa",
        "bearer =",
        " ",
        "\\",
        "\"",
        "token",
        "token ",
        "token:",
        "token=\"",
        "token:'x\"",
        "secret=\\\"",
        "{\"password\":\"",
        "pwd=(",
    ] {
        let text = piece.repeat(20_000);
        scrubber.scrub(&format!("{text}("));
        scrubber.scrub_json(&Json::encode(&text));
        // As text that cannot be read as a tree.
        let unread = format!("[{}, \"\\ud800\"]", Json::encode(&text));
        scrubber.scrub_json(&Json::parse(unread).unwrap());
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let text = "[A-Za-z0-9 ,;&{}\\[\\]()<>\"'\\\\/\n-]{0,24}";
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
        text.prop_map(Value::from),
        "[A-Za-z0-9]{8,20}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("password".to_owned()),
        Just("access_token".to_owned()),
        Just("api-key".to_owned()),
        Just("rows".to_owned()),
        "[a-z\"\\\\ ]{1,6}",
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Returns whether two values differ in masked strings under telling keys only.
fn differs_in_masks(key: &str, before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| {
                    other.get(key).is_some_and(|other| differs_in_masks(key, value, other))
                })
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| differs_in_masks("", one, other))
        }
        (Value::String(_), Value::String(mask)) if mask == MASK => {
            ["password", "access_token", "api-key"].contains(&key)
        }
        (one, other) => one == other,
    }
}

static SCRUBBER: LazyLock<Scrubber> = LazyLock::new(Scrubber::default);

proptest! {
    #[test]
    fn json_stays_json_with_everything_else_in_it(value in any_json(), pretty: bool, deep: bool) {
        let inner = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let inner = inner.unwrap();
        // JSON in a string of a JSON text, too.
        let text = if deep { json!([inner]).to_string() } else { inner };
        let scrubbed = SCRUBBER.scrub(&text).into_owned();
        let read: Value = serde_json::from_str(&scrubbed).unwrap();
        let read = match deep {
            true => serde_json::from_str(read[0].as_str().unwrap()).unwrap(),
            false => read,
        };
        prop_assert!(differs_in_masks("", &value, &read), "{text}\n{scrubbed}");
    }
}

/// JSON that can be forwarded but not read as a tree is masked all the same.
#[track_caller]
fn masked_unread(json: &str, expected: &str) {
    let json = Json::parse(json.to_owned()).unwrap();
    assert!(json.to_value().is_err());
    assert_eq!(Scrubber::default().scrub_json(&json).as_str(), expected);
}

#[test]
fn half_a_character_hides_no_secret() {
    masked_unread(
        r#"{"a" : "cut \ud83d", "b":["AKIAIOSFODNN7ABCDEFG"]}"#,
        r#"{"a" : "cut \ud83d", "b":["[REDACTED-SECRET]"]}"#,
    );
    masked_unread(
        r#"{"text":"x\nAKIAIOSFODNN7ABCDEFG \ud83d y","n":1e400}"#,
        r#"{"text":"x\n[REDACTED-SECRET] � y","n":1e400}"#,
    );
    masked_unread(
        r#"{"client_secret": "Zm9vYmFyMTIz", "name": "\ud800"}"#,
        r#"{"client_secret": "[REDACTED-SECRET]", "name": "\ud800"}"#,
    );
}

#[test]
fn a_secret_that_does_not_end_takes_no_other_string_with_it() {
    masked_unread(
        r#"["-----BEGIN PRIVATE KEY-----abc","\ud800","-----END PRIVATE KEY-----"]"#,
        r#"["[REDACTED-SECRET]","\ud800","-----END PRIVATE KEY-----"]"#,
    );
}

#[test]
fn depth_hides_no_secret() {
    let deep = |text: &str| format!("{}\"{text}\"{}", "[".repeat(200), "]".repeat(200));
    masked_unread(&deep("AKIAIOSFODNN7ABCDEFG"), &deep(MASK));
}

#[test]
fn the_password_of_a_url_is_masked_whole() {
    masked("postgres://user:p@ss@host/db", "postgres://user:[REDACTED-SECRET]@host/db");
    masked("postgres://user:@@@@@host", "postgres://user:[REDACTED-SECRET]@host");
    masked("redis://:hunter2@host:6379/0", "redis://:[REDACTED-SECRET]@host:6379/0");
    masked("a://u:p@h, b://v:q@w@i", "a://u:[REDACTED-SECRET]@h, b://v:[REDACTED-SECRET]@i");
    kept("http://localhost:8080/@user and me@example.org");
}

#[test]
fn an_escape_hides_no_secret() {
    for (json, expected) in [
        (r#"["postgres:\/\/u:p@ss@host"]"#, r#"["postgres://u:[REDACTED-SECRET]@host"]"#),
        (r#"["\u0041KIAIOSFODNN7ABCDEFG"]"#, r#"["[REDACTED-SECRET]"]"#),
        (r#"{"pass\u0077ord":"s3cr3t-stuff"}"#, r#"{"password":"[REDACTED-SECRET]"}"#),
    ] {
        let json = Json::parse(json.to_owned()).unwrap();
        assert_eq!(Scrubber::default().scrub_json(&json).as_str(), expected);
    }
}

proptest! {
    #[test]
    fn no_part_of_a_password_in_a_url_is_left(
        user in "[a-z]{0,6}", password in "[a-zA-Z0-9@:!#$%^&*()_+=,.;?~-]{1,20}", host in "[a-z]{1,8}",
    ) {
        let text = format!("x postgres://{user}:{password}@{host}/db y");
        let expected = format!("x postgres://{user}:{MASK}@{host}/db y");
        prop_assert_eq!(SCRUBBER.scrub(&text).into_owned(), expected);
    }
}
