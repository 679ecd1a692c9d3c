//! The limit of files and connections that this process may have open.
//!
//! Every connection takes one descriptor, and so does every pipe to an
//! upstream and every file. When they are used up, nothing works: no call, no
//! new upstream, and nobody can even be told so. [`raise`] takes what the
//! system gives, and [`for_connections`] says how many of them clients may use.

/// As many are enough for everything here. A program that is started by us
/// inherits the limit, and some go through all descriptors up to it.
#[cfg(unix)]
const ENOUGH: u64 = 65_536;

/// At most so many are kept for upstreams and files.
const KEPT: usize = 1024;

/// What is taken for the limit where none can be read.
#[cfg(any(test, not(unix)))]
const USUAL: usize = 1024;

/// Raises the limit as far as the system lets us, once, when the program
/// starts to serve.
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

/// Returns what is left of a limit for connections: at least half.
fn share(limit: usize) -> usize {
    (limit - (limit / 2).min(KEPT)).max(1)
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
        assert_eq!(share(usize::MAX), usize::MAX - KEPT);
    }
}
