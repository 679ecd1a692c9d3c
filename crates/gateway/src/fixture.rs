//! A small shop behind the gate, for tests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use testkit::{Scripted, listing, tool};
use tool::{Ask, Call, Client, Context, Event, Failure, Json, Listing, Provider, Reply};

use crate::choice::Surface;
use crate::clock::Fake;
use crate::gateway::{Gateway, Parts};
use crate::record::Ledger;
use crate::roster::{Connector, Upstream};

type Connect = dyn Fn(usize, &Client) -> Result<Arc<dyn Provider>, Failure> + Send + Sync;

/// Opens what it is told to, and counts.
pub(crate) struct Scripts {
    connect: Box<Connect>,
    pub(crate) opened: AtomicUsize,
    pub(crate) clients: Mutex<Vec<Client>>,
}

impl Scripts {
    /// `connect` is given how many sessions were asked for before.
    pub(crate) fn new(
        connect: impl Fn(usize, &Client) -> Result<Arc<dyn Provider>, Failure> + Send + Sync + 'static,
    ) -> Arc<Scripts> {
        Arc::new(Scripts {
            connect: Box::new(connect),
            opened: AtomicUsize::new(0),
            clients: Mutex::default(),
        })
    }

    /// Always this provider.
    pub(crate) fn of(provider: Arc<Scripted>) -> Arc<Scripts> {
        Scripts::new(move |_, _| Ok(Arc::clone(&provider) as _))
    }

    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Connector for Scripts {
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let before = self.opened.fetch_add(1, Ordering::SeqCst);
        self.clients.lock().unwrap().push(client.clone());
        (self.connect)(before, client)
    }
}

/// Lists, and never answers.
pub(crate) struct Hung(pub(crate) Arc<Scripted>);

#[async_trait]
impl Provider for Hung {
    fn listing(&self) -> Arc<Listing> {
        self.0.listing()
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.0.events()
    }

    async fn ask(&self, _: Ask, _: &Context) -> Result<Reply, Failure> {
        std::future::pending().await
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
            Ask::Read(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
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
    pub(crate) records: Arc<Ledger>,
}

pub(crate) async fn open(upstreams: Vec<Upstream>, change: impl FnOnce(&mut Parts)) -> Opened {
    let records = Arc::new(Ledger::new(100));
    let mut parts = Parts::new(upstreams, Arc::new(Fake::default()));
    parts.records = Arc::clone(&records) as _;
    change(&mut parts);
    let gateway = Gateway::new(parts);
    let client = Arc::new(Client::named("test", ""));
    let surface = gateway.surface(Surface::Cash).provider_for(&client, &Arc::default());
    settle().await;
    Opened { gateway, surface, records }
}

/// Lets everything that is under way happen. Time is paused in these tests.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(200)).await;
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
