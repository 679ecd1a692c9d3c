//! Renders queries for rows of the readable models.

use super::operators::{ESCAPE, like_pattern};
use super::visibility::Visibility;
use super::writer::{Nulls, Writer};
use crate::query::{Comparison, Condition, FieldFilter, Operand, RecordQuery};
use crate::site::{ColumnType, Site};
use crate::statement::{Dialect, Statement};

/// Renders a query for rows of a model; the columns are those of
/// [`Site::fields`], in that order.
pub(crate) fn records(site: &Site, query: &RecordQuery, visibility: Visibility) -> Statement {
    let model = query.model;
    let mut writer = Writer::new(site);
    writer.push("select ");
    for (at, field) in site.fields(model).enumerate() {
        writer.push(if at > 0 { ", " } else { "" }).column("r", field);
    }
    writer.push(" from ").from(model.table, "r");
    for FieldFilter { field, condition } in &query.filters {
        let kind = site.column_type(model.table, field);
        writer.condition().field_condition(field, kind, condition);
    }
    writer.only_visible_values(model.table, visibility);
    let (column, direction) = query.order;
    writer.push(" order by ").column("r", column);
    let nulls = if column == "id" { Nulls::Impossible } else { Nulls::Possible };
    writer.direction(direction, nulls);
    if column != "id" {
        writer.push(", r.id");
    }
    writer.page(query.page);
    writer.done()
}

/// Whether an operand can be compared with a column.
enum Comparable {
    /// The operand, converted to the column's type.
    Value(Operand),
    /// The operand is text that is not a number, and the column is numeric. Engines
    /// differ: one refuses to compare them, another takes the text for zero.
    Never,
}

impl Writer<'_> {
    /// Limits values of template variables to documents and variables that are visible.
    fn only_visible_values(&mut self, table: &str, visibility: Visibility) -> &mut Self {
        if visibility.is_whole() || table != "site_tmplvar_contentvalues" {
            return self;
        }
        self.condition().push("exists (select 1 from ").from("site_content", "c");
        self.push(" where c.id = r.contentid and ");
        self.flag("c", "site_content", "deleted", false).and_visible("c", visibility).push(")");
        self.push(" and exists (select 1 from ").from("site_tmplvars", "d");
        self.push(" where d.id = r.tmplvarid").and_tv_allowed("d", visibility).push(")")
    }

    fn field_condition(
        &mut self,
        field: &'static str,
        kind: ColumnType,
        condition: &Condition,
    ) -> &mut Self {
        match condition {
            Condition::Null => self.field(field, kind).push(" is null"),
            Condition::NotNull => self.field(field, kind).push(" is not null"),
            Condition::Compare { op, operand, .. } => match comparable(kind, operand) {
                Comparable::Value(value) => self.field(field, kind).comparison(*op).bind(value),
                Comparable::Never => match op {
                    // Text sorts after every number, as in SQLite.
                    Comparison::Unequal | Comparison::Less | Comparison::LessOrEqual => {
                        self.field(field, kind).push(" is not null")
                    }
                    Comparison::Equal | Comparison::Greater | Comparison::GreaterOrEqual => {
                        self.push("1 = 0")
                    }
                },
            },
            Condition::In(values) => match comparable_list(kind, values) {
                values if values.is_empty() => self.push("1 = 0"),
                values => self.field(field, kind).push(" in ").list(&values),
            },
            Condition::NotIn(values) => match comparable_list(kind, values) {
                values if values.is_empty() => self.field(field, kind).push(" is not null"),
                values => self.field(field, kind).push(" not in ").list(&values),
            },
            Condition::Like { position, text } => {
                self.field(field, kind);
                if self.dialect() == Dialect::Postgres && kind != ColumnType::Text {
                    self.push("::text");
                }
                self.push(" like ").string(&like_pattern(*position, text)).push(ESCAPE)
            }
        }
    }

    /// Writes the column; a boolean is cast to a number.
    fn field(&mut self, field: &'static str, kind: ColumnType) -> &mut Self {
        match kind {
            ColumnType::Boolean => self.column("r", field).push("::int"),
            ColumnType::Integer | ColumnType::Text => self.column("r", field),
        }
    }
}

fn comparable_list(kind: ColumnType, values: &[Operand]) -> Vec<Operand> {
    let value = |operand| match comparable(kind, operand) {
        Comparable::Value(value) => Some(value),
        Comparable::Never => None,
    };
    values.iter().filter_map(value).collect()
}

/// Converts an operand for comparison with a column: for a numeric column, text becomes a
/// number.
fn comparable(kind: ColumnType, operand: &Operand) -> Comparable {
    let Operand::Text(text) = operand else { return Comparable::Value(operand.clone()) };
    if kind == ColumnType::Text {
        return Comparable::Value(operand.clone());
    }
    let text = text.trim();
    if let Ok(integer) = text.parse() {
        return Comparable::Value(Operand::Integer(integer));
    }
    match text.parse::<f64>() {
        Ok(real) if real.is_finite() => Comparable::Value(Operand::Decimal(text.to_owned())),
        Ok(_) | Err(_) => Comparable::Never,
    }
}
