//! A range of lines, rows or array elements.

/// A half-open range; negative numbers count from the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: i64,
    pub end: Option<i64>,
}

impl Span {
    /// The positions among `length` things.
    pub fn within(self, length: usize) -> std::ops::Range<usize> {
        let place = |at: i64| match usize::try_from(at) {
            Ok(at) => at.min(length),
            Err(_) => {
                length.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX))
            }
        };
        let end = self.end.map_or(length, place);
        place(self.start).min(end)..end
    }
}
