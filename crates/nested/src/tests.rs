use std::sync::Mutex;

use super::*;

/// A small CaSH server that remembers what it was asked.
#[derive(Default)]
struct Cash {
    asked: Mutex<Vec<(String, serde_json::Value)>>,
    /// The page of `orders`, where it is another one than usual.
    orders: Option<String>,
    /// The page of every function, likewise.
    function: Option<String>,
}

#[async_trait]
impl Provider for Cash {
    fn listing(&self) -> Arc<Listing> {
        let tool = |name: &str| {
            let schema = json!({"type": "object", "properties": {"function": {"type": "string"}}});
            Tool::parse(json!({"name": name, "inputSchema": schema}).into()).unwrap()
        };
        let tools = ["call", "help", "skill"].map(tool).to_vec();
        Arc::new(Listing { tools, ..Listing::default() })
    }

    fn events(&self) -> BoxStream<'static, Event> {
        futures::stream::pending().boxed()
    }

    async fn ask(&self, ask: Ask, _: &Context) -> Result<Reply, Failure> {
        let Ask::Call(call) = ask else { panic!("only the three tools are asked") };
        let arguments = call.arguments.unwrap().to_value().unwrap();
        self.asked.lock().unwrap().push((call.name.clone(), arguments.clone()));
        let at = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
        Ok(match (call.name.as_str(), at("namespace").as_str(), at("function").as_str()) {
            ("help", "orders", "") if self.orders.is_some() => {
                Reply::text(self.orders.as_deref().unwrap())
            }
            ("help", _, function) if !function.is_empty() && self.function.is_some() => {
                Reply::text(self.function.as_deref().unwrap())
            }
            ("help", "", "") => Reply::text("# Namespaces\n\n- **orders** — Orders.\n"),
            ("help", "orders", "") => Reply::text(
                "# orders\n\n## Sub-namespaces\n\n- **retail** — Retail.\n- **deep** — Deep.\n\n## Functions\n\n- **list** — List.\n",
            ),
            ("help", "orders.retail", "") => {
                Reply::text("## Functions\n\n- **create** — Make one.\n")
            }
            // As deep as anybody likes.
            ("help", deep, "") if deep.starts_with("orders.deep") => {
                Reply::text("## Sub-namespaces\n\n- **deep** — Deeper.\n")
            }
            ("help", ..) => Reply::text(
                "| Name | Type | Required |\n|---|---|---|\n| item | string | yes |\n| n | integer | no |\n",
            ),
            ("skill", "long", _) if arguments["kwargs"]["sizelimit"].is_null() => {
                let meta = json!({"cash/gated": {"suggested": 12_000}});
                let content = json!([{"type": "text", "text": "**Gated:** …"}]);
                Reply::Result(json!({"content": content, "_meta": meta}).into())
            }
            ("skill", "long", _) => Reply::text("# long\n\nAll of it."),
            ("skill", "orders", _) => Reply::text("# refund\n\nDo it."),
            ("skill", ..) => {
                Reply::text("# Skills\n\n## namespace orders\n\n- **refund** — Refund.\n")
            }
            (_, "orders", "list") => Reply::structured(&json!({"rows": [1, 2]})),
            _ => Reply::error_text("no"),
        })
    }
}

struct Direct(Arc<Cash>);

#[async_trait]
impl OpenSession for Direct {
    async fn open(&self, _: &Client) -> Result<OpenedSession, Failure> {
        Ok(OpenedSession {
            upstream: Arc::clone(&self.0) as _,
            listing_session: Arc::clone(&self.0) as _,
        })
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        None
    }
}

/// A server that only answers callers with a name.
struct Named(Arc<Cash>);

#[async_trait]
impl Provider for Named {
    fn listing(&self) -> Arc<Listing> {
        self.0.listing()
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.0.events()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        if context.caller.is_anonymous() {
            return Err(Failure::Unauthorized {
                reason: "who are you?".to_owned(),
                sent: tool::Sent::No,
            });
        }
        self.0.ask(ask, context).await
    }
}

struct Guarded;

#[async_trait]
impl OpenSession for Guarded {
    async fn open(&self, _: &Client) -> Result<OpenedSession, Failure> {
        let cash = Arc::new(Cash::default());
        Ok(OpenedSession { upstream: Arc::new(Named(Arc::clone(&cash))), listing_session: cash })
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        None
    }
}

fn nesting<S>(sessions: S) -> CashConnector<S> {
    CashConnector { sessions, nesting: Nesting::Expected, gatelet_id: "".into() }
}

#[tokio::test]
async fn what_there_is_is_told_where_nobody_gets_in_without_a_name() {
    let nested = nesting(Guarded).connect(&Client::named("t", "")).await.unwrap();
    assert_eq!(nested.listing().tools.len(), 2);
    let ask = || Ask::Call(Call::new("orders.list", json!({}).into()));
    let refused = nested.ask(ask(), &Context::anonymous()).await;
    assert!(matches!(refused, Err(Failure::Unauthorized { .. })), "{refused:?}");
    let caller = tool::Identity { subject: "key:ann".to_owned(), ..tool::Identity::default() };
    let context = Context { caller: Arc::new(caller), ..Context::anonymous() };
    assert_eq!(
        nested.ask(ask(), &context).await.unwrap(),
        Reply::structured(&json!({"rows": [1, 2]}))
    );
}

async fn nested() -> (Arc<Cash>, Arc<dyn Provider>) {
    nested_in(Cash::default()).await
}

async fn nested_in(cash: Cash) -> (Arc<Cash>, Arc<dyn Provider>) {
    let cash = Arc::new(cash);
    let provider = nesting(Direct(Arc::clone(&cash))).connect(&Client::named("t", "")).await;
    (cash, provider.unwrap())
}

#[tokio::test]
async fn its_functions_stand_in_its_namespaces() {
    let (_, nested) = nested().await;
    let listing = nested.listing();
    let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["orders.list", "orders.retail.create"]);
    let schema = listing.tools[1].input_schema.to_value().unwrap();
    assert_eq!(schema["required"], json!(["item"]));
    assert_eq!(schema["properties"]["n"]["type"], "integer");
}

#[tokio::test]
async fn what_is_left_out_of_it_is_told() {
    let (_, nested) = nested().await;
    let told: Vec<String> = nested.listing().findings.iter().map(ToString::to_string).collect();
    let deep = format!("orders{}", ".deep".repeat(8));
    let expected = format!(
        "warning[nested-cut] help: 1 namespaces are too deep or too many and were left out: `{deep}`"
    );
    assert_eq!(told, [expected]);
}

/// Once, the work grew with the square of the functions: 60,000 took twenty seconds.
#[tokio::test]
async fn a_page_with_any_number_of_functions_is_read_up_to_a_bound_and_told() {
    let entries: String = (0..400_000).map(|n| format!("- **f{n}** — Thing {n}.\n")).collect();
    let orders = Some(format!("## Functions\n\n{entries}"));
    let (_, nested) = nested_in(Cash { orders, ..Cash::default() }).await;
    let listing = nested.listing();
    assert_eq!(listing.tools.len(), 5_000);
    let told: Vec<String> = listing.findings.iter().map(ToString::to_string).collect();
    let told = told.join("\n");
    assert!(told.contains("1 namespaces have pages that were not read: `orders`"), "{told}");
    assert!(told.contains("functions over 5000 were left out"), "{told}");
}

#[tokio::test]
async fn tables_with_any_number_of_columns_are_read_up_to_a_bound() {
    let header = format!("| {}Name | Type |\n", "x | ".repeat(100_000));
    let function = Some(format!("{header}{}", "| a |\n".repeat(20_000)));
    let (_, nested) = nested_in(Cash { function, ..Cash::default() }).await;
    assert_eq!(nested.listing().tools.len(), 2);
}

/// The only tool of a server whose functions have this page.
async fn only_tool(page: &str) -> Tool {
    let orders = Some("## Functions\n\n- **pay** — Pays.\n".to_owned());
    let cash = Cash { orders, function: Some(page.to_owned()), ..Cash::default() };
    nested_in(cash).await.1.listing().tools[0].clone()
}

#[tokio::test]
async fn a_function_is_another_one_when_its_page_changes_but_not_when_it_is_unavailable() {
    let reads = only_tool("# pay\n\nReads.\n").await;
    assert_eq!(reads, only_tool("# pay\n\nReads.\n").await);
    assert_ne!(reads.raw, only_tool("# pay\n\nTransfers all money.\n").await.raw);
    let away = "# pay\n\navailable: false — unavailable: it is starting\nReads.\n";
    let here = "# pay\n\nReads.\n";
    assert_eq!(only_tool(away).await, only_tool(here).await);
}

#[tokio::test]
async fn the_hints_of_a_page_are_those_of_the_function() {
    let hints = |page: &'static str| async move { only_tool(page).await.annotations };
    let destroys = hints("# pay\n\nHints: destructive, idempotent.\n").await;
    assert_eq!((destroys.destructive, destroys.idempotent), (Some(true), Some(true)));
    assert_eq!(hints("# pay\n\nHints: read-only.\n").await.read_only, Some(true));
    let quoted = hints("# pay\n\n> Hints: read-only.\n").await;
    assert_eq!((quoted.read_only, quoted.destructive), (None, None));
}

#[tokio::test]
async fn a_call_goes_to_its_call_and_the_result_passes_untouched() {
    let (cash, nested) = nested().await;
    let call = Call::new("orders.list", json!({"x": 1}).into());
    let reply = nested.ask(Ask::Call(call), &Context::anonymous()).await.unwrap();
    assert_eq!(reply, Reply::structured(&json!({"rows": [1, 2]})));
    let (tool, arguments) = cash.asked.lock().unwrap().last().unwrap().clone();
    assert_eq!(tool, "call");
    assert_eq!(
        (&arguments["namespace"], &arguments["function"]),
        (&json!("orders"), &json!("list"))
    );
    assert_eq!(arguments["kwargs"], json!({"x": 1}));
    assert_eq!(arguments["sizelimit"], request::NO_LIMIT, "our own gate decides");
}

#[tokio::test]
async fn a_skill_that_its_gate_keeps_is_asked_for_whole() {
    let (_, nested) = nested().await;
    let arguments = json!({"namespace": "long", "skillname": "s", "kwargs": {"sum": 5}});
    let ask = Ask::parse(cash::READ, &arguments.into()).unwrap();
    let reply = nested.ask(ask, &Context::anonymous()).await.unwrap();
    assert_eq!(reply.tool_result().unwrap().text(), "# long\n\nAll of it.");
}

#[tokio::test]
async fn its_skills_are_listed_and_read_with_their_values() {
    let (seen, nested) = nested().await;
    let context = Context::anonymous();
    assert!(cash::offers(&nested.listing()));
    let ask = Ask::Other { method: cash::LIST.to_owned(), params: Object::new() };
    let Reply::Result(listed) = nested.ask(ask, &context).await.unwrap() else { panic!() };
    let listed = listed.to_value().unwrap();
    let refund = json!({"namespace": "orders", "name": "refund", "description": "Refund."});
    assert_eq!(listed["skills"], json!([refund]));
    let arguments = json!({"namespace": "orders", "skillname": "refund", "kwargs": {"sum": 5}});
    let params = Object::parse(&arguments.clone().into()).unwrap();
    let read = Ask::Other { method: cash::READ.to_owned(), params };
    let reply = nested.ask(read, &context).await.unwrap();
    assert_eq!(reply, Reply::text("# refund\n\nDo it."));
    assert_eq!(seen.asked.lock().unwrap().last().unwrap(), &("skill".to_owned(), arguments));
}

#[test]
fn a_server_with_other_tools_passes_as_it_is() {
    let tool = |name: &str| Tool::parse(json!({"name": name}).into()).unwrap();
    let listing = |names: &[&str]| Listing {
        tools: names.iter().map(|name| tool(name)).collect(),
        ..Listing::default()
    };
    assert!(!is_cash(&listing(&["call", "help"])));
    assert!(!is_cash(&listing(&["call", "help", "skill", "more"])));
    assert!(!is_cash(&listing(&["call", "help", "skill"])), "`call` takes no function");
    assert!(is_cash(&Cash::default().listing()));
}

#[test]
fn three_tools_alone_make_no_cash_server_unless_the_operator_says_so() {
    let bare = Cash::default().listing();
    let identity = json!({"uri": "cash://server", "name": "cash-server-manifest"});
    let with_identity = Listing {
        resources: vec![tool::Resource::parse(identity.into()).unwrap()],
        ..Listing::clone(&bare)
    };
    let mut capabilities = json!({});
    loop_guard::declare(&mut capabilities, "g1", std::iter::empty());
    let gatelet = Listing {
        server: Server::new("gatelet", "1", capabilities.into()),
        ..Listing::clone(&bare)
    };
    let admits = |nesting: Nesting| [&*bare, &with_identity, &gatelet].map(|it| nesting.admits(it));
    assert_eq!(admits(Nesting::IfDeclared), [false, true, true]);
    assert_eq!(admits(Nesting::Expected), [true, true, true]);
    assert_eq!(admits(Nesting::Never), [false, false, false]);
}
