//! Renders template variables: as conditions, as sort keys and as returned columns.

use super::operators::{ESCAPE, like_pattern};
use super::visibility::Visibility;
use super::writer::Writer;
use crate::number_prefix::{self, Fit};
use crate::query::{Cast, Comparison, Condition, DocumentQuery, Fallback, Operand, OrderKey, Tv};
use crate::site::Site;
use crate::statement::Dialect;

/// The template variables that filters and sort terms use, each joined once.
pub(super) struct JoinedVariables<'q>(Vec<JoinedVariable<'q>>);

struct JoinedVariable<'q> {
    name: &'q str,
    /// Whether no document without a value can match, so that an inner join will do.
    must_exist: bool,
}

impl<'q> JoinedVariables<'q> {
    pub(super) fn new(query: &'q DocumentQuery, site: &Site) -> JoinedVariables<'q> {
        let mut joined = JoinedVariables(Vec::new());
        if !site.has_tvs() {
            return joined;
        }
        for filter in &query.filters {
            let must_exist =
                filter.tv.fallback == Fallback::Null && !filter.condition.matches_null();
            joined.add(&filter.tv.name, must_exist);
        }
        for order in &query.order {
            if let OrderKey::Tv { tv, .. } = &order.by {
                joined.add(&tv.name, false);
            }
        }
        joined
    }

    /// An empty list, for statements that select every variable in a subquery.
    pub(super) fn none() -> JoinedVariables<'q> {
        JoinedVariables(Vec::new())
    }

    fn add(&mut self, name: &'q str, must_exist: bool) {
        match self.0.iter_mut().find(|variable| variable.name == name) {
            Some(variable) => variable.must_exist |= must_exist,
            None => self.0.push(JoinedVariable { name, must_exist }),
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|variable| variable.name == name)
    }

    pub(super) fn join(&self, writer: &mut Writer<'_>, visibility: Visibility) {
        for (at, variable) in self.0.iter().enumerate() {
            writer.push(if variable.must_exist { " join " } else { " left join " });
            writer.table("site_tmplvar_contentvalues").push(" t").number(at);
            writer.push(" on t").number(at).push(".contentid = c.id and t").number(at);
            writer.push(".tmplvarid = ").tv_id(variable.name, visibility);
        }
    }
}

/// Returns whether SQLite's own numbers could get a comparison wrong. Its integers end
/// at 64 bits, and every larger number counts as the largest.
fn needs_digit_comparison(cast: Cast, operand: &Operand) -> bool {
    match (cast, operand) {
        (Cast::Integer, Operand::Integer(integer)) => matches!(*integer, i64::MIN | i64::MAX),
        (Cast::Integer | Cast::Decimal { .. }, _) => true,
    }
}

impl Writer<'_> {
    pub(super) fn tv_condition(
        &mut self,
        tv: &Tv,
        condition: &Condition,
        joined: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        match condition {
            Condition::Null => self.value(tv, joined, visibility).push(" is null"),
            Condition::NotNull => self.value(tv, joined, visibility).push(" is not null"),
            Condition::Compare { op, operand, cast: None } => {
                self.value(tv, joined, visibility).comparison(*op).bind(operand.clone())
            }
            Condition::Compare { op, operand, cast: Some(cast) } => match self.dialect() {
                Dialect::Sqlite if needs_digit_comparison(*cast, operand) => {
                    self.digits_condition(tv, *op, operand, *cast, joined, visibility)
                }
                Dialect::Sqlite | Dialect::MySql | Dialect::Postgres => {
                    self.cast(tv, *cast, joined, visibility).comparison(*op).bind(operand.clone())
                }
            },
            Condition::In(values) => self.value(tv, joined, visibility).push(" in ").list(values),
            Condition::NotIn(values) => {
                self.value(tv, joined, visibility).push(" not in ").list(values)
            }
            Condition::Like { position, text } => {
                self.value(tv, joined, visibility)
                    .push(" like ")
                    .string(&like_pattern(*position, text));
                self.push(ESCAPE)
            }
        }
    }

    /// Writes the value of a joined variable; `null` for one that is not joined.
    pub(super) fn value(
        &mut self,
        tv: &Tv,
        joined: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        let Some(at) = joined.find(&tv.name) else { return self.push("null") };
        match tv.fallback {
            Fallback::Null => self.push("t").number(at).push(".value"),
            Fallback::Default => {
                self.push("coalesce(t").number(at).push(".value, ");
                self.tv_default(&tv.name, visibility).push(")")
            }
        }
    }

    /// Writes a comparison by decimal digits, for which SQLite's own numbers are not exact
    /// enough. The collation casts both sides, so an operand that cannot be the result of
    /// the cast is replaced by its neighbour that can.
    fn digits_condition(
        &mut self,
        tv: &Tv,
        op: Comparison,
        operand: &Operand,
        cast: Cast,
        joined: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        let number = match operand {
            Operand::Integer(integer) => integer.to_string(),
            Operand::Decimal(text) | Operand::Text(text) => text.clone(),
        };
        let (op, number) = match (op, number_prefix::fit(cast, &number)) {
            (op, Fit::Exact) => (op, number),
            (Comparison::Equal, Fit::Between { .. }) => return self.push("1 = 0"),
            (Comparison::Unequal, Fit::Between { .. }) => {
                return self.value(tv, joined, visibility).push(" is not null");
            }
            (
                Comparison::Greater | Comparison::GreaterOrEqual,
                Fit::Between { toward_zero, negative },
            ) => (
                if negative { Comparison::GreaterOrEqual } else { Comparison::Greater },
                toward_zero,
            ),
            (
                Comparison::Less | Comparison::LessOrEqual,
                Fit::Between { toward_zero, negative },
            ) => (if negative { Comparison::Less } else { Comparison::LessOrEqual }, toward_zero),
        };
        self.push("cast(").value(tv, joined, visibility).push(" as text) collate ");
        self.collation(cast).comparison(op).string(&number)
    }

    /// Writes the name of the collation that compares as the cast says.
    fn collation(&mut self, cast: Cast) -> &mut Self {
        self.text.push_str(&number_prefix::collation_name(cast));
        self
    }

    /// Writes the number at the start of a variable's value; null if there is no value.
    pub(super) fn cast(
        &mut self,
        tv: &Tv,
        cast: Cast,
        joined: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        match (self.dialect(), cast) {
            (Dialect::Sqlite, Cast::Integer) => {
                self.push("cast(").value(tv, joined, visibility).push(" as integer)")
            }
            (Dialect::Sqlite, Cast::Decimal { .. }) => {
                self.push("cast(").value(tv, joined, visibility).push(" as text) collate ");
                self.collation(cast)
            }
            (Dialect::MySql, Cast::Integer) => {
                // A short number fits into 64 bits, which is much faster.
                self.push("case when char_length(").value(tv, joined, visibility);
                self.push(") < 19 then cast(").value(tv, joined, visibility);
                self.push(" as signed) else cast(regexp_substr(").value(tv, joined, visibility);
                self.push(", '^[[:space:]]*[+-]{0,1}[0-9]+') as decimal(65,0)) end")
            }
            (Dialect::MySql, Cast::Decimal { scale }) => {
                self.push("round(cast(regexp_substr(").value(tv, joined, visibility);
                self.push(", '^[[:space:]]*[+-]{0,1}([0-9]+[.]{0,1}[0-9]*|[.][0-9]+)')");
                self.push(" as decimal(65,30)), ").number(scale.into()).push(")")
            }
            (Dialect::Postgres, Cast::Integer) => {
                self.push("case when ").value(tv, joined, visibility).push(" is not null then ");
                self.push("coalesce(substring(").value(tv, joined, visibility);
                self.push(r" from '^\s*([+-]{0,1}\d{1,255})')::numeric, 0) end")
            }
            (Dialect::Postgres, Cast::Decimal { scale }) => {
                self.push("case when ").value(tv, joined, visibility).push(" is not null then ");
                self.push("round(coalesce(substring(").value(tv, joined, visibility);
                self.push(r" from '^\s*([+-]{0,1}(\d{1,255}\.{0,1}\d{0,255}|\.\d{1,255}))')");
                self.push("::numeric, 0), ").number(scale.into()).push(") end")
            }
        }
    }

    /// Writes a variable in the list of selected columns: from its join if it has one, else
    /// as a subquery, which runs only for the returned rows.
    pub(super) fn returned_value(
        &mut self,
        tv: &Tv,
        joined: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        if joined.find(&tv.name).is_some() || !self.site.has_tvs() {
            return self.value(tv, joined, visibility);
        }
        if tv.fallback == Fallback::Default {
            self.push("coalesce(");
        }
        self.push("(select v.value from ").from("site_tmplvar_contentvalues", "v");
        self.push(" where v.contentid = c.id and v.tmplvarid = ").tv_id(&tv.name, visibility);
        self.push(")");
        if tv.fallback == Fallback::Default {
            self.push(", ").tv_default(&tv.name, visibility).push(")");
        }
        self
    }

    fn tv_id(&mut self, name: &str, visibility: Visibility) -> &mut Self {
        self.push("(select min(d.id) from ").from("site_tmplvars", "d");
        self.push(" where d.name = ").string(name).and_tv_allowed("d", visibility).push(")")
    }

    fn tv_default(&mut self, name: &str, visibility: Visibility) -> &mut Self {
        self.push("(select d.default_text from ").from("site_tmplvars", "d");
        self.push(" where d.name = ").string(name).and_tv_allowed("d", visibility);
        self.push(" order by d.id limit 1)")
    }
}
