//! Determines what a caller may see, by the CMS user for whom the caller acts.
//!
//! That user, the caller's *owner*, is configured by the caller's subject, or named by
//! the caller's role `evo-user:ID`. The owner's rights are looked up for every call, so
//! that revoking them works at once.

use std::collections::BTreeMap;
use std::time::Duration;

use tool::Identity;

use crate::config::{Config, Ownership};
use crate::database::{Cell, Database, DatabaseError};
use crate::models::Model;
use crate::site::Site;
use crate::sql::{self, Visibility};

/// The prefix of the role that names a caller's owner by the id of the CMS user.
pub const OWNER_ROLE: &str = "evo-user:";

/// The id of the CMS role that has all permissions.
const ADMINISTRATOR: i64 = 1;

/// What a caller may see of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Viewer {
    pub(crate) visibility: Visibility,
    /// The CMS role of the caller's owner, if the caller has one.
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

/// Returns the owner of a caller: by configuration, or else by role.
fn find_owner(
    caller: &Identity,
    owners: &BTreeMap<String, i64>,
) -> Result<Option<i64>, ViewerError> {
    let named = owners.get(&caller.subject).filter(|_| !caller.is_anonymous());
    match named {
        Some(owner) => Ok(Some(*owner)),
        None => owner_from_roles(caller),
    }
}

/// Returns the owner that the caller's roles name. A caller without an owner may see
/// more than one with an owner, so a malformed or second owner is an error and never
/// ignored.
fn owner_from_roles(caller: &Identity) -> Result<Option<i64>, ViewerError> {
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
            Ownership::Honoured | Ownership::Required => find_owner(caller, &config.owners)?,
        };
        let Some(user) = owner else {
            let visibility = match ownership {
                Ownership::Ignored | Ownership::Honoured => Visibility::Whole,
                Ownership::Required => Visibility::Visitor,
            };
            return Ok(Viewer { visibility, role: None });
        };
        let viewer = Viewer::for_owner(user, site, database, (config.clock)()).await?;
        if config.need_permission
            && !viewer.owner_has_permission(PERMISSION, site, database).await?
        {
            return Err(ViewerError::NotPermitted);
        }
        Ok(viewer)
    }

    async fn for_owner(
        user: i64,
        site: &Site,
        database: &Database,
        now: Duration,
    ) -> Result<Viewer, ViewerError> {
        let tables = ["user_attributes", "document_groups", "member_groups", "membergroup_access"];
        if !tables.iter().all(|table| site.has_table(table)) {
            return Err(ViewerError::NoUsers);
        }
        let row = database.fetch(&sql::user_status(site, user)).await?.into_iter().next();
        let role =
            active_role(&row.ok_or(ViewerError::Blocked)?, now).ok_or(ViewerError::Blocked)?;
        if role == ADMINISTRATOR {
            return Ok(Viewer { visibility: Visibility::Whole, role: Some(role) });
        }
        let unpublished = has_permission(role, "view_unpublished", site, database).await?;
        let groups = uses_groups(site, database).await?;
        Ok(Viewer {
            visibility: Visibility::User { id: user, groups, unpublished },
            role: Some(role),
        })
    }

    /// Returns whether the caller may read a model. With an owner, that user needs the
    /// permission for the manager screen of the model; without one, the caller must be
    /// allowed to see the whole site.
    pub(crate) async fn may_read(
        &self,
        model: &Model,
        site: &Site,
        database: &Database,
    ) -> Result<bool, DatabaseError> {
        match self.role {
            None => Ok(self.visibility.is_whole()),
            Some(_) => self.owner_has_permission(model.permission, site, database).await,
        }
    }

    /// Returns whether the caller has an owner, and that user has a permission.
    async fn owner_has_permission(
        &self,
        permission: &str,
        site: &Site,
        database: &Database,
    ) -> Result<bool, DatabaseError> {
        match self.role {
            None => Ok(false),
            Some(role) => has_permission(role, permission, site, database).await,
        }
    }
}

/// Returns the role in a row of [`sql::user_status`], unless that user is blocked now.
fn active_role(row: &[Cell], now: Duration) -> Option<i64> {
    let [role, blocked, until, after] = row else { return None };
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    // Zero and null mean that there is no date.
    let date = |cell: &Cell| cell.number().filter(|&date| date != 0);
    let by_date = date(until).is_some_and(|until| now < until)
        || date(after).is_some_and(|after| after < now);
    let active = blocked.number() == Some(0) && !by_date;
    role.number().filter(|&role| role > 0 && active)
}

async fn has_permission(
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

/// Returns whether document groups restrict users, as they do unless the site's settings
/// switch that off.
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
        let owner = find_owner(&caller, &BTreeMap::new());
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
