//! Parses the response of a collector that accepted a batch.

use super::protobuf::{Field, Fields};

/// Returns how many spans of a batch were rejected (`partial_success.rejected_spans`).
pub(super) fn rejected(body: &[u8]) -> u64 {
    let partial = Fields(body).find_map(|(field, value)| match (field, value) {
        (1, Field::Bytes(partial)) => Some(partial),
        _ => None,
    });
    let rejected =
        Fields(partial.unwrap_or_default()).find_map(|(field, value)| match (field, value) {
            (1, Field::Number(count)) => Some(count),
            _ => None,
        });
    rejected.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_success_says_how_many_were_rejected() {
        assert_eq!(rejected(b"\x0a\x02\x08\x05"), 5);
        assert_eq!(rejected(b""), 0);
        assert_eq!(rejected(b"<html>"), 0);
    }
}
