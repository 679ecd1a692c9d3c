//! Suggests database indexes that the site lacks. They are never created here.

use tool::{Finding, Severity};

use crate::database::Cell;
use crate::explain::ExplainError;
use crate::indexes::{INDEXES, Index};
use crate::provider::Content;
use crate::sql;

/// An index that the database has.
struct ExistingIndex {
    table: String,
    name: String,
    /// The name of each column, and whether it is descending.
    columns: Vec<(String, bool)>,
}

impl ExistingIndex {
    /// Returns whether this index begins with all columns of the other.
    fn covers(&self, index: &Index) -> bool {
        self.columns.len() >= index.columns.len()
            && index.columns.iter().zip(&self.columns).all(|(wanted, (name, is_descending))| {
                wanted.name() == name && *is_descending == wanted.is_descending()
            })
    }
}

impl Content {
    /// Returns a finding for each missing index, and the SQL statement that creates it.
    pub async fn missing_indexes(&self) -> Result<Vec<(Finding, String)>, ExplainError> {
        let existing = self.existing_indexes().await?;
        let prefix = self.site.prefix.as_str();
        let is_there = |index: &Index| {
            let table = format!("{prefix}{}", index.table);
            existing.iter().any(|there| there.table == table && there.covers(index))
        };
        let missing = INDEXES
            .iter()
            .filter(|index| {
                index.is_useful_for(self.site.dialect) && self.site.has_table(index.table)
            })
            .filter(|index| !is_there(index));
        let suggest = |index: &Index| {
            let table = format!("{prefix}{}", index.table);
            let finding = Finding::new(Severity::Info, "missing-index", table, index.why);
            (finding, sql::create_index(&self.site, index))
        };
        Ok(missing.map(suggest).collect())
    }

    async fn existing_indexes(&self) -> Result<Vec<ExistingIndex>, ExplainError> {
        let mut existing: Vec<ExistingIndex> = Vec::new();
        for row in self.database.fetch(&sql::indexes(&self.site)).await? {
            let mut cells = row.into_iter();
            let is_descending = cells.next_back().and_then(|cell| cell.number()) == Some(1);
            let mut texts = cells.filter_map(Cell::text);
            let (Some(table), Some(name), Some(column)) =
                (texts.next(), texts.next(), texts.next())
            else {
                continue;
            };
            match existing.iter_mut().find(|one| one.table == table && one.name == name) {
                Some(one) => one.columns.push((column, is_descending)),
                None => existing.push(ExistingIndex {
                    table,
                    name,
                    columns: vec![(column, is_descending)],
                }),
            }
        }
        Ok(existing)
    }
}
