//! What the modes list.

/// One page of tools, and the cursor of the next.
pub(crate) fn tools(mode: &str, cursor: Option<&str>, n_added: usize) -> String {
    let mut next = None;
    let tools: Vec<String> = match (mode, cursor) {
        ("many", _) => (0..20_000).map(|n| plain(&format!("tool_{n}"))).collect(),
        ("duplicates", _) => vec![plain("same"), plain("same"), plain("other")],
        ("deep", _) => {
            let deep = "{\"items\":".repeat(5_000) + "{}" + &"}".repeat(5_000);
            vec![with_schema("deep", &deep), with_schema("invalid", r#"{"type":17}"#), plain("ok")]
        }
        ("damaged", _) => vec![plain("ok"), "42".to_owned(), r#"{"title":"nameless"}"#.to_owned()],
        ("circle", _) => {
            next = Some("round".to_owned());
            vec![plain("again")]
        }
        ("endless", cursor) => {
            let page = cursor.and_then(|page| page.parse().ok()).unwrap_or(0);
            next = Some((page + 1).to_string());
            vec![plain(&format!("tool_{page}"))]
        }
        ("blank", _) => {
            next = Some(String::new());
            vec![plain("once")]
        }
        ("pages", cursor) => {
            let page = cursor.map_or(0, |cursor| cursor.trim_start_matches('p').parse().unwrap_or(9));
            next = (page < 2).then(|| format!("p{}", page + 1));
            vec![plain(&format!("tool_{page}"))]
        }
        _ => vec![
            plain("say"),
            r#"{"name":"odd","inputSchema":{"type":"object","x":1e400},"execution":{"taskSupport":"optional"},"x-vendor":[1 ,2],"annotations":{"audience":["robots"]}}"#.to_owned(),
        ],
    };
    let added = (0..n_added).map(|n| plain(&format!("added_{n}")));
    let tools: Vec<String> = tools.into_iter().chain(added).collect();
    let next = next.map(|next| format!(r#","nextCursor":"{next}""#)).unwrap_or_default();
    let hints = if mode == "modern" {
        r#","resultType":"complete","ttlMs":5,"cacheScope":"private""#
    } else {
        ""
    };
    format!(r#"{{"tools":[{}]{next}{hints}}}"#, tools.join(","))
}

fn plain(name: &str) -> String {
    with_schema(name, r#"{"type":"object"}"#)
}

fn with_schema(name: &str, schema: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#)
}
