//! Renders the SQL conditions that hide documents and template variables from a caller.

use super::writer::Writer;

/// What a statement may return of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// Everything that is not deleted.
    Whole,
    /// What a user of the CMS's manager may see.
    User {
        id: i64,
        /// Whether document groups hide documents from this user.
        groups: bool,
        /// Whether this user sees unpublished documents.
        unpublished: bool,
    },
    /// What a visitor of the web site may see.
    Visitor,
}

/// The part of the CMS (manager or web site) for which a document is private.
#[derive(Clone, Copy)]
enum Side {
    Manager,
    Web,
}

impl Visibility {
    pub(crate) fn is_whole(self) -> bool {
        self == Visibility::Whole
    }
}

impl Writer<'_> {
    /// Writes ` and …` conditions so that only visible documents remain; `alias` is the
    /// documents' table.
    pub(super) fn and_visible(&mut self, alias: &'static str, visibility: Visibility) -> &mut Self {
        match visibility {
            Visibility::Whole => {}
            Visibility::User { id, groups, unpublished } => {
                if !unpublished {
                    self.push(" and ").flag(alias, "site_content", "published", true);
                }
                if groups {
                    self.push(" and (").not_private(alias, Side::Manager);
                    self.push(" or ").shared_with(alias, id).push(")");
                }
            }
            Visibility::Visitor => {
                self.push(" and ").flag(alias, "site_content", "published", true);
                self.push(" and ").not_private(alias, Side::Web);
            }
        }
        self
    }

    /// Writes the condition that a document is public: by its flag, and also by its groups,
    /// because the flag is only a cache of the groups and may be stale.
    fn not_private(&mut self, alias: &'static str, side: Side) -> &mut Self {
        let (flag, context) = match side {
            Side::Manager => ("privatemgr", " and a.context = 0"),
            Side::Web => ("privateweb", " and a.context = 1"),
        };
        self.push("(");
        if self.site.has_column("site_content", flag) {
            self.flag(alias, "site_content", flag, false).push(" and ");
        }
        self.push("not exists (select 1 from ").document_group_links().push(" where g.document = ");
        self.column(alias, "id");
        if self.site.has_column("membergroup_access", "context") {
            self.push(context);
        }
        self.push("))")
    }

    /// Writes the condition that a document is in a group to which one of the user's groups
    /// has access.
    fn shared_with(&mut self, alias: &'static str, user: i64) -> &mut Self {
        self.push("exists (select 1 from ").document_group_links().push(" join ");
        self.from("member_groups", "m").push(" on m.user_group = a.membergroup");
        self.push(" where g.document = ").column(alias, "id");
        if self.site.has_column("membergroup_access", "context") {
            self.push(" and a.context = 0");
        }
        self.push(" and m.member = ").integer(user).push(")")
    }

    fn document_group_links(&mut self) -> &mut Self {
        self.from("document_groups", "g").push(" join ");
        self.from("membergroup_access", "a").push(" on a.documentgroup = g.document_group")
    }

    /// Writes ` and …` conditions that leave out template variables which are reserved for
    /// document groups without access for the caller; `alias` is the variables' table.
    pub(super) fn and_tv_allowed(
        &mut self,
        alias: &'static str,
        visibility: Visibility,
    ) -> &mut Self {
        let table = "site_tmplvar_access";
        let user = match visibility {
            Visibility::User { id, groups: true, .. } => Some(id),
            Visibility::Visitor => None,
            Visibility::Whole | Visibility::User { groups: false, .. } => return self,
        };
        if !self.site.has_column(table, "tmplvarid") {
            return self;
        }
        self.push(" and (not exists (select 1 from ").from(table, "x");
        self.push(" where x.tmplvarid = ").column(alias, "id").push(")");
        if let Some(user) = user {
            self.push(" or exists (select 1 from ").from(table, "x").push(" join ");
            self.from("membergroup_access", "a")
                .push(" on a.documentgroup = x.documentgroup join ");
            self.from("member_groups", "m").push(" on m.user_group = a.membergroup");
            self.push(" where x.tmplvarid = ").column(alias, "id");
            self.push(" and m.member = ").integer(user).push(")");
        }
        self.push(")")
    }
}
