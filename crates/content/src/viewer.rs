//! Finds out as which CMS user a call reads the site.
//!
//! The operator maps names of callers to CMS users, or a caller has a role
//! `evo-user:ID`. The rights of that user are looked up for every call, so that
//! taking them away works at once.

use std::collections::BTreeMap;
use std::time::Duration;

use tool::Identity;

use crate::config::{Config, Ownership};
use crate::database::{Cell, Database, DatabaseError};
use crate::models::Model;
use crate::site::Site;
use crate::sql::{self, Visibility};

/// The role of an identity that acts for a user of the CMS.
pub const OWNER_ROLE: &str = "evo-user:";

/// The role that says everything may be done.
const ADMINISTRATOR: i64 = 1;

/// What a caller may see and do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Viewer {
    pub(crate) visibility: Visibility,
    /// The user's role, when the caller acts for one.
    role: Option<i64>,
}

/// Why a caller sees nothing at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ViewerError {
    #[error("this token belongs to no active user of the site")]
    Blocked,
    #[error("this caller's owner on the site cannot be read from its roles")]
    Unreadable,
    #[error("this token's owner lacks the permission `{PERMISSION}` on the site")]
    NotPermitted,
    #[error("the site has no tables for users; ownership cannot be honoured")]
    NoUsers,
    #[error(transparent)]
    DatabaseError(#[from] DatabaseError),
}

/// The CMS's permission to use this toolset.
const PERMISSION: &str = "emcp";

/// The user that an identity acts for.
fn owner_of(caller: &Identity, owners: &BTreeMap<String, i64>) -> Result<Option<i64>, ViewerError> {
    let named = owners.get(&caller.subject).filter(|_| !caller.is_anonymous());
    match named {
        Some(owner) => Ok(Some(*owner)),
        None => role_of(caller),
    }
}

/// The one user that the roles name. Whoever has no owner may see more than
/// whoever has one, so a name that cannot be read, or a second one, is refused
/// and not passed over.
fn role_of(caller: &Identity) -> Result<Option<i64>, ViewerError> {
    let mut named = caller.roles.iter().filter_map(|role| role.strip_prefix(OWNER_ROLE));
    match (named.next(), named.next()) {
        (None, _) => Ok(None),
        (Some(owner), None) => owner.parse().map(Some).map_err(|_| ViewerError::Unreadable),
        (Some(_), Some(_)) => Err(ViewerError::Unreadable),
    }
}

impl Viewer {
    /// Looks up what the caller may see.
    pub(crate) async fn find(
        caller: &Identity,
        config: &Config,
        site: &Site,
        database: &Database,
    ) -> Result<Viewer, ViewerError> {
        let ownership = config.ownership;
        let owner = match ownership {
            Ownership::Ignored => None,
            Ownership::Honoured | Ownership::Required => owner_of(caller, &config.owners)?,
        };
        let Some(user) = owner else {
            let visibility = match ownership {
                Ownership::Ignored | Ownership::Honoured => Visibility::Whole,
                Ownership::Required => Visibility::Visitor,
            };
            return Ok(Viewer { visibility, role: None });
        };
        let viewer = Viewer::user(user, site, database, (config.clock)()).await?;
        if config.need_permission && !viewer.may(PERMISSION, site, database).await? {
            return Err(ViewerError::NotPermitted);
        }
        Ok(viewer)
    }

    async fn user(
        user: i64,
        site: &Site,
        database: &Database,
        now: Duration,
    ) -> Result<Viewer, ViewerError> {
        let known = ["user_attributes", "document_groups", "member_groups", "membergroup_access"];
        if !known.iter().all(|table| site.has_table(table)) {
            return Err(ViewerError::NoUsers);
        }
        let row = database.fetch(&sql::owner(site, user)).await?.into_iter().next();
        let role =
            active_role(&row.ok_or(ViewerError::Blocked)?, now).ok_or(ViewerError::Blocked)?;
        if role == ADMINISTRATOR {
            return Ok(Viewer { visibility: Visibility::Whole, role: Some(role) });
        }
        let unpublished = may(role, "view_unpublished", site, database).await?;
        let groups = uses_groups(site, database).await?;
        Ok(Viewer {
            visibility: Visibility::User { id: user, groups, unpublished },
            role: Some(role),
        })
    }

    /// Whether the caller may read a model: without an owner, as the contract
    /// says; with one, what the user's manager screens show.
    pub(crate) async fn may_read(
        &self,
        model: &Model,
        site: &Site,
        database: &Database,
    ) -> Result<bool, DatabaseError> {
        match self.role {
            None => Ok(self.visibility.is_whole()),
            Some(_) => self.may(model.permission, site, database).await,
        }
    }

    /// Whether the user that the caller acts for has a permission.
    async fn may(
        &self,
        permission: &str,
        site: &Site,
        database: &Database,
    ) -> Result<bool, DatabaseError> {
        match self.role {
            None => Ok(false),
            Some(role) => may(role, permission, site, database).await,
        }
    }
}

/// The role in a row of [`sql::owner`], unless that user is blocked now.
fn active_role(row: &[Cell], now: Duration) -> Option<i64> {
    let [role, blocked, until, after] = row else { return None };
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    // Zero and nothing are no date.
    let date = |cell: &Cell| cell.number().filter(|&date| date != 0);
    let by_date = date(until).is_some_and(|until| now < until)
        || date(after).is_some_and(|after| after < now);
    let active = blocked.number() == Some(0) && !by_date;
    role.number().filter(|&role| role > 0 && active)
}

async fn may(
    role: i64,
    permission: &str,
    site: &Site,
    database: &Database,
) -> Result<bool, DatabaseError> {
    if role == ADMINISTRATOR {
        return Ok(true);
    }
    if !site.has_table("role_permissions") {
        return Ok(false);
    }
    let rows = database.fetch(&sql::has_permission(site, role, permission)).await?;
    Ok(!rows.is_empty())
}

/// Document groups count unless the site says that they do not.
async fn uses_groups(site: &Site, database: &Database) -> Result<bool, DatabaseError> {
    if !site.has_table("system_settings") {
        return Ok(true);
    }
    let rows = database.fetch(&sql::setting(site, "use_udperms")).await?;
    let value = rows.into_iter().flatten().next().and_then(Cell::text);
    Ok(value.is_none_or(|value| value.trim() != "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(roles: &[&str], expected: Result<Option<i64>, &str>) {
        let roles = roles.iter().map(|&role| role.to_owned()).collect();
        let caller = Identity { roles, ..Identity::default() };
        let owner = owner_of(&caller, &BTreeMap::new());
        assert_eq!(owner.map_err(|refusal| refusal.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn a_role_that_names_an_owner_nobody_can_read_is_not_no_owner() {
        check(&["editor"], Ok(None));
        check(&["editor", "evo-user:7"], Ok(Some(7)));
        let unreadable = Err("this caller's owner on the site cannot be read from its roles");
        for role in ["evo-user:7x", "evo-user:", "evo-user: 7", "evo-user:7.0"] {
            check(&[role], unreadable);
        }
        check(&["evo-user:7", "evo-user:8"], unreadable);
    }
}
