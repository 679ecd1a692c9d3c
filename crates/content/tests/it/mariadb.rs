use content::{Config, Tree};
use sqlx::{AssertSqlSafe, Connection, Executor};

use crate::servers::{Kind, Server};
use crate::vectors;

#[tokio::test]
async fn mariadb_answers_every_vector() {
    let server = Server::start(Kind::MariaDb);
    let mut admin = sqlx::MySqlConnection::connect(&server.url("")).await.unwrap();
    admin.execute("create database site").await.unwrap();
    admin.execute("use site").await.unwrap();
    let dump = include_str!("../vectors/sample.mysql.sql");
    sqlx::raw_sql(AssertSqlSafe(dump)).execute(&mut admin).await.unwrap();

    let config = Config::new(server.url("site"));
    vectors::run(&*content::open(&config).await.unwrap(), "mariadb").await;
    let config = Config { tree: Tree::Walk, ..config };
    vectors::run(&*content::open(&config).await.unwrap(), "mariadb").await;
}
