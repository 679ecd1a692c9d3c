//! Examines a site's database when the toolset is opened: the table prefix, the tables
//! and columns, and whether the closure table is complete.

use std::collections::{BTreeMap, BTreeSet};

use tool::{Finding, Severity};

use crate::config::Tree;
use crate::database::{Cell, Database, DatabaseError, Rows};
use crate::fields::DOCUMENT_FIELDS;
use crate::models::MODELS;
use crate::site::{ColumnType, Prefix, Site, TABLES, TreeBy};
use crate::sql;
use crate::statement::Dialect;

/// Why a database does not contain a site that can be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error("`{0}` is no table prefix; it may hold letters, digits and `_`")]
    Prefix(String),
    #[error("there is no table `{table}`{hint}")]
    NoDocuments { table: String, hint: String },
    #[error("several sites share this database ({0}); say which one with the table prefix")]
    Several(String),
    #[error("table `{table}` has no column {columns}")]
    Columns { table: String, columns: String },
    #[error(transparent)]
    DatabaseError(#[from] DatabaseError),
}

/// Collects the facts about a database; prefix, tree and few documents are as configured.
pub(crate) async fn probe(
    database: &Database,
    prefix: Option<&str>,
    tree: Tree,
    few_documents: Option<i64>,
) -> Result<Site, ProbeError> {
    let mut site = Site {
        dialect: database.dialect(),
        prefix: Prefix::cms_default(),
        tree: TreeBy::Parents,
        findings: Vec::new(),
        shallow_depth: None,
        columns: BTreeMap::new(),
    };
    site.prefix = site.find_prefix(database, prefix).await?;
    site.fetch_columns(database).await?;
    site.require_documents()?;
    site.report_missing_tables();
    site.tree = site.choose_tree(database, tree).await?;
    site.shallow_depth = site.find_shallow_depth(database, few_documents).await?;
    Ok(site)
}

impl Site {
    async fn find_prefix(
        &self,
        database: &Database,
        wanted: Option<&str>,
    ) -> Result<Prefix, ProbeError> {
        if let Some(text) = wanted {
            return Prefix::new(text).ok_or_else(|| ProbeError::Prefix(text.to_owned()));
        }
        let rows = database.fetch(&sql::document_tables(self)).await?;
        let names: BTreeSet<String> = rows.into_iter().filter_map(first_text).collect();
        let prefixes: Vec<&str> =
            names.iter().filter_map(|name| name.strip_suffix("site_content")).collect();
        match prefixes.as_slice() {
            [] => Ok(self.prefix.clone()),
            [one] => Prefix::new(one).ok_or_else(|| ProbeError::Prefix((*one).to_owned())),
            many if many.contains(&"evo_") => Ok(self.prefix.clone()),
            many => Err(ProbeError::Several(many.join(", "))),
        }
    }

    async fn fetch_columns(&mut self, database: &Database) -> Result<(), ProbeError> {
        let tables: Vec<&'static str> =
            TABLES.into_iter().chain(MODELS.iter().map(|model| model.table)).collect();
        for row in database.fetch(&sql::columns(self, &tables)).await? {
            let mut texts = row.into_iter().map(|cell| cell.text().unwrap_or_default());
            let (Some(table), Some(column), Some(kind)) =
                (texts.next(), texts.next(), texts.next())
            else {
                continue;
            };
            let bare = table.strip_prefix(self.prefix.as_str()).unwrap_or_default();
            if let Some(table) = tables.iter().find(|known| **known == bare) {
                let columns = self.columns.entry(table).or_default();
                columns.insert(column, column_type(self.dialect, &kind));
            }
        }
        Ok(())
    }

    fn require_documents(&self) -> Result<(), ProbeError> {
        let table = format!("{}site_content", self.prefix.as_str());
        if !self.has_table("site_content") {
            let hint = "; is this the CMS's database, and is the table prefix right?".to_owned();
            return Err(ProbeError::NoDocuments { table, hint });
        }
        let missing: Vec<String> = DOCUMENT_FIELDS
            .iter()
            .filter(|field| !self.has_column("site_content", field.name))
            .map(|field| format!("`{}`", field.name))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(ProbeError::Columns { table, columns: missing.join(", ") })
    }

    /// Adds findings about what will not work because of missing tables.
    fn report_missing_tables(&mut self) {
        let mut notes = Vec::new();
        if !self.has_tvs() {
            notes.push(("no-template-variables", "template variables are always null"));
        }
        if !self.has_tags() {
            notes.push(("no-tags", "`tags_data` matches nothing: the tag tables are missing"));
        }
        for (code, message) in notes {
            self.add_finding(Severity::Info, code, message.to_owned());
        }
        for model in MODELS {
            if !self.has_table(model.table) {
                let message = format!("`{}` cannot be read: its table is missing", model.name);
                self.add_finding(Severity::Warning, "no-model-table", message);
            }
        }
    }

    fn add_finding(&mut self, severity: Severity, code: &str, message: String) {
        let subject = format!("{}*", self.prefix.as_str());
        self.findings.push(Finding::new(severity, code, subject, message));
    }

    /// Finds the deepest level down to which there are few documents below the roots.
    async fn find_shallow_depth(
        &self,
        database: &Database,
        few_documents: Option<i64>,
    ) -> Result<Option<i64>, ProbeError> {
        let mut shallow = None;
        if self.tree != TreeBy::Closure {
            return Ok(shallow);
        }
        let few = match few_documents {
            Some(few) => few,
            None => match database.fetch(&sql::count_documents(self, 10 * MAX_FEW)).await {
                Ok(rows) => first_number(&rows).unwrap_or(0) / 10,
                Err(DatabaseError::Slow(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            },
        };
        for depth in 0..=MAX_LEVEL {
            let count = sql::count_below_roots(self, depth, few.saturating_add(1));
            match database.fetch(&count).await {
                Ok(rows) if matches!(first_number(&rows), Some(n_rows) if n_rows <= few) => {
                    shallow = Some(depth);
                }
                Ok(_) | Err(DatabaseError::Slow(_)) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(shallow)
    }

    async fn choose_tree(&mut self, database: &Database, tree: Tree) -> Result<TreeBy, ProbeError> {
        let usable = ["ancestor", "descendant", "depth"]
            .iter()
            .all(|column| self.has_column("site_content_closure", column));
        match (tree, usable) {
            (Tree::Walk, _) => return Ok(TreeBy::Parents),
            (Tree::Closure, true) => return Ok(TreeBy::Closure),
            (Tree::Closure | Tree::Auto, false) => {
                let message = "there is no closure table; trees are walked by parents".to_owned();
                self.add_finding(Severity::Warning, "no-closure", message);
                return Ok(TreeBy::Parents);
            }
            (Tree::Auto, true) => {}
        }
        let checks = [
            sql::closure_missing_self(self),
            sql::closure_gap(self),
            sql::closure_stale(self),
            sql::closure_repeated(self),
        ];
        for check in checks {
            match database.fetch(&check).await {
                Ok(rows) => {
                    let Some(Cell::Integer(id)) = rows.into_iter().flatten().next() else {
                        continue;
                    };
                    let message = format!(
                        "the closure table is wrong about document {id}; trees are walked by \
                         parents until it is rebuilt and gatelet is restarted"
                    );
                    self.add_finding(Severity::Warning, "damaged-closure", message);
                    return Ok(TreeBy::Parents);
                }
                Err(DatabaseError::Slow(_)) => {
                    let message =
                        "the closure table is too large to be verified in time; it is trusted";
                    self.add_finding(Severity::Info, "unverified-closure", message.to_owned());
                    return Ok(TreeBy::Closure);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(TreeBy::Closure)
    }
}

/// The largest default for `few_documents`: as many are sorted in a few milliseconds.
const MAX_FEW: i64 = 5_000;

/// The deepest level that is counted; queries do not go deeper.
const MAX_LEVEL: i64 = 20;

fn first_number(rows: &Rows) -> Option<i64> {
    rows.first()?.first()?.number()
}

fn first_text(row: Vec<Cell>) -> Option<String> {
    row.into_iter().next().and_then(Cell::text)
}

fn column_type(dialect: Dialect, declared: &str) -> ColumnType {
    let declared = declared.to_ascii_lowercase();
    if dialect == Dialect::Postgres && declared == "boolean" {
        return ColumnType::Boolean;
    }
    let numeric = ["int", "serial", "bool", "dec", "num", "real", "float", "double"];
    if numeric.iter().any(|word| declared.contains(word)) && declared != "interval" {
        ColumnType::Integer
    } else {
        ColumnType::Text
    }
}
