//! Generates a CMS site of any size in an empty database, for benchmarks.
//!
//! Each document has twenty children and a value for each of ten template variables.
//! The indexes are those that the CMS itself creates. A database that has a site
//! already is left alone.

use std::fmt::Write;
use std::str::FromStr;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, MySqlConnection, SqliteConnection};

/// How many children each document has.
const N_CHILDREN: u64 = 20;

/// How many template variables there are.
pub const N_VARIABLES: u64 = 10;

/// How many rows one statement inserts.
const BATCH: usize = 500;

/// Why a site cannot be generated.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    #[error("this database has tables already; a generated site needs an empty one")]
    NotEmpty,
    #[error("the database refused: {0}")]
    Database(#[from] sqlx::Error),
}

/// The connection to the database that is written.
enum Target {
    Sqlite(SqliteConnection),
    MySql(MySqlConnection),
}

const SQLITE: &str = include_str!("../assets/sample.sql");
const MYSQL: &str = include_str!("../assets/sample.mysql.sql");

/// The indexes that the CMS creates: table and columns.
const CMS_INDEXES: [(&str, &str); 12] = [
    ("site_content", "type"),
    ("site_content", "alias(191)"),
    ("site_content", "parent"),
    ("site_content", "pub_date, unpub_date, published"),
    ("site_content", "unpub_date"),
    ("site_content", "template"),
    ("site_content_closure", "ancestor"),
    ("site_content_closure", "descendant"),
    ("site_content_closure", "depth"),
    ("site_content_closure", "descendant, ancestor"),
    ("site_tmplvar_contentvalues", "tmplvarid"),
    ("site_tmplvar_contentvalues", "contentid"),
];

/// Writes a site of `n_documents` documents to SQLite or MariaDB.
pub async fn site(url: &str, n_documents: u64) -> Result<(), GenerateError> {
    let mut target = if url.starts_with("sqlite:") {
        let options = SqliteConnectOptions::from_str(url)?.create_if_missing(true);
        Target::Sqlite(options.connect().await?)
    } else {
        Target::MySql(MySqlConnection::connect(url).await?)
    };
    create_tables(&mut target).await?;
    target.run("begin").await?;
    let mut rows = BatchInsert { target: &mut target, text: String::new(), n_rows: 0 };
    insert_variables(&mut rows).await?;
    insert_documents(&mut rows, n_documents).await?;
    insert_closure(&mut rows, n_documents).await?;
    insert_values(&mut rows, n_documents).await?;
    target.run("commit").await?;
    create_indexes(&mut target).await?;
    target.run(target.analyze()).await?;
    Ok(())
}

/// Runs statements that an operator would run by hand, such as `create index`.
pub async fn run(url: &str, statements: &[String]) -> Result<(), GenerateError> {
    let mut target = if url.starts_with("sqlite:") {
        Target::Sqlite(SqliteConnectOptions::from_str(url)?.connect().await?)
    } else {
        Target::MySql(MySqlConnection::connect(url).await?)
    };
    for statement in statements {
        target.run(statement).await?;
    }
    target.run(target.analyze()).await?;
    Ok(())
}

impl Target {
    async fn run(&mut self, text: &str) -> Result<(), sqlx::Error> {
        let statement = sqlx::raw_sql(AssertSqlSafe(text));
        match self {
            Target::Sqlite(connection) => statement.execute(connection).await.map(|_| ()),
            Target::MySql(connection) => statement.execute(connection).await.map(|_| ()),
        }
    }

    /// The statement that updates the engine's statistics.
    fn analyze(&self) -> &'static str {
        match self {
            Target::Sqlite(_) => "analyze",
            Target::MySql(_) => {
                "analyze table evo_site_content, evo_site_content_closure, \
                 evo_site_tmplvar_contentvalues"
            }
        }
    }
}

/// Creates the tables of the sample site, without its rows.
async fn create_tables(target: &mut Target) -> Result<(), GenerateError> {
    if target.run("select count(*) from evo_site_content").await.is_ok() {
        return Err(GenerateError::NotEmpty);
    }
    let dump = match target {
        Target::Sqlite(_) => SQLITE,
        Target::MySql(_) => MYSQL,
    };
    for line in dump.lines() {
        if line.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("create")) {
            target.run(line).await?;
        }
    }
    Ok(())
}

async fn create_indexes(target: &mut Target) -> Result<(), sqlx::Error> {
    for (at, (table, columns)) in CMS_INDEXES.iter().enumerate() {
        let columns = match target {
            Target::Sqlite(_) => columns.replace("(191)", ""),
            Target::MySql(_) => (*columns).to_owned(),
        };
        let text = format!("create index evo_installed_{at} on evo_{table} ({columns})");
        target.run(&text).await?;
    }
    Ok(())
}

async fn insert_variables(rows: &mut BatchInsert<'_>) -> Result<(), sqlx::Error> {
    for id in 1..=N_VARIABLES {
        let row = format!("({id}, 'text', 'tv{id}', 'TV {id}', 'none')");
        rows.add("site_tmplvars (id, type, name, caption, default_text)", &row).await?;
    }
    rows.flush().await
}

async fn insert_documents(rows: &mut BatchInsert<'_>, n_documents: u64) -> Result<(), sqlx::Error> {
    let head = "site_content (id, pagetitle, longtitle, alias, published, parent, isfolder, \
                template, menuindex, createdon, editedon, pub_date, content)";
    for id in 1..=n_documents {
        let (parent, index) = tree_position(id);
        // Spread titles and dates so that their order is not the order of ids.
        let shuffled = id.wrapping_mul(2_654_435_761) % 1_000_003;
        let published = u8::from(id % 10 != 0);
        let folder = u8::from(id * N_CHILDREN < n_documents);
        let template = id % 5 + 1;
        let created = 1_600_000_000 + shuffled;
        let date = if id % 3 == 0 { created + 1000 } else { 0 };
        let row = format!(
            "({id}, 'Page {shuffled}', 'The page with number {id}', 'page-{id}', {published}, \
             {parent}, {folder}, {template}, {index}, {created}, {created}, {date}, \
             '<p>The text of page {id} goes on for a while.</p>')"
        );
        rows.add(head, &row).await?;
    }
    rows.flush().await
}

async fn insert_closure(rows: &mut BatchInsert<'_>, n_documents: u64) -> Result<(), sqlx::Error> {
    for id in 1..=n_documents {
        let (mut ancestor, mut depth) = (id, 0);
        while ancestor != 0 {
            let row = format!("({ancestor}, {id}, {depth})");
            rows.add("site_content_closure (ancestor, descendant, depth)", &row).await?;
            (ancestor, depth) = (tree_position(ancestor).0, depth + 1);
        }
    }
    rows.flush().await
}

async fn insert_values(rows: &mut BatchInsert<'_>, n_documents: u64) -> Result<(), sqlx::Error> {
    let head = "site_tmplvar_contentvalues (tmplvarid, contentid, value)";
    for id in 1..=n_documents {
        for tv in 1..=N_VARIABLES {
            let number = id.wrapping_mul(40_503).wrapping_add(tv * 7) % 10_007;
            rows.add(head, &format!("({tv}, {id}, '{number}')")).await?;
        }
    }
    rows.flush().await
}

/// Returns the parent and the menu index of a document.
fn tree_position(id: u64) -> (u64, u64) {
    ((id - 1) / N_CHILDREN, (id - 1) % N_CHILDREN)
}

/// An `insert` statement that collects rows and runs when it has enough.
struct BatchInsert<'a> {
    target: &'a mut Target,
    text: String,
    n_rows: usize,
}

impl BatchInsert<'_> {
    async fn add(&mut self, head: &'static str, row: &str) -> Result<(), sqlx::Error> {
        if self.n_rows == 0 {
            let _ = write!(self.text, "insert into evo_{head} values {row}");
        } else {
            let _ = write!(self.text, ", {row}");
        }
        self.n_rows += 1;
        if self.n_rows == BATCH { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<(), sqlx::Error> {
        if self.n_rows > 0 {
            self.target.run(&self.text).await?;
            self.text.clear();
            self.n_rows = 0;
        }
        Ok(())
    }
}
