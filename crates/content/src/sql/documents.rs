//! Renders queries for documents.

use super::paging::{Paging, SortedPart};
use super::variables::JoinedVariables;
use super::visibility::Visibility;
use super::writer::{Nulls, Writer};
use crate::fields::DOCUMENT_FIELDS;
use crate::query::{Direction, DocumentQuery, Order, OrderKey, TreeScope};
use crate::site::Site;
use crate::statement::Statement;

/// Renders a query for the documents that are visible to the caller.
pub(crate) fn documents(site: &Site, query: &DocumentQuery, visibility: Visibility) -> Statement {
    let mut writer = Writer::new(site);
    let joined = JoinedVariables::new(query, site);
    match Paging::new(site, query) {
        Paging::OneList => {
            writer
                .recursive_walk(query.scope, visibility)
                .columns(query, &joined, visibility)
                .push(" from ");
            writer.scope_tables(query.scope).document_conditions(
                query.scope,
                query,
                &joined,
                visibility,
            );
            writer.push(" order by ").order(query, &joined, visibility).page(query.page);
        }
        Paging::MergedParts(parts, direction) => {
            writer.columns(query, &JoinedVariables::none(), visibility).push(" from ");
            writer.merged_page(query, &parts, direction, |writer, part| {
                writer.part(part, query, &joined, visibility);
            });
            writer.join_page(direction);
        }
        Paging::LateLookup(column, direction) => {
            writer.columns(query, &JoinedVariables::none(), visibility).push(" from ");
            writer.late_page(query, column, direction, |writer| {
                writer.scope_tables(query.scope).document_conditions(
                    query.scope,
                    query,
                    &joined,
                    visibility,
                );
            });
            writer.join_page(direction);
        }
        Paging::ByParents { top, depth } => {
            writer.columns(query, &JoinedVariables::none(), visibility).push(" from ");
            writer.first_parents(query, top, depth, visibility).push(" join ");
            writer.from("site_content", "c").push(" on c.parent = p.id").start_conditions();
            writer.condition().flag("c", "site_content", "deleted", query.deleted);
            writer.and_visible("c", visibility).and_start_visible(top, visibility);
            writer.push(" order by ").order(query, &JoinedVariables::none(), visibility);
            writer.page(query.page);
        }
    }
    writer.done()
}

impl Writer<'_> {
    /// Writes the selected columns: the fields of a document, then template variables.
    fn columns(
        &mut self,
        query: &DocumentQuery,
        joined: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        self.push("select ");
        for (at, field) in DOCUMENT_FIELDS.iter().enumerate() {
            self.push(if at > 0 { ", " } else { "" }).column("c", field.name);
        }
        for tv in &query.tvs {
            self.push(", ").returned_value(tv, joined, visibility);
        }
        self
    }

    /// Joins the documents to the table `m` of the page, in its order.
    fn join_page(&mut self, direction: Direction) -> &mut Self {
        self.push(" join ").from("site_content", "c").push(" on c.id = m.id");
        self.push(" order by m.place").direction(direction, Nulls::Impossible).push(", m.id")
    }

    /// Writes the tables and conditions of one part of the list.
    fn part(
        &mut self,
        part: SortedPart,
        query: &DocumentQuery,
        joined: &JoinedVariables<'_>,
        visibility: Visibility,
    ) {
        let scope = match (part, query.scope) {
            (SortedPart::Level(depth), TreeScope::Below { parent, .. }) => {
                TreeScope::Level { parent, depth }
            }
            (_, scope) => scope,
        };
        self.scope_tables(scope).document_conditions(scope, query, joined, visibility);
        match part {
            SortedPart::Level(_) => self,
            SortedPart::DatedAfter1970 => self.condition().push("c.pub_date > 0"),
            SortedPart::DatedBefore1970 => self.condition().push("c.pub_date < 0"),
            SortedPart::Undated => self.condition().push("c.pub_date = 0"),
        };
    }

    /// Writes all joins and conditions of a query, for the given scope.
    fn document_conditions(
        &mut self,
        scope: TreeScope,
        query: &DocumentQuery,
        joined: &JoinedVariables<'_>,
        visibility: Visibility,
    ) -> &mut Self {
        joined.join(self, visibility);
        self.start_conditions().scope_conditions(scope, visibility);
        self.condition().flag("c", "site_content", "deleted", query.deleted);
        self.and_visible("c", visibility).filter_conditions(query, joined, visibility)
    }

    fn filter_conditions(
        &mut self,
        query: &DocumentQuery,
        joined: &JoinedVariables<'_>,
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
            self.condition().tv_condition(&filter.tv, &filter.condition, joined, visibility);
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
        joined: &JoinedVariables<'_>,
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
                        Some(cast) => self.cast(tv, *cast, joined, visibility),
                        None => self.value(tv, joined, visibility),
                    };
                    Nulls::Possible
                }
            };
            self.direction(*direction, nulls);
        }
        self
    }
}
