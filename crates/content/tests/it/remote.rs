//! The engines that are servers of their own.

use std::time::Duration;

use content::{Config, OpenError, Pool, Tree};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection};
use tool::{Context, Failure};

use crate::ask::{ids, try_call};
use crate::servers::{Kind, Server};
use crate::{hostile, numbers, privacy, records, vectors};

/// Who prepares a site, past the toolset.
enum Admin {
    MariaDb(MySqlConnection),
    Postgres(PgConnection),
}

impl Admin {
    async fn connect(server: &Server, kind: Kind, database: &str) -> Admin {
        let url = server.url(database);
        match kind {
            Kind::MariaDb => Admin::MariaDb(MySqlConnection::connect(&url).await.unwrap()),
            Kind::Postgres => Admin::Postgres(PgConnection::connect(&url).await.unwrap()),
        }
    }

    async fn run(&mut self, text: &str) {
        let text = AssertSqlSafe(text.to_owned());
        match self {
            Admin::MariaDb(connection) => {
                sqlx::raw_sql(text).execute(connection).await.unwrap();
            }
            Admin::Postgres(connection) => {
                sqlx::raw_sql(text).execute(connection).await.unwrap();
            }
        }
    }
}

async fn site(server: &Server, kind: Kind, name: &str, changes: &[&str]) -> (Config, Admin) {
    let (home, make, sample, quote, yes) = match kind {
        Kind::MariaDb => {
            let make = format!("create database {name} character set utf8mb4");
            ("", make, include_str!("../../assets/sample.mysql.sql"), "`", "1")
        }
        Kind::Postgres => {
            let make = format!("create database {name}");
            ("postgres", make, include_str!("../vectors/sample.pgsql.sql"), "\"", "true")
        }
    };
    Admin::connect(server, kind, home).await.run(&make).await;
    let mut admin = Admin::connect(server, kind, name).await;
    for text in [sample].iter().chain(changes) {
        admin.run(&text.replace("{q}", quote).replace("{true}", yes)).await;
    }
    (Config::new(server.url(name)), admin)
}

/// One server for all of it: starting one takes longer than asking it.
async fn keeps_the_whole_contract(kind: Kind, name: &str, lock: &str, unlock: &str) {
    let mut server = Server::start(kind);
    let (config, mut admin) = site(&server, kind, "site", &[]).await;
    let provider = content::open(&config).await.unwrap();
    vectors::run(&*provider, name).await;
    let large = Config { few_documents: Some(1_000), ..config.clone() };
    vectors::run(&*content::open(&large).await.unwrap(), name).await;
    let walking = Config { tree: Tree::Walk, ..config.clone() };
    vectors::run(&*content::open(&walking).await.unwrap(), name).await;
    hostile::check(&*provider, hostile::Effort::Some).await;
    let asked = config.clone();
    let asking = move || hostile::any_question_is_answered_sanely(&asked, 200);
    tokio::task::spawn_blocking(asking).await.unwrap();
    let (private, _) = site(&server, kind, "private", &privacy::PREPARE).await;
    privacy::check(&private).await;
    let (numbered, _) = site(&server, kind, "numbers", &numbers::PREPARE).await;
    numbers::check(&numbered).await;
    records::check(&config).await;

    // A server that is there, without the database or for somebody else.
    let absent = content::open(&Config::new(server.url("nowhere"))).await.err().unwrap();
    assert!(matches!(absent, OpenError::NoDatabase(_)), "{absent:?}");
    let url = server.url("site").replace("://root@", "://eve:x@").replace("gatelet@", "eve@");
    let refused = content::open(&Config::new(url)).await.err().unwrap();
    assert!(matches!(refused, OpenError::Refused(_)), "{refused:?}");

    // A statement that waits for a lock is stopped.
    let pool = Pool {
        statement: Duration::from_millis(200),
        acquire: Duration::from_secs(1),
        ..config.pool
    };
    let hasty = content::open(&Config { pool, ..config }).await.unwrap();
    admin.run(lock).await;
    let context = Context::anonymous();
    let arguments = json!({"limit": 3});
    let outcome = try_call(&*hasty, &context, "evo.content.search", &arguments).await;
    assert_eq!(outcome, Err(Failure::Timeout { after: pool.statement }));
    admin.run(unlock).await;

    // A database that goes away is a failure; when it is back, all is well.
    server.stop();
    let outcome = try_call(&*hasty, &context, "evo.content.search", &arguments).await;
    assert!(matches!(outcome, Err(Failure::Unavailable { .. })), "{outcome:?}");
    server.resume();
    let outcome = try_call(&*hasty, &context, "evo.content.search", &arguments).await;
    assert_eq!(ids(&outcome.unwrap()), [1, 2, 3]);
}

#[tokio::test]
async fn mariadb_keeps_the_whole_contract() {
    testkit::needs!(MariaDb);
    let lock = "lock tables evo_site_content write";
    keeps_the_whole_contract(Kind::MariaDb, "mariadb", lock, "unlock tables").await;
}

#[tokio::test]
async fn postgres_keeps_the_whole_contract() {
    testkit::needs!(Postgres);
    let lock = "begin; lock table evo_site_content in access exclusive mode";
    keeps_the_whole_contract(Kind::Postgres, "postgres", lock, "rollback").await;
}
