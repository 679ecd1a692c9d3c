use std::time::Duration;

use content::{Config, Pool, Tree};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tool::{Context, Failure};

use crate::ask::{ids, try_call};
use crate::servers::{Kind, Server};
use crate::{hostile, privacy, vectors};

async fn site(server: &Server, name: &str, changes: &[&str]) -> (Config, PgConnection) {
    let mut admin = PgConnection::connect(&server.url("postgres")).await.unwrap();
    admin.execute(AssertSqlSafe(format!("create database {name}"))).await.unwrap();
    let mut admin = PgConnection::connect(&server.url(name)).await.unwrap();
    for text in [include_str!("../vectors/sample.pgsql.sql")].iter().chain(changes) {
        let text = text.replace("{q}", "\"").replace("{true}", "true");
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut admin).await.unwrap();
    }
    (Config::new(server.url(name)), admin)
}

/// One server for all of it: starting one takes longer than asking it.
#[tokio::test]
async fn postgres_keeps_the_whole_contract() {
    let mut server = Server::start(Kind::Postgres);
    let (config, mut admin) = site(&server, "site", &[]).await;
    let provider = content::open(&config).await.unwrap();
    vectors::run(&*provider, "postgres").await;
    let large = Config { few_documents: Some(1_000), ..config.clone() };
    vectors::run(&*content::open(&large).await.unwrap(), "postgres").await;
    let walking = Config { tree: Tree::Walk, ..config.clone() };
    vectors::run(&*content::open(&walking).await.unwrap(), "postgres").await;
    hostile::check(&*provider, hostile::Effort::Some).await;
    let asked = config.clone();
    let asking = move || hostile::any_question_is_answered_sanely(&asked, 200);
    tokio::task::spawn_blocking(asking).await.unwrap();
    let (private, _) = site(&server, "private", &privacy::PREPARE).await;
    privacy::check(&private).await;

    // A statement that waits for a lock is stopped.
    let pool = Pool {
        statement: Duration::from_millis(200),
        acquire: Duration::from_secs(1),
        ..config.pool
    };
    let hasty = content::open(&Config { pool, ..config }).await.unwrap();
    let lock = "begin; lock table evo_site_content in access exclusive mode";
    sqlx::raw_sql(lock).execute(&mut admin).await.unwrap();
    let context = Context::anonymous();
    let arguments = json!({"limit": 3});
    let outcome = try_call(&*hasty, &context, "evo.content.search", &arguments).await;
    assert_eq!(outcome, Err(Failure::Timeout { after: pool.statement }));
    sqlx::raw_sql("rollback").execute(&mut admin).await.unwrap();

    // A database that goes away is a failure; when it is back, all is well.
    server.stop();
    let outcome = try_call(&*hasty, &context, "evo.content.search", &arguments).await;
    assert!(matches!(outcome, Err(Failure::Unavailable { .. })), "{outcome:?}");
    server.resume();
    let outcome = try_call(&*hasty, &context, "evo.content.search", &arguments).await;
    assert_eq!(ids(&outcome.unwrap()), [1, 2, 3]);
}
