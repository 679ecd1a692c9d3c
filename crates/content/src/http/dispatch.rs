//! Accepts asynchronous requests: dispatched now, their result fetched later.
//!
//! A dispatched request becomes a task in the state file, at most once per owner and
//! idempotency key: key and task are written in one transaction. [`tasks`] runs the
//! tasks.

mod tasks;

use std::sync::Arc;
use std::time::Duration;

use ::http::StatusCode;
use serde_json::{Value, json};
use sqlx::{Row, SqliteConnection};
use tool::Json;

use super::audit::Record;
use super::auth::Caller;
use super::errors::Refusal;
use super::http_reply::HttpReply;
use super::incoming::Incoming;
use super::queue::{Failover, Queue};
use super::state::{StateError, seconds};
use super::tokens::hash;
use super::{Edge, MessageResponder, session};

/// The states of a task, as numbers in the state file.
const QUEUED: i64 = 10;
const FINISHED: i64 = 80;
const FAILED: i64 = 100;

const MAX_ATTEMPTS: i64 = 3;

/// The length of the longest idempotency key.
const MAX_KEY: usize = 255;

/// How many tasks of one owner may be queued or running.
pub(super) const MAX_TASKS: i64 = 1_000;

/// How many tasks of all owners together may be queued or running.
const MAX_ALL_TASKS: i64 = 20_000;

/// The `retry-after` for a caller whose queue is full, in seconds.
const FULL_QUEUE_RETRY_AFTER: u64 = 60;

/// Returns the SHA-256 by which two dispatched requests are the same or not.
pub fn payload_hash(
    server: &str,
    method: &str,
    params: Option<&Value>,
    user: Option<i64>,
) -> String {
    let params = match params {
        Some(params @ (Value::Object(_) | Value::Array(_))) => empty_objects_as_lists(params),
        _ => json!([]),
    };
    let text = json!({
        "server_handle": server,
        "jsonrpc_method": method,
        "jsonrpc_params": params,
        "actor_user_id": user,
    });
    hash(&text.to_string())
}

/// Returns whether no more tasks of an owner are accepted.
async fn is_queue_full(
    owner: &str,
    transaction: &mut SqliteConnection,
) -> Result<bool, StateError> {
    let (all, own): (i64, Option<i64>) =
        sqlx::query_as("select count(*), sum(owner = ?) from tasks where status < ?")
            .bind(owner)
            .bind(FINISHED)
            .fetch_one(transaction)
            .await?;
    Ok(MAX_ALL_TASKS <= all || MAX_TASKS <= own.unwrap_or(0))
}

/// Replaces empty objects by empty lists, as the definition of the contract's hash says.
fn empty_objects_as_lists(value: &Value) -> Value {
    match value {
        Value::Object(members) if members.is_empty() => json!([]),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(key, value)| (key.clone(), empty_objects_as_lists(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(empty_objects_as_lists).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// An earlier request with the same idempotency key.
struct EarlierRequest {
    payload_hash: String,
    task_id: Option<i64>,
    trace_id: String,
    result: Option<String>,
}

/// The outcome of claiming an idempotency key.
enum Claim {
    /// The key was free; with a queue, the request was queued as this task.
    New(Option<i64>),
    /// An earlier request has the key.
    Taken(EarlierRequest),
    /// The queue has too many tasks of this owner, or of all owners.
    QueueFull,
}

/// A request that is being dispatched.
struct Request<'a> {
    server: &'a str,
    owner: String,
    /// The idempotency key.
    key: Option<&'a str>,
    /// The [`payload_hash`].
    hash: String,
    /// The caller as JSON, for the task.
    caller: String,
    incoming: &'a Incoming,
}

impl Edge {
    /// Accepts a request for later, or answers it at once if there is no queue.
    pub(super) async fn dispatch(
        &self,
        incoming: &Incoming,
        caller: &Caller,
        record: &mut Record,
        responder: &Arc<dyn MessageResponder>,
    ) -> Result<HttpReply, Refusal> {
        if !incoming.envelope.is_object() {
            return Err(Refusal::InvalidPayload("Invalid payload"));
        }
        let method = incoming
            .envelope
            .method()
            .filter(|method| !method.is_empty())
            .ok_or(Refusal::InvalidPayload("jsonrpc method is required"))?;
        let params = incoming.envelope.params().and_then(|params| params.to_value().ok());
        let server = incoming.route.server();
        let hash = payload_hash(server, method, params.as_ref(), caller.user);
        let mut key = idempotency_key(incoming)?;
        let owner = caller.owner().ok_or_else(no_owner)?;
        match self.config.queue {
            Queue::Durable => {}
            Queue::Off(Failover::Sync) => {
                key = key.or_else(|| Some(format!("sync:{}", &hash[..40])));
            }
            Queue::Off(Failover::Fail) => return Err(Refusal::AsyncUnavailable),
        }
        let (key, caller_json) = (key.as_deref(), render_caller(caller));
        let request = Request { server, owner, key, hash, caller: caller_json, incoming };
        match self.claim(&request).await.map_err(state_error)? {
            Claim::Taken(earlier) => reuse(&request, earlier),
            Claim::New(Some(task)) => {
                record.set_task(task);
                self.task_queued.notify_one();
                let body = json!({
                    "status": "accepted",
                    "task_id": task,
                    "trace_id": incoming.trace_id,
                    "idempotency_key": request.key,
                    "reused": false,
                });
                Ok(json_reply(StatusCode::ACCEPTED, &body))
            }
            Claim::New(None) => self.answer_now(&request, caller, responder).await,
            Claim::QueueFull => Err(Refusal::RateLimited { seconds: FULL_QUEUE_RETRY_AFTER }),
        }
    }

    /// Claims the idempotency key, if it is free, and queues the task with it.
    async fn claim(&self, request: &Request<'_>) -> Result<Claim, StateError> {
        let now = seconds((self.clock)());
        let mut transaction = self.state.0.begin_with("begin immediate").await?;
        self.delete_expired(&mut transaction).await?;
        if let Some(key) = request.key {
            let row = sqlx::query(
                "select payload_hash, task_id, trace_id, result from idempotency \
                 where owner = ? and key = ?",
            )
            .bind(&request.owner)
            .bind(key)
            .fetch_optional(&mut *transaction)
            .await?;
            if let Some(row) = row {
                return Ok(Claim::Taken(EarlierRequest {
                    payload_hash: row.try_get("payload_hash")?,
                    task_id: row.try_get("task_id")?,
                    trace_id: row.try_get("trace_id")?,
                    result: row.try_get("result")?,
                }));
            }
        }
        if self.config.queue == Queue::Durable
            && is_queue_full(&request.owner, &mut transaction).await?
        {
            return Ok(Claim::QueueFull);
        }
        let task = match self.config.queue {
            Queue::Durable => Some(
                sqlx::query(
                    "insert into tasks (server, caller, owner, body, session, trace_id, \
                     payload_hash, status, max_attempts, created_at, updated_at) \
                     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                )
                .bind(request.server)
                .bind(&request.caller)
                .bind(&request.owner)
                .bind(request.incoming.body.as_ref())
                .bind(session(&request.incoming.headers))
                .bind(&request.incoming.trace_id)
                .bind(&request.hash)
                .bind(QUEUED)
                .bind(MAX_ATTEMPTS)
                .bind(now)
                .bind(now)
                .execute(&mut *transaction)
                .await?
                .last_insert_rowid(),
            ),
            Queue::Off(_) => None,
        };
        if let Some(key) = request.key {
            sqlx::query(
                "insert into idempotency (owner, key, payload_hash, task_id, trace_id, updated_at) \
                 values (?, ?, ?, ?, ?, ?)",
            )
            .bind(&request.owner)
            .bind(key)
            .bind(&request.hash)
            .bind(task)
            .bind(&request.incoming.trace_id)
            .bind(now)
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await?;
        Ok(Claim::New(task))
    }

    /// Deletes keys, and tasks that ended, after the lifetime of a key.
    async fn delete_expired(&self, transaction: &mut SqliteConnection) -> Result<(), StateError> {
        let ttl = self.config.idempotency_ttl.max(Duration::from_secs(60));
        let since = seconds((self.clock)()) - seconds(ttl);
        sqlx::query("delete from idempotency where updated_at <= ?")
            .bind(since)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("delete from tasks where status in (?, ?) and updated_at <= ?")
            .bind(FINISHED)
            .bind(FAILED)
            .bind(since)
            .execute(transaction)
            .await?;
        Ok(())
    }

    /// Answers a dispatched request at once, because there is no queue.
    async fn answer_now(
        &self,
        request: &Request<'_>,
        caller: &Caller,
        responder: &Arc<dyn MessageResponder>,
    ) -> Result<HttpReply, Refusal> {
        let incoming = request.incoming;
        let session = session(&incoming.headers);
        let envelope = &incoming.envelope;
        let (server, body) = (request.server, &incoming.body);
        let answer = self.answer_message(server, envelope, body, caller, session, responder).await;
        let reply = match answer {
            Ok(reply) => reply,
            Err(refusal) => {
                // A second attempt must not find a key whose result never comes.
                self.release_key(request).await.map_err(state_error)?;
                return Err(refusal);
            }
        };
        let result = render_result(&reply, &incoming.trace_id);
        if let Some(key) = request.key {
            self.store_result(&request.owner, key, &result).await.map_err(state_error)?;
        }
        let body = json!({
            "status": "completed",
            "task_id": null,
            "trace_id": incoming.trace_id,
            "idempotency_key": request.key,
            "reused": false,
            "result": result,
        });
        Ok(json_reply(StatusCode::OK, &body))
    }

    async fn store_result(&self, owner: &str, key: &str, result: &Value) -> Result<(), StateError> {
        sqlx::query(
            "update idempotency set result = ?, updated_at = ? where owner = ? and key = ?",
        )
        .bind(result.to_string())
        .bind(seconds((self.clock)()))
        .bind(owner)
        .bind(key)
        .execute(&self.state.0)
        .await?;
        Ok(())
    }

    async fn release_key(&self, request: &Request<'_>) -> Result<(), StateError> {
        sqlx::query("delete from idempotency where owner = ? and key = ? and result is null")
            .bind(&request.owner)
            .bind(request.key)
            .execute(&self.state.0)
            .await?;
        Ok(())
    }
}

/// The refusal for a caller without a name, who could never fetch the result.
fn no_owner() -> Refusal {
    let detail = "a token without `sub` and `user_id` has no tasks of its own".to_owned();
    Refusal::Forbidden { detail }
}

/// Returns the idempotency key from the header, or else from the body.
fn idempotency_key(incoming: &Incoming) -> Result<Option<String>, Refusal> {
    let header = incoming.headers.get("idempotency-key").and_then(|value| value.to_str().ok());
    let member = || incoming.envelope.member("idempotency_key").and_then(|key| key.parse_as().ok());
    let key = header.map(|key| key.trim().to_owned()).or_else(member);
    match key.filter(|key| !key.is_empty()) {
        Some(key) if key.len() > MAX_KEY => {
            Err(Refusal::InvalidPayload("Idempotency key is longer than 255 bytes"))
        }
        key => Ok(key),
    }
}

/// Replies with the task or the result of an earlier request, if it was the same.
fn reuse(request: &Request<'_>, earlier: EarlierRequest) -> Result<HttpReply, Refusal> {
    if earlier.payload_hash != request.hash {
        return Err(Refusal::Conflict);
    }
    let mut body = json!({
        "status": "accepted",
        "task_id": earlier.task_id,
        "trace_id": earlier.trace_id,
        "idempotency_key": request.key,
        "reused": true,
    });
    let Some(result) = earlier.result else {
        return Ok(json_reply(StatusCode::ACCEPTED, &body));
    };
    body["status"] = json!("completed");
    body["result"] = serde_json::from_str(&result).unwrap_or_default();
    Ok(json_reply(StatusCode::OK, &body))
}

/// Renders the reply to a dispatched request as its stored result.
fn render_result(reply: &HttpReply, trace_id: &str) -> Value {
    let body = Json::parse(reply.body.clone()).ok().and_then(|json| json.to_value().ok());
    let raw = || json!({"raw": String::from_utf8_lossy(&reply.body)});
    let session = reply.headers.iter().find(|(name, _)| *name == "mcp-session-id");
    json!({
        "http_status": reply.status.as_u16(),
        "session_id": session.map(|(_, id)| id),
        "trace_id": trace_id,
        "response": body.unwrap_or_else(raw),
    })
}

fn render_caller(caller: &Caller) -> String {
    json!({
        "subject": caller.identity.subject,
        "scopes": caller.identity.scopes,
        "user": caller.user,
        "open": caller.open,
    })
    .to_string()
}

fn json_reply(status: StatusCode, body: &Value) -> HttpReply {
    let headers = vec![("content-type", "application/json".to_owned())];
    HttpReply { status, headers, body: body.to_string().into() }
}

/// Logs an error of the state file; the caller gets no details.
#[expect(clippy::needless_pass_by_value, reason = "used as an error mapping")]
fn state_error(error: StateError) -> Refusal {
    tracing::error!(%error, "the state of the edge cannot be used");
    Refusal::Internal
}
