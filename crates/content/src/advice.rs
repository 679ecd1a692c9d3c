//! Which indexes a site lacks. They are only ever suggested: this toolset
//! changes nothing.

use tool::{Finding, Severity};

use crate::database::Cell;
use crate::explain::ExplainError;
use crate::indexes::{INDEXES, Index};
use crate::provider::Content;
use crate::sql;

/// An index that the database has.
struct Existing {
    table: String,
    name: String,
    /// Each with whether it goes from high to low.
    columns: Vec<(String, bool)>,
}

impl Existing {
    /// Whether it does what another would.
    fn does_what(&self, index: &Index) -> bool {
        self.columns.len() >= index.columns.len()
            && index
                .columns
                .iter()
                .zip(&self.columns)
                .all(|(wanted, (name, falls))| wanted.name() == name && *falls == wanted.falls())
    }
}

impl Content {
    /// Indexes that are missing, each with the statement that makes it.
    pub async fn missing_indexes(&self) -> Result<Vec<(Finding, String)>, ExplainError> {
        let existing = self.existing_indexes().await?;
        let prefix = self.site.prefix.as_str();
        let is_there = |index: &Index| {
            let table = format!("{prefix}{}", index.table);
            existing.iter().any(|there| there.table == table && there.does_what(index))
        };
        let missing = INDEXES
            .iter()
            .filter(|index| index.is_for(self.site.dialect) && self.site.has_table(index.table))
            .filter(|index| !is_there(index));
        let suggest = |index: &Index| {
            let table = format!("{prefix}{}", index.table);
            let finding = Finding::new(Severity::Info, "missing-index", table, index.why);
            (finding, sql::create_index(&self.site, index))
        };
        Ok(missing.map(suggest).collect())
    }

    async fn existing_indexes(&self) -> Result<Vec<Existing>, ExplainError> {
        let mut existing: Vec<Existing> = Vec::new();
        for row in self.database.fetch(&sql::indexes(&self.site)).await? {
            let mut cells = row.into_iter();
            let falls = cells.next_back().and_then(|cell| cell.number()) == Some(1);
            let mut texts = cells.filter_map(Cell::text);
            let (Some(table), Some(name), Some(column)) =
                (texts.next(), texts.next(), texts.next())
            else {
                continue;
            };
            match existing.iter_mut().find(|one| one.table == table && one.name == name) {
                Some(one) => one.columns.push((column, falls)),
                None => existing.push(Existing { table, name, columns: vec![(column, falls)] }),
            }
        }
        Ok(existing)
    }
}
