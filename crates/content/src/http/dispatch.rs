//! Asynchronous requests: dispatched now, their result fetched later.
//!
//! A dispatched request becomes a task in the state file, at most once per
//! idempotency key and caller: the key, its payload and the task are written
//! in one transaction. [`tasks`] runs them.

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
use super::{Edge, MessageHandler, session};

/// The states of a task, as numbers in the state file.
const QUEUED: i64 = 10;
const FINISHED: i64 = 80;
const FAILED: i64 = 100;

const MAX_ATTEMPTS: i64 = 3;

/// Longest idempotency key that is taken.
const MAX_KEY: usize = 255;

/// How many tasks of one owner may wait or run.
pub(super) const MAX_TASKS: i64 = 1_000;

/// How many of all owners.
const MAX_ALL_TASKS: i64 = 20_000;

/// When somebody whose queue is full is told to come again, in seconds.
const QUEUE_PAUSE: u64 = 60;

/// SHA-256 of what makes two dispatched requests the same.
pub fn payload_hash(
    server: &str,
    method: &str,
    params: Option<&Value>,
    user: Option<i64>,
) -> String {
    let params = match params {
        Some(params @ (Value::Object(_) | Value::Array(_))) => listed(params),
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

/// Whether no more tasks of an owner are taken.
async fn is_full(owner: &str, work: &mut SqliteConnection) -> Result<bool, StateError> {
    let (all, own): (i64, Option<i64>) =
        sqlx::query_as("select count(*), sum(owner = ?) from tasks where status < ?")
            .bind(owner)
            .bind(FINISHED)
            .fetch_one(work)
            .await?;
    Ok(MAX_ALL_TASKS <= all || MAX_TASKS <= own.unwrap_or(0))
}

/// The same value with empty objects as empty lists, which is how the
/// contract's hash is defined.
fn listed(value: &Value) -> Value {
    match value {
        Value::Object(members) if members.is_empty() => json!([]),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(key, value)| (key.clone(), listed(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(listed).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// What is known of a request that was asked before.
struct EarlierRequest {
    payload_hash: String,
    task_id: Option<i64>,
    trace_id: String,
    result: Option<String>,
}

/// What a claim on a key came to.
enum Claim {
    /// Ours to run; as this task where there is a queue.
    New(Option<i64>),
    Before(EarlierRequest),
    /// Too many tasks of this owner, or of all, wait already.
    Full,
}

/// A request that is about to be claimed.
struct Request<'a> {
    server: &'a str,
    owner: String,
    key: Option<&'a str>,
    hash: String,
    caller: String,
    incoming: &'a Incoming,
}

impl Edge {
    pub(super) async fn dispatch(
        &self,
        incoming: &Incoming,
        caller: &Caller,
        record: &mut Record,
        inner: &Arc<dyn MessageHandler>,
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
        let mut key = key(incoming)?;
        let owner = caller.owner().ok_or_else(nameless)?;
        match self.config.queue {
            Queue::Durable => {}
            Queue::Off(Failover::Sync) => {
                key = key.or_else(|| Some(format!("sync:{}", &hash[..40])));
            }
            Queue::Off(Failover::Fail) => return Err(Refusal::AsyncUnavailable),
        }
        let request =
            Request { server, owner, key: key.as_deref(), hash, caller: written(caller), incoming };
        match self.claim(&request).await.map_err(broken)? {
            Claim::Before(known) => reuse(&request, known),
            Claim::New(Some(task)) => {
                record.task(task);
                self.queued.notify_one();
                let body = json!({
                    "status": "accepted",
                    "task_id": task,
                    "trace_id": incoming.trace_id,
                    "idempotency_key": request.key,
                    "reused": false,
                });
                Ok(json_reply(StatusCode::ACCEPTED, &body))
            }
            Claim::New(None) => self.run_now(&request, caller, inner).await,
            Claim::Full => Err(Refusal::RateLimited { seconds: QUEUE_PAUSE }),
        }
    }

    /// Takes the key, if nobody has, and queues the task with it.
    async fn claim(&self, request: &Request<'_>) -> Result<Claim, StateError> {
        let now = seconds((self.clock)());
        let mut work = self.state.0.begin_with("begin immediate").await?;
        self.forget_old(&mut work).await?;
        if let Some(key) = request.key {
            let row = sqlx::query(
                "select payload_hash, task_id, trace_id, result from idempotency \
                 where owner = ? and key = ?",
            )
            .bind(&request.owner)
            .bind(key)
            .fetch_optional(&mut *work)
            .await?;
            if let Some(row) = row {
                return Ok(Claim::Before(EarlierRequest {
                    payload_hash: row.try_get("payload_hash")?,
                    task_id: row.try_get("task_id")?,
                    trace_id: row.try_get("trace_id")?,
                    result: row.try_get("result")?,
                }));
            }
        }
        if self.config.queue == Queue::Durable && is_full(&request.owner, &mut work).await? {
            return Ok(Claim::Full);
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
                .execute(&mut *work)
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
            .execute(&mut *work)
            .await?;
        }
        work.commit().await?;
        Ok(Claim::New(task))
    }

    /// Forgets keys, and tasks that ended, after the lifetime of a key.
    async fn forget_old(&self, work: &mut SqliteConnection) -> Result<(), StateError> {
        let ttl = self.config.idempotency_ttl.max(Duration::from_secs(60));
        let since = seconds((self.clock)()) - seconds(ttl);
        sqlx::query("delete from idempotency where updated_at <= ?")
            .bind(since)
            .execute(&mut *work)
            .await?;
        sqlx::query("delete from tasks where status in (?, ?) and updated_at <= ?")
            .bind(FINISHED)
            .bind(FAILED)
            .bind(since)
            .execute(work)
            .await?;
        Ok(())
    }

    /// Runs a request that there is no queue for.
    async fn run_now(
        &self,
        request: &Request<'_>,
        caller: &Caller,
        inner: &Arc<dyn MessageHandler>,
    ) -> Result<HttpReply, Refusal> {
        let incoming = request.incoming;
        let session = session(&incoming.headers);
        let envelope = &incoming.envelope;
        let ran = self.run(request.server, envelope, &incoming.body, caller, session, inner).await;
        let outcome = match ran {
            Ok(outcome) => outcome,
            Err(refusal) => {
                // Whoever tries again must not find a promise that nobody keeps.
                self.forget(request).await.map_err(broken)?;
                return Err(refusal);
            }
        };
        let result = result_of(&outcome, &incoming.trace_id);
        if let Some(key) = request.key {
            self.remember(&request.owner, key, &result).await.map_err(broken)?;
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

    async fn remember(&self, owner: &str, key: &str, result: &Value) -> Result<(), StateError> {
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

    async fn forget(&self, request: &Request<'_>) -> Result<(), StateError> {
        sqlx::query("delete from idempotency where owner = ? and key = ? and result is null")
            .bind(&request.owner)
            .bind(request.key)
            .execute(&self.state.0)
            .await?;
        Ok(())
    }
}

/// Nobody could ever read the result, so nothing is begun.
fn nameless() -> Refusal {
    let detail = "a token without `sub` and `user_id` has no tasks of its own".to_owned();
    Refusal::Forbidden { detail }
}

/// The caller's own key: a header, or a member of the body.
fn key(incoming: &Incoming) -> Result<Option<String>, Refusal> {
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

fn reuse(request: &Request<'_>, known: EarlierRequest) -> Result<HttpReply, Refusal> {
    if known.payload_hash != request.hash {
        return Err(Refusal::Conflict);
    }
    let mut body = json!({
        "status": "accepted",
        "task_id": known.task_id,
        "trace_id": known.trace_id,
        "idempotency_key": request.key,
        "reused": true,
    });
    let Some(result) = known.result else {
        return Ok(json_reply(StatusCode::ACCEPTED, &body));
    };
    body["status"] = json!("completed");
    body["result"] = serde_json::from_str(&result).unwrap_or_default();
    Ok(json_reply(StatusCode::OK, &body))
}

fn result_of(outcome: &HttpReply, trace_id: &str) -> Value {
    let reply = Json::parse(outcome.body.clone()).ok().and_then(|json| json.to_value().ok());
    let raw = || json!({"raw": String::from_utf8_lossy(&outcome.body)});
    let session = outcome.headers.iter().find(|(name, _)| *name == "mcp-session-id");
    json!({
        "http_status": outcome.status.as_u16(),
        "session_id": session.map(|(_, id)| id),
        "trace_id": trace_id,
        "response": reply.unwrap_or_else(raw),
    })
}

fn written(caller: &Caller) -> String {
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

/// The state file failed us; the caller learns no more than that.
#[expect(clippy::needless_pass_by_value, reason = "used as an error mapping")]
fn broken(error: StateError) -> Refusal {
    tracing::error!(%error, "the state of the edge cannot be used");
    Refusal::Internal
}
