//! Asking a provider, and what comes back.

use std::sync::Arc;

use serde_json::{Value, json};
use tool::{Ask, Call, Context, Failure, Identity, Provider, Reply};

/// One call, as `{"ok": structuredContent}` or `{"code", "invalid"}`.
pub(crate) async fn call(
    provider: &dyn Provider,
    context: &Context,
    tool: &str,
    arguments: &Value,
) -> Value {
    try_call(provider, context, tool, arguments).await.unwrap()
}

pub(crate) async fn try_call(
    provider: &dyn Provider,
    context: &Context,
    tool: &str,
    arguments: &Value,
) -> Result<Value, Failure> {
    let call = Call::new(tool, arguments.clone().into());
    Ok(match provider.ask(Ask::Call(call), context).await? {
        Reply::Error(error) => {
            let reason = error.raw.to_value().unwrap()["data"]["reason"].clone();
            json!({"code": error.code, "invalid": error.message, "reason": reason})
        }
        reply @ Reply::Result(_) => {
            let result = reply.tool_result().unwrap();
            let structured = result.structured.clone().unwrap();
            assert_eq!(result.text(), structured.as_str(), "the text is no mirror");
            json!({"ok": structured.to_value().unwrap()})
        }
    })
}

/// The ids of a list.
pub(crate) fn ids(outcome: &Value) -> Vec<i64> {
    let items = outcome["ok"]["items"].as_array();
    items.into_iter().flatten().filter_map(|item| item["id"].as_i64()).collect()
}

/// A caller that acts for a user of the site.
pub(crate) fn as_user(id: i64) -> Context {
    let role = format!("{}{id}", content::OWNER_ROLE);
    let caller = Identity { roles: [role].into(), ..Identity::default() };
    Context { caller: Arc::new(caller), ..Context::anonymous() }
}
