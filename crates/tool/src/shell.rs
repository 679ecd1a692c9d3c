//! Quotes words for shell commands that gatelet recommends.
//!
//! A person who reads "run `gatelet login wiki --scope …`" pastes it into a shell.
//! Text of an upstream, a token or a manifest might do harm there, so it becomes
//! part of a command only if no shell can take it for anything but text.

/// The longest text that is put into a command.
const MAX_CHARS: usize = 200;

/// Quotes the text as one word of a command; `None` if it is empty, too long,
/// looks like an option or contains anything but ASCII letters, digits, spaces and
/// `:/._-+=@,`.
pub fn quoted(text: &str) -> Option<String> {
    is_harmless(text, true).then(|| format!("\"{text}\""))
}

/// Does what [`quoted`] does, but adds quotes only if the text has spaces.
pub fn word(text: &str) -> Option<String> {
    if is_harmless(text, false) { Some(text.to_owned()) } else { quoted(text) }
}

fn is_harmless(text: &str, allow_spaces: bool) -> bool {
    let plain = |c: char| {
        c.is_ascii_alphanumeric() || ":/._-+=@,".contains(c) || (allow_spaces && c == ' ')
    };
    !text.is_empty() && text.len() <= MAX_CHARS && !text.starts_with('-') && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_words_stand_as_they_are() {
        assert_eq!(word("wiki").as_deref(), Some("wiki"));
        assert_eq!(word("key:ann").as_deref(), Some("key:ann"));
        assert_eq!(word("two words").as_deref(), Some("\"two words\""));
        assert_eq!(quoted("read write:all").as_deref(), Some("\"read write:all\""));
    }

    #[test]
    fn what_a_shell_could_take_for_more_than_text_stands_nowhere() {
        for text in [
            "$(curl x|sh)",
            "`id`",
            "a\"b",
            "a'b",
            "a;b",
            "a&b",
            "a|b",
            "a>b",
            "a<b",
            "a\nb",
            "a\\b",
            "!x",
            "~root",
            "*",
            "{a,b}",
            "--as",
            "#",
            "a\u{202e}b",
            "ä",
            "",
        ] {
            assert_eq!(word(text), None, "{text:?}");
            assert_eq!(quoted(text), None, "{text:?}");
        }
        assert_eq!(quoted(&"x".repeat(MAX_CHARS + 1)), None);
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_one_word_of_harmless_characters(text in any::<String>()) {
            for words in [quoted(&text), word(&text)].into_iter().flatten() {
                let bare = words.trim_matches('"');
                prop_assert_eq!(bare, text.as_str());
                prop_assert!(!bare.contains(['$', '`', '"', '\'', '\\', '\n', ';', '&', '|', '!']));
            }
        }
    }
}
