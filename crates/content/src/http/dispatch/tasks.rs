//! Runs the tasks of dispatched requests in order, retries those that failed, and
//! reports their status and result.

use std::time::Duration;

use ::http::StatusCode;
use serde_json::{Value, json};
use sqlx::Row;

use super::{FAILED, FINISHED, QUEUED, json_reply, render_result, state_error};
use crate::http::Edge;
use crate::http::auth::Caller;
use crate::http::envelope::Envelope;
use crate::http::errors::Refusal;
use crate::http::http_reply::HttpReply;
use crate::http::state::{StateError, seconds};

const RUNNING: i64 = 50;

/// How many characters of an error are stored with a task.
const MAX_ERROR: usize = 240;

impl Edge {
    /// Replies with the status of a task, to the caller who dispatched it.
    pub(in crate::http) async fn task_status(
        &self,
        server: &str,
        id: i64,
        caller: &Caller,
    ) -> Result<HttpReply, Refusal> {
        let row = sqlx::query(
            "select owner, status, progress, attempts, max_attempts, trace_id, result, error \
             from tasks where id = ? and server = ?",
        )
        .bind(id)
        .bind(server)
        .fetch_optional(&self.state.0)
        .await
        .map_err(|error| state_error(error.into()))?
        .ok_or(Refusal::NoTask)?;
        let body = task_body(id, &row).map_err(state_error)?;
        let theirs: String = row.try_get("owner").map_err(|error| state_error(error.into()))?;
        // A caller without a name owns no tasks.
        if caller.owner() != Some(theirs) && !caller.open {
            return Err(Refusal::NoTask);
        }
        Ok(json_reply(StatusCode::OK, &body))
    }

    /// Runs tasks as they are queued, until the future is dropped.
    pub async fn work(&self) {
        if let Err(error) = self.prepare_queue().await {
            tracing::error!(%error, "the queue cannot be recovered");
        }
        loop {
            match self.work_once().await {
                Ok(true) => {}
                Ok(false) => self.task_queued.notified().await,
                Err(error) => {
                    tracing::error!(%error, "the queue cannot be read");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    async fn prepare_queue(&self) -> Result<(), StateError> {
        self.state.recover().await?;
        let mut connection = self.state.0.acquire().await?;
        self.delete_expired(&mut connection).await
    }

    /// Runs the oldest queued task, and returns whether there was one.
    pub async fn work_once(&self) -> Result<bool, StateError> {
        let now = seconds((self.clock)());
        let row = sqlx::query(
            "update tasks set status = ?, progress = 10, attempts = attempts + 1, updated_at = ? \
             where id = (select min(id) from tasks where status = ?) returning *",
        )
        .bind(RUNNING)
        .bind(now)
        .bind(QUEUED)
        .fetch_optional(&self.state.0)
        .await?;
        let Some(row) = row else { return Ok(false) };
        let id: i64 = row.try_get("id")?;
        let outcome = self.run_task(&row).await?;
        let attempts: i64 = row.try_get("attempts")?;
        let max_attempts: i64 = row.try_get("max_attempts")?;
        let (status, result, error) = match outcome {
            Ok(result) => (FINISHED, Some(result.to_string()), None),
            Err(refusal) if attempts < max_attempts && refusal.is_temporary() => {
                (QUEUED, None, Some(truncate(&refusal.message())))
            }
            Err(refusal) => (FAILED, None, Some(truncate(&refusal.message()))),
        };
        let mut transaction = self.state.0.begin().await?;
        sqlx::query(
            "update tasks set status = ?, progress = ?, result = ?, error = ?, updated_at = ? \
             where id = ?",
        )
        .bind(status)
        .bind(if status == QUEUED { 0 } else { 100 })
        .bind(&result)
        .bind(&error)
        .bind(seconds((self.clock)()))
        .bind(id)
        .execute(&mut *transaction)
        .await?;
        if status == FINISHED {
            sqlx::query("update idempotency set result = ? where task_id = ?")
                .bind(&result)
                .bind(id)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// Answers the message of one task, if the current policies still allow it.
    async fn run_task(
        &self,
        row: &sqlx::sqlite::SqliteRow,
    ) -> Result<Result<Value, Refusal>, StateError> {
        let server: String = row.try_get("server")?;
        let body: Vec<u8> = row.try_get("body")?;
        let session: Option<String> = row.try_get("session")?;
        let trace_id: String = row.try_get("trace_id")?;
        let caller = parse_caller(&row.try_get::<String, _>("caller")?);
        let body = bytes::Bytes::from(body);
        let envelope = Envelope::parse(&body);
        let denied = self.config.server(&server).map_or(&[][..], |server| &server.deny_tools);
        let allowed = self
            .config
            .security
            .allow_server(&server)
            .and_then(|()| self.config.security.allow_tool(denied, &envelope));
        if let Err(refusal) = allowed {
            return Ok(Err(refusal));
        }
        let Some(responder) = self.responders.get(&server) else {
            return Ok(Err(Refusal::NoServer));
        };
        let session = session.as_deref();
        let answer =
            self.answer_message(&server, &envelope, &body, &caller, session, responder).await;
        Ok(answer.map(|reply| render_result(&reply, &trace_id)))
    }
}

/// Renders the status of a task as JSON.
fn task_body(id: i64, row: &sqlx::sqlite::SqliteRow) -> Result<Value, StateError> {
    let status: i64 = row.try_get("status")?;
    let result: Option<String> = row.try_get("result")?;
    Ok(json!({
        "task_id": id,
        "status": match status {
            QUEUED => "queued",
            RUNNING => "running",
            FINISHED => "completed",
            _ => "failed",
        },
        "progress": row.try_get::<i64, _>("progress")?,
        "attempts": row.try_get::<i64, _>("attempts")?,
        "max_attempts": row.try_get::<i64, _>("max_attempts")?,
        "trace_id": row.try_get::<String, _>("trace_id")?,
        "result": result.and_then(|text| serde_json::from_str::<Value>(&text).ok()),
        "error": row.try_get::<Option<String>, _>("error")?,
    }))
}

/// Parses the caller that was stored with a task.
fn parse_caller(text: &str) -> Caller {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let scopes = value["scopes"].as_array().into_iter().flatten();
    let scopes = scopes.filter_map(Value::as_str).map(str::to_owned).collect();
    let subject = value["subject"].as_str().unwrap_or_default();
    let caller = Caller::new(subject, value["user"].as_i64(), scopes);
    Caller { open: value["open"] == json!(true), ..caller }
}

fn truncate(error: &str) -> String {
    match error.char_indices().nth(MAX_ERROR) {
        Some((at, _)) => format!("{}...", &error[..at]),
        None => error.to_owned(),
    }
}
