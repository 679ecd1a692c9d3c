//! Compares versions of skills, and matches them with the version that a reader wants.

use std::cmp::Ordering;

/// Compares versions part by part, numbers as numbers: 1.10 is after 1.9. `None`, no
/// version, is before every version.
pub fn compare(one: Option<&str>, other: Option<&str>) -> Ordering {
    let (one, other) = match (one, other) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return one.is_some().cmp(&other.is_some()),
    };
    let mut left = parts(one);
    let mut right = parts(other);
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return one.cmp(other),
            (left, right) => match (number(left), number(right)) {
                (Some(left), Some(right)) => left.cmp(&right),
                // `1.0-beta` is before `1.0`, where the last part is missing.
                (Some(_), None) => Ordering::Greater,
                (None, Some(_)) => Ordering::Less,
                (None, None) => left.cmp(&right),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Returns whether `wanted` is the version, or its beginning (`1` for `1.2`).
pub fn fits(version: &str, wanted: &str) -> bool {
    let (version, wanted) = (plain(version), plain(wanted));
    version.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn parts(version: &str) -> impl Iterator<Item = &str> {
    plain(version).split(['.', '-', '+'])
}

/// Returns a part as a number; a missing part is zero.
fn number(part: Option<&str>) -> Option<u64> {
    part.map_or(Some(0), |part| part.parse().ok())
}

fn plain(version: &str) -> &str {
    version.trim().trim_start_matches(['v', 'V'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers() {
        let mut versions = ["1.10", "1.9", "v2", "1.9.0-beta", "1.9.1"].map(Some).to_vec();
        versions.push(None);
        versions.sort_by(|one, other| compare(*one, *other));
        let sorted: Vec<&str> = versions.into_iter().map(|v| v.unwrap_or("none")).collect();
        assert_eq!(sorted, ["none", "1.9.0-beta", "1.9", "1.9.1", "1.10", "v2"]);
    }

    #[test]
    fn a_beginning_means_every_version_that_begins_so() {
        assert!(fits("1.2.3", "1") && fits("v1.2", "1.2") && fits("2", "v2"));
        assert!(!fits("12", "1") && !fits("1.2", "1.2.0"));
    }
}
