//! Wildcards: `*` stands for any text and `?` for one character.

use std::str::Chars;

/// Whether `text` matches `pattern`. Linear in the text for each `*`.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    matches(pattern, text, |a, b| a == b)
}

/// [`glob`] without regard to upper and lower case.
pub(crate) fn glob_ignoring_case(pattern: &str, text: &str) -> bool {
    matches(pattern, text, |a, b| {
        a.eq_ignore_ascii_case(&b) || (!a.is_ascii() && a.to_lowercase().eq(b.to_lowercase()))
    })
}

fn matches(pattern: &str, text: &str, is_same: impl Fn(char, char) -> bool) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // What follows the last star, and the text behind what the star has swallowed.
    let mut star: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        let (mut rest, mut behind) = (pattern.clone(), text.clone());
        match (rest.next(), behind.next()) {
            (Some('*'), _) => {
                star = Some((rest.clone(), text.clone()));
                pattern = rest;
            }
            (Some(a), Some(b)) if a == '?' || is_same(a, b) => {
                pattern = rest;
                text = behind;
            }
            (None, None) => return true,
            (Some(_), None) => return false,
            (_, Some(_)) => {
                // Let the last star swallow one character more.
                let Some((after_star, swallowed)) = &mut star else { return false };
                swallowed.next();
                pattern = after_star.clone();
                text = swallowed.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text_and_a_question_mark_one_character() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("*", "", true),
            ("a*", "a", true),
            ("*.k*y", "a.kk.key", true),
            ("*.key", "a.key.", false),
            ("?", "é", true),
            ("?", "", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("**", "x", true),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
        assert!(glob_ignoring_case("SRV/É*", "srv/éa") && !glob("SRV", "srv"));
    }
}
