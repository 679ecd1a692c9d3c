//! Asks the user through the client (MCP elicitation): with a yes-or-no form, or with
//! the URL of a page of gatelet where a person decides.

use serde_json::json;
use tool::text::without_invisible;
use tool::{Client, Context, Json, Notification, Object, Reply};

use crate::approval::argument_text;

/// The user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserAnswer {
    Yes,
    No,
    /// The client cannot ask, or did not get an answer.
    NoAnswer,
}

const METHOD: &str = "elicitation/create";

/// Asks the user with a form, where the client can show one.
pub async fn ask(context: &Context, question: &str, arguments: &str) -> UserAnswer {
    if !shows_forms(&context.client) {
        return UserAnswer::NoAnswer;
    }
    let params = json!({
        "message": format!("{}. {}\nGo on?", without_invisible(question), argument_text::render(arguments)),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "confirm": {"type": "boolean", "title": "Run it", "description": "Run this call"},
            },
            "required": ["confirm"],
        },
    });
    match context.client_handle.request(METHOD, params.into()).await {
        Ok(Reply::Result(answer)) => {
            let accepted = action(&answer).as_deref() == Some("accept");
            // Closing a dialog may count as accepting it, so only a yes is one.
            let content = answer.member("content");
            let agreed = content.and_then(|content| content.member_as::<bool>("confirm"));
            if accepted && agreed == Some(true) { UserAnswer::Yes } else { UserAnswer::No }
        }
        Ok(Reply::Error(_)) | Err(_) => UserAnswer::NoAnswer,
    }
}

/// Asks the user to open the page where request `number` is decided. Opening it is
/// not an answer yet; declining is a no.
pub async fn send_to_page(
    context: &Context,
    question: &str,
    number: u64,
    page: &str,
) -> UserAnswer {
    let params = json!({
        "mode": "url",
        "elicitationId": elicitation_id(number),
        "url": page,
        "message": format!(
            "{}. It waits as approval request {number}. Open gatelet's page to decide?",
            without_invisible(question),
        ),
    });
    match context.client_handle.request(METHOD, params.into()).await {
        Ok(Reply::Result(answer)) if action(&answer).as_deref() == Some("decline") => {
            UserAnswer::No
        }
        Ok(Reply::Result(_) | Reply::Error(_)) | Err(_) => UserAnswer::NoAnswer,
    }
}

/// Notifies a client whose user was sent to a page that the request is decided.
pub fn notify_decided(context: &Context, number: u64) {
    let mut params = Object::new();
    params.push("elicitationId", Json::encode(&elicitation_id(number)));
    let method = "notifications/elicitation/complete".to_owned();
    context.client_handle.notify(Notification { method, params });
}

/// Whether a client can have its user open a page.
pub fn opens_pages(client: &Client) -> bool {
    let can = client.capabilities.member("elicitation");
    can.is_some_and(|can| can.member("url").is_some_and(|url| !url.is_null()))
}

/// Whether a client can show a form. A client that declares elicitation without a mode
/// can.
fn shows_forms(client: &Client) -> bool {
    let Some(can) = client.capabilities.member("elicitation").filter(|can| !can.is_null()) else {
        return false;
    };
    let named = |mode: &str| can.member(mode).is_some_and(|mode| !mode.is_null());
    named("form") || !named("url")
}

fn action(answer: &Json) -> Option<String> {
    answer.member_as("action")
}

fn elicitation_id(number: u64) -> String {
    format!("gatelet-approval-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_can_show_is_what_it_says() {
        let client = |capabilities: serde_json::Value| {
            let mut client = Client::named("c", "");
            client.capabilities = capabilities.into();
            (shows_forms(&client), opens_pages(&client))
        };
        assert_eq!(client(json!({})), (false, false));
        assert_eq!(client(json!({"elicitation": null})), (false, false));
        assert_eq!(client(json!({"elicitation": {}})), (true, false));
        assert_eq!(client(json!({"elicitation": {"form": {}}})), (true, false));
        assert_eq!(client(json!({"elicitation": {"url": {}}})), (false, true));
        assert_eq!(client(json!({"elicitation": {"form": {}, "url": {}}})), (true, true));
    }
}
