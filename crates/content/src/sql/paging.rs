//! Chooses how a page of documents is found without sorting the whole list.
//!
//! No index has a branch of the tree sorted by id, or the site sorted by date. But such
//! a list is the union of parts that an index has sorted, and a page of the union is
//! among the first rows of its parts, so it is enough to read that many rows of each.

use super::visibility::Visibility;
use super::writer::Writer;
use crate::query::{Direction, DocumentQuery, Order, OrderKey, TreeScope};
use crate::site::{Site, TreeBy};

/// How the rows of a page are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Paging {
    /// From the whole list.
    OneList,
    /// From parts that are merged in this direction.
    MergedParts(Vec<SortedPart>, Direction),
    /// From the first parents, by id, that have documents of the list as children.
    ByParents { top: i64, depth: i64 },
    /// From the list of ids sorted by this column; the other columns are selected only for
    /// the rows of the page.
    LateLookup(&'static str, Direction),
}

/// A part of a list that an index has sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SortedPart {
    /// The documents of a branch at one depth, by id.
    Level(i64),
    /// Documents with a publication date after 1970, by that date.
    DatedAfter1970,
    /// Documents with a publication date before 1970, by that date.
    DatedBefore1970,
    /// Documents without a publication date, by the date of creation.
    Undated,
}

impl SortedPart {
    /// The column that the part is sorted by.
    fn key(self) -> &'static str {
        match self {
            SortedPart::Level(_) => "k.descendant",
            SortedPart::DatedAfter1970 | SortedPart::DatedBefore1970 => "c.pub_date",
            SortedPart::Undated => "c.createdon",
        }
    }
}

impl Paging {
    pub(super) fn new(site: &Site, query: &DocumentQuery) -> Paging {
        let closure = site.tree == TreeBy::Closure;
        match (query.scope, query.order.as_slice()) {
            (TreeScope::Below { parent, depth }, order) if closure && parent != 0 && depth > 1 => {
                match order {
                    [Order { by: OrderKey::Column("id"), direction }] => Paging::MergedParts(
                        (1..=depth).map(SortedPart::Level).collect(),
                        *direction,
                    ),
                    [by, ..] if *by == Order::ascending("parent") => {
                        Paging::ByParents { top: parent, depth }
                    }
                    _ => Paging::OneList,
                }
            }
            (TreeScope::Site, [Order { by: OrderKey::Date, direction }, _]) => Paging::MergedParts(
                vec![SortedPart::DatedAfter1970, SortedPart::DatedBefore1970, SortedPart::Undated],
                *direction,
            ),
            (TreeScope::Site, [Order { by: OrderKey::Column(column), direction }, ..])
                if query.page.offset >= FAR_OFFSET =>
            {
                Paging::LateLookup(column, *direction)
            }
            _ => Paging::OneList,
        }
    }
}

/// From this offset on, selecting the columns late is faster than skipping whole rows.
const FAR_OFFSET: i64 = 100;

impl Writer<'_> {
    /// Writes a table `m` with the ids and sort keys of the page, merged from its parts.
    /// `rows` writes the tables and conditions of a part.
    pub(super) fn merged_page(
        &mut self,
        query: &DocumentQuery,
        parts: &[SortedPart],
        direction: Direction,
        rows: impl Fn(&mut Self, SortedPart),
    ) -> &mut Self {
        let page = query.page;
        self.push("(select u.id, u.place from (");
        for (at, part) in parts.iter().enumerate() {
            self.push(if at > 0 { " union all " } else { "" });
            self.push("select * from (select c.id as id, ").push(part.key());
            self.push(" as place from ");
            rows(self, *part);
            self.push(" order by ").push(part.key()).plain_direction(direction);
            if !matches!(part, SortedPart::Level(_)) {
                self.push(", c.id");
            }
            self.push(" limit ").integer(page.limit + page.offset).push(") p").number(at);
        }
        self.push(") u order by u.place").plain_direction(direction).push(", u.id");
        self.page(page).push(") m")
    }

    /// Writes a table `m` with the ids and sort keys of the page, from a single list.
    /// `rows` writes its tables and conditions.
    pub(super) fn late_page(
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

    /// Writes a table `p` with the first documents, by id, from `top` down that have visible
    /// children. Each of them has at least one row of the list, so no more are needed than
    /// the page's offset and limit together.
    pub(super) fn first_parents(
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
            // Not `exists`, for the reason given in `below_roots_conditions`.
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
