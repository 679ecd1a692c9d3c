//! Parses parameters and result fields from tables, bullets and inline code.

use serde_json::Value;

use crate::block::{Block, BlockKind, Table};
use crate::document::{Field, Required, TableShape};
use crate::finding::Position;
use crate::markdown::{code_spans, plain};
use crate::section::normalize_title;
use crate::types;

/// The meaning of a table column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Name,
    Type,
    Required,
    Default,
    Description,
    Example,
}

/// Recognises a column by its title.
pub(crate) fn column(title: &str) -> Option<Column> {
    Some(match normalize_title(title).as_str() {
        "parameter name" | "parameter" | "name" | "field name" | "field" | "input" | "argument"
        | "param" | "key" => Column::Name,
        "type" | "data type" => Column::Type,
        "required" | "required?" | "optional" => Column::Required,
        "default" | "default value" => Column::Default,
        "description" | "contract" | "summary" | "behavior" | "behaviour" | "meaning" | "notes" => {
            Column::Description
        }
        "example value" | "example" | "examples" => Column::Example,
        _ => return None,
    })
}

/// Parses the fields of a table, if it is a table of fields.
pub(super) fn fields_from_table(table: &Table, block: &Block) -> Option<(Vec<Field>, TableShape)> {
    let columns: Vec<Option<Column>> = table.header.iter().map(|cell| column(cell)).collect();
    let has = |wanted: Column| columns.contains(&Some(wanted));
    let telling = has(Column::Type) || has(Column::Required) || has(Column::Default);
    if !has(Column::Name) || !(telling || has(Column::Description)) {
        return None;
    }
    let shape = TableShape {
        place: Position::line(block.lines.start + 1),
        end: block.lines.end + 1,
        columns: table.header.clone(),
    };
    let fields =
        table.rows.iter().filter_map(|(line, cells)| field_from_row(&columns, *line, cells));
    Some((fields.collect(), shape))
}

/// Parses a row of a table; `None` if it has no name.
fn field_from_row(columns: &[Option<Column>], line: usize, cells: &[String]) -> Option<Field> {
    let cell = |wanted: Column| {
        let at = columns.iter().position(|column| *column == Some(wanted))?;
        cells.get(at).map(String::as_str)
    };
    let name = cell(Column::Name)?;
    let path = plain(name);
    // A parameter may well be called `none`; then it has a type.
    let named =
        name.starts_with('`') && cell(Column::Type).is_none_or(|text| !is_placeholder(text));
    if path.is_empty() || (is_placeholder(&path) && !named) {
        return None;
    }
    let type_text = cell(Column::Type).map(plain).filter(|text| !text.is_empty());
    let description = cell(Column::Description).unwrap_or("").to_owned();
    let schema = type_text.as_deref().map_or(Value::Null, |text| types::parse(text).schema);
    let default_cell = cell(Column::Default);
    let default = match default_cell {
        Some(text) => default_value(text),
        None => default_in_prose(&description, &schema).value(),
    };
    let required = match (cell(Column::Required), default_cell) {
        (Some(text), _) => required(text),
        (None, Some(text)) if says_required(text) => Some(Required::Yes),
        (None, Some(_)) => Some(Required::No),
        (None, None) => None,
    };
    let example = cell(Column::Example).map(plain).filter(|text| !is_placeholder(text));
    let place = Position::line(line + 1);
    Some(Field { path, type_text, schema, required, default, description, example, place })
}

/// Returns whether the text of a cell means that there is no value.
pub(crate) fn is_placeholder(text: &str) -> bool {
    let text = plain(text).to_lowercase();
    matches!(
        text.as_str(),
        "" | "none" | "-" | "--" | "---" | "—" | "–" | "n/a" | "no parameters" | "(none)"
    )
}

/// Parses `Yes`, `**No**`, `Optional`, `Yes (if …)`.
pub(crate) fn required(text: &str) -> Option<Required> {
    let text = plain(text).to_lowercase();
    match text.as_str() {
        "yes" | "required" | "true" | "y" | "✓" | "✅" => Some(Required::Yes),
        "no" | "optional" | "false" | "n" | "✗" | "❌" => Some(Required::No),
        other if other.starts_with("yes") || other.starts_with("condition") => {
            Some(Required::Conditional)
        }
        other if other.starts_with("no ") => Some(Required::No),
        _ => None,
    }
}

fn says_required(default: &str) -> bool {
    let text = plain(default).to_lowercase();
    matches!(text.as_str(), "" | "-" | "--" | "—" | "–" | "required" | "(required)")
}

/// Converts a default to JSON text.
fn default_value(text: &str) -> Option<String> {
    if says_required(text) {
        return None;
    }
    let text = plain(text);
    Some(json_text(&text))
}

/// Converts a text to JSON text: JSON stays, literals of Python are translated, any other
/// text becomes a string.
fn json_text(text: &str) -> String {
    let word = match text {
        "None" => Some("null"),
        "True" => Some("true"),
        "False" => Some("false"),
        _ => None,
    };
    if let Some(word) = word {
        return word.to_owned();
    }
    if serde_json::from_str::<Value>(text).is_ok() {
        return text.to_owned();
    }
    let inner = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(text);
    Value::from(inner).to_string()
}

/// The default that a description mentions.
pub(crate) enum DefaultNote {
    Nothing,
    /// A value, as JSON text.
    Value(String),
    /// A text that is not a value, or not one of the type.
    Unclear(String),
}

impl DefaultNote {
    /// Returns the value, if it is clear.
    fn value(self) -> Option<String> {
        match self {
            DefaultNote::Value(value) => Some(value),
            DefaultNote::Nothing | DefaultNote::Unclear(_) => None,
        }
    }
}

/// Parses `(default: x)`, `Default: x` or `defaults to x` in a description.
///
/// A value is a code span, a quoted text, JSON, or one word. A longer phrase is not
/// interpreted, because callers would rely on the guess.
pub(crate) fn default_in_prose(text: &str, schema: &Value) -> DefaultNote {
    let lower = text.to_ascii_lowercase();
    let after = |mark: &str| lower.find(mark).map(|at| text[at + mark.len()..].trim_start());
    let Some(rest) = after("default: ").or_else(|| after("defaults to ")) else {
        return DefaultNote::Nothing;
    };
    if let Some(whole) = enclosed(rest) {
        return whole;
    }
    let phrase = phrase(rest);
    let word = phrase.split_whitespace().next().unwrap_or("");
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("");
    let of_kind = |text: &str| {
        let value = serde_json::from_str::<Value>(&json_text(text)).unwrap_or(Value::Null);
        match kind {
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            _ => false,
        }
    };
    let typed = matches!(kind, "integer" | "number" | "boolean");
    match phrase {
        "None" | "null" => DefaultNote::Value("null".to_owned()),
        _ if is_placeholder(phrase) => DefaultNote::Nothing,
        _ if typed && of_kind(word) => DefaultNote::Value(json_text(word)),
        _ if typed || word != phrase => DefaultNote::Unclear(phrase.to_owned()),
        _ if kind == "string" => DefaultNote::Value(Value::from(phrase).to_string()),
        _ => DefaultNote::Value(json_text(phrase)),
    }
}

/// Parses a value with delimiters: a code span, a quoted text, a list or an object.
fn enclosed(rest: &str) -> Option<DefaultNote> {
    let first = rest.chars().next()?;
    let unclear = || DefaultNote::Unclear(phrase(rest).to_owned());
    Some(match first {
        '`' => match code_spans(rest).first() {
            Some(span) => DefaultNote::Value(json_text(span)),
            None => unclear(),
        },
        '"' | '[' | '{' => {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            match values.next() {
                Some(Ok(value)) => DefaultNote::Value(value.to_string()),
                Some(Err(_)) | None => unclear(),
            }
        }
        '\'' => match rest[1..].split_once('\'') {
            Some((inner, _)) => DefaultNote::Value(Value::from(inner).to_string()),
            None => unclear(),
        },
        _ => return None,
    })
}

/// Returns the text up to the end of the sentence, the clause or the parenthesis. A mark
/// inside a word, as in `0.5` or in a URL, does not end it.
fn phrase(rest: &str) -> &str {
    let mut depth = 0_usize;
    for (at, letter) in rest.char_indices() {
        let next = rest[at + letter.len_utf8()..].chars().next();
        let word_ends = next.is_none_or(|next| next.is_whitespace() || next == ')');
        match letter {
            '(' => depth += 1,
            ')' if depth == 0 => return rest[..at].trim_end(),
            ')' => depth -= 1,
            '.' | ',' | ';' if word_ends => return rest[..at].trim_end(),
            '\n' => return rest[..at].trim_end(),
            _ => {}
        }
    }
    rest.trim_end()
}

/// Parses the fields of a list: `` `n` (type, required): text ``, `` `n: type = v` ``.
/// Nested bullets are members of the bullet above.
pub(super) fn fields_from_bullets(blocks: &[Block]) -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::new();
    let mut parents: Vec<(usize, String)> = Vec::new();
    for block in blocks {
        let BlockKind::Bullet { indent, text } = &block.kind else { continue };
        let place = Position::line(block.lines.start + 1);
        if let Some(several) = fields_from_signature(text, place) {
            fields.extend(several);
            continue;
        }
        let Some(mut field) = field_from_item(text, place) else { continue };
        parents.retain(|(outer, _)| outer < indent);
        if let Some((_, parent)) = parents.last() {
            let joint =
                fields.iter().find(|known| known.path == *parent).map(|known| &known.schema);
            let of_items =
                joint.is_some_and(|schema| schema.get("type") == Some(&Value::from("array")));
            let separator = if of_items { "[]." } else { "." };
            field.path = format!("{parent}{separator}{}", field.path);
        }
        parents.push((*indent, field.path.clone()));
        fields.push(field);
    }
    fields
}

/// Parses one bullet or inline item.
fn field_from_item(text: &str, place: Position) -> Option<Field> {
    let (span, after) = item_head(text)?;
    let (name, inline_type, default) = signature(&span);
    if !super::names::is_identifier(name.trim_end_matches("[]").trim_start_matches('$')) {
        return None;
    }
    let (inside, description) = parenthesis(after);
    let mut field = Field {
        path: name,
        type_text: inline_type,
        schema: Value::Null,
        required: None,
        default,
        description: description.to_owned(),
        example: None,
        place,
    };
    for word in clauses(inside).into_iter().map(str::trim).filter(|word| !word.is_empty()) {
        let lower = word.to_lowercase();
        if let Some(value) = lower.strip_prefix("default") {
            let value = word[word.len() - value.len()..].trim_start_matches([':', '=', ' ']);
            field.default = Some(json_text(plain(value).as_str()));
        } else if let Some(needed) = required(word) {
            field.required = Some(needed);
        } else if field.type_text.is_none() {
            field.type_text = Some(plain(word));
        }
    }
    if field.required.is_none() {
        field.required = Some(if field.default.is_some() { Required::No } else { Required::Yes });
    }
    if let Some(text) = &field.type_text {
        field.schema = types::parse(text).schema;
    }
    Some(field)
}

/// Parses the name at the start of a bullet, and returns it with the rest: `` `a` … ``,
/// `**a** (string) …`, `a (string, required) …`. Without a code span, only a type or
/// `required` distinguishes a parameter from a sentence.
fn item_head(text: &str) -> Option<(String, &str)> {
    let text = text.trim();
    let body = text.trim_start_matches("**");
    if body.starts_with('`') {
        let span = code_spans(body).into_iter().next()?;
        let after = body.splitn(3, '`').nth(2).unwrap_or("");
        return Some((span, after.trim_start_matches("**").trim()));
    }
    let (name, after) = match text.strip_prefix("**") {
        Some(rest) => rest.split_once("**")?,
        None => text.split_at(text.find(char::is_whitespace)?),
    };
    let (name, after) = (name.trim().trim_end_matches(':'), after.trim());
    let telling = |word: &str| types::parse(word).is_known || required(word).is_some();
    let inside = after.strip_prefix('(').map(|_| parenthesis(after).0)?;
    let tells = clauses(inside).into_iter().any(|word| telling(plain(word).as_str()));
    (super::names::is_identifier(name) && tells).then(|| (name.to_owned(), after))
}

/// Returns whether a bullet is a parameter, and not the label of a section.
pub(super) fn is_item(text: &str) -> bool {
    item_head(text).is_some_and(|(span, after)| {
        !text.trim_start_matches("**").starts_with('`')
            || span.contains(':')
            || after.starts_with('(')
    })
}

/// Splits at commas outside of brackets, code and quotes.
fn clauses(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut close) = (Vec::new(), 0, 0_usize, None);
    let mut last = ' ';
    for (at, letter) in text.char_indices() {
        // An apostrophe, as in `user's`, and an unclosed quote do not open a quotation.
        let opens = || !last.is_alphanumeric() && text[at + 1..].contains(letter);
        match (close, letter) {
            (Some(mark), _) if letter == mark => close = None,
            (None, '`' | '"' | '\'') if opens() => close = Some(letter),
            (None, '[' | '(' | '{' | '<') => depth += 1,
            (None, ']' | ')' | '}' | '>') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            (Some(_) | None, _) => {}
        }
        last = letter;
    }
    parts.push(&text[start..]);
    parts
}

/// Parses several parameters in one code span, `` `a: str, b: int = 1` ``, also as the
/// arguments of a call.
fn fields_from_signature(text: &str, place: Position) -> Option<Vec<Field>> {
    let span = code_spans(text).into_iter().next().filter(|_| text.trim().starts_with('`'))?;
    let inner = match span.split_once('(') {
        Some((name, rest)) if super::names::is_identifier(name.trim()) => rest.rsplit_once(')')?.0,
        Some(_) | None => span.as_str(),
    };
    let parts = clauses(inner);
    let named = |part: &&str| {
        let name = part.split([':', '=']).next().unwrap_or("").trim();
        super::names::is_identifier(name) && part.contains([':', '='])
    };
    if parts.len() < 2 || !parts.iter().all(named) {
        return None;
    }
    Some(
        parts
            .iter()
            .filter_map(|part| field_from_item(&format!("`{}`", part.trim()), place))
            .collect(),
    )
}

/// Parses `a: str = "x"` into name, type and default.
fn signature(span: &str) -> (String, Option<String>, Option<String>) {
    let (left, default) = match span.split_once('=') {
        Some((left, default)) => (left.trim(), Some(json_text(default.trim()))),
        None => (span.trim(), None),
    };
    match left.split_once(':') {
        Some((name, of)) => (name.trim().to_owned(), Some(of.trim().to_owned()), default),
        None => (left.to_owned(), None, default),
    }
}

/// Splits `(a, b): text` into `a, b` and `text`.
fn parenthesis(after: &str) -> (&str, &str) {
    let clean = |text: &'_ str| -> usize {
        text.len() - text.trim_start_matches([':', '-', '—', '–', ' ']).len()
    };
    if let Some(body) = after.strip_prefix('(')
        && let Some(end) = closing(body)
    {
        let rest = &body[end + 1..];
        return (&body[..end], &rest[clean(rest)..]);
    }
    ("", &after[clean(after)..])
}

/// Returns where the parenthesis closes that is open at the start.
fn closing(body: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, letter) in body.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Parses `` `a: str`, `b: int = 1` `` in a line of text.
pub(super) fn fields_from_inline_code(text: &str, place: Position) -> Vec<Field> {
    let spans = code_spans(text);
    let signatures: Vec<&String> = spans.iter().filter(|span| span.contains(':')).collect();
    let each = signatures.into_iter().map(|span| format!("`{span}`"));
    each.flat_map(|span| match fields_from_signature(&span, place) {
        Some(several) => several,
        None => field_from_item(&span, place).into_iter().collect(),
    })
    .collect()
}

/// Returns whether a text says that there are no parameters.
pub(super) fn says_no_parameters(text: &str) -> bool {
    let text = text.trim().trim_matches(['*', '_', '`', '.', ' ']).to_lowercase();
    matches!(
        text.as_str(),
        "none"
            | "no parameters"
            | "no parameters required"
            | "no arguments"
            | "no input"
            | "n/a"
            | "this tool takes no parameters"
            | "takes no parameters"
            | "no input parameters"
            | "none required"
            | "nothing"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn default(text: &str, of: &str, expected: &str) {
        let said = match default_in_prose(text, &types::parse(of).schema) {
            DefaultNote::Nothing => "nothing".to_owned(),
            DefaultNote::Value(value) => value,
            DefaultNote::Unclear(text) => format!("unclear: {text}"),
        };
        assert_eq!(said, expected, "{text}");
    }

    #[test]
    fn a_default_is_read_whole() {
        default("How sure (default: 0.5)", "number", "0.5");
        default("How sure. Default: 0.5.", "float", "0.5");
        default("At most (default: -1.5e3, never more)", "number", "-1.5e3");
        default(
            "Where (default: https://a.example/b;c?d=e,f).",
            "string",
            r#""https://a.example/b;c?d=e,f""#,
        );
        default("Which (default: v1.2.3)", "string", r#""v1.2.3""#);
        default("Which (default: 1.0)", "string", r#""1.0""#);
        default("Which (default: \"a, b. c\")", "string", r#""a, b. c""#);
        default("Which (default: 'a; b')", "string", r#""a; b""#);
        default("Which (default: `a, b`)", "string", r#""a, b""#);
        default("Which (default: f(x)).", "string", r#""f(x)""#);
        default("Which (default: [\"a\", \"b\"])", "array[string]", r#"["a","b"]"#);
        default("Whether. Defaults to True.", "bool", "true");
        default("How many. Defaults to 10 when left out.", "integer", "10");
        default("ÄÖ İ. Default: None.", "string", "null");
    }

    #[test]
    fn what_is_no_value_is_not_guessed() {
        default(
            "Where (default: the current directory)",
            "string",
            "unclear: the current directory",
        );
        default("How many. Defaults to a few.", "integer", "unclear: a few");
        default("How many (default: 1,000)", "integer", "unclear: 1,000");
        default("How many (default: 1.5)", "integer", "unclear: 1.5");
        default("Which (default: [a, b])", "array", "unclear: [a");
        default("Nothing is said.", "string", "nothing");
        default("It has none (default: -)", "string", "nothing");
    }

    #[track_caller]
    fn bullet(text: &str, expected: &str) {
        let fields = match fields_from_signature(text, Position::line(1)) {
            Some(fields) => fields,
            None => field_from_item(text, Position::line(1)).into_iter().collect(),
        };
        let told: Vec<String> = fields
            .iter()
            .map(|field| {
                let required = field.required == Some(Required::Yes);
                let default = field.default.as_deref().unwrap_or("-");
                format!("{} {} {required} {default}", field.path, types::write(&field.schema))
            })
            .collect();
        assert_eq!(told.join("; "), expected, "{text}");
    }

    #[test]
    fn a_bullet_is_a_parameter_in_many_forms() {
        bullet("`x` (string, required): It.", "x string true -");
        bullet("**x** (string): It.", "x string true -");
        bullet("x (integer, optional): It.", "x integer false -");
        bullet("`x` (Dict[str, int], optional): It.", "x object false -");
        bullet("`x` (`Dict[str, int]`, optional, default `{}`): It.", "x object false {}");
        bullet("`x` (string, the user's choice, optional)", "x string false -");
        bullet("`a: str, b: Dict[str, int] = {}`", "a string true -; b object false {}");
        bullet("`do_it(a: str, b: int = 1)`", "a string true -; b integer false 1");
        bullet("`a: Dict[str, int]`", "a object true -");
        bullet("Note (see below): nothing.", "");
        bullet("**Note**: nothing.", "");
    }

    #[test]
    fn an_address_is_no_signature() {
        assert_eq!(fields_from_inline_code("see `a: str, or more`", Position::line(1)).len(), 1);
        assert_eq!(
            json!(fields_from_inline_code("`a: str, b: int`", Position::line(1)).len()),
            json!(2)
        );
    }
}
