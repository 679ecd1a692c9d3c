//! Renders queries for documents.

use super::paging::{Paging, Part};
use super::variables::JoinedVariables;
use super::visibility::Visibility;
use super::writer::{Nulls, Writer};
use crate::fields::DOCUMENT;
use crate::query::{Direction, DocumentQuery, Order, OrderKey, TreeScope};
use crate::site::Site;
use crate::statement::Statement;

/// Renders a query for documents that are visible.
pub(crate) fn documents(site: &Site, query: &DocumentQuery, visibility: Visibility) -> Statement {
    let mut writer = Writer::new(site);
    let slots = JoinedVariables::new(query, site);
    match Paging::new(site, query) {
        Paging::Whole => {
            writer.walk(query.scope, visibility).columns(query, &slots, visibility).push(" from ");
            writer.place(query.scope).matching(query.scope, query, &slots, visibility);
            writer.push(" order by ").order(query, &slots, visibility).page(query.page);
        }
        Paging::Parts(parts, direction) => {
            writer.columns(query, &JoinedVariables::none(), visibility).push(" from ");
            writer.merged(query, &parts, direction, |writer, part| {
                writer.part(part, query, &slots, visibility);
            });
            writer.looked_up(direction);
        }
        Paging::Late(column, direction) => {
            writer.columns(query, &JoinedVariables::none(), visibility).push(" from ");
            writer.late(query, column, direction, |writer| {
                writer.place(query.scope).matching(query.scope, query, &slots, visibility);
            });
            writer.looked_up(direction);
        }
        Paging::Parents { top, depth } => {
            writer.columns(query, &JoinedVariables::none(), visibility).push(" from ");
            writer.parents(query, top, depth, visibility).push(" join ");
            writer.from("site_content", "c").push(" on c.parent = p.id").fresh_conditions();
            writer.condition().flag("c", "site_content", "deleted", query.deleted);
            writer.and_visible("c", visibility).start_visible(top, visibility);
            writer.push(" order by ").order(query, &JoinedVariables::none(), visibility);
            writer.page(query.page);
        }
    }
    writer.done()
}

impl Writer<'_> {
    /// The fields of a document, then the variables that are returned.
    fn columns(
        &mut self,
        query: &DocumentQuery,
        slots: &JoinedVariables<'_>,
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
    fn part(
        &mut self,
        part: Part,
        query: &DocumentQuery,
        slots: &JoinedVariables<'_>,
        visibility: Visibility,
    ) {
        let scope = match (part, query.scope) {
            (Part::Depth(depth), TreeScope::Below { parent, .. }) => {
                TreeScope::Level { parent, depth }
            }
            (_, scope) => scope,
        };
        self.place(scope).matching(scope, query, slots, visibility);
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
        scope: TreeScope,
        query: &DocumentQuery,
        slots: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        slots.join(self, visibility);
        self.fresh_conditions().reached(scope, visibility);
        self.condition().flag("c", "site_content", "deleted", query.deleted);
        self.and_visible("c", visibility).conditions(query, slots, visibility)
    }

    fn conditions(
        &mut self,
        query: &DocumentQuery,
        slots: &JoinedVariables<'_>,
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

    fn order(
        &mut self,
        query: &DocumentQuery,
        slots: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        for (at, Order { by, direction }) in query.order.iter().enumerate() {
            self.push(if at > 0 { ", " } else { "" });
            let nulls = match by {
                OrderKey::Column(column) => {
                    self.column("c", column);
                    Nulls::Impossible
                }
                OrderKey::Date => {
                    self.push("case when c.pub_date <> 0 then c.pub_date else c.createdon end");
                    Nulls::Impossible
                }
                OrderKey::Distance => {
                    self.push("k.depth");
                    Nulls::Impossible
                }
                OrderKey::Tv { tv, cast } => {
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
