//! Parses JSON with comments and trailing commas into a tree with positions.

use std::collections::HashMap;

use crate::tree::{Member, Node, Span, Value};

/// The deepest nesting that is accepted.
const MAX_DEPTH: usize = 64;

/// Parses one JSON value and lists its duplicate keys.
pub fn parse(text: &str) -> ParseResult<(Node, Duplicates)> {
    let mut parser = Parser { text, offset: 0, depth: 0, duplicates: Vec::new() };
    if text.starts_with('\u{feff}') {
        parser.offset = '\u{feff}'.len_utf8();
    }
    let node = parser.value()?;
    parser.skip_blanks()?;
    if parser.offset < text.len() {
        return Err(parser.syntax_error("nothing may follow the end of the document"));
    }
    Ok((node, parser.duplicates))
}

struct Parser<'t> {
    text: &'t str,
    /// The next byte to parse.
    offset: usize,
    depth: usize,
    duplicates: Duplicates,
}

/// A parsed value, or the position and message of a syntax error.
pub type ParseResult<T> = Result<T, (Span, String)>;

/// The positions of duplicate keys, each with a message.
pub type Duplicates = Vec<(Span, String)>;

impl Parser<'_> {
    fn value(&mut self) -> ParseResult<Node> {
        self.skip_blanks()?;
        let start = self.offset;
        let value = match self.peek() {
            Some('{') => self.nested(Parser::table)?,
            Some('[') => self.nested(Parser::list)?,
            Some('"') => Value::Text(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            Some(_) => self.word()?,
            None => return Err(self.syntax_error("the document ends where a value should be")),
        };
        Ok(Node { span: start..self.offset, value })
    }

    fn nested(&mut self, parse_inside: fn(&mut Self) -> ParseResult<Value>) -> ParseResult<Value> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.syntax_error("nested too deeply"));
        }
        self.offset += 1;
        let value = parse_inside(self);
        self.depth -= 1;
        value
    }

    fn table(&mut self) -> ParseResult<Value> {
        let mut members: Vec<Option<Member>> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        loop {
            self.skip_blanks()?;
            match self.peek() {
                Some('}') => break self.offset += 1,
                Some('"') => {}
                Some(_) | None => {
                    return Err(self.syntax_error("a key in quotes or `}` should be here"));
                }
            }
            let start = self.offset;
            let key = self.string()?;
            let key_span = start..self.offset;
            self.skip_blanks()?;
            self.expect(':')?;
            let node = self.value()?;
            // Of duplicate keys the last one counts, as in every common parser.
            if let Some(before) = places.insert(key.clone(), members.len()) {
                members[before] = None;
                let message = format!("`{key}` stands here twice; the last one counts");
                self.duplicates.push((key_span.clone(), message));
            }
            members.push(Some(Member { key, key_span, node }));
            self.comma_or('}')?;
        }
        Ok(Value::Table(members.into_iter().flatten().collect()))
    }

    fn list(&mut self) -> ParseResult<Value> {
        let mut items = Vec::new();
        loop {
            self.skip_blanks()?;
            if self.peek() == Some(']') {
                self.offset += 1;
                return Ok(Value::List(items));
            }
            items.push(self.value()?);
            self.comma_or(']')?;
        }
    }

    /// Parses a comma; before `end` it may be missing.
    fn comma_or(&mut self, end: char) -> ParseResult<()> {
        self.skip_blanks()?;
        match self.peek() {
            Some(',') => self.offset += 1,
            Some(found) if found == end => {}
            Some(_) | None => {
                return Err(self.syntax_error(&format!("`,` or `{end}` should be here")));
            }
        }
        Ok(())
    }

    fn string(&mut self) -> ParseResult<String> {
        let start = self.offset;
        let mut escaped = false;
        for (offset, letter) in self.text[start + 1..].char_indices() {
            match letter {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    self.offset = start + 1 + offset + 1;
                    let quoted = &self.text[start..self.offset];
                    return serde_json::from_str(quoted)
                        .map_err(|error| (start..self.offset, format!("not a string: {error}")));
                }
                '\n' => break,
                _ => {}
            }
        }
        Err((start..start + 1, "this string never ends".to_owned()))
    }

    fn number(&mut self) -> ParseResult<Value> {
        let start = self.offset;
        let part = |c: char| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
        let rest = &self.text[start..];
        self.offset = start + rest.find(|c| !part(c)).unwrap_or(rest.len());
        let text = &self.text[start..self.offset];
        let number =
            text.parse().map_err(|_| (start..self.offset, format!("`{text}` is no number")))?;
        Ok(Value::Number(number))
    }

    fn word(&mut self) -> ParseResult<Value> {
        let start = self.offset;
        let rest = &self.text[start..];
        let length = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len()).max(1);
        let end = (1..=rest.len()).find(|end| length <= *end && rest.is_char_boundary(*end));
        self.offset = start + end.unwrap_or(rest.len());
        match &self.text[start..self.offset] {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "null" => Ok(Value::Null),
            other => Err((start..self.offset, format!("`{other}` is no JSON value"))),
        }
    }

    /// Skips white space and comments.
    fn skip_blanks(&mut self) -> ParseResult<()> {
        loop {
            let rest = &self.text[self.offset..];
            let trimmed = rest.trim_start();
            self.offset += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.offset += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                let end = trimmed.find("*/");
                self.offset += end.ok_or_else(|| self.syntax_error("this comment never ends"))? + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn expect(&mut self, wanted: char) -> ParseResult<()> {
        if self.peek() != Some(wanted) {
            return Err(self.syntax_error(&format!("`{wanted}` should be here")));
        }
        self.offset += wanted.len_utf8();
        Ok(())
    }

    /// Returns the next character; `None` at the end of the text.
    fn peek(&self) -> Option<char> {
        self.text[self.offset..].chars().next()
    }

    fn syntax_error(&self, message: &str) -> (Span, String) {
        let width = self.peek().map_or(0, char::len_utf8);
        (self.offset..self.offset + width, message.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = match parse(text) {
            Ok((node, _)) => node.to_json().to_string(),
            Err((span, message)) => format!("{}..{} {message}", span.start, span.end),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn comments_and_trailing_commas_are_fine() {
        check("// a\n{ /* b */ \"x\": [1, -2.5,], // c\n }", r#"{"x":[1,-2.5]}"#);
        check("\u{feff}{\"url\": \"http://x//y\"}", r#"{"url":"http://x//y"}"#);
        check(r#"{"a":"\u00e9\n","a":null}"#, r#"{"a":null}"#);
    }

    #[test]
    fn a_syntax_error_is_shown_at_its_place() {
        check(r#"{"a" 1}"#, "5..6 `:` should be here");
        check(r#"{"a": yes}"#, "6..9 `yes` is no JSON value");
        check(r#"{"a": "x"#, "6..7 this string never ends");
        check("[1 2]", "3..4 `,` or `]` should be here");
        check("{} x", "3..4 nothing may follow the end of the document");
        check("/* ", "0..1 this comment never ends");
        check(&"[".repeat(100), "64..65 nested too deeply");
        check("é", "0..2 `é` is no JSON value");
    }

    #[test]
    fn a_key_that_stands_twice_is_noted_at_its_last_place() {
        let (_, duplicates) = parse(r#"{"a": {"x": 1}, "b": {"x": 2}, "a": 3}"#).unwrap();
        assert_eq!(duplicates, [(31..34, "`a` stands here twice; the last one counts".to_owned())]);
    }

    #[test]
    fn every_value_knows_its_place() {
        let text = r#"{"a": [true, "xy"]}"#;
        let (node, _) = parse(text).unwrap();
        let item = &node.get("a").unwrap().items()[1];
        assert_eq!(&text[item.span.clone()], r#""xy""#);
    }
}
