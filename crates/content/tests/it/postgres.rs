use content::{Config, Tree};
use sqlx::{AssertSqlSafe, Connection, Executor};

use crate::servers::{Kind, Server};
use crate::vectors;

#[tokio::test]
async fn postgres_answers_every_vector() {
    let server = Server::start(Kind::Postgres);
    let mut admin = sqlx::PgConnection::connect(&server.url("postgres")).await.unwrap();
    admin.execute("create database site").await.unwrap();
    let mut admin = sqlx::PgConnection::connect(&server.url("site")).await.unwrap();
    let dump = include_str!("../vectors/sample.pgsql.sql");
    sqlx::raw_sql(AssertSqlSafe(dump)).execute(&mut admin).await.unwrap();

    let config = Config::new(server.url("site"));
    vectors::run(&*content::open(&config).await.unwrap(), "postgres").await;
    let config = Config { tree: Tree::Walk, ..config };
    vectors::run(&*content::open(&config).await.unwrap(), "postgres").await;
}
