//! The CMS models that `evo.model.*` may read, and the readable fields of each.
//!
//! The lists are those of the contract, corrected. A field that the database lacks is
//! left out of results; a field that is not listed here is never selected.

/// One model: its name, its table, and its readable fields.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) name: &'static str,
    /// The table, without the prefix.
    pub(crate) table: &'static str,
    pub(crate) fields: &'static [&'static str],
    /// Fields that are numbers, however the database types them.
    pub(crate) numbers: &'static [&'static str],
    /// The CMS permission for the manager screen that shows this model.
    pub(crate) permission: &'static str,
}

/// Columns that are never selected, compared or ordered by, in any table.
pub const SENSITIVE: &[&str] = &[
    "password",
    "cachepwd",
    "cachepwd_valid_to",
    "verified_key",
    "refresh_token",
    "access_token",
    "sessionid",
    "token_hash",
];

/// Every model, in the order of the contract.
pub(crate) const MODELS: &[Model] = &[
    Model {
        name: "SiteTemplate",
        table: "site_templates",
        fields: &["id", "templatename", "description", "editor_type", "icon", "category", "locked"],
        numbers: &["id", "editor_type", "category", "locked"],
        permission: "edit_template",
    },
    Model {
        name: "SiteTmplvar",
        table: "site_tmplvars",
        fields: &[
            "id",
            "name",
            "caption",
            "description",
            "type",
            "default_text",
            "display",
            "elements",
            "rank",
            "category",
            "locked",
        ],
        numbers: &["id", "rank", "category", "locked"],
        permission: "edit_template",
    },
    Model {
        name: "SiteTmplvarContentvalue",
        table: "site_tmplvar_contentvalues",
        fields: &["id", "contentid", "tmplvarid", "value"],
        numbers: &["id", "contentid", "tmplvarid"],
        permission: "view_document",
    },
    Model {
        name: "SiteSnippet",
        table: "site_snippets",
        fields: &[
            "id",
            "name",
            "description",
            "category",
            "locked",
            "disabled",
            "createdon",
            "editedon",
        ],
        numbers: &["id", "category", "locked", "disabled", "createdon", "editedon"],
        permission: "edit_snippet",
    },
    Model {
        name: "SitePlugin",
        table: "site_plugins",
        fields: &[
            "id",
            "name",
            "description",
            "category",
            "locked",
            "disabled",
            "createdon",
            "editedon",
        ],
        numbers: &["id", "category", "locked", "disabled", "createdon", "editedon"],
        permission: "edit_plugin",
    },
    Model {
        name: "SiteModule",
        table: "site_modules",
        fields: &["id", "name", "description", "category", "disabled", "createdon", "editedon"],
        numbers: &["id", "category", "disabled", "createdon", "editedon"],
        permission: "edit_module",
    },
    Model {
        name: "Category",
        table: "categories",
        fields: &["id", "category"],
        numbers: &["id"],
        permission: "category_manager",
    },
    Model {
        name: "User",
        table: "users",
        fields: &["id", "username"],
        numbers: &["id"],
        permission: "edit_user",
    },
    Model {
        name: "UserAttribute",
        table: "user_attributes",
        fields: &[
            "id",
            "internalKey",
            "fullname",
            "email",
            "phone",
            "mobilephone",
            "blocked",
            "blockeduntil",
            "blockedafter",
            "failedlogincount",
            "logincount",
            "lastlogin",
        ],
        numbers: &[
            "id",
            "internalKey",
            "blocked",
            "blockeduntil",
            "blockedafter",
            "failedlogincount",
            "logincount",
            "lastlogin",
        ],
        permission: "edit_user",
    },
    Model {
        name: "UserRole",
        table: "user_roles",
        fields: &["id", "name", "description"],
        numbers: &["id"],
        permission: "edit_role",
    },
    Model {
        name: "Permissions",
        table: "permissions",
        fields: &["id", "name", "key", "lang_key", "group_id", "disabled"],
        numbers: &["id", "group_id", "disabled"],
        permission: "edit_role",
    },
    Model {
        name: "PermissionsGroups",
        table: "permissions_groups",
        fields: &["id", "name"],
        numbers: &["id"],
        permission: "edit_role",
    },
    Model {
        name: "RolePermissions",
        table: "role_permissions",
        fields: &["id", "role_id", "permission"],
        numbers: &["id", "role_id"],
        permission: "edit_role",
    },
];

/// Finds a model by its name or its PHP class, ignoring case.
pub(crate) fn find(name: &str) -> Option<&'static Model> {
    let bare = name.trim().trim_start_matches('\\');
    let short = match bare.rsplit_once('\\') {
        Some((space, short)) if space.eq_ignore_ascii_case(NAMESPACE) => short,
        Some(_) => return None,
        None => bare,
    };
    MODELS.iter().find(|model| model.name.eq_ignore_ascii_case(short))
}

/// The PHP namespace of the CMS's model classes.
const NAMESPACE: &str = "EvolutionCMS\\Models";

impl Model {
    /// Returns the listed field with this name, unless it is sensitive.
    pub(crate) fn field(&self, name: &str) -> Option<&'static str> {
        let listed = self.fields.iter().find(|field| **field == name);
        listed.copied().filter(|field| !is_sensitive(field))
    }
}

/// Returns whether a column must never be selected, ignoring case.
pub(crate) fn is_sensitive(column: &str) -> bool {
    SENSITIVE.iter().any(|secret| secret.eq_ignore_ascii_case(column))
}
