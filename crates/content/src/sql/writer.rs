//! Writes one SQL statement from left to right.
//!
//! The text consists of string literals, of names from fixed lists and of numbers that
//! we made ourselves. Every other value must be bound with [`Writer::bind`].

use crate::query::{Direction, Operand, Page};
use crate::site::Site;
use crate::statement::{Dialect, Statement};

/// A statement that is being written.
pub(crate) struct Writer<'a> {
    pub(super) site: &'a Site,
    pub(super) text: String,
    values: Vec<Operand>,
    n_conditions: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(site: &'a Site) -> Writer<'a> {
        Writer { site, text: String::with_capacity(1024), values: Vec::new(), n_conditions: 0 }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.site.dialect
    }

    /// Writes a string literal of this program.
    pub(super) fn push(&mut self, text: &'static str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Writes a number of ours, such as the number of an alias.
    pub(super) fn number(&mut self, number: usize) -> &mut Self {
        self.text.push_str(&number.to_string());
        self
    }

    /// Writes a name in the engine's quotes. Names come from fixed lists; only their prefix,
    /// which was checked, comes from elsewhere.
    pub(super) fn name(&mut self, name: &str) -> &mut Self {
        let quote = match self.dialect() {
            Dialect::Sqlite | Dialect::Postgres => '"',
            Dialect::MySql => '`',
        };
        self.text.push(quote);
        self.text.push_str(name);
        self.text.push(quote);
        self
    }

    pub(super) fn table(&mut self, table: &'static str) -> &mut Self {
        let name = format!("{}{table}", self.site.prefix.as_str());
        self.name(&name)
    }

    /// Writes a table and its alias.
    pub(super) fn from(&mut self, table: &'static str, alias: &'static str) -> &mut Self {
        self.table(table).push(" ").push(alias)
    }

    pub(super) fn column(&mut self, alias: &'static str, column: &'static str) -> &mut Self {
        self.push(alias).push(".").name(column)
    }

    /// Writes a placeholder and binds its value. A decimal number is bound as text, and cast
    /// to a number on engines that have exact ones.
    pub(super) fn bind(&mut self, value: Operand) -> &mut Self {
        match (self.dialect(), &value) {
            (Dialect::MySql, Operand::Decimal(_)) => {
                self.push("cast(").placeholder(value).push(" as decimal(65,30))")
            }
            (Dialect::Postgres, Operand::Decimal(_)) => {
                self.push("cast(").placeholder(value).push(" as numeric)")
            }
            (
                Dialect::Sqlite | Dialect::MySql | Dialect::Postgres,
                Operand::Integer(_) | Operand::Decimal(_) | Operand::Text(_),
            ) => self.placeholder(value),
        }
    }

    pub(super) fn placeholder(&mut self, value: Operand) -> &mut Self {
        self.values.push(value);
        match self.dialect() {
            Dialect::Sqlite | Dialect::MySql => self.text.push('?'),
            Dialect::Postgres => {
                self.text.push('$');
                self.text.push_str(&self.values.len().to_string());
            }
        }
        self
    }

    pub(super) fn integer(&mut self, value: i64) -> &mut Self {
        self.bind(Operand::Integer(value))
    }

    pub(super) fn string(&mut self, value: &str) -> &mut Self {
        self.bind(Operand::Text(value.to_owned()))
    }

    /// Begins a `where`.
    pub(super) fn start_conditions(&mut self) -> &mut Self {
        self.n_conditions = 0;
        self
    }

    /// Begins the next condition of the statement's `where`.
    pub(super) fn condition(&mut self) -> &mut Self {
        self.n_conditions += 1;
        if self.n_conditions == 1 { self.push(" where ") } else { self.push(" and ") }
    }

    /// Writes that a flag has a value, for integer and boolean columns alike.
    pub(super) fn flag(
        &mut self,
        alias: &'static str,
        table: &'static str,
        column: &'static str,
        value: bool,
    ) -> &mut Self {
        let boolean = self.site.is_boolean(table, column);
        self.column(alias, column).push(match (boolean, value) {
            (true, true) => " = true",
            (true, false) => " = false",
            (false, true) => " = 1",
            (false, false) => " = 0",
        })
    }

    pub(super) fn direction(&mut self, direction: Direction, nulls: Nulls) -> &mut Self {
        self.push(match direction {
            Direction::Ascending => " asc",
            Direction::Descending => " desc",
        });
        // The other two engines put nulls first anyway.
        if self.dialect() == Dialect::Postgres && nulls == Nulls::Possible {
            self.push(match direction {
                Direction::Ascending => " nulls first",
                Direction::Descending => " nulls last",
            });
        }
        self
    }

    pub(super) fn page(&mut self, page: Page) -> &mut Self {
        self.push(" limit ").integer(page.limit);
        if page.offset > 0 {
            self.push(" offset ").integer(page.offset);
        }
        self
    }

    pub(super) fn done(self) -> Statement {
        Statement { text: self.text, values: self.values }
    }
}

/// Whether a sort key can be null, so that the order must say where nulls go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nulls {
    Possible,
    Impossible,
}
