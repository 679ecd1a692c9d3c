//! Renders the tables and conditions of a scope in the document tree.

use super::visibility::Visibility;
use super::writer::Writer;
use crate::query::{Range, SiblingFilter, TreeScope};
use crate::site::TreeBy;

/// The longest chain of parents that is followed; a longer one is a cycle.
const MAX_LEVELS: i64 = 200;

impl Writer<'_> {
    /// Writes the recursive `with` part, if the tree is walked by the column `parent`.
    pub(super) fn recursive_walk(&mut self, scope: TreeScope, visibility: Visibility) -> &mut Self {
        if self.site.tree == TreeBy::Closure {
            return self;
        }
        match scope {
            TreeScope::Below { parent, depth } if depth > 1 => {
                self.push("with recursive walk (id, depth) as (select w.id, 1 from ");
                self.from("site_content", "w").push(" where w.parent = ").integer(parent);
                self.descend(depth)
            }
            TreeScope::Roots { depth } => {
                self.push("with recursive walk (id, depth) as (select w.id, 0 from ");
                self.from("site_content", "w").push(" where w.parent = 0 and ");
                self.flag("w", "site_content", "deleted", false).and_visible("w", visibility);
                self.descend(depth)
            }
            TreeScope::Above { id, depth } => {
                self.push("with recursive walk (id, depth) as (select w.parent, 1 from ");
                self.from("site_content", "w").push(" where w.id = ").integer(id);
                self.push(" union all select w.parent, k.depth + 1 from ");
                self.from("site_content", "w").push(" join walk k on w.id = k.id");
                let levels = depth.unwrap_or(MAX_LEVELS);
                self.push(" where k.depth < ").integer(levels).push(") ")
            }
            TreeScope::Site
            | TreeScope::Nowhere
            | TreeScope::One(_)
            | TreeScope::Below { .. }
            | TreeScope::Level { .. }
            | TreeScope::Children { .. }
            | TreeScope::Siblings { .. } => self,
        }
    }

    /// Writes the recursive step of a walk downwards.
    fn descend(&mut self, depth: i64) -> &mut Self {
        self.push(" union all select w.id, k.depth + 1 from ");
        self.from("site_content", "w").push(" join walk k on w.parent = k.id");
        self.push(" where k.depth < ").integer(depth).push(") ")
    }

    /// Writes the tables of a scope; the alias of the documents is always `c`.
    pub(super) fn scope_tables(&mut self, scope: TreeScope) -> &mut Self {
        let by_closure = self.site.tree == TreeBy::Closure;
        match scope {
            TreeScope::Site
            | TreeScope::Nowhere
            | TreeScope::One(_)
            | TreeScope::Children { .. } => self.from("site_content", "c"),
            TreeScope::Below { depth: 1, .. } => self.from("site_content", "c"),
            TreeScope::Below { parent: 0, depth } if by_closure => {
                self.below_roots_tables(depth - 1)
            }
            TreeScope::Roots { depth } if by_closure => self.below_roots_tables(depth),
            TreeScope::Below { .. } | TreeScope::Level { .. } if by_closure => {
                self.from("site_content_closure", "k").push(" join ");
                self.from("site_content", "c").push(" on c.id = k.descendant")
            }
            TreeScope::Above { .. } if by_closure => {
                self.from("site_content_closure", "k").push(" join ");
                self.from("site_content", "c").push(" on c.id = k.ancestor")
            }
            TreeScope::Below { .. }
            | TreeScope::Level { .. }
            | TreeScope::Roots { .. }
            | TreeScope::Above { .. } => {
                // A circle of parents reaches a document more than once.
                self.push("(select id, min(depth) as depth from walk group by id) k join ");
                self.from("site_content", "c").push(" on c.id = k.id")
            }
            TreeScope::Siblings { .. } => {
                self.from("site_content", "n").push(" join ");
                self.from("site_content", "c").push(" on c.parent = n.parent and c.id <> n.id")
            }
        }
    }

    /// Writes the conditions of a scope.
    pub(super) fn scope_conditions(
        &mut self,
        scope: TreeScope,
        visibility: Visibility,
    ) -> &mut Self {
        let by_closure = self.site.tree == TreeBy::Closure;
        match scope {
            TreeScope::Site => {}
            TreeScope::Nowhere => {
                self.condition().push("1 = 0");
            }
            TreeScope::One(id) => {
                self.condition().push("c.id = ").integer(id);
            }
            TreeScope::Below { parent, depth: 1 } => {
                self.condition().push("c.parent = ").integer(parent);
                self.and_start_visible(parent, visibility);
            }
            TreeScope::Below { parent: 0, depth } if by_closure => {
                self.below_roots_conditions(depth - 1, None);
            }
            TreeScope::Roots { depth } if by_closure => {
                self.below_roots_conditions(depth, Some(visibility));
            }
            TreeScope::Level { parent, depth } => {
                self.condition().push("k.ancestor = ").integer(parent);
                self.push(" and k.depth = ").integer(depth).and_start_visible(parent, visibility);
            }
            TreeScope::Below { parent, depth } => {
                if by_closure {
                    self.condition().push("k.ancestor = ").integer(parent);
                    self.push(" and k.depth between 1 and ").integer(depth);
                } else {
                    self.condition().push("c.id <> ").integer(parent);
                }
                self.and_start_visible(parent, visibility);
            }
            TreeScope::Roots { .. } => {}
            TreeScope::Above { id, depth } => {
                if by_closure {
                    self.condition().push("k.descendant = ").integer(id);
                    self.push(" and k.depth >= 1");
                    if let Some(depth) = depth {
                        self.push(" and k.depth <= ").integer(depth);
                    }
                } else {
                    self.condition().push("c.id <> ").integer(id);
                }
                self.and_start_visible(id, visibility);
            }
            TreeScope::Children { parent, range } => {
                self.condition().push("c.parent = ").integer(parent);
                if let Some(range) = range {
                    self.menu_range(range);
                }
                self.and_start_visible(parent, visibility);
            }
            TreeScope::Siblings { id, which } => {
                self.condition().push("n.id = ").integer(id).push(" and ");
                self.flag("n", "site_content", "deleted", false).and_visible("n", visibility);
                self.sibling_conditions(which);
            }
        }
        self
    }

    /// Writes the tables for the roots and the documents down to `depth` below them. If
    /// these are few, the query starts at the roots. If they are many, it reads the site in
    /// the order of ids, since then most documents belong to the page.
    fn below_roots_tables(&mut self, depth: i64) -> &mut Self {
        if !self.site.is_shallow(depth) {
            return self.from("site_content", "c");
        }
        self.from("site_content", "r").push(" join ");
        self.from("site_content_closure", "k").push(" on k.ancestor = r.id join ");
        self.from("site_content", "c").push(" on c.id = k.descendant")
    }

    /// Writes the conditions that go with these tables. With `to`, the roots must be visible
    /// and not deleted.
    fn below_roots_conditions(&mut self, depth: i64, to: Option<Visibility>) -> &mut Self {
        let from_above = self.site.is_shallow(depth);
        if from_above {
            self.condition();
        } else {
            // Not `exists`: MariaDB would collect all matching rows before it reads the
            // first document.
            self.condition().push("(select r.parent from ");
            self.from("site_content_closure", "k").push(" join ");
            self.from("site_content", "r").push(" on r.id = k.ancestor");
            self.push(" where k.descendant = c.id and ");
        }
        self.push("r.parent = 0 and k.depth <= ").integer(depth);
        if let Some(visibility) = to {
            self.push(" and ").flag("r", "site_content", "deleted", false);
            self.and_visible("r", visibility);
        }
        if from_above { self } else { self.push(" limit 1) = 0") }
    }

    /// Writes the condition that the document where a scope starts is visible itself.
    pub(super) fn and_start_visible(&mut self, id: i64, visibility: Visibility) -> &mut Self {
        if visibility.is_whole() || id == 0 {
            return self;
        }
        self.condition().push("exists (select 1 from ").from("site_content", "s");
        self.push(" where s.id = ").integer(id).and_visible("s", visibility).push(")")
    }

    fn menu_range(&mut self, range: Range) -> &mut Self {
        self.push(" and c.menuindex >= ").integer(range.from);
        if let Some(to) = range.to {
            self.push(" and c.menuindex <= ").integer(to);
        }
        self
    }

    /// Writes the conditions on the menu index of siblings. They only add, because menu
    /// indexes may be unsigned.
    fn sibling_conditions(&mut self, which: SiblingFilter) -> &mut Self {
        match which {
            SiblingFilter::All => self,
            SiblingFilter::Adjacent => {
                self.push(" and (c.menuindex = n.menuindex + 1 or c.menuindex + 1 = n.menuindex)")
            }
            SiblingFilter::Before => self.push(" and c.menuindex < n.menuindex"),
            SiblingFilter::After => self.push(" and c.menuindex > n.menuindex"),
            SiblingFilter::Within(range) => self.menu_range(range),
        }
    }
}
