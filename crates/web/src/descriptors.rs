//! The system's limit on open file descriptors, and the share of it for connections.
//!
//! Every connection takes a descriptor, and so does every pipe to an upstream and every
//! file. When there are none left, neither calls nor upstreams nor error replies work.
//! [`raise`] raises the limit, and [`for_connections`] says how many clients may use.

/// The limit that we ask for. It is not higher, because programs that we start inherit
/// it, and some of them visit every descriptor up to it.
#[cfg(unix)]
const ENOUGH: u64 = 65_536;

/// How many descriptors are reserved for upstreams and files, at most.
const RESERVED: usize = 1024;

/// The limit that is assumed where the system has none.
#[cfg(any(test, not(unix)))]
const USUAL: usize = 1024;

/// Raises the limit as far as the system allows, once, when the program starts to serve.
#[cfg(unix)]
pub fn raise() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(ENOUGH, |maximum| maximum.min(ENOUGH));
    if current.is_none_or(|current| wanted <= current) {
        return;
    }
    let raised = Rlimit { current: Some(wanted), maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

#[cfg(not(unix))]
pub fn raise() {}

/// Returns how many connections may be open at once.
pub fn for_connections() -> usize {
    share(limit())
}

#[cfg(unix)]
fn limit() -> usize {
    use rustix::process::{Resource, getrlimit};
    match getrlimit(Resource::Nofile).current {
        Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        None => usize::MAX,
    }
}

#[cfg(not(unix))]
fn limit() -> usize {
    USUAL
}

/// Returns the share of a limit for connections, at least half of it.
fn share(limit: usize) -> usize {
    (limit - (limit / 2).min(RESERVED)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_and_files_keep_half_of_a_small_limit() {
        assert_eq!(share(64), 32);
        assert_eq!(share(USUAL), 512);
        assert_eq!(share(65_536), 64_512);
        assert_eq!(share(0), 1);
        assert_eq!(share(usize::MAX), usize::MAX - RESERVED);
    }
}
