//! Computes embedding vectors of documents and queries.
//!
//! A text is the mean of the table's rows of its pieces; a document is the
//! weighted sum of its fields' directions. Comparing a query with a document is
//! one integer dot product.

use super::fields::{DESCRIPTION, EXPLANATIONS, Fields, NAME, PARAMETERS, SERVER};
use super::table::{self, WIDTH};
use super::{wordpiece, words};

/// A direction of length one, or all zero for a text without a known word.
pub(crate) type Direction = [f32; WIDTH];

/// How much each field turns a document's direction.
const FIELDS: [(usize, f32); 4] =
    [(NAME, 0.66), (DESCRIPTION, 0.754), (PARAMETERS, 0.3), (SERVER, 0.443)];

/// Characters of a text that are read; what comes later is detail.
const OPENING: usize = 250;

/// Many directions, `N` wide, in integer steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vectors<const N: usize> {
    rows: Vec<[i8; N]>,
}

/// How wide an outline is: the beginning of a direction, where directions
/// differ most. A quarter of the work of a comparison, for a good guess at its
/// outcome.
pub(crate) const OUTLINE: usize = 64;

/// A direction in integer steps, ready for the dot product. Aligned, so that
/// eight of them can be multiplied where they lie.
#[derive(Clone, Debug)]
#[repr(align(16))]
pub(crate) struct Steps<const N: usize = WIDTH> {
    values: [i16; N],
}

/// The steps in a length of one. Rounding makes a direction at most 8 steps
/// longer, so no sum of products of two of them, nor any part of it, is more than
/// 180 squared: all of it fits into sixteen bits, and the compiler multiplies
/// eight at a time. A cosine is off by about 0.002.
const ONE: f32 = 172.0;

impl<const N: usize> Vectors<N> {
    pub(crate) fn add(&mut self, direction: &[f32; N]) {
        // Only a direction along one axis has a value that must be cut.
        self.rows.push(direction.map(|value| rounded(value * ONE).clamp(-127, 127) as i8));
    }

    /// The cosine of one direction with a query.
    pub(crate) fn cosine(&self, at: usize, query: &Steps<N>) -> f32 {
        dot(&self.rows[at], &query.values)
    }

    /// The cosine of every direction with a query, in order.
    pub(crate) fn cosines(&self, query: &Steps<N>) -> impl Iterator<Item = f32> {
        self.rows.iter().map(|row| dot(row, &query.values))
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.capacity() * N
    }

    pub(crate) fn shrink(&mut self) {
        self.rows.shrink_to_fit();
    }
}

impl<const N: usize> Steps<N> {
    /// Of a direction that is no longer than one.
    pub(crate) fn new(direction: &[f32; N]) -> Steps<N> {
        Steps { values: direction.map(|value| rounded(value * ONE) as i16) }
    }
}

impl Steps {
    pub(crate) fn outline(&self) -> Steps<OUTLINE> {
        let (outline, _) = self.values.split_first_chunk().expect("an outline is shorter");
        Steps { values: *outline }
    }
}

/// Wrapping, because it never does and the compiler need not know.
fn dot<const N: usize>(row: &[i8; N], query: &[i16; N]) -> f32 {
    let products = row.iter().zip(query).map(|(a, b)| i16::from(*a).wrapping_mul(*b));
    f32::from(products.fold(0, i16::wrapping_add)) * (1.0 / (ONE * ONE))
}

/// Half away from zero. The library's own rounding is a call for each value.
fn rounded(value: f32) -> i32 {
    (value + 0.5_f32.copysign(value)) as i32
}

/// The direction of a text.
pub(crate) fn direction(text: &str) -> Direction {
    normalised(sum(text))
}

/// The sum of the rows of a text: its direction, before it is of length one.
pub(crate) fn sum(text: &str) -> Direction {
    let mut sum = [0.0; WIDTH];
    wordpiece::each(text, |_, rows| {
        for row in rows {
            table::add(*row, &mut sum);
        }
    });
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

/// The direction of a document's parameters: what they are called, and what is
/// said about them. They say what a tool works on, often in other words than
/// its description.
pub(crate) fn parameters(fields: &Fields) -> Direction {
    let mut text = spaced(&fields.text[PARAMETERS]);
    text.push_str(opening(&fields.text[EXPLANATIONS]));
    direction(&text)
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

/// The direction of one word in outline, of length one.
pub(crate) fn word(text: &str) -> [f32; OUTLINE] {
    let mut sum = [0.0; OUTLINE];
    wordpiece::each(text, |_, rows| {
        for row in rows {
            table::add(*row, &mut sum);
        }
    });
    normalise(&mut sum);
    sum
}

pub(crate) fn normalised<const N: usize>(mut direction: [f32; N]) -> [f32; N] {
    normalise(&mut direction);
    direction
}

fn normalise<const N: usize>(direction: &mut [f32; N]) {
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

    /// Cosines as another implementation computes them from the same table.
    #[test]
    fn texts_point_where_the_table_says() {
        let (one, all) = (direction("create a github issue"), EXPECTED);
        for (text, expected) in all {
            let other = direction(text);
            let found: f32 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
            assert!((found - expected).abs() < 5e-3, "{text}: {found} {expected}");
        }
    }

    const EXPECTED: [(&str, f32); 3] = [
        ("create a github issue", 1.0),
        ("open a ticket in the tracker", 0.0905),
        ("send an email to the team", 0.1007),
    ];

    #[test]
    fn integer_cosines_are_close_to_the_real_ones() {
        let (a, b) = (direction("send an email"), direction("deliver mail to the team"));
        let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        let mut vectors = Vectors::<WIDTH>::default();
        vectors.add(&a);
        assert!((vectors.cosine(0, &Steps::new(&b)) - exact).abs() < 0.01);
    }

    /// The longest that rounding can make of two directions that are the same.
    #[test]
    fn no_direction_is_too_long_for_sixteen_bits() {
        let level = [1.0 / (WIDTH as f32).sqrt(); WIDTH];
        for text in ["send an email", "the", "a b c d e f g h i j k l m n o p q r s t u v w x y z"]
        {
            for one in [direction(text), level] {
                let mut vectors = Vectors::<WIDTH>::default();
                vectors.add(&one);
                let cosine = vectors.cosine(0, &Steps::new(&one));
                assert!((cosine - 1.0).abs() < 0.05, "{text}: {cosine}");
            }
        }
    }

    #[test]
    fn a_text_without_known_words_points_nowhere() {
        assert_eq!(direction("🎉"), [0.0; WIDTH]);
    }
}
