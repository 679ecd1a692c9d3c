//! JSON as people write it by hand: with comments and trailing commas, read
//! into a tree that remembers places.

use std::collections::HashMap;

use crate::tree::{Member, Node, Span, Value};

/// Deeper nesting than this is no configuration file.
const DEEPEST: usize = 64;

/// Reads one JSON value, and notes what stands there twice; on a syntax error,
/// where and what.
pub fn read(text: &str) -> Read<(Node, Noted)> {
    let mut reader = Reader { text, at: 0, depth: 0, twice: Vec::new() };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    let node = reader.value()?;
    reader.skip()?;
    if reader.at < text.len() {
        return Err(reader.wrong("nothing may follow the end of the document"));
    }
    Ok((node, reader.twice))
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    /// Keys that were there before, and what to say of them.
    twice: Noted,
}

/// What was read; on a syntax error, where and what.
pub type Read<T> = Result<T, (Span, String)>;

/// What is odd, and where.
pub type Noted = Vec<(Span, String)>;

impl Reader<'_> {
    fn value(&mut self) -> Read<Node> {
        self.skip()?;
        let start = self.at;
        let value = match self.peek() {
            Some('{') => self.nested(Reader::table)?,
            Some('[') => self.nested(Reader::list)?,
            Some('"') => Value::Text(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            Some(_) => self.word()?,
            None => return Err(self.wrong("the document ends where a value should be")),
        };
        Ok(Node { span: start..self.at, value })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Read<Value>) -> Read<Value> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong("nested too deeply"));
        }
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn table(&mut self) -> Read<Value> {
        let mut members: Vec<Option<Member>> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        loop {
            self.skip()?;
            match self.peek() {
                Some('}') => break self.at += 1,
                Some('"') => {}
                Some(_) | None => return Err(self.wrong("a key in quotes or `}` should be here")),
            }
            let start = self.at;
            let key = self.string()?;
            let key_span = start..self.at;
            self.skip()?;
            self.expect(':')?;
            let node = self.value()?;
            // Of duplicate keys the last one counts, as in every common parser.
            if let Some(before) = places.insert(key.clone(), members.len()) {
                members[before] = None;
                let message = format!("`{key}` stands here twice; the last one counts");
                self.twice.push((key_span.clone(), message));
            }
            members.push(Some(Member { key, key_span, node }));
            self.comma_or('}')?;
        }
        Ok(Value::Table(members.into_iter().flatten().collect()))
    }

    fn list(&mut self) -> Read<Value> {
        let mut items = Vec::new();
        loop {
            self.skip()?;
            if self.peek() == Some(']') {
                self.at += 1;
                return Ok(Value::List(items));
            }
            items.push(self.value()?);
            self.comma_or(']')?;
        }
    }

    /// A comma, which may also stand before the end, or the end itself.
    fn comma_or(&mut self, end: char) -> Read<()> {
        self.skip()?;
        match self.peek() {
            Some(',') => self.at += 1,
            Some(found) if found == end => {}
            Some(_) | None => return Err(self.wrong(&format!("`,` or `{end}` should be here"))),
        }
        Ok(())
    }

    fn string(&mut self) -> Read<String> {
        let start = self.at;
        let mut escaped = false;
        for (offset, letter) in self.text[start + 1..].char_indices() {
            match letter {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    self.at = start + 1 + offset + 1;
                    let quoted = &self.text[start..self.at];
                    return serde_json::from_str(quoted)
                        .map_err(|error| (start..self.at, format!("not a string: {error}")));
                }
                '\n' => break,
                _ => {}
            }
        }
        Err((start..start + 1, "this string never ends".to_owned()))
    }

    fn number(&mut self) -> Read<Value> {
        let start = self.at;
        let part = |c: char| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
        let rest = &self.text[start..];
        self.at = start + rest.find(|c| !part(c)).unwrap_or(rest.len());
        let text = &self.text[start..self.at];
        let number =
            text.parse().map_err(|_| (start..self.at, format!("`{text}` is no number")))?;
        Ok(Value::Number(number))
    }

    fn word(&mut self) -> Read<Value> {
        let start = self.at;
        let rest = &self.text[start..];
        let length = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len()).max(1);
        let end = (1..=rest.len()).find(|end| length <= *end && rest.is_char_boundary(*end));
        self.at = start + end.unwrap_or(rest.len());
        match &self.text[start..self.at] {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "null" => Ok(Value::Null),
            other => Err((start..self.at, format!("`{other}` is no JSON value"))),
        }
    }

    /// Passes over white space and comments.
    fn skip(&mut self) -> Read<()> {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                let end = trimmed.find("*/");
                self.at += end.ok_or_else(|| self.wrong("this comment never ends"))? + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn expect(&mut self, wanted: char) -> Read<()> {
        if self.peek() != Some(wanted) {
            return Err(self.wrong(&format!("`{wanted}` should be here")));
        }
        self.at += wanted.len_utf8();
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn wrong(&self, message: &str) -> (Span, String) {
        let width = self.peek().map_or(0, char::len_utf8);
        (self.at..self.at + width, message.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = match read(text) {
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
        let (_, twice) = read(r#"{"a": {"x": 1}, "b": {"x": 2}, "a": 3}"#).unwrap();
        assert_eq!(twice, [(31..34, "`a` stands here twice; the last one counts".to_owned())]);
    }

    #[test]
    fn every_value_knows_its_place() {
        let text = r#"{"a": [true, "xy"]}"#;
        let (node, _) = read(text).unwrap();
        let item = &node.get("a").unwrap().items()[1];
        assert_eq!(&text[item.span.clone()], r#""xy""#);
    }
}
