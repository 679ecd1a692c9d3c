//! Parses YAML into a tree with positions.
//!
//! Plain values mean what the core schema of YAML 1.2 says. An alias is the text
//! `*name`: it is never followed, so that no document grows while it is read.

use std::collections::HashSet;

use granit_parser::{Event, Options, Parser, ScalarStyle};

use crate::tree::{Member, Node, Span, Value};

/// The deepest nesting that is accepted.
const MAX_DEPTH: usize = 64;

/// A parsed value, or the position and message of a syntax error.
type ParseResult<T> = Result<T, (Span, String)>;

/// Parses one YAML document. An empty text is `null`.
pub fn parse(text: &str) -> ParseResult<Node> {
    let mut options = Options::default();
    options.emit_comments = false;
    let parser = Parser::new_from_str_with_options(text, options);
    let mut builder = TreeBuilder { text, parser, depth: 0 };
    let mut root = None;
    while let Some((event, span)) = builder.next()? {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the rest begins the one node")]
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(..) if root.is_some() => {
                return Err((span, "there is more than one document in this file".to_owned()));
            }
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            other => root = Some(builder.node(other, span)?),
        }
    }
    Ok(root.unwrap_or(Node { span: text.len()..text.len(), value: Value::Null }))
}

/// Builds the tree from the events of the YAML parser.
struct TreeBuilder<'t> {
    text: &'t str,
    parser: Parser<'t, granit_parser::StrInput<'t>>,
    depth: usize,
}

impl<'t> TreeBuilder<'t> {
    fn next(&mut self) -> ParseResult<Option<(Event<'t>, Span)>> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => {
                let span = span.byte_range().unwrap_or(0..0);
                Ok(Some((event, span)))
            }
            Some(Err(error)) => {
                let at = error.marker().byte_offset().unwrap_or(0);
                Err((at..at, error.info()))
            }
        }
    }

    fn next_inside(&mut self) -> ParseResult<(Event<'t>, Span)> {
        let end = self.text.len();
        self.next()?.ok_or_else(|| (end..end, "the document ends too early".to_owned()))
    }

    fn node(&mut self, event: Event<'t>, span: Span) -> ParseResult<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err((span, "nested too deeply".to_owned()));
        }
        #[expect(clippy::wildcard_enum_match_arm, reason = "the rest begins no node")]
        let node = match event {
            Event::Scalar(text, style, _, tag) => {
                let value = match style {
                    ScalarStyle::Plain if tag.is_none() => parse_plain(&text),
                    ScalarStyle::Plain
                    | ScalarStyle::SingleQuoted
                    | ScalarStyle::DoubleQuoted
                    | ScalarStyle::Literal
                    | ScalarStyle::Folded => Value::Text(text.into_owned()),
                };
                Node { span, value }
            }
            Event::SequenceStart(..) => self.sequence(span)?,
            Event::MappingStart(..) => self.mapping(span)?,
            Event::Alias(_) => {
                let name = self.text.get(span.clone()).unwrap_or_default().to_owned();
                Node { span, value: Value::Text(name) }
            }
            other => return Err((span, format!("{other:?} should not be here"))),
        };
        self.depth -= 1;
        Ok(node)
    }

    fn sequence(&mut self, start: Span) -> ParseResult<Node> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next_inside()?;
            if event == Event::SequenceEnd {
                let last = items.last().map(|item: &Node| item.span.end);
                let span = self.collection_span(start, span, last);
                return Ok(Node { span, value: Value::List(items) });
            }
            items.push(self.node(event, span)?);
        }
    }

    fn mapping(&mut self, start: Span) -> ParseResult<Node> {
        let (mut members, mut keys): (Vec<Member>, HashSet<String>) = Default::default();
        loop {
            let (event, span) = self.next_inside()?;
            if event == Event::MappingEnd {
                let last = members.last().map(|member| member.node.span.end);
                let span = self.collection_span(start, span, last);
                return Ok(Node { span, value: Value::Table(members) });
            }
            let Event::Scalar(key, ..) = event else {
                return Err((span, "only plain keys are read".to_owned()));
            };
            let key = key.into_owned();
            if !keys.insert(key.clone()) {
                return Err((span, format!("`{key}` stands here twice")));
            }
            let (event, value_span) = self.next_inside()?;
            let node = self.node(event, value_span)?;
            members.push(Member { key, key_span: span, node });
        }
    }

    /// Returns the span of a collection. One without brackets ends where its last item
    /// ends; the parser reports its end only at what comes next.
    fn collection_span(&self, start: Span, end: Span, last: Option<usize>) -> Span {
        let is_flow = self.text[start.start..].starts_with(['{', '[']);
        let end = match last {
            Some(last) if !is_flow => last,
            Some(_) | None => end.end,
        };
        start.start..end.max(start.start)
    }
}

/// Parses a value without quotes.
fn parse_plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b))
        && digits.bytes().any(|b| b.is_ascii_digit());
    if is_number {
        if let Ok(whole) = text.trim_start_matches('+').parse::<i64>() {
            return Value::Number(whole.into());
        }
        let number = text.parse().ok().and_then(serde_json::Number::from_f64);
        if let Some(number) = number {
            return Value::Number(number);
        }
    }
    Value::Text(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = match parse(text) {
            Ok(node) => node.to_json().to_string(),
            Err((span, message)) => format!("{}..{} {message}", span.start, span.end),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn the_usual_spellings_are_read() {
        check(
            "a: 1\nb: [x, 'y', \"z\"]\nc:\n  d: true\n  e:\n",
            r#"{"a":1,"b":["x","y","z"],"c":{"d":true,"e":null}}"#,
        );
        check("# only a comment\n", "null");
        check("a: |\n  one\n  two\n", r#"{"a":"one\ntwo\n"}"#);
        check("a: &x {b: 1}\nc: *x\n", r#"{"a":{"b":1},"c":"*x"}"#);
        check("a: 12:30\nb: 1.5\nc: 007x\n", r#"{"a":"12:30","b":1.5,"c":"007x"}"#);
    }

    #[test]
    fn what_two_readers_could_take_for_two_things_is_refused() {
        check("a: 1\na: 2\n", "5..6 `a` stands here twice");
        check("a: 1\n---\nb: 2\n", "5..8 there is more than one document in this file");
        assert!(parse(&"[".repeat(1000)).is_err());
        assert!(parse(&"a:\n ".repeat(10)).is_err());
        let deep: String = (0..100).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
        assert!(parse(&deep).unwrap_err().1.contains("deep"));
    }

    #[test]
    fn every_value_knows_its_place() {
        let text = "a: 1 # c\next:\n  foo:\n    k: v\n  bar: {x: [1,2]}\nz: ~\n";
        let root = parse(text).unwrap();
        let place = |keys: &[&str]| {
            let node = keys.iter().fold(&root, |node, key| node.get(key).unwrap());
            &text[node.span.clone()]
        };
        assert_eq!(place(&["ext"]), "foo:\n    k: v\n  bar: {x: [1,2]}");
        assert_eq!(place(&["ext", "foo"]), "k: v");
        assert_eq!(place(&["ext", "bar"]), "{x: [1,2]}");
        assert_eq!(place(&["z"]), "~");
    }
}
