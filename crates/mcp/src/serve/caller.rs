//! The caller of a request, and limits on what one caller may have at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tool::{Identity, RpcError};

use crate::revision::code;

/// Who sends a request, as far as the transport knows.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) identity: Arc<Identity>,
    /// Where the other end of the connection is, where there is an address.
    pub(crate) address: Option<IpAddr>,
    /// Tells this connection from every other.
    pub(crate) connection: Arc<str>,
}

/// What callers are told apart by where something is counted: a name where
/// there is one, the address otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallerKey {
    Subject(Arc<str>),
    Network(IpAddr),
    Unknown,
}

impl Caller {
    /// The client at the other end of a pipe.
    pub(crate) fn on_pipe(identity: Arc<Identity>) -> Caller {
        Caller { identity, address: None, connection: "pipe".into() }
    }

    pub(crate) fn key(&self) -> CallerKey {
        match (self.identity.is_anonymous(), self.network()) {
            (false, _) => CallerKey::Subject(self.identity.subject.as_str().into()),
            (true, Some(network)) => CallerKey::Network(network),
            (true, None) => CallerKey::Unknown,
        }
    }

    /// The address, or the network that one customer of a provider has: whoever
    /// has one address of IPv6 has 2^64 of them.
    pub(crate) fn network(&self) -> Option<IpAddr> {
        Some(match self.address?.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        })
    }
}

/// Counts things of one kind by caller, and refuses what is too much.
#[derive(Debug)]
pub(crate) struct PerCaller {
    /// What is counted, in the plural.
    what: &'static str,
    limit: usize,
    held: Mutex<HashMap<CallerKey, usize>>,
}

/// One thing that is counted, until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    counts: Arc<PerCaller>,
    key: CallerKey,
}

impl PerCaller {
    pub(crate) fn new(what: &'static str, limit: usize) -> Arc<PerCaller> {
        Arc::new(PerCaller { what, limit, held: Mutex::default() })
    }

    /// Counts one more, unless the caller has as many as it may.
    pub(crate) fn count(self: &Arc<Self>, key: &CallerKey) -> Result<Counted, RpcError> {
        let mut held = self.held.lock();
        let n_held = held.entry(key.clone()).or_default();
        if self.limit <= *n_held {
            let (limit, what) = (self.limit, self.what);
            let message = format!("this caller has {limit} {what}, and may not have more at once");
            return Err(RpcError::new(code::SERVER, message));
        }
        *n_held += 1;
        Ok(Counted { counts: Arc::clone(self), key: key.clone() })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Entry::Occupied(mut held) = self.counts.held.lock().entry(self.key.clone()) {
            *held.get_mut() -= 1;
            if *held.get() == 0 {
                held.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn from(subject: &str, address: Option<&str>) -> CallerKey {
        let identity = Identity { subject: subject.to_owned(), ..Identity::default() };
        let address = address.map(|address| address.parse().unwrap());
        Caller { identity: Arc::new(identity), address, connection: "".into() }.key()
    }

    #[test]
    fn a_name_counts_before_an_address_and_a_network_is_one_caller() {
        assert_eq!(from("ann", Some("10.0.0.1")), from("ann", Some("10.0.0.2")));
        assert_ne!(from("ann", None), from("bob", None));
        assert_ne!(from("", Some("10.0.0.1")), from("", Some("10.0.0.2")));
        assert_eq!(from("", Some("10.0.0.1")), from("", Some("::ffff:10.0.0.1")));
        assert_eq!(from("", Some("2001:db8:1:2::1")), from("", Some("2001:db8:1:2:ffff::9")));
        assert_ne!(from("", Some("2001:db8:1:2::1")), from("", Some("2001:db8:1:3::1")));
        assert_ne!(from("10.0.0.1", None), from("", Some("10.0.0.1")));
    }

    proptest! {
        #[test]
        fn nobody_has_more_than_the_limit_and_nothing_is_left_behind(
            steps in prop::collection::vec((0..4_u8, any::<bool>()), 0..200),
        ) {
            let counts = PerCaller::new("things", 5);
            let mut held: HashMap<u8, Vec<Counted>> = HashMap::new();
            for (who, takes) in steps {
                let key = CallerKey::Subject(who.to_string().into());
                let mine = held.entry(who).or_default();
                match takes {
                    true => match counts.count(&key) {
                        Ok(counted) => mine.push(counted),
                        Err(_) => prop_assert_eq!(mine.len(), 5),
                    },
                    false => drop(mine.pop()),
                }
                prop_assert!(mine.len() <= 5);
            }
            drop(held);
            prop_assert!(counts.held.lock().is_empty());
        }
    }
}
