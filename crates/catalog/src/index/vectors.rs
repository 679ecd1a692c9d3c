//! What documents and queries mean, as directions.
//!
//! A text is the mean of the table's rows of its pieces; a document is the
//! weighted sum of its fields' directions, kept as int8. Comparing a query with
//! a document is one integer dot product.

use super::fields::{DESCRIPTION, Fields, NAME, PARAMETERS, SERVER};
use super::table::{self, WIDTH};
use super::{wordpiece, words};

/// A direction of length one, or all zero for a text without a known word.
pub(crate) type Direction = [f32; WIDTH];

/// How much each field turns a document's direction.
const FIELDS: [(usize, f32); 4] =
    [(NAME, 0.626), (DESCRIPTION, 0.754), (PARAMETERS, 0.472), (SERVER, 0.443)];

/// Characters of a description that are read; what comes later is detail.
const OPENING: usize = 250;

/// The directions of all documents, `N` wide.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vectors<const N: usize> {
    rows: Vec<[i8; N]>,
    scales: Vec<f32>,
}

/// How wide an outline is.
pub(crate) const OUTLINE: usize = 64;

/// A direction in integer steps, ready for the dot product.
#[derive(Clone, Debug)]
pub(crate) struct Steps<const N: usize = WIDTH> {
    values: [i16; N],
    scale: f32,
}

impl<const N: usize> Vectors<N> {
    pub(crate) fn add(&mut self, direction: &[f32; N]) {
        let largest = direction.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        let scale = largest / 127.0;
        let step = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        self.rows.push(direction.map(|value| rounded(value * step) as i8));
        self.scales.push(scale);
    }

    /// The cosine of one document with a query.
    pub(crate) fn cosine(&self, document: usize, query: &Steps<N>) -> f32 {
        dot(&self.rows[document], &query.values) as f32 * self.scales[document] * query.scale
    }

    pub(crate) fn wide(&self, document: usize) -> Wide<N> {
        Wide { values: self.rows[document].map(i16::from), scale: self.scales[document] }
    }

    /// The cosine of every document with a query, in order.
    pub(crate) fn cosines(&self, query: &Steps<N>) -> impl Iterator<Item = f32> {
        let rows = self.rows.iter().zip(&self.scales);
        rows.map(|(row, scale)| dot(row, &query.values) as f32 * scale * query.scale)
    }

    pub(crate) fn len(&self) -> usize {
        self.scales.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.capacity() * N + self.scales.capacity() * 4
    }

    pub(crate) fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.scales.shrink_to_fit();
    }
}

impl<const N: usize> Steps<N> {
    pub(crate) fn of(direction: &[f32; N]) -> Steps<N> {
        // 127 · 4,095 · 256 stays far below 2^31.
        let largest = direction.iter().fold(f32::MIN_POSITIVE, |most, value| most.max(value.abs()));
        let scale = largest / 4_095.0;
        Steps { values: direction.map(|value| rounded(value / scale) as i16), scale }
    }
}

impl Steps {
    /// The direction along the axes on which texts differ most: a quarter of
    /// the work of a comparison, for a good guess at its outcome.
    pub(crate) fn outline(&self) -> [f32; OUTLINE] {
        let mut outline = [0.0; OUTLINE];
        for (value, axis) in outline.iter_mut().zip(table::axes()) {
            *value = dot(&axis, &self.values) as f32 * self.scale / 127.0;
        }
        outline
    }
}

/// A document's direction, ready to be compared with several queries.
pub(crate) struct Wide<const N: usize> {
    values: [i16; N],
    scale: f32,
}

impl<const N: usize> Wide<N> {
    pub(crate) fn cosine(&self, query: &Steps<N>) -> f32 {
        sum(&self.values, &query.values) as f32 * self.scale * query.scale
    }
}

/// The values are widened first, all at once: the compiler then multiplies
/// eight at a time.
fn dot<const N: usize>(row: &[i8; N], query: &[i16; N]) -> i32 {
    sum(&row.map(i16::from), query)
}

fn sum<const N: usize>(row: &[i16; N], query: &[i16; N]) -> i32 {
    row.iter().zip(query).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

/// Half away from zero. The library's own rounding is a call for each value.
fn rounded(value: f32) -> i32 {
    (value + 0.5_f32.copysign(value)) as i32
}

/// The direction of a text.
pub(crate) fn direction(text: &str) -> Direction {
    let mut sum = [0.0; WIDTH];
    wordpiece::each(text, |_, rows| {
        for row in rows {
            table::add(*row, 1.0, &mut sum);
        }
    });
    normalise(&mut sum);
    sum
}

/// The direction of a document.
pub(crate) fn document(fields: &Fields) -> Direction {
    let mut sum = [0.0; WIDTH];
    for (field, weight) in FIELDS {
        let text = &fields.text[field];
        let part =
            if field == DESCRIPTION { direction(opening(text)) } else { direction(&spaced(text)) };
        for (sum, value) in sum.iter_mut().zip(&part) {
            *sum += weight * value;
        }
    }
    normalise(&mut sum);
    sum
}

/// An identifier with its parts apart.
pub(crate) fn spaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    words::each(text, |word, shape| {
        if shape == words::Shape::Word {
            out.push_str(word);
            out.push(' ');
        }
    });
    out
}

fn opening(text: &str) -> &str {
    text.char_indices().nth(OPENING).map_or(text, |(end, _)| &text[..end])
}

pub(crate) fn normalise(direction: &mut Direction) {
    let length = direction.iter().map(|value| value * value).sum::<f32>().sqrt();
    if 0.0 < length {
        for value in direction {
            *value /= length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First values as computed by another implementation from the same table.
    #[test]
    fn a_text_points_where_the_table_says() {
        let expected = [0.05066, 0.09944, -0.01586, 0.04046, -0.03828, -0.10317, 0.02492, 0.04537];
        let found = direction("create a github issue");
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 2e-5, "{found} {expected}");
        }
    }

    #[test]
    fn integer_cosines_are_close_to_the_real_ones() {
        let (a, b) = (direction("send an email"), direction("deliver mail to the team"));
        let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        let mut vectors = Vectors::<WIDTH>::default();
        vectors.add(&a);
        assert!((vectors.cosine(0, &Steps::of(&b)) - exact).abs() < 0.005);
    }

    #[test]
    fn a_text_without_known_words_points_nowhere() {
        assert_eq!(direction("🎉"), [0.0; WIDTH]);
    }
}
