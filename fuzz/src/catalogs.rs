//! What upstreams list: definitions, schemas, names, and words to search for.

use catalog::Contract;
use testkit::fuzz::Dictionary;
use tool::{Json, Object, Tool};

use crate::{JSON, Target, halves, text};

/// A schema, a line end, and arguments for it.
static SCHEMAS: Dictionary = Dictionary {
    seeds: &[
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]}\n{\"a\":1}",
        "{\"$defs\":{\"n\":{\"anyOf\":[{\"$ref\":\"#/$defs/n\"}]}},\"$ref\":\"#/$defs/n\"}\n{}",
        "{\"properties\":{\"a\":{\"enum\":[1,\"b\"],\"default\":1},\"b\":{\"pattern\":\"^(a+)+$\"}}}\n{\"b\":\"aaaa\"}",
    ],
    words: &[
        "{",
        "}",
        "[",
        "]",
        "\"",
        "{\"anyOf\":[",
        "{\"properties\":{\"a\":",
        "\"$ref\":\"#\"",
        "\"items\":",
        "{\"not\":",
        "\"allOf\":[{},",
        "\"type\":[\"object\",\"null\"]",
        ",",
        ":",
        "\"minimum\":1e308",
        "\"pattern\":\"(\"",
        "\"const\":",
        "\"required\":[\"a\"]",
    ],
};

static NAMES: Dictionary = Dictionary {
    seeds: &["files.read_text-file", "github:create_issue#34afee88", "send an e-mail to the boss"],
    words: &[
        ".", "_", "-", ":", "#", "/", " ", "ß", "İ", "ﬁ", "日本", "a", "A", "9", "..", "\u{301}",
    ],
};

static TOOLS: Dictionary = Dictionary {
    seeds: &[
        r#"{"name":"a","description":"Reads. Then more.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#,
    ],
    words: JSON,
};

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "schema", dictionary: &SCHEMAS, check: schema },
    Target { name: "tool", dictionary: &TOOLS, check: tool },
    Target { name: "name", dictionary: &NAMES, check: name },
    Target { name: "tokens", dictionary: &NAMES, check: tokens },
];

fn schema(bytes: &[u8]) {
    let (schema, arguments) = halves(bytes);
    let Ok(schema) = Json::parse(schema.to_vec()) else { return };
    let contract = Contract::parse(&schema);
    let _ = (contract.sample(), contract.shapes().len(), contract.schema_error());
    let _ = catalog::signature::shaped("a", &contract, 200);
    let Ok(arguments) = Json::parse(arguments.to_vec()) else { return };
    if let Ok(object) = Object::parse(&arguments) {
        let _ = contract.normalize(&object);
    }
    if let Ok(value) = arguments.to_value() {
        let _ = contract.check(&value);
    }
}

fn tool(bytes: &[u8]) {
    let Ok(json) = Json::parse(bytes.to_vec()) else { return };
    let Ok(tool) = Tool::parse(json) else { return };
    let _ = catalog::id::of_tool("upstream", &tool);
}

fn name(bytes: &[u8]) {
    let text = text(bytes);
    let canonical = catalog::name::canonical(&text);
    assert_eq!(catalog::name::canonical(&canonical), canonical, "canonical once, canonical again");
    let _ = (catalog::name::alias(&text), catalog::name::path(&text));
    let _ = text.parse::<catalog::id::ToolId>();
    let _ = catalog::nearest::rank_by_similarity(&text, ["read_file", "send_mail"]);
    let short = catalog::summary::cut(&text, 80);
    assert!(short.chars().count() <= 81, "a cut is short");
}

fn tokens(bytes: &[u8]) {
    let text = text(bytes);
    let count = catalog::tokens::count(&text);
    assert!(catalog::tokens::fits(&text, count), "what was counted fits");
}
