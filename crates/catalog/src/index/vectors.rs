//! Computes embedding vectors of documents and queries.
//!
//! The embedding of a text is the mean of the table's rows of its tokens; that of a
//! document is the weighted sum of its fields. Comparing a query with a document is one
//! integer dot product.

use super::fields::{DESCRIPTION, EXPLANATIONS, Fields, NAME, PARAMETERS, SERVER};
use super::table::{self, WIDTH};
use super::{wordpiece, words};

/// An embedding of length one, or all zero for a text without a known word.
pub(crate) type Embedding = [f32; WIDTH];

/// The weight of each field in a document's embedding.
const FIELD_WEIGHTS: [(usize, f32); 4] =
    [(NAME, 0.66), (DESCRIPTION, 0.754), (PARAMETERS, 0.3), (SERVER, 0.443)];

/// The most characters of a text that are embedded; the rest is detail.
const OPENING: usize = 250;

/// Many embeddings of width `N`, quantized to bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vectors<const N: usize> {
    rows: Vec<[i8; N]>,
}

/// The width of a shortened embedding: its first values, which differ most. Comparing
/// them is a quarter of the work and a good estimate.
pub(crate) const SHORT_WIDTH: usize = 64;

/// An embedding quantized to integers, for the dot product. Aligned, so that eight values
/// can be multiplied at once.
#[derive(Clone, Debug)]
#[repr(align(16))]
pub(crate) struct QuantizedVector<const N: usize = WIDTH> {
    values: [i16; N],
}

/// The integer that stands for 1.0. Rounding makes a vector at most 8 longer, so no
/// partial sum of a dot product exceeds 180 squared: all of it fits into sixteen bits, and
/// the compiler multiplies eight at a time. A cosine is off by about 0.002.
const ONE: f32 = 172.0;

impl<const N: usize> Vectors<N> {
    pub(crate) fn add(&mut self, embedding: &[f32; N]) {
        // Only a vector along one axis has a value that must be clamped.
        self.rows.push(embedding.map(|value| rounded(value * ONE).clamp(-127, 127) as i8));
    }

    /// The cosine of one embedding with a query.
    pub(crate) fn cosine(&self, at: usize, query: &QuantizedVector<N>) -> f32 {
        dot(&self.rows[at], &query.values)
    }

    /// The cosine of every embedding with a query, in order.
    pub(crate) fn cosines(&self, query: &QuantizedVector<N>) -> impl Iterator<Item = f32> {
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

impl<const N: usize> QuantizedVector<N> {
    /// Quantizes an embedding whose length is at most one.
    pub(crate) fn new(embedding: &[f32; N]) -> QuantizedVector<N> {
        QuantizedVector { values: embedding.map(|value| rounded(value * ONE) as i16) }
    }
}

impl QuantizedVector {
    pub(crate) fn shortened(&self) -> QuantizedVector<SHORT_WIDTH> {
        let (short, _) = self.values.split_first_chunk().expect("an outline is shorter");
        QuantizedVector { values: *short }
    }
}

/// The dot product. Wrapping operations never wrap here and are faster.
fn dot<const N: usize>(row: &[i8; N], query: &[i16; N]) -> f32 {
    let products = row.iter().zip(query).map(|(a, b)| i16::from(*a).wrapping_mul(*b));
    f32::from(products.fold(0, i16::wrapping_add)) * (1.0 / (ONE * ONE))
}

/// Rounds half away from zero, without a library call for each value.
fn rounded(value: f32) -> i32 {
    (value + 0.5_f32.copysign(value)) as i32
}

/// The embedding of a text.
pub(crate) fn embed(text: &str) -> Embedding {
    normalized(sum(text))
}

/// The sum of the table's rows of a text: its embedding before normalization.
pub(crate) fn sum(text: &str) -> Embedding {
    let mut sum = [0.0; WIDTH];
    wordpiece::each(text, |_, rows| {
        for row in rows {
            table::add(*row, &mut sum);
        }
    });
    sum
}

/// The embedding of a document.
pub(crate) fn embed_document(fields: &Fields) -> Embedding {
    let mut sum = [0.0; WIDTH];
    for (field, weight) in FIELD_WEIGHTS {
        let text = &fields.text[field];
        let part = if field == DESCRIPTION { embed(opening(text)) } else { embed(&spaced(text)) };
        for (sum, value) in sum.iter_mut().zip(&part) {
            *sum += weight * value;
        }
    }
    normalize(&mut sum);
    sum
}

/// The embedding of a document's parameters: their names and descriptions. They say what a
/// tool works on, often in other words than its description.
pub(crate) fn embed_parameters(fields: &Fields) -> Embedding {
    let mut text = spaced(&fields.text[PARAMETERS]);
    text.push_str(opening(&fields.text[EXPLANATIONS]));
    embed(&text)
}

/// The words of an identifier, separated by spaces.
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

/// The shortened embedding of one word, normalized.
pub(crate) fn embed_word(text: &str) -> [f32; SHORT_WIDTH] {
    let mut sum = [0.0; SHORT_WIDTH];
    wordpiece::each(text, |_, rows| {
        for row in rows {
            table::add(*row, &mut sum);
        }
    });
    normalize(&mut sum);
    sum
}

pub(crate) fn normalized<const N: usize>(mut embedding: [f32; N]) -> [f32; N] {
    normalize(&mut embedding);
    embedding
}

fn normalize<const N: usize>(embedding: &mut [f32; N]) {
    let length = embedding.iter().map(|value| value * value).sum::<f32>().sqrt();
    if 0.0 < length {
        for value in embedding {
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
        let (one, all) = (embed("create a github issue"), EXPECTED);
        for (text, expected) in all {
            let other = embed(text);
            let found: f32 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
            assert!((found - expected).abs() < 5e-3, "{text}: {found} {expected}");
        }
    }

    const EXPECTED: [(&str, f32); 3] = [
        ("create a github issue", 1.0),
        ("open a ticket in the tracker", 0.0991),
        ("send an email to the team", 0.0973),
    ];

    #[test]
    fn integer_cosines_are_close_to_the_real_ones() {
        let (a, b) = (embed("send an email"), embed("deliver mail to the team"));
        let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        let mut vectors = Vectors::<WIDTH>::default();
        vectors.add(&a);
        assert!((vectors.cosine(0, &QuantizedVector::new(&b)) - exact).abs() < 0.01);
    }

    /// The longest that rounding can make of two directions that are the same.
    #[test]
    fn no_direction_is_too_long_for_sixteen_bits() {
        let level = [1.0 / (WIDTH as f32).sqrt(); WIDTH];
        for text in ["send an email", "the", "a b c d e f g h i j k l m n o p q r s t u v w x y z"]
        {
            for one in [embed(text), level] {
                let mut vectors = Vectors::<WIDTH>::default();
                vectors.add(&one);
                let cosine = vectors.cosine(0, &QuantizedVector::new(&one));
                assert!((cosine - 1.0).abs() < 0.05, "{text}: {cosine}");
            }
        }
    }

    #[test]
    fn a_text_without_known_words_points_nowhere() {
        assert_eq!(embed("🎉"), [0.0; WIDTH]);
    }
}
