//! Splits a text into the pieces within which `cl100k_base` looks for tokens.
//!
//! The published rule is one regular expression with a look-ahead, tried from
//! the left at every place: a contraction; letters, with one character before
//! them that is neither letter, digit nor line break; up to three digits; signs,
//! with a space before and line breaks after them; white space up to its last
//! line break; white space, without its last character if something follows.

use unicode_general_category::{GeneralCategory, get_general_category};

/// Takes the next piece off the front of a text that is not empty.
pub(super) fn next(text: &str) -> (&str, &str) {
    text.split_at(length(text))
}

/// The length of the next piece.
fn length(text: &str) -> usize {
    let mut rest = text.chars();
    let Some(first) = rest.next() else { return 0 };
    let kind = Kind::of_char(first);
    let after = rest.as_str();
    let second = rest.next().map(Kind::of_char);
    if first == '\''
        && let Some(length) = contraction(after)
    {
        return 1 + length;
    }
    if kind == Kind::Letter {
        return run(text, Kind::Letter);
    }
    if kind == Kind::Digit {
        let digits = text.chars().take(3).take_while(|c| Kind::of_char(*c) == Kind::Digit);
        return digits.map(char::len_utf8).sum();
    }
    if kind != Kind::Break && second == Some(Kind::Letter) {
        return first.len_utf8() + run(after, Kind::Letter);
    }
    if kind == Kind::Sign || (first == ' ' && second == Some(Kind::Sign)) {
        let signs = if kind == Kind::Sign { 0 } else { 1 };
        let signs = signs + run(&text[signs..], Kind::Sign);
        return signs + run(&text[signs..], Kind::Break);
    }
    white_space(text)
}

/// The length of the piece of white space at the front.
fn white_space(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_whitespace()).unwrap_or(text.len());
    let space = &text[..end];
    if let Some(last) = space.rfind(['\r', '\n']) {
        return last + 1;
    }
    match space.char_indices().next_back() {
        Some((last, _)) if end < text.len() && last > 0 => last,
        _ => end,
    }
}

/// The length of what follows the apostrophe of `it's` or `they'll`.
fn contraction(after: &str) -> Option<usize> {
    let mut letters = after.chars();
    let first = letters.next()?;
    match (first.to_ascii_lowercase(), letters.next().map(|c| c.to_ascii_lowercase())) {
        // The long s is an s to a rule that ignores case.
        ('s' | 't' | 'm' | 'd' | 'ſ', _) => Some(first.len_utf8()),
        ('l', Some('l')) | ('v' | 'r', Some('e')) => Some(2),
        _ => None,
    }
}

/// The length of the run of characters of one kind at the front.
fn run(text: &str, kind: Kind) -> usize {
    text.find(|c| Kind::of_char(c) != kind).unwrap_or(text.len())
}

/// The kind of a character in the published rule.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Letter,
    Digit,
    Break,
    Space,
    Sign,
}

impl Kind {
    fn of_char(c: char) -> Kind {
        match c {
            'a'..='z' | 'A'..='Z' => Kind::Letter,
            '0'..='9' => Kind::Digit,
            '\r' | '\n' => Kind::Break,
            _ if c.is_whitespace() => Kind::Space,
            _ if c.is_ascii() => Kind::Sign,
            _ if c.is_numeric() => Kind::Digit,
            _ if is_letter(c) => Kind::Letter,
            _ => Kind::Sign,
        }
    }
}

/// Whether a character is a letter. Narrower than [`char::is_alphabetic`], which also
/// accepts vowel signs and circled letters.
fn is_letter(c: char) -> bool {
    use GeneralCategory as G;
    matches!(
        get_general_category(c),
        G::LowercaseLetter
            | G::UppercaseLetter
            | G::TitlecaseLetter
            | G::ModifierLetter
            | G::OtherLetter
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_where_the_published_rule_cuts_it() {
        for (text, expected) in [
            ("it's they'LLama 'vex 'ſo", "it|'s| they|'LL|ama| '|vex| '|ſo"),
            ("don'ſo x'vex 'tis", "don|'ſ|o| x|'ve|x| '|tis"),
            ("1234567 a1b", "123|456|7| a|1|b"),
            ("(word) !?\r\n\nnext", "(word|)| !?\r\n\n|next"),
            ("a   b \t\n  c  ", "a|  | b| \t\n| | c|  "),
            ("日本 Ⅷ ½ é_x", "日本| |Ⅷ| |½| é|_x"),
        ] {
            let (mut rest, mut cut) = (text, Vec::new());
            while !rest.is_empty() {
                let (piece, after) = next(rest);
                cut.push(piece);
                rest = after;
            }
            assert_eq!(cut.join("|"), expected, "{text}");
        }
    }
}
