//! Hostile arguments change nothing and leak nothing.

use content::{Config, SENSITIVE};
use proptest::prelude::*;
use proptest::test_runner::{Config as Runs, TestRunner};
use serde_json::{Value, json};
use tool::{Ask, Call, Context, Json, Provider, Reply};

use crate::ask::{ids, try_call};

const MODELS: [&str; 13] = [
    "SiteTemplate",
    "SiteTmplvar",
    "SiteTmplvarContentvalue",
    "SiteSnippet",
    "SitePlugin",
    "SiteModule",
    "Category",
    "User",
    "UserAttribute",
    "UserRole",
    "Permissions",
    "PermissionsGroups",
    "RolePermissions",
];

const OPERATORS: [&str; 15] = [
    "=", "!=", ">", ">=", "<", "<=", "in", "not_in", "like", "like-l", "like-r", "null", "!null",
    "is", "or 1=1",
];

/// What the sample site keeps in its sensitive columns.
const SECRETS: [&str; 5] = ["0192023a7bbd73250516f069df18b500", "RT-1", "AT-1", "VK-1", "SESS-1"];

fn nasty() -> Vec<String> {
    let mut list: Vec<String> = [
        "'",
        "\"",
        "`",
        "\\",
        "%",
        "_",
        "|",
        "||",
        "%|",
        "a\\",
        "?",
        "$1",
        ":x",
        ";--",
        "/*",
        "*/",
        "' or '1'='1",
        "\" or \"1\"=\"1",
        "'; drop table evo_users; --",
        "\u{0}",
        "a\u{0}b",
        "\u{feff}",
        "\u{202e}",
        "🦀",
        "é",
        "e\u{301}",
        "-0",
        "1e308",
        "1e999",
        "0x10",
        "NaN",
        "+1",
        "99999999999999999999",
        "%%%%%%%%%%",
        "\n",
        "\t1",
        "null",
        "true",
        "[]",
        "{}",
        "{{x}}",
        "@SELECT password FROM users",
    ]
    .map(str::to_owned)
    .to_vec();
    list.push("%a".repeat(4_000));
    list.push("x".repeat(1_000_000));
    list
}

/// How many of the nasty texts are put into every argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    All,
    /// Few of them, for an engine that answers over a socket.
    Some,
}

/// Every text argument of every tool, with nasty texts in it.
pub(crate) async fn check(provider: &dyn Provider, effort: Effort) {
    let context = Context::anonymous();
    let everything = json!({"limit": 100});
    let before = try_call(provider, &context, "evo.content.search", &everything).await.unwrap();
    for (at, text) in nasty().into_iter().enumerate() {
        // One operator after the other; every text meets the trickiest one.
        for op in [OPERATORS[at % OPERATORS.len()], "like-l"] {
            for arguments in searches(&text, op) {
                sane(provider, &context, "evo.content.search", &arguments).await;
            }
            for field in ["templatename", "id"] {
                let filter = json!({"field": field, "op": op, "value": text});
                let arguments =
                    json!({"model": "SiteTemplate", "limit": 5, "filters": {"where": [filter]}});
                sane(provider, &context, "evo.model.list", &arguments).await;
            }
        }
        let worst = text.contains('\0') || text.len() > 500_000 || text == "'";
        if effort == Effort::All || worst {
            everywhere(provider, &context, &text).await;
        }
    }
    let after = try_call(provider, &context, "evo.content.search", &everything).await.unwrap();
    assert_eq!(before, after);
    assert_eq!(ids(&after).len(), 40);
}

/// The text in every argument of every tool that is listed: as it is, and at
/// every place within those that are lists or objects.
async fn everywhere(provider: &dyn Provider, context: &Context, text: &str) {
    let mut n_arguments = 0;
    for tool in &provider.listing().tools {
        let definition = tool.raw.to_value().unwrap();
        let properties = definition["inputSchema"]["properties"].as_object().unwrap();
        for (name, property) in properties {
            n_arguments += 1;
            let mut forms = vec![json!(text)];
            let nests =
                !matches!(property["type"].as_str(), Some("string" | "integer" | "boolean"));
            if nests && text.len() < 1_000 {
                forms.push(json!([text]));
                let term = json!({"tv": text, "op": text, "value": text, "dir": text,
                    "cast": text, "use_default": text});
                forms.push(json!([term]));
                forms.push(json!({"tv_id": text, "tags": [text], text: text}));
                let condition = json!({"field": text, "op": text, "value": [text]});
                forms.push(json!({"where": [condition]}));
            }
            for form in forms {
                let mut arguments =
                    json!({"id": 1, "limit": 1, "from": 0, "model": "SiteTemplate"});
                arguments[name] = form;
                sane(provider, context, &tool.name, &arguments).await;
            }
        }
    }
    assert!(60 < n_arguments, "only {n_arguments} arguments are declared");
}

fn searches(text: &str, op: &str) -> Vec<Value> {
    let mut list = Vec::new();
    if op == "like-l" {
        for key in ["parent", "published", "depth", "order_by", "order_by_date", "offset"] {
            let mut arguments = json!({"limit": 3});
            arguments[key] = json!(text);
            list.push(arguments);
        }
        list.push(json!({"limit": 3, "with_tvs": [text]}));
        list.push(json!({"limit": 3, "tv_filters": [{"tv": text, "op": "=", "value": "1"}]}));
        list.push(json!({"limit": 3, "tv_order": [{"tv": text, "dir": text, "cast": text}]}));
        list.push(json!({"limit": 3, "tags_data": {"tv_id": 17, "tags": [text]}}));
    }
    for cast in [None, Some("DECIMAL(10,2)")] {
        let filter =
            json!({"tv": "price", "op": op, "value": text, "cast": cast, "use_default": true});
        list.push(json!({"limit": 3, "tv_filters": [filter]}));
    }
    list
}

/// Answered or refused as bad arguments; never broken, never leaking.
async fn sane(provider: &dyn Provider, context: &Context, tool: &str, arguments: &Value) {
    let shown: String = arguments.to_string().chars().take(300).collect();
    let outcome = try_call(provider, context, tool, arguments).await;
    let outcome = outcome.unwrap_or_else(|failure| panic!("{failure}: {tool} {shown}"));
    let code = outcome["code"].as_i64().unwrap_or(-32602);
    assert_eq!(code, -32602, "{outcome} for {tool} {shown}");
    assert!(outcome["invalid"].as_str().unwrap_or_default().len() < 5_000);
    let text = outcome["ok"].to_string();
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} leaked by {tool} {shown}");
    }
    for name in SENSITIVE {
        assert!(!text.contains(&format!("\"{name}\":")), "{name} leaked by {tool} {shown}");
    }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3..120_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[0-9.+-]{0,6}".prop_map(Value::from),
        proptest::sample::select(SENSITIVE).prop_map(Value::from),
        proptest::sample::select(vec!["price", "color:d", "asc", "desc", "id", "*", "a"])
            .prop_map(Value::from),
    ]
}

fn anything() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map("[a-z_.*]{0,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn field() -> impl Strategy<Value = String> {
    let known = ["id", "username", "email", "internalKey", "name", "value", "role_id", "disabled"];
    let all: Vec<&str> = known.iter().chain(SENSITIVE).copied().collect();
    prop_oneof![
        4 => proptest::sample::select(all).prop_map(str::to_owned),
        1 => "[A-Za-z_. ]{0,14}",
    ]
}

fn condition() -> impl Strategy<Value = Value> {
    (field(), proptest::sample::select(OPERATORS.to_vec()), anything())
        .prop_map(|(field, op, value)| json!({"field": field, "op": op, "value": value}))
}

fn tv_condition() -> impl Strategy<Value = Value> {
    let cast = proptest::option::of(proptest::sample::select(vec!["SIGNED", "DECIMAL(9,2)", "X"]));
    (scalar(), proptest::sample::select(OPERATORS.to_vec()), anything(), cast, any::<bool>())
        .prop_map(|(tv, op, value, cast, use_default)| {
            json!({"tv": tv, "op": op, "value": value, "cast": cast, "use_default": use_default})
        })
}

/// A tool and arguments for it: known names with sensible, odd and absurd
/// values.
fn question() -> impl Strategy<Value = (String, Value)> {
    let tools = [
        "content.search",
        "content.get",
        "content.root_tree",
        "content.descendants",
        "content.ancestors",
        "content.children",
        "content.siblings",
        "content.neighbors",
        "content.prev_siblings",
        "content.next_siblings",
        "content.children_range",
        "content.siblings_range",
        "model.list",
        "model.get",
    ];
    let names = [
        "parent",
        "published",
        "deleted",
        "template",
        "hidemenu",
        "depth",
        "order_by",
        "order_dir",
        "order_by_date",
        "from",
        "to",
        "offset",
        "model",
        "filters",
        "tags_data",
        "with_tvs",
    ];
    let odd =
        proptest::collection::hash_map(proptest::sample::select(names.to_vec()), anything(), 0..3);
    let where_ = proptest::collection::vec(condition(), 0..3);
    let filters = proptest::collection::vec(tv_condition(), 0..3);
    let model = proptest::sample::select(MODELS.to_vec());
    let base = (model, 0..90_i64, 1..101_i64, where_, filters, field());
    (proptest::sample::select(tools.to_vec()), base, odd).prop_map(|(tool, base, odd)| {
        let (model, id, limit, where_, filters, order) = base;
        let mut arguments = json!({
            "model": model, "id": id, "limit": limit, "from": 0,
            "filters": {"where": where_}, "tv_filters": filters,
        });
        if tool == "model.list" {
            arguments["order_by"] = json!(order);
        }
        for (name, value) in odd {
            arguments[name] = value;
        }
        (format!("evo.{tool}"), arguments)
    })
}

/// The property over every tool, model and field list, `n_cases` times.
pub(crate) fn any_question_is_answered_sanely(config: &Config, n_cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let provider = runtime.block_on(content::open(config)).unwrap();
    let context = Context::anonymous();
    let runs = Runs { cases: n_cases, failure_persistence: None, ..Runs::default() };
    TestRunner::new(runs)
        .run(&question(), |(tool, arguments)| {
            runtime.block_on(sane(&*provider, &context, &tool, &arguments));
            Ok(())
        })
        .unwrap();
}

#[test]
fn no_tool_model_or_field_list_shows_a_secret_or_breaks() {
    any_question_is_answered_sanely(&Config::sample(), 2_000);
}

#[tokio::test]
async fn every_sensitive_field_is_refused_by_name_in_every_model() {
    let provider = content::open(&Config::sample()).await.unwrap();
    let context = Context::anonymous();
    for model in MODELS {
        for field in SENSITIVE {
            let condition = json!({"field": field, "op": "like", "value": "0"});
            for arguments in [
                json!({"model": model, "limit": 1, "filters": {"where": [condition]}}),
                json!({"model": model, "limit": 1, "order_by": field}),
            ] {
                let outcome = try_call(&*provider, &context, "evo.model.list", &arguments).await;
                let message = format!("Field [{field}] is not allowlisted for model [{model}].");
                assert_eq!(outcome.unwrap()["invalid"], message);
            }
        }
        let all = json!({"model": model, "limit": 100});
        sane(&*provider, &context, "evo.model.list", &all).await;
    }
}

#[tokio::test]
async fn arguments_that_are_no_text_are_refused() {
    let provider = content::open(&Config::sample()).await.unwrap();
    let raw = tool::Json::parse(r#"{"limit":1,"order_by":"\ud800"}"#).unwrap();
    let call = tool::Call::new("evo.content.search", raw);
    let reply = provider.ask(tool::Ask::Call(call), &Context::anonymous()).await.unwrap();
    assert!(matches!(reply, tool::Reply::Error(error) if error.code == -32602));
}

proptest! {
    #![proptest_config(Runs::with_cases(24))]

    /// However deep arguments are nested, they are answered with an error.
    #[test]
    fn nesting_without_end_is_refused(
        depth in prop_oneof![1..200usize, 1_000..200_000usize],
        open in prop_oneof![Just("["), Just("{\"a\":")],
        key in prop_oneof![Just("tv_filters"), Just("with_tvs"), Just("limit")],
    ) {
        let close = if open == "[" { "]" } else { "}" };
        let nested = format!("{}1{}", open.repeat(depth), close.repeat(depth));
        let arguments = format!("{{\"{key}\":{nested}}}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refused = runtime.block_on(async {
            let site = content::open(&Config::sample()).await.unwrap();
            // What is too deep may be no message at all.
            let Ok(arguments) = Json::parse(arguments) else { return true };
            let call = Ask::Call(Call::new("evo.content.search", arguments));
            let reply = site.ask(call, &Context::anonymous()).await;
            depth <= 8 || matches!(reply, Ok(Reply::Error(_)))
        });
        prop_assert!(refused);
    }
}
