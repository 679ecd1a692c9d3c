//! Documents: where in the tree, which of them, in which order.

use super::{Dialect, Nulls, Sight, Statement, Writer};
use crate::fields::DOCUMENT;
use crate::query::{
    Cast, Comparison, Documents, Fallback, Key, Operand, Order, Place, Range, Reach, Test, Tv,
    Which,
};
use crate::site::{Site, TreeBy};

/// A chain of parents longer than this is a circle.
const MAX_LEVELS: i64 = 200;

/// Renders a question about documents, seen with the given eyes.
pub(crate) fn documents(site: &Site, query: &Documents, sight: Sight) -> Statement {
    let mut writer = Writer::new(site);
    let slots = Slots::of(query, site);
    writer.walk(query.reach, sight);
    writer.push("select ");
    for (at, field) in DOCUMENT.iter().enumerate() {
        if at > 0 {
            writer.push(", ");
        }
        writer.column("c", field.name);
    }
    for tv in &query.tvs {
        writer.push(", ").projected(tv, &slots, sight);
    }
    writer.push(" from ").place(query.reach);
    slots.join(&mut writer, sight);
    writer.reached(query.reach, sight);
    writer.condition().flag("c", "site_content", "deleted", query.deleted);
    writer.and_visible("c", sight);
    writer.conditions(query, &slots, sight);
    writer.push(" order by ").order(query, &slots, sight);
    writer.page(query.page);
    writer.done()
}

/// The template variables that filters and orders look at, each joined once.
struct Slots<'q>(Vec<Slot<'q>>);

struct Slot<'q> {
    name: &'q str,
    /// Whether documents without a value are out anyway.
    present: bool,
}

impl<'q> Slots<'q> {
    fn of(query: &'q Documents, site: &Site) -> Slots<'q> {
        let mut slots = Slots(Vec::new());
        if !site.has_tvs() {
            return slots;
        }
        for filter in &query.filters {
            let present = filter.tv.fallback == Fallback::Null && !filter.test.takes_null();
            slots.add(&filter.tv.name, present);
        }
        for order in &query.order {
            if let Key::Tv { tv, .. } = &order.by {
                slots.add(&tv.name, false);
            }
        }
        slots
    }

    fn add(&mut self, name: &'q str, present: bool) {
        match self.0.iter_mut().find(|slot| slot.name == name) {
            Some(slot) => slot.present |= present,
            None => self.0.push(Slot { name, present }),
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|slot| slot.name == name)
    }

    fn join(&self, writer: &mut Writer<'_>, sight: Sight) {
        for (at, slot) in self.0.iter().enumerate() {
            writer.push(if slot.present { " join " } else { " left join " });
            writer.table("site_tmplvar_contentvalues").push(" t").number(at);
            writer.push(" on t").number(at).push(".contentid = c.id and t").number(at);
            writer.push(".tmplvarid = ").tv_id(slot.name, sight);
        }
    }
}

impl Writer<'_> {
    /// The recursive part, where the tree is walked by parents.
    fn walk(&mut self, reach: Reach, sight: Sight) -> &mut Self {
        if self.site.tree == TreeBy::Closure {
            return self;
        }
        match reach {
            Reach::Below { parent, depth } if depth > 1 => {
                self.push("with recursive walk (id, depth) as (select w.id, 1 from ");
                self.from("site_content", "w").push(" where w.parent = ").integer(parent);
                self.descend(depth)
            }
            Reach::Roots { depth } => {
                self.push("with recursive walk (id, depth) as (select w.id, 0 from ");
                self.from("site_content", "w").push(" where w.parent = 0 and ");
                self.flag("w", "site_content", "deleted", false).and_visible("w", sight);
                self.descend(depth)
            }
            Reach::Above { id, depth } => {
                self.push("with recursive walk (id, depth) as (select w.parent, 1 from ");
                self.from("site_content", "w").push(" where w.id = ").integer(id);
                self.push(" union all select w.parent, k.depth + 1 from ");
                self.from("site_content", "w").push(" join walk k on w.id = k.id");
                let levels = depth.unwrap_or(MAX_LEVELS);
                self.push(" where k.depth < ").integer(levels).push(") ")
            }
            Reach::Site
            | Reach::Nowhere
            | Reach::One(_)
            | Reach::Below { .. }
            | Reach::Children { .. }
            | Reach::Siblings { .. } => self,
        }
    }

    /// The step of a walk downwards.
    fn descend(&mut self, depth: i64) -> &mut Self {
        self.push(" union all select w.id, k.depth + 1 from ");
        self.from("site_content", "w").push(" join walk k on w.parent = k.id");
        self.push(" where k.depth < ").integer(depth).push(") ")
    }

    /// The tables that the tree part needs; documents are always `c`.
    fn place(&mut self, reach: Reach) -> &mut Self {
        let by_closure = self.site.tree == TreeBy::Closure;
        match reach {
            Reach::Site | Reach::Nowhere | Reach::One(_) | Reach::Children { .. } => {
                self.from("site_content", "c")
            }
            Reach::Below { depth: 1, .. } => self.from("site_content", "c"),
            Reach::Below { parent: 0, .. } | Reach::Roots { .. } if by_closure => {
                self.from("site_content", "c")
            }
            Reach::Below { .. } if by_closure => {
                self.from("site_content_closure", "k").push(" join ");
                self.from("site_content", "c").push(" on c.id = k.descendant")
            }
            Reach::Above { .. } if by_closure => {
                self.from("site_content_closure", "k").push(" join ");
                self.from("site_content", "c").push(" on c.id = k.ancestor")
            }
            Reach::Below { .. } | Reach::Roots { .. } | Reach::Above { .. } => {
                // A circle of parents reaches a document more than once.
                self.push("(select id, min(depth) as depth from walk group by id) k join ");
                self.from("site_content", "c").push(" on c.id = k.id")
            }
            Reach::Siblings { .. } => {
                self.from("site_content", "n").push(" join ");
                self.from("site_content", "c").push(" on c.parent = n.parent and c.id <> n.id")
            }
        }
    }

    /// The conditions of the tree part.
    fn reached(&mut self, reach: Reach, sight: Sight) -> &mut Self {
        let by_closure = self.site.tree == TreeBy::Closure;
        match reach {
            Reach::Site => {}
            Reach::Nowhere => {
                self.condition().push("1 = 0");
            }
            Reach::One(id) => {
                self.condition().push("c.id = ").integer(id);
            }
            Reach::Below { parent, depth: 1 } => {
                self.condition().push("c.parent = ").integer(parent);
                self.start_visible(parent, sight);
            }
            Reach::Below { parent: 0, depth } if by_closure => {
                self.condition().push("exists (select 1 from ");
                self.under_root().push(" and k.depth < ").integer(depth).push(")");
            }
            Reach::Roots { depth } if by_closure => {
                self.condition().push("exists (select 1 from ");
                self.under_root().push(" and k.depth <= ").integer(depth).push(" and ");
                self.flag("r", "site_content", "deleted", false);
                self.and_visible("r", sight).push(")");
            }
            Reach::Below { parent, depth } => {
                if by_closure {
                    self.condition().push("k.ancestor = ").integer(parent);
                    self.push(" and k.depth between 1 and ").integer(depth);
                } else {
                    self.condition().push("c.id <> ").integer(parent);
                }
                self.start_visible(parent, sight);
            }
            Reach::Roots { .. } => {}
            Reach::Above { id, depth } => {
                if by_closure {
                    self.condition().push("k.descendant = ").integer(id);
                    self.push(" and k.depth >= 1");
                    if let Some(depth) = depth {
                        self.push(" and k.depth <= ").integer(depth);
                    }
                } else {
                    self.condition().push("c.id <> ").integer(id);
                }
                self.start_visible(id, sight);
            }
            Reach::Children { parent, range } => {
                self.condition().push("c.parent = ").integer(parent);
                if let Some(range) = range {
                    self.in_range(range);
                }
                self.start_visible(parent, sight);
            }
            Reach::Siblings { id, which } => {
                self.condition().push("n.id = ").integer(id).push(" and ");
                self.flag("n", "site_content", "deleted", false).and_visible("n", sight);
                self.beside(which);
            }
        }
        self
    }

    /// Rows of the closure table that lead from a root to `c`.
    fn under_root(&mut self) -> &mut Self {
        self.from("site_content_closure", "k").push(" join ");
        self.from("site_content", "r").push(" on r.id = k.ancestor");
        self.push(" where k.descendant = c.id and r.parent = 0")
    }

    /// Below or above what a caller may not see, there is nothing.
    fn start_visible(&mut self, id: i64, sight: Sight) -> &mut Self {
        if sight.is_whole() || id == 0 {
            return self;
        }
        self.condition().push("exists (select 1 from ").from("site_content", "s");
        self.push(" where s.id = ").integer(id).and_visible("s", sight).push(")")
    }

    fn in_range(&mut self, range: Range) -> &mut Self {
        self.push(" and c.menuindex >= ").integer(range.from);
        if let Some(to) = range.to {
            self.push(" and c.menuindex <= ").integer(to);
        }
        self
    }

    /// Menu indexes may be unsigned, so nothing is ever subtracted.
    fn beside(&mut self, which: Which) -> &mut Self {
        match which {
            Which::All => self,
            Which::Adjacent => {
                self.push(" and (c.menuindex = n.menuindex + 1 or c.menuindex + 1 = n.menuindex)")
            }
            Which::Before => self.push(" and c.menuindex < n.menuindex"),
            Which::After => self.push(" and c.menuindex > n.menuindex"),
            Which::Within(range) => self.in_range(range),
        }
    }

    fn conditions(&mut self, query: &Documents, slots: &Slots<'_>, sight: Sight) -> &mut Self {
        if let Some(published) = query.published {
            self.condition().flag("c", "site_content", "published", published);
        }
        if let Some(hidden) = query.hidden {
            self.condition().flag("c", "site_content", "hidemenu", hidden);
        }
        if let Some(template) = query.template {
            self.condition().push("c.template = ").integer(template);
        }
        for filter in &query.filters {
            self.condition().tv_test(&filter.tv, &filter.test, slots, sight);
        }
        if let Some(tags) = &query.tags {
            if !self.site.has_tags() {
                return self.condition().push("1 = 0");
            }
            self.condition().push("c.id in (select l.doc_id from ");
            self.from("site_content_tags", "l").push(" join ").from("tags", "g");
            self.push(" on g.id = l.tag_id where l.tv_id = ").integer(tags.tv_id);
            self.push(" and g.name in (");
            for (at, name) in tags.names.iter().enumerate() {
                self.push(if at > 0 { ", " } else { "" }).string(name);
            }
            self.push("))");
            if !sight.is_whole() && self.site.has_tvs() {
                self.condition().push("exists (select 1 from ").from("site_tmplvars", "d");
                self.push(" where d.id = ").integer(tags.tv_id);
                self.and_tv_allowed("d", sight).push(")");
            }
        }
        self
    }

    fn tv_test(&mut self, tv: &Tv, test: &Test, slots: &Slots<'_>, sight: Sight) -> &mut Self {
        match test {
            Test::Null => self.value(tv, slots, sight).push(" is null"),
            Test::NotNull => self.value(tv, slots, sight).push(" is not null"),
            Test::Compare { op, with, cast } => {
                match cast {
                    Some(cast) => self.cast(tv, *cast, slots, sight),
                    None => self.value(tv, slots, sight),
                };
                self.comparison(*op).bind(with.clone())
            }
            Test::In(values) => self.value(tv, slots, sight).push(" in ").list(values),
            Test::NotIn(values) => self.value(tv, slots, sight).push(" not in ").list(values),
            Test::Like { place, text } => {
                self.value(tv, slots, sight).push(" like ").string(&pattern(*place, text));
                self.push(ESCAPE)
            }
        }
    }

    /// A variable's value for this document, by its joined slot.
    fn value(&mut self, tv: &Tv, slots: &Slots<'_>, sight: Sight) -> &mut Self {
        let Some(at) = slots.find(&tv.name) else { return self.push("null") };
        match tv.fallback {
            Fallback::Null => self.push("t").number(at).push(".value"),
            Fallback::Default => {
                self.push("coalesce(t").number(at).push(".value, ");
                self.tv_default(&tv.name, sight).push(")")
            }
        }
    }

    /// The number at the start of a variable's value; nothing is a number
    /// where there is no value.
    fn cast(&mut self, tv: &Tv, cast: Cast, slots: &Slots<'_>, sight: Sight) -> &mut Self {
        match (self.dialect(), cast) {
            (Dialect::Sqlite, Cast::Integer) => {
                self.push("cast(").value(tv, slots, sight).push(" as integer)")
            }
            (Dialect::Sqlite, Cast::Decimal { scale }) => {
                // Cut at the first `e`, which SQLite would read as an exponent.
                self.push("round(cast(substr(").value(tv, slots, sight);
                self.push(", 1, instr(lower(").value(tv, slots, sight);
                self.push(") || 'e', 'e') - 1) as real), ").number(scale.into()).push(")")
            }
            (Dialect::MySql, Cast::Integer) => {
                self.push("cast(").value(tv, slots, sight).push(" as signed)")
            }
            (Dialect::MySql, Cast::Decimal { scale }) => {
                self.push("round(cast(regexp_substr(").value(tv, slots, sight);
                self.push(", '^[[:space:]]*[+-]{0,1}([0-9]+[.]{0,1}[0-9]*|[.][0-9]+)')");
                self.push(" as decimal(65,30)), ").number(scale.into()).push(")")
            }
            (Dialect::Postgres, Cast::Integer) => {
                self.push("case when ").value(tv, slots, sight).push(" is not null then ");
                self.push("coalesce(substring(").value(tv, slots, sight);
                self.push(r" from '^\s*([+-]{0,1}\d{1,255})')::numeric, 0) end")
            }
            (Dialect::Postgres, Cast::Decimal { scale }) => {
                self.push("case when ").value(tv, slots, sight).push(" is not null then ");
                self.push("round(coalesce(substring(").value(tv, slots, sight);
                self.push(r" from '^\s*([+-]{0,1}(\d{1,255}\.{0,1}\d{0,255}|\.\d{1,255}))')");
                self.push("::numeric, 0), ").number(scale.into()).push(") end")
            }
        }
    }

    /// A variable that is returned: from its slot when it has one, looked up
    /// for the returned rows otherwise, so that many cost no joins.
    fn projected(&mut self, tv: &Tv, slots: &Slots<'_>, sight: Sight) -> &mut Self {
        if slots.find(&tv.name).is_some() || !self.site.has_tvs() {
            return self.value(tv, slots, sight);
        }
        if tv.fallback == Fallback::Default {
            self.push("coalesce(");
        }
        self.push("(select v.value from ").from("site_tmplvar_contentvalues", "v");
        self.push(" where v.contentid = c.id and v.tmplvarid = ").tv_id(&tv.name, sight);
        self.push(")");
        if tv.fallback == Fallback::Default {
            self.push(", ").tv_default(&tv.name, sight).push(")");
        }
        self
    }

    fn tv_id(&mut self, name: &str, sight: Sight) -> &mut Self {
        self.push("(select min(d.id) from ").from("site_tmplvars", "d");
        self.push(" where d.name = ").string(name).and_tv_allowed("d", sight).push(")")
    }

    fn tv_default(&mut self, name: &str, sight: Sight) -> &mut Self {
        self.push("(select d.default_text from ").from("site_tmplvars", "d");
        self.push(" where d.name = ").string(name).and_tv_allowed("d", sight);
        self.push(" order by d.id limit 1)")
    }

    fn order(&mut self, query: &Documents, slots: &Slots<'_>, sight: Sight) -> &mut Self {
        for (at, Order { by, direction }) in query.order.iter().enumerate() {
            self.push(if at > 0 { ", " } else { "" });
            let nulls = match by {
                Key::Column("id") if self.by_descendant(query.reach) => {
                    self.push("k.descendant");
                    Nulls::Impossible
                }
                Key::Column(column) => {
                    self.column("c", column);
                    Nulls::Impossible
                }
                Key::Date => {
                    self.push("case when c.pub_date <> 0 then c.pub_date else c.createdon end");
                    Nulls::Impossible
                }
                Key::Distance => {
                    self.push("k.depth");
                    Nulls::Impossible
                }
                Key::Tv { tv, cast } => {
                    match cast {
                        Some(cast) => self.cast(tv, *cast, slots, sight),
                        None => self.value(tv, slots, sight),
                    };
                    Nulls::Possible
                }
            };
            self.direction(*direction, nulls);
        }
        self
    }

    /// Whether the closure table's own order is the order of ids: its unique
    /// index then yields a page without sorting the whole branch.
    fn by_descendant(&self, reach: Reach) -> bool {
        let below = matches!(reach, Reach::Below { parent, depth } if parent != 0 && depth > 1);
        below && self.site.tree == TreeBy::Closure
    }

    pub(super) fn comparison(&mut self, op: Comparison) -> &mut Self {
        self.push(match op {
            Comparison::Equal => " = ",
            Comparison::Unequal => " <> ",
            Comparison::Greater => " > ",
            Comparison::GreaterOrEqual => " >= ",
            Comparison::Less => " < ",
            Comparison::LessOrEqual => " <= ",
        })
    }

    pub(super) fn list(&mut self, values: &[Operand]) -> &mut Self {
        self.push("(");
        for (at, value) in values.iter().enumerate() {
            self.push(if at > 0 { ", " } else { "" }).bind(value.clone());
        }
        self.push(")")
    }
}

/// The same escape character on every engine. By default two of them take the
/// backslash, one of these refuses a pattern that ends in it, and the third
/// has none.
pub(super) const ESCAPE: &str = " escape '|'";

/// `%` and `_` in the text stay wildcards, as the contract says.
pub(super) fn pattern(place: Place, text: &str) -> String {
    let text = text.replace('|', "||");
    match place {
        Place::Anywhere => format!("%{text}%"),
        Place::AtEnd => format!("%{text}"),
        Place::AtStart => format!("{text}%"),
    }
}
