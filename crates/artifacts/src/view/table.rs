//! Detects tables in text (CSV and the like) and splits them into records.
//!
//! Values are separated by commas, tabs or semicolons, and quoted if they contain
//! one of those or a line end.

const DELIMITERS: [char; 3] = ['\t', ';', ','];

/// How many records are checked to find out whether a text is a table.
const N_SAMPLED: usize = 8;

/// Returns the delimiter of a table; `None` if the text is not a table: its first
/// records must have the same number of values, and more than one.
pub fn delimiter(text: &str) -> Option<char> {
    DELIMITERS.into_iter().find(|delimiter| {
        let mut records = records(text, *delimiter).take(N_SAMPLED);
        let Some(width) = records.next().map(|record| n_values(record, *delimiter)) else {
            return false;
        };
        let widths: Vec<usize> = records.map(|record| n_values(record, *delimiter)).collect();
        // A greeting and a sentence may have one comma each, as two lines of a letter. So
        // records of two values count as a table only from three records on.
        let enough = if 2 < width { 1 } else { 2 };
        1 < width
            && enough <= widths.len()
            && widths.iter().all(|other| *other == width)
            && !(*delimiter == ',' && is_prose(text))
    })
}

/// Returns whether all commas are followed by spaces, as in sentences.
fn is_prose(text: &str) -> bool {
    let lines = || text.lines().take(N_SAMPLED).filter(|line| line.contains(','));
    lines().all(|line| line.matches(',').count() == line.matches(", ").count())
}

/// Splits a table into records. A line end inside quotes does not end a record.
///
/// Once a quote was found that is never closed, every further line is a record:
/// looking for the end of a quote in each of them would scan the rest of the text
/// once per line.
pub(super) fn records(text: &str, delimiter: char) -> impl Iterator<Item = &str> {
    let (mut rest, mut closed) = (text, true);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = if closed { RecordReader::new(delimiter).find_record_end(rest) } else { None };
        closed = end.is_some();
        let end = end.or_else(|| rest.find('\n')).unwrap_or(rest.len());
        let record = rest[..end].trim_end_matches('\r');
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(record)
    })
}

/// Returns how many values a record has.
fn n_values(record: &str, delimiter: char) -> usize {
    let mut reader = RecordReader::new(delimiter);
    1 + record.chars().filter(|c| reader.read(*c) == Boundary::ValueEnd).count()
}

/// Reads a record character by character. A quote counts only at the start of a value:
/// `5" x 7"` has none.
struct RecordReader {
    delimiter: char,
    at_value_start: bool,
    in_quotes: bool,
}

/// What ends at a character.
#[derive(PartialEq, Eq)]
enum Boundary {
    ValueEnd,
    RecordEnd,
    None,
}

impl RecordReader {
    fn new(delimiter: char) -> RecordReader {
        RecordReader { delimiter, at_value_start: true, in_quotes: false }
    }

    /// Reads the next character, and returns what ends with it.
    fn read(&mut self, c: char) -> Boundary {
        let at_value_start = std::mem::take(&mut self.at_value_start);
        if self.in_quotes {
            // A doubled quote stands for one in the value: its first half closes the
            // quotes, and its second opens them again.
            self.in_quotes = c != '"';
            self.at_value_start = c == '"';
            return Boundary::None;
        }
        match c {
            '"' if at_value_start => self.in_quotes = true,
            '\n' => return Boundary::RecordEnd,
            c if c == self.delimiter => {
                self.at_value_start = true;
                return Boundary::ValueEnd;
            }
            _ => {}
        }
        Boundary::None
    }

    /// Returns where the first record of a text ends; `None` if a quote in it is
    /// never closed.
    fn find_record_end(mut self, text: &str) -> Option<usize> {
        let found = text.char_indices().find(|(_, c)| self.read(*c) == Boundary::RecordEnd);
        match found {
            Some((at, _)) => Some(at),
            None => (!self.in_quotes).then_some(text.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, delimiter: Option<char>, expected: &[&str]) {
        assert_eq!(super::delimiter(text), delimiter);
        let Some(delimiter) = delimiter else { return };
        assert_eq!(records(text, delimiter).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_common_kind_of_table_is_one() {
        check("a,b\n1,2\n3,4\n", Some(','), &["a,b", "1,2", "3,4"]);
        check("a,b,c\r\n1,2,3\r\n", Some(','), &["a,b,c", "1,2,3"]);
        check("a\tb\n1\t2,5\n3\t4\n", Some('\t'), &["a\tb", "1\t2,5", "3\t4"]);
        check("a;b;c\n1;2,5;3\n", Some(';'), &["a;b;c", "1;2,5;3"]);
        let quoted = "id,text\n1,\"two\nlines, and \"\"more\"\"\"\n2,\"x, y\"\n";
        check(quoted, Some(','), &["id,text", "1,\"two\nlines, and \"\"more\"\"\"", "2,\"x, y\""]);
        check("a,b\n5\" x,1\n7\",2\n", Some(','), &["a,b", "5\" x,1", "7\",2"]);
    }

    #[test]
    fn a_text_is_no_table() {
        check("Hello, world\nGood day, sir\nBye, all\n", None, &[]);
        check("one\ntwo\nthree\n", None, &[]);
        check("a,b\n1,2,3\n4\n", None, &[]);
        check("", None, &[]);
    }

    #[test]
    fn a_quote_that_nobody_closes_does_not_swallow_the_rest() {
        let text = "a,b,c\n1,2,3\n\"4,5,6\n7,8,9\n";
        assert_eq!(records(text, ',').count(), 4);
    }

    /// Every line opens a quote that is never closed. A reader that looks for its end
    /// in each line reads some 200 gigabytes.
    #[test]
    fn a_text_full_of_open_quotes_is_read_in_a_moment() {
        let text = "x\"a,\"b\n".repeat(250_000);
        assert_eq!(records(&text, ',').count(), 250_000);
        let pairs = "\"a,b\n".repeat(20_001);
        assert_eq!(records(&pairs, ',').count(), 10_001);
    }
}
