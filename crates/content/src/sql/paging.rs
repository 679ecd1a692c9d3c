//! Chooses how a page is found without reading the rest of the list.
//!
//! No index holds a branch of the tree in the order of ids, or the site in the
//! order of dates: these lists are unions of lists that an index does hold. A
//! page of the union is on the first pages of its parts, so it is enough to
//! read that many rows of each.

use super::visibility::Visibility;
use super::writer::Writer;
use crate::query::{Direction, DocumentQuery, Order, OrderKey, TreeScope};
use crate::site::{Site, TreeBy};

/// How the rows of a page are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Paging {
    /// As one list.
    Whole,
    /// As parts that are merged in this direction.
    Parts(Vec<Part>, Direction),
    /// By the documents that have some of the list below them.
    Parents { top: i64, depth: i64 },
    /// As one list by this column, of which only ids are read until the page
    /// begins.
    Late(&'static str, Direction),
}

/// A part of a list that one index holds in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A branch at one depth, by id.
    Depth(i64),
    /// Documents with a publication date, by that date: after 1970.
    After,
    /// As `After`, before 1970.
    Before,
    /// Documents without a publication date, by the date of creation.
    Undated,
}

impl Part {
    /// Returns what orders the part.
    fn key(self) -> &'static str {
        match self {
            Part::Depth(_) => "k.descendant",
            Part::After | Part::Before => "c.pub_date",
            Part::Undated => "c.createdon",
        }
    }
}

impl Paging {
    pub(super) fn new(site: &Site, query: &DocumentQuery) -> Paging {
        let closure = site.tree == TreeBy::Closure;
        match (query.scope, query.order.as_slice()) {
            (TreeScope::Below { parent, depth }, order) if closure && parent != 0 && depth > 1 => {
                match order {
                    [Order { by: OrderKey::Column("id"), direction }] => {
                        Paging::Parts((1..=depth).map(Part::Depth).collect(), *direction)
                    }
                    [by, ..] if *by == Order::ascending("parent") => {
                        Paging::Parents { top: parent, depth }
                    }
                    _ => Paging::Whole,
                }
            }
            (TreeScope::Site, [Order { by: OrderKey::Date, direction }, _]) => {
                Paging::Parts(vec![Part::After, Part::Before, Part::Undated], *direction)
            }
            (TreeScope::Site, [Order { by: OrderKey::Column(column), direction }, ..])
                if query.page.offset >= FAR =>
            {
                Paging::Late(column, *direction)
            }
            _ => Paging::Whole,
        }
    }
}

/// From here on, skipping whole documents costs more than a second look.
const FAR: i64 = 100;

impl Writer<'_> {
    /// A table `m` of ids and places: the page, merged from its parts. `rows`
    /// writes what stands between `from` and `order by` of a part.
    pub(super) fn merged(
        &mut self,
        query: &DocumentQuery,
        parts: &[Part],
        direction: Direction,
        rows: impl Fn(&mut Self, Part),
    ) -> &mut Self {
        let page = query.page;
        self.push("(select u.id, u.place from (");
        for (at, part) in parts.iter().enumerate() {
            self.push(if at > 0 { " union all " } else { "" });
            self.push("select * from (select c.id as id, ").push(part.key());
            self.push(" as place from ");
            rows(self, *part);
            self.push(" order by ").push(part.key()).plain_direction(direction);
            if !matches!(part, Part::Depth(_)) {
                self.push(", c.id");
            }
            self.push(" limit ").integer(page.limit + page.offset).push(") p").number(at);
        }
        self.push(") u order by u.place").plain_direction(direction).push(", u.id");
        self.page(page).push(") m")
    }

    /// A table `m` as of [`Writer::merged`], of a list that is one already.
    pub(super) fn late(
        &mut self,
        query: &DocumentQuery,
        column: &'static str,
        direction: Direction,
        rows: impl Fn(&mut Self),
    ) -> &mut Self {
        self.push("(select c.id as id, ").column("c", column).push(" as place from ");
        rows(self);
        self.push(" order by ").column("c", column).plain_direction(direction);
        self.push(if column == "id" { "" } else { ", c.id" }).page(query.page).push(") m")
    }

    /// A table `p` of the first documents, by id, from `top` down that have
    /// something visible below them. Each of them has at least one row of the
    /// list, so as many as the page reaches to are enough.
    pub(super) fn parents(
        &mut self,
        query: &DocumentQuery,
        top: i64,
        depth: i64,
        visibility: Visibility,
    ) -> &mut Self {
        let n_rows = query.page.limit + query.page.offset;
        self.push("(select u.id from (");
        for level in 0..depth {
            self.push(if level > 0 { " union all " } else { "" });
            self.push("select * from (select k.descendant as id from ");
            self.from("site_content_closure", "k").push(" where k.ancestor = ").integer(top);
            // Not `exists`, for the reason that `under_root` gives.
            self.push(" and k.depth = ").integer(level).push(" and (select 1 from ");
            self.from("site_content", "h").push(" where h.parent = k.descendant and ");
            self.flag("h", "site_content", "deleted", query.deleted).and_visible("h", visibility);
            self.push(" limit 1) = 1 order by k.descendant limit ").integer(n_rows);
            self.push(") p").number(usize::try_from(level).unwrap_or_default());
        }
        self.push(") u order by u.id limit ").integer(n_rows).push(") p")
    }

    fn plain_direction(&mut self, direction: Direction) -> &mut Self {
        self.push(match direction {
            Direction::Ascending => "",
            Direction::Descending => " desc",
        })
    }
}
