//! Tables in text: values between commas, tabs or semicolons, quoted where they
//! hold one of those or the end of a line.

/// What values are told apart by.
const DELIMITERS: [char; 3] = ['\t', ';', ','];

/// How many records are looked at to find out whether a text is a table.
const LOOKED_AT: usize = 8;

/// Returns what tells the values of a text apart, if it is a table: its first
/// records have equally many, and more than one.
pub fn delimiter(text: &str) -> Option<char> {
    DELIMITERS.into_iter().find(|delimiter| {
        let mut records = records(text, *delimiter).take(LOOKED_AT);
        let Some(width) = records.next().map(|record| values(record, *delimiter)) else {
            return false;
        };
        let widths: Vec<usize> = records.map(|record| values(record, *delimiter)).collect();
        // Two lines with a comma each are a greeting.
        let enough = if 2 < width { 1 } else { 2 };
        1 < width
            && enough <= widths.len()
            && widths.iter().all(|other| *other == width)
            && !(*delimiter == ',' && is_prose(text))
    })
}

/// Returns whether commas are followed by blanks, as in sentences.
fn is_prose(text: &str) -> bool {
    let lines = || text.lines().take(LOOKED_AT).filter(|line| line.contains(','));
    lines().all(|line| line.matches(',').count() == line.matches(", ").count())
}

/// The records of a table: a line end inside quotes ends no record.
///
/// Behind a quote that nobody closes every line is a record. Who looked for
/// each such quote's end would read the rest once per line.
pub(super) fn records(text: &str, delimiter: char) -> impl Iterator<Item = &str> {
    let (mut rest, mut closed) = (text, true);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = if closed { Reader::new(delimiter).end(rest) } else { None };
        closed = end.is_some();
        let end = end.or_else(|| rest.find('\n')).unwrap_or(rest.len());
        let record = rest[..end].trim_end_matches('\r');
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(record)
    })
}

fn values(record: &str, delimiter: char) -> usize {
    let mut reader = Reader::new(delimiter);
    1 + record.chars().filter(|c| reader.read(*c) == Mark::Value).count()
}

/// Where one is in a record. A quote counts only around a whole value: `5" x 7"`
/// has none.
struct Reader {
    delimiter: char,
    fresh: bool,
    quoted: bool,
}

#[derive(PartialEq, Eq)]
enum Mark {
    Value,
    Record,
    None,
}

impl Reader {
    fn new(delimiter: char) -> Reader {
        Reader { delimiter, fresh: true, quoted: false }
    }

    fn read(&mut self, c: char) -> Mark {
        let fresh = std::mem::take(&mut self.fresh);
        if self.quoted {
            // A doubled quote ends the value and begins it again.
            self.quoted = c != '"';
            self.fresh = c == '"';
            return Mark::None;
        }
        match c {
            '"' if fresh => self.quoted = true,
            '\n' => return Mark::Record,
            c if c == self.delimiter => {
                self.fresh = true;
                return Mark::Value;
            }
            _ => {}
        }
        Mark::None
    }

    /// Where the record ends that a text begins with, unless a quote in it
    /// stays open.
    fn end(mut self, text: &str) -> Option<usize> {
        let found = text.char_indices().find(|(_, c)| self.read(*c) == Mark::Record);
        match found {
            Some((at, _)) => Some(at),
            None => (!self.quoted).then_some(text.len()),
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

    /// From every line on, a quote is open to the end: whoever looks for its
    /// end each time reads some 200 gigabytes.
    #[test]
    fn a_text_full_of_open_quotes_is_read_in_a_moment() {
        let text = "x\"a,\"b\n".repeat(250_000);
        assert_eq!(records(&text, ',').count(), 250_000);
        let pairs = "\"a,b\n".repeat(20_001);
        assert_eq!(records(&pairs, ',').count(), 10_001);
    }
}
