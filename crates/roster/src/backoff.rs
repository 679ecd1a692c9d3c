//! How long to wait before trying again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(60);

/// The pause after `failures` failures in a row. `chance`, from 0 to 1, spreads
/// it over its upper half, so that what died together does not come back in
/// one rush.
pub fn delay(failures: u32, chance: f64) -> Duration {
    let doubled = FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(16)));
    doubled.min(LONGEST).mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let pauses: Vec<u128> = [0, 1, 2, 3, 9, 1000].map(|n| delay(n, 1.0).as_millis()).to_vec();
        assert_eq!(pauses, [250, 250, 500, 1000, 60_000, 60_000]);
    }

    #[test]
    fn chance_spreads_them_over_the_upper_half() {
        assert_eq!(delay(2, 0.0), Duration::from_millis(250));
        assert_eq!(delay(2, 0.5), Duration::from_millis(375));
    }
}
