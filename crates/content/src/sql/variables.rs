//! Renders template variables: as conditions, as sort keys and as returned columns.

use super::operators::{ESCAPE, pattern};
use super::visibility::Visibility;
use super::writer::Writer;
use crate::number_prefix::{self, Fit};
use crate::query::{Cast, Comparison, Condition, DocumentQuery, Fallback, Operand, OrderKey, Tv};
use crate::site::Site;
use crate::statement::Dialect;

/// The template variables that filters and orders look at, each joined once.
pub(super) struct JoinedVariables<'q>(Vec<JoinedVariable<'q>>);

struct JoinedVariable<'q> {
    name: &'q str,
    /// Whether documents without a value are out anyway.
    present: bool,
}

impl<'q> JoinedVariables<'q> {
    pub(super) fn new(query: &'q DocumentQuery, site: &Site) -> JoinedVariables<'q> {
        let mut slots = JoinedVariables(Vec::new());
        if !site.has_tvs() {
            return slots;
        }
        for filter in &query.filters {
            let present = filter.tv.fallback == Fallback::Null && !filter.test.takes_null();
            slots.add(&filter.tv.name, present);
        }
        for order in &query.order {
            if let OrderKey::Tv { tv, .. } = &order.by {
                slots.add(&tv.name, false);
            }
        }
        slots
    }

    /// Nothing is joined: every variable is looked up.
    pub(super) fn none() -> JoinedVariables<'q> {
        JoinedVariables(Vec::new())
    }

    fn add(&mut self, name: &'q str, present: bool) {
        match self.0.iter_mut().find(|slot| slot.name == name) {
            Some(slot) => slot.present |= present,
            None => self.0.push(JoinedVariable { name, present }),
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|slot| slot.name == name)
    }

    pub(super) fn join(&self, writer: &mut Writer<'_>, visibility: Visibility) {
        for (at, slot) in self.0.iter().enumerate() {
            writer.push(if slot.present { " join " } else { " left join " });
            writer.table("site_tmplvar_contentvalues").push(" t").number(at);
            writer.push(" on t").number(at).push(".contentid = c.id and t").number(at);
            writer.push(".tmplvarid = ").tv_id(slot.name, visibility);
        }
    }
}

/// Whether SQLite's own integers could get a comparison wrong. They stop at
/// 64 bits, so all that is larger looks like the largest.
fn needs_digits(cast: Cast, with: &Operand) -> bool {
    match (cast, with) {
        (Cast::Integer, Operand::Integer(integer)) => matches!(*integer, i64::MIN | i64::MAX),
        (Cast::Integer | Cast::Decimal { .. }, _) => true,
    }
}

impl Writer<'_> {
    pub(super) fn tv_test(
        &mut self,
        tv: &Tv,
        test: &Condition,
        slots: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        match test {
            Condition::Null => self.value(tv, slots, visibility).push(" is null"),
            Condition::NotNull => self.value(tv, slots, visibility).push(" is not null"),
            Condition::Compare { op, with, cast: None } => {
                self.value(tv, slots, visibility).comparison(*op).bind(with.clone())
            }
            Condition::Compare { op, with, cast: Some(cast) } => match self.dialect() {
                Dialect::Sqlite if needs_digits(*cast, with) => {
                    self.digits_test(tv, *op, with, *cast, slots, visibility)
                }
                Dialect::Sqlite | Dialect::MySql | Dialect::Postgres => {
                    self.cast(tv, *cast, slots, visibility).comparison(*op).bind(with.clone())
                }
            },
            Condition::In(values) => self.value(tv, slots, visibility).push(" in ").list(values),
            Condition::NotIn(values) => {
                self.value(tv, slots, visibility).push(" not in ").list(values)
            }
            Condition::Like { place, text } => {
                self.value(tv, slots, visibility).push(" like ").string(&pattern(*place, text));
                self.push(ESCAPE)
            }
        }
    }

    /// A variable's value for this document, by its joined slot.
    pub(super) fn value(
        &mut self,
        tv: &Tv,
        slots: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        let Some(at) = slots.find(&tv.name) else { return self.push("null") };
        match tv.fallback {
            Fallback::Null => self.push("t").number(at).push(".value"),
            Fallback::Default => {
                self.push("coalesce(t").number(at).push(".value, ");
                self.tv_default(&tv.name, visibility).push(")")
            }
        }
    }

    /// A comparison that SQLite's own numbers are too coarse for, by the
    /// digits. A collation treats both sides alike, so a number that the cast
    /// cannot give is replaced by its neighbour that it can.
    fn digits_test(
        &mut self,
        tv: &Tv,
        op: Comparison,
        with: &Operand,
        cast: Cast,
        slots: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        let number = match with {
            Operand::Integer(integer) => integer.to_string(),
            Operand::Decimal(text) | Operand::Text(text) => text.clone(),
        };
        let (op, number) = match (op, number_prefix::fit(cast, &number)) {
            (op, Fit::Exact) => (op, number),
            (Comparison::Equal, Fit::Between { .. }) => return self.push("1 = 0"),
            (Comparison::Unequal, Fit::Between { .. }) => {
                return self.value(tv, slots, visibility).push(" is not null");
            }
            (
                Comparison::Greater | Comparison::GreaterOrEqual,
                Fit::Between { inner, negative },
            ) => (if negative { Comparison::GreaterOrEqual } else { Comparison::Greater }, inner),
            (Comparison::Less | Comparison::LessOrEqual, Fit::Between { inner, negative }) => {
                (if negative { Comparison::Less } else { Comparison::LessOrEqual }, inner)
            }
        };
        self.push("cast(").value(tv, slots, visibility).push(" as text) collate ");
        self.collation(cast).comparison(op).string(&number)
    }

    /// The collation that compares as the cast says.
    fn collation(&mut self, cast: Cast) -> &mut Self {
        self.text.push_str(&number_prefix::collation_name(cast));
        self
    }

    /// The number at the start of a variable's value; nothing is a number
    /// where there is no value.
    pub(super) fn cast(
        &mut self,
        tv: &Tv,
        cast: Cast,
        slots: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        match (self.dialect(), cast) {
            (Dialect::Sqlite, Cast::Integer) => {
                self.push("cast(").value(tv, slots, visibility).push(" as integer)")
            }
            (Dialect::Sqlite, Cast::Decimal { .. }) => {
                self.push("cast(").value(tv, slots, visibility).push(" as text) collate ");
                self.collation(cast)
            }
            (Dialect::MySql, Cast::Integer) => {
                // What is short fits into 64 bits, and is read much faster.
                self.push("case when char_length(").value(tv, slots, visibility);
                self.push(") < 19 then cast(").value(tv, slots, visibility);
                self.push(" as signed) else cast(regexp_substr(").value(tv, slots, visibility);
                self.push(", '^[[:space:]]*[+-]{0,1}[0-9]+') as decimal(65,0)) end")
            }
            (Dialect::MySql, Cast::Decimal { scale }) => {
                self.push("round(cast(regexp_substr(").value(tv, slots, visibility);
                self.push(", '^[[:space:]]*[+-]{0,1}([0-9]+[.]{0,1}[0-9]*|[.][0-9]+)')");
                self.push(" as decimal(65,30)), ").number(scale.into()).push(")")
            }
            (Dialect::Postgres, Cast::Integer) => {
                self.push("case when ").value(tv, slots, visibility).push(" is not null then ");
                self.push("coalesce(substring(").value(tv, slots, visibility);
                self.push(r" from '^\s*([+-]{0,1}\d{1,255})')::numeric, 0) end")
            }
            (Dialect::Postgres, Cast::Decimal { scale }) => {
                self.push("case when ").value(tv, slots, visibility).push(" is not null then ");
                self.push("round(coalesce(substring(").value(tv, slots, visibility);
                self.push(r" from '^\s*([+-]{0,1}(\d{1,255}\.{0,1}\d{0,255}|\.\d{1,255}))')");
                self.push("::numeric, 0), ").number(scale.into()).push(") end")
            }
        }
    }

    /// A variable that is returned: from its slot when it has one, looked up
    /// for the returned rows otherwise, so that many cost no joins.
    pub(super) fn projected(
        &mut self,
        tv: &Tv,
        slots: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        if slots.find(&tv.name).is_some() || !self.site.has_tvs() {
            return self.value(tv, slots, visibility);
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
