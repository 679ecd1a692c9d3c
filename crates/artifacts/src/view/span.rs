//! A range of lines, rows or array elements.

/// A half-open range; negative numbers count from the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: i64,
    pub end: Option<i64>,
}

impl Span {
    /// Returns the indices that the span selects in a list of `length` items.
    pub fn within(self, length: usize) -> std::ops::Range<usize> {
        let index = |at: i64| match usize::try_from(at) {
            Ok(at) => at.min(length),
            Err(_) => {
                length.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX))
            }
        };
        let end = self.end.map_or(length, index);
        index(self.start).min(end)..end
    }
}
