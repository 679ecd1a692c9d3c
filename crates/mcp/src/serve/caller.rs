//! The caller of a request, and limits per caller.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tool::{Identity, RpcError};

use crate::revision::code;

/// The sender of a request, as far as the transport knows.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) identity: Arc<Identity>,
    /// The IP address of the client, if the transport has one.
    pub(crate) address: Option<IpAddr>,
    /// A unique id of the connection.
    pub(crate) connection: Arc<str>,
}

/// The key by which callers are counted: the subject if known, the network otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallerKey {
    Subject(Arc<str>),
    Network(IpAddr),
    Unknown,
}

impl Caller {
    /// Makes the caller for the client on a pipe.
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

    /// Returns the IPv4 address, or the /64 network of an IPv6 address: one customer usually
    /// has 2^64 of them.
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

/// A limit on the number of things of one kind, per caller.
#[derive(Debug)]
pub(crate) struct PerCallerLimit {
    /// What is counted, such as "event streams", for the error message.
    plural_name: &'static str,
    limit: usize,
    n_by_caller: Mutex<HashMap<CallerKey, usize>>,
}

/// One counted thing of a caller; gives its place back when dropped.
#[derive(Debug)]
pub(crate) struct CountedSlot {
    limit: Arc<PerCallerLimit>,
    key: CallerKey,
}

impl PerCallerLimit {
    pub(crate) fn new(plural_name: &'static str, limit: usize) -> Arc<PerCallerLimit> {
        Arc::new(PerCallerLimit { plural_name, limit, n_by_caller: Mutex::default() })
    }

    /// Counts one more thing of a caller, or fails if the limit is reached.
    pub(crate) fn acquire(self: &Arc<Self>, key: &CallerKey) -> Result<CountedSlot, RpcError> {
        let mut n_by_caller = self.n_by_caller.lock();
        let n_held = n_by_caller.entry(key.clone()).or_default();
        if self.limit <= *n_held {
            let (limit, plural_name) = (self.limit, self.plural_name);
            let message =
                format!("this caller has {limit} {plural_name}, and may not have more at once");
            return Err(RpcError::new(code::SERVER, message));
        }
        *n_held += 1;
        Ok(CountedSlot { limit: Arc::clone(self), key: key.clone() })
    }
}

impl Drop for CountedSlot {
    fn drop(&mut self) {
        if let Entry::Occupied(mut n_by_caller) =
            self.limit.n_by_caller.lock().entry(self.key.clone())
        {
            *n_by_caller.get_mut() -= 1;
            if *n_by_caller.get() == 0 {
                n_by_caller.remove();
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
            let limit = PerCallerLimit::new("things", 5);
            let mut held: HashMap<u8, Vec<CountedSlot>> = HashMap::new();
            for (who, takes) in steps {
                let key = CallerKey::Subject(who.to_string().into());
                let mine = held.entry(who).or_default();
                match takes {
                    true => match limit.acquire(&key) {
                        Ok(counted) => mine.push(counted),
                        Err(_) => prop_assert_eq!(mine.len(), 5),
                    },
                    false => drop(mine.pop()),
                }
                prop_assert!(mine.len() <= 5);
            }
            drop(held);
            prop_assert!(limit.n_by_caller.lock().is_empty());
        }
    }
}
