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

/// The directions of all documents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vectors {
    rows: Vec<i8>,
    scales: Vec<f32>,
}

impl Vectors {
    pub(crate) fn add(&mut self, direction: &Direction) {
        let largest = direction.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        let scale = largest / 127.0;
        let step = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        self.rows.extend(direction.iter().map(|value| (value * step).round() as i8));
        self.scales.push(scale);
    }

    /// The cosine of one document with a query.
    pub(crate) fn cosine(&self, document: usize, query: &Steps) -> f32 {
        let row = &self.rows[document * WIDTH..(document + 1) * WIDTH];
        let dot: i32 = row
            .iter()
            .zip(&query.values)
            .map(|(a, b)| i32::from(i16::from(*a)) * i32::from(*b))
            .sum();
        dot as f32 * self.scales[document] * query.scale
    }

    pub(crate) fn len(&self) -> usize {
        self.scales.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.capacity() + self.scales.capacity() * 4
    }

    pub(crate) fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.scales.shrink_to_fit();
    }
}

/// A direction in integer steps, ready for the dot product.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    values: [i16; WIDTH],
    scale: f32,
}

impl Steps {
    pub(crate) fn of(direction: &Direction) -> Steps {
        // 127 · 4,095 · 256 stays far below 2^31.
        let largest = direction.iter().fold(f32::MIN_POSITIVE, |most, value| most.max(value.abs()));
        let scale = largest / 4_095.0;
        Steps { values: direction.map(|value| (value / scale).round() as i16), scale }
    }
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
        let mut vectors = Vectors::default();
        vectors.add(&a);
        assert!((vectors.cosine(0, &Steps::of(&b)) - exact).abs() < 0.005);
    }

    #[test]
    fn a_text_without_known_words_points_nowhere() {
        assert_eq!(direction("🎉"), [0.0; WIDTH]);
    }
}
