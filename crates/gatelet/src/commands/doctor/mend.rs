//! `gatelet doctor --fix`: repairs what can be repaired without harm.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use doctor::{Finding, Report, code};

use super::machine::is_socket;

/// Repairs what it can and removes those findings from the report. Returns a line for each.
pub(super) fn mend(report: &mut Report) -> Vec<String> {
    let mut done = Vec::new();
    report.findings.retain(|finding| match mend_one(finding) {
        Some(what) => {
            done.push(what);
            false
        }
        None => true,
    });
    done
}

fn mend_one(finding: &Finding) -> Option<String> {
    if !finding.code.is_fixable {
        return None;
    }
    let path = Path::new(&finding.subject);
    let rights = |bits: u32| {
        std::fs::set_permissions(path, Permissions::from_mode(bits)).ok()?;
        Some(format!("the rights of {} are {bits:o} now", path.display()))
    };
    match finding.code {
        found if found == &code::STATE_OPEN => rights(0o700),
        found if found == &code::KEY_OPEN || found == &code::CONFIG_READABLE => rights(0o600),
        found if found == &code::SOCKET_STALE && is_socket(path) => {
            std::fs::remove_file(path).ok()?;
            Some(format!("took {} away", path.display()))
        }
        _ => None,
    }
}
