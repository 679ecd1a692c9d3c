//! Chance that can be repeated.

/// The same things in an order that follows from the seed.
pub(crate) fn shuffled<T>(things: &[T], seed: u64) -> Vec<&T> {
    let mut state = seed | 1;
    let mut keyed: Vec<(u64, &T)> = things.iter().map(|thing| (next(&mut state), thing)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, thing)| thing).collect()
}

/// Xorshift: small, and good enough for an order.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_follows_from_its_seed_and_keeps_everything() {
        let things: Vec<u32> = (0..30).collect();
        let order = shuffled(&things, 5);
        assert_eq!(order, shuffled(&things, 5));
        assert_ne!(order, shuffled(&things, 6));
        let mut sorted: Vec<u32> = order.into_iter().copied().collect();
        sorted.sort_unstable();
        assert_eq!(sorted, things);
    }
}
