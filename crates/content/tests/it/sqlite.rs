use std::path::Path;
use std::time::Duration;

use content::{Config, Limits, OpenError, Overrides, Pool, Tree};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions};
use tempfile::TempDir;
use tool::{Context, Failure};

use crate::ask::{call, ids, try_call};
use crate::{hostile, numbers, privacy, records, vectors};

/// A site in a file of its own, changed by the given statements.
async fn site(changes: &[&str]) -> (TempDir, Config) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("site.sqlite");
    fill(&path, include_str!("../../assets/sample.sql"), changes).await;
    (directory, Config::new(format!("sqlite:{}", path.display())))
}

async fn fill(path: &Path, dump: &str, changes: &[&str]) {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut admin = options.connect().await.unwrap();
    for text in [dump].iter().chain(changes) {
        let text = text.replace("{q}", "\"").replace("{true}", "1");
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut admin).await.unwrap();
    }
}

#[tokio::test]
async fn the_sample_site_answers_every_vector() {
    let provider = content::open(&Config::sample()).await.unwrap();
    vectors::run(&*provider, "sqlite").await;
}

#[tokio::test]
async fn walking_by_parents_gives_the_same_answers() {
    let config = Config { tree: Tree::Walk, ..Config::sample() };
    vectors::run(&*content::open(&config).await.unwrap(), "sqlite").await;
}

#[tokio::test]
async fn reading_from_the_roots_down_gives_the_same_answers() {
    let config = Config { few_documents: Some(1_000), ..Config::sample() };
    vectors::run(&*content::open(&config).await.unwrap(), "sqlite").await;
}

#[tokio::test]
async fn a_damaged_or_missing_closure_table_is_noticed_and_not_used() {
    for (change, code) in [
        ("delete from evo_site_content_closure where descendant = 22", "damaged-closure"),
        ("delete from evo_site_content_closure where depth = 2", "damaged-closure"),
        ("update evo_site_content set parent = 11 where id = 22", "damaged-closure"),
        (
            "create table bare as select * from evo_site_content_closure; \
             drop table evo_site_content_closure; \
             alter table bare rename to evo_site_content_closure; \
             insert into evo_site_content_closure (ancestor, descendant, depth) values (2, 20, 2)",
            "damaged-closure",
        ),
        ("drop table evo_site_content_closure", "no-closure"),
    ] {
        let (_directory, config) = site(&[change]).await;
        let provider = content::open(&config).await.unwrap();
        let findings = &provider.listing().findings;
        assert!(findings.iter().any(|finding| finding.code == code), "{change}: {findings:?}");
        if !change.starts_with("update") {
            vectors::run(&*provider, "sqlite").await;
        }
    }
}

#[tokio::test]
async fn a_circle_of_parents_ends() {
    let (_directory, config) =
        site(&["update evo_site_content set parent = 57 where id = 50"]).await;
    let provider = content::open(&config).await.unwrap();
    let context = Context::anonymous();
    for tool in ["descendants", "ancestors"] {
        let name = format!("evo.content.{tool}");
        let arguments = json!({"id": 53, "limit": 100, "depth": 6});
        let found = ids(&call(&*provider, &context, &name, &arguments).await);
        let mut once = found.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!((found.len(), found.contains(&53)), (once.len(), false), "{tool}: {found:?}");
    }
}

#[tokio::test]
async fn private_documents_stay_private() {
    let (_directory, config) = site(&privacy::PREPARE).await;
    privacy::check(&config).await;
    privacy::check(&Config { few_documents: Some(1_000), ..config.clone() }).await;
    privacy::check(&Config { tree: Tree::Walk, ..config }).await;
}

#[tokio::test]
async fn numbers_are_compared_as_they_are_written() {
    let (_directory, config) = site(&numbers::PREPARE).await;
    numbers::check(&config).await;
}

#[tokio::test]
async fn text_is_no_number_in_models() {
    records::check(&Config::sample()).await;
}

#[tokio::test]
async fn hostile_texts_change_nothing() {
    hostile::check(&*content::open(&Config::sample()).await.unwrap(), hostile::Effort::All).await;
}

#[tokio::test]
async fn the_prefix_is_found_and_what_is_missing_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.sqlite");
    let dump = include_str!("../../assets/sample.sql");
    fill(&path, &dump.replace("evo_", "modx_"), &["drop table modx_tags"]).await;
    let config = Config::new(format!("sqlite:{}", path.display()));
    let provider = content::open(&config).await.unwrap();
    assert!(provider.listing().findings.iter().any(|finding| finding.code == "no-tags"));
    let tagged = json!({"limit": 5, "tags_data": {"tv_id": 17, "tags": ["a"]}});
    let outcome = call(&*provider, &Context::anonymous(), "evo.content.search", &tagged).await;
    assert_eq!(ids(&outcome), Vec::<i64>::new());

    let wrong = Config { prefix: Some("evo_".to_owned()), ..config.clone() };
    let error = content::open(&wrong).await.err().unwrap().to_string();
    assert!(error.contains("`evo_site_content`") && error.contains("prefix"), "{error}");
    let hostile = Config { prefix: Some("x\"; drop".to_owned()), ..config };
    assert!(matches!(content::open(&hostile).await, Err(OpenError::NoSite(_))));

    let (_directory, config) = site(&["alter table evo_site_content drop column alias"]).await;
    let error = content::open(&config).await.err().unwrap().to_string();
    assert_eq!(error, "table `evo_site_content` has no column `alias`");
}

#[tokio::test]
async fn a_url_that_is_none_is_not_repeated() {
    for url in ["hunter2", "oracle://user:hunter2@host/db"] {
        let error = content::open(&Config::new(url)).await.err().unwrap().to_string();
        assert!(error.contains("sqlite:") && !error.contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_called_just_that() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "nothing but notes, and quite a few of them ".repeat(100)).unwrap();
    let there = path.display().to_string();
    let cause = "error returned from database: (code: 26) file is not a database";
    let absent = directory.path().join("nope.sqlite").display().to_string();
    for (path, said) in [
        (&absent, format!("there is no file `{absent}`")),
        (&there, format!("no such database: {cause}")),
    ] {
        let error = content::open(&Config::new(format!("sqlite:{path}"))).await.err().unwrap();
        assert_eq!(error.to_string(), said);
        assert!(matches!(error, OpenError::NoDatabase(_)), "{error:?}");
    }
}

#[tokio::test]
async fn limits_of_a_server_really_apply() {
    let own = Overrides {
        max_result_items: Some(50),
        max_result_bytes: Some(3_000),
        ..Overrides::default()
    };
    let config = Config { limits: Limits::contract().with(&own), ..Config::sample() };
    let provider = content::open(&config).await.unwrap();
    let context = Context::anonymous();
    let outcome = call(&*provider, &context, "evo.content.search", &json!({"limit": 51})).await;
    assert_eq!(outcome["invalid"], "limit must be between 1 and 50.");
    let outcome = call(&*provider, &context, "evo.content.search", &json!({"limit": 50})).await;
    assert!(outcome["invalid"].as_str().unwrap().contains("smaller limit"), "{outcome}");
    assert_eq!(
        ids(&call(&*provider, &context, "evo.content.search", &json!({"limit": 2})).await),
        [1, 2]
    );
}

#[tokio::test]
async fn denied_tools_are_not_there() {
    let denied = vec!["evo.model.*".to_owned(), "*.search".to_owned()];
    let provider = content::open(&Config { deny_tools: denied, ..Config::sample() }).await.unwrap();
    let names: Vec<String> = provider.listing().tools.iter().map(|it| it.name.clone()).collect();
    assert_eq!(names.len(), 11, "{names:?}");
    let context = Context::anonymous();
    for tool in ["evo.model.list", "evo.content.search"] {
        let outcome = call(&*provider, &context, tool, &json!({"limit": 1})).await;
        assert_eq!(outcome["code"], -32601, "{tool}");
    }
    let outcome = call(&*provider, &context, "evo.content.get", &json!({"id": 1})).await;
    assert_eq!(outcome["ok"]["item"]["id"], 1);
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_stopped() {
    let more = "with recursive n (i) as (select 1000 union all select i + 1 from n where i < 20000) \
                insert into evo_site_content (id, pagetitle, parent) select i, 'page ' || i, 1 from n";
    let (_directory, config) = site(&[more]).await;
    let pool = Pool { statement: Duration::ZERO, ..config.pool };
    let config = Config { pool, tree: Tree::Closure, ..config };
    let provider = content::open(&config).await.unwrap();
    let arguments = json!({"limit": 5, "order_by": "pagetitle"});
    let outcome =
        try_call(&*provider, &Context::anonymous(), "evo.content.search", &arguments).await;
    assert_eq!(outcome, Err(Failure::Timeout { after: Duration::ZERO }));
    let arguments = json!({"limit": 5});
    let outcome =
        try_call(&*provider, &Context::anonymous(), "evo.content.search", &arguments).await;
    assert_eq!(ids(&outcome.unwrap()).len(), 5);
}

#[tokio::test]
async fn nothing_can_be_written_through_the_toolset() {
    let (directory, config) = site(&[]).await;
    let provider = content::open(&config).await.unwrap();
    vectors::run(&*provider, "sqlite").await;
    let path = directory.path().join("site.sqlite");
    let before = std::fs::read(&path).unwrap();
    drop(provider);
    assert_eq!(before, std::fs::read(&path).unwrap());
}
