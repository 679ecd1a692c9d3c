//! A small shop behind gatelet, for tests.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use testkit::{Scripted, listing, tool};

pub(crate) use testkit::scripts::{Hung, settle};
use tool::{Ask, Call, Client, Context, Failure, Json, Provider, Reply};

use crate::choice::Surface;
use crate::gateway::{Gateway, GatewayParts};
use crate::record::RecentRecords;
use roster::{Connector, Upstream};
use tool::clock::Fake;

/// Opens what it is told to, and counts.
pub(crate) struct Scripts(Arc<testkit::scripts::Scripts>);

impl Scripts {
    /// `connect` is given how many sessions were asked for before.
    pub(crate) fn new(
        connect: impl Fn(usize, &Client) -> Result<Arc<dyn Provider>, Failure> + Send + Sync + 'static,
    ) -> Arc<Scripts> {
        Arc::new(Scripts(testkit::scripts::Scripts::new(connect)))
    }

    /// Always this provider.
    pub(crate) fn of(provider: Arc<Scripted>) -> Arc<Scripts> {
        Arc::new(Scripts(testkit::scripts::Scripts::of(provider)))
    }

    pub(crate) fn opened(&self) -> usize {
        self.0.opened()
    }
}

#[async_trait]
impl Connector for Scripts {
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        self.0.open(client)
    }
}

/// Orders, with sub-namespaces and an answer that is too long.
pub(crate) fn orders() -> Arc<Scripted> {
    let order = json!({
        "type": "object",
        "properties": {
            "customer_id": {"type": "string", "description": "Who orders."},
            "items": {"type": "array", "items": {"type": "object"}},
            "notes": {"type": "string"},
        },
        "required": ["customer_id", "items"],
    });
    let filter = json!({"properties": {"status": {"type": "string"}, "since": {"type": "string"}}});
    let by_id = json!({"properties": {"order_id": {"type": "string"}}, "required": ["order_id"]});
    let tools = vec![
        tool("create", "Create a new order.", &order),
        tool("get", "Retrieve an order by ID.", &by_id),
        tool("list", "List orders with optional filters.", &filter),
        tool("cancel", "Cancel an existing order.", &by_id),
        tool("summary", "Aggregate order statistics.", &json!({})),
        tool("retail.create", "Create a retail order.", &order),
        tool("wholesale.create", "Create a wholesale order.", &order),
    ];
    Scripted::new(listing(tools), |ask| {
        Ok(match ask {
            Ask::Call(call) if call.name == "list" => Reply::text(&rows().to_string()),
            Ask::Call(call) => {
                let given = call.arguments.clone().unwrap_or_else(Json::empty_object);
                Reply::text(&format!("{} {given}", call.name))
            }
            Ask::ReadResource(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                Reply::text(ask.method())
            }
        })
    })
}

/// 4,821 rows in about 48,000 characters.
pub(crate) fn rows() -> Value {
    Value::Array((1000..5821).map(|n| json!({"o": n})).collect())
}

pub(crate) fn one(label: &str, name: &str, description: &str, schema: &Value) -> Upstream {
    let provider = Scripted::new(listing(vec![tool(name, description, schema)]), |ask| {
        let Ask::Call(call) = ask else { return Ok(Reply::text("?")) };
        let given = call.arguments.clone().unwrap_or_else(Json::empty_object);
        Ok(Reply::text(&format!("{} {given}", call.name)))
    });
    Upstream::new(label, Scripts::of(provider))
}

/// The whole shop.
pub(crate) fn shop() -> (Vec<Upstream>, Arc<Scripted>) {
    let provider = orders();
    let described = |upstream: Upstream, words: &str| Upstream {
        description: Some(words.to_owned()),
        ..upstream
    };
    let upstreams = vec![
        described(
            Upstream::new("orders", Scripts::of(Arc::clone(&provider))),
            "Place and follow customer purchases.",
        ),
        described(
            one(
                "inventory",
                "check",
                "Check stock.",
                &json!({"properties": {"product_id": {"type": "string"}, "quantity": {"type": "integer"}}}),
            ),
            "Query and update stock levels.",
        ),
        described(
            one(
                "crm",
                "contact_update",
                "Update a contact.",
                &json!({"properties": {"contact_id": {"type": "string"}}}),
            ),
            "Manage contacts and accounts.",
        ),
    ];
    (upstreams, provider)
}

/// A gateway whose upstreams are all up.
pub(crate) struct Opened {
    pub(crate) gateway: Gateway,
    pub(crate) surface: Arc<dyn Provider>,
    pub(crate) records: Arc<RecentRecords>,
}

pub(crate) async fn open(
    upstreams: Vec<Upstream>,
    change: impl FnOnce(&mut GatewayParts),
) -> Opened {
    let records = Arc::new(RecentRecords::new(100));
    let mut parts = GatewayParts::new(upstreams, Arc::new(Fake::default()));
    parts.observers.records = Arc::clone(&records) as _;
    change(&mut parts);
    let gateway = Gateway::new(parts);
    let client = Arc::new(Client::named("test", ""));
    let surface = gateway.surface(Surface::Cash).provider_for(&client, &Arc::default());
    settle().await;
    Opened { gateway, surface, records }
}

impl Opened {
    /// Calls one of the three tools; the text of the answer, `!` before errors.
    pub(crate) async fn say(&self, tool: &str, arguments: Value) -> String {
        let reply = self.ask(tool, arguments).await;
        let result = reply.tool_result().unwrap_or_else(|| panic!("{reply:?}"));
        let mark = if result.is_error { "!" } else { "" };
        format!("{mark}{}", result.text())
    }

    pub(crate) async fn ask(&self, tool: &str, arguments: Value) -> Reply {
        let ask = Ask::Call(Call::new(tool, arguments.into()));
        self.surface.ask(ask, &Context::anonymous()).await.unwrap()
    }
}

/// Tokens of definitions as hosts pass them to models: without what is for the
/// hosts themselves.
pub(crate) fn read_by_models(tools: &[tool::Tool]) -> usize {
    let read = |tool: &tool::Tool| {
        let mut raw: serde_json::Map<String, Value> = tool.raw.parse_as().unwrap();
        raw.retain(|key, _| !["title", "annotations", "_meta"].contains(&key.as_str()));
        Value::Object(raw)
    };
    let read: Vec<Value> = tools.iter().map(read).collect();
    catalog::tokens::count(Json::encode(&read).as_str())
}
