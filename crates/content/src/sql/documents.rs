//! Documents: which of them, and in which order.

use super::paging::{Paging, Part};
use super::variables::Slots;
use super::visibility::Visibility;
use super::writer::{Nulls, Writer};
use crate::fields::DOCUMENT;
use crate::query::{Direction, Documents, Key, Order, Reach};
use crate::site::Site;
use crate::statement::Statement;

/// Renders a question about documents, seen with the given eyes.
pub(crate) fn documents(site: &Site, query: &Documents, visibility: Visibility) -> Statement {
    let mut writer = Writer::new(site);
    let slots = Slots::new(query, site);
    match Paging::new(site, query) {
        Paging::Whole => {
            writer.walk(query.reach, visibility).columns(query, &slots, visibility).push(" from ");
            writer.place(query.reach).matching(query.reach, query, &slots, visibility);
            writer.push(" order by ").order(query, &slots, visibility).page(query.page);
        }
        Paging::Parts(parts, direction) => {
            writer.columns(query, &Slots::none(), visibility).push(" from ");
            writer.merged(query, &parts, direction, |writer, part| {
                writer.part(part, query, &slots, visibility);
            });
            writer.looked_up(direction);
        }
        Paging::Late(column, direction) => {
            writer.columns(query, &Slots::none(), visibility).push(" from ");
            writer.late(query, column, direction, |writer| {
                writer.place(query.reach).matching(query.reach, query, &slots, visibility);
            });
            writer.looked_up(direction);
        }
        Paging::Parents { top, depth } => {
            writer.columns(query, &Slots::none(), visibility).push(" from ");
            writer.parents(query, top, depth, visibility).push(" join ");
            writer.from("site_content", "c").push(" on c.parent = p.id").fresh_conditions();
            writer.condition().flag("c", "site_content", "deleted", query.deleted);
            writer.and_visible("c", visibility).start_visible(top, visibility);
            writer.push(" order by ").order(query, &Slots::none(), visibility);
            writer.page(query.page);
        }
    }
    writer.done()
}

impl Writer<'_> {
    /// The fields of a document, then the variables that are returned.
    fn columns(
        &mut self,
        query: &Documents,
        slots: &Slots<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        self.push("select ");
        for (at, field) in DOCUMENT.iter().enumerate() {
            self.push(if at > 0 { ", " } else { "" }).column("c", field.name);
        }
        for tv in &query.tvs {
            self.push(", ").projected(tv, slots, visibility);
        }
        self
    }

    /// The documents of the table `m`, in its order.
    fn looked_up(&mut self, direction: Direction) -> &mut Self {
        self.push(" join ").from("site_content", "c").push(" on c.id = m.id");
        self.push(" order by m.place").direction(direction, Nulls::Impossible).push(", m.id")
    }

    /// One part of the list: its tables and conditions.
    fn part(&mut self, part: Part, query: &Documents, slots: &Slots<'_>, visibility: Visibility) {
        let reach = match (part, query.reach) {
            (Part::Depth(depth), Reach::Below { parent, .. }) => Reach::Level { parent, depth },
            (_, reach) => reach,
        };
        self.place(reach).matching(reach, query, slots, visibility);
        match part {
            Part::Depth(_) => self,
            Part::After => self.condition().push("c.pub_date > 0"),
            Part::Before => self.condition().push("c.pub_date < 0"),
            Part::Undated => self.condition().push("c.pub_date = 0"),
        };
    }

    /// Joins and conditions of everything that a document must be.
    fn matching(
        &mut self,
        reach: Reach,
        query: &Documents,
        slots: &Slots<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        slots.join(self, visibility);
        self.fresh_conditions().reached(reach, visibility);
        self.condition().flag("c", "site_content", "deleted", query.deleted);
        self.and_visible("c", visibility).conditions(query, slots, visibility)
    }

    fn conditions(
        &mut self,
        query: &Documents,
        slots: &Slots<'_>,
        visibility: Visibility,
    ) -> &mut Self {
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
            self.condition().tv_test(&filter.tv, &filter.test, slots, visibility);
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
            if !visibility.is_whole() && self.site.has_tvs() {
                self.condition().push("exists (select 1 from ").from("site_tmplvars", "d");
                self.push(" where d.id = ").integer(tags.tv_id);
                self.and_tv_allowed("d", visibility).push(")");
            }
        }
        self
    }

    fn order(&mut self, query: &Documents, slots: &Slots<'_>, visibility: Visibility) -> &mut Self {
        for (at, Order { by, direction }) in query.order.iter().enumerate() {
            self.push(if at > 0 { ", " } else { "" });
            let nulls = match by {
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
                        Some(cast) => self.cast(tv, *cast, slots, visibility),
                        None => self.value(tv, slots, visibility),
                    };
                    Nulls::Possible
                }
            };
            self.direction(*direction, nulls);
        }
        self
    }
}
