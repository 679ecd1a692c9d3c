//! Translates the words of queries in other languages.
//!
//! Nearly all tools are named and described in English, but people ask in their own
//! language. So common words of a query are translated to English before it is parsed. A
//! catalog in another language loses nothing: words that it has stay beside their
//! translation.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::{table, words};

/// Words of other languages, folded, and their English translations.
struct Glossary {
    words: HashMap<String, &'static str>,
    /// The most characters of a word in a script without spaces.
    longest: usize,
}

static GLOSSARY: LazyLock<Glossary> =
    LazyLock::new(|| Glossary::parse(include_str!("glossary.txt")));

/// The most letters of an unknown ending, and the least letters before it.
const ENDING: usize = 3;
const LEFT: usize = 4;

/// Translates a query to English, as far as it is in another language. `has` says whether
/// the catalog has a word.
pub(crate) fn english<'a>(query: &'a str, has: &dyn Fn(&str) -> bool) -> Cow<'a, str> {
    let folded = words::fold(query).to_lowercase();
    let pieces: Vec<Piece<'_>> = Pieces { rest: &folded }.collect();
    let glossary = &*GLOSSARY;
    if !pieces.iter().any(|piece| glossary.is_foreign(piece)) {
        return Cow::Borrowed(query);
    }
    let mut english = String::with_capacity(query.len());
    for piece in pieces {
        match piece {
            Piece::Between(text) => english.push_str(text),
            Piece::Word(word) => glossary.translate_word(word, has, &mut english),
            Piece::Unspaced(run) => glossary.translate_run(run, has, &mut english),
        }
    }
    Cow::Owned(english)
}

impl Glossary {
    fn parse(text: &'static str) -> Glossary {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let lines = lines.filter_map(|line| line.split_once(':'));
        let words: HashMap<_, _> = lines
            .flat_map(|(english, foreign)| foreign.split_whitespace().map(move |w| (w, english)))
            .map(|(word, english)| (words::fold(word).to_lowercase(), english))
            .collect();
        let unspaced = words.keys().filter(|word| word.starts_with(words::is_unspaced));
        let longest = unspaced.map(|word| word.chars().count()).max().unwrap_or(0);
        Glossary { words, longest }
    }

    /// Whether a piece shows that the query is in another language.
    fn is_foreign(&self, piece: &Piece<'_>) -> bool {
        match piece {
            Piece::Between(_) => false,
            Piece::Word(word) => self.words.get(*word).is_some_and(|english| !english.is_empty()),
            Piece::Unspaced(run) => {
                run.char_indices().any(|(at, _)| self.longest_word(&run[at..]).is_some())
            }
        }
    }

    /// Translates one word.
    fn translate_word(&self, word: &str, has: &dyn Fn(&str) -> bool, into: &mut String) {
        let english = self.words.get(word).copied().or_else(|| self.without_ending(word, has));
        match english {
            Some("") => {}
            Some(english) if has(word) => into.extend([word, " ", english]),
            Some(english) => into.push_str(english),
            None => into.push_str(word),
        }
    }

    /// The translation of a word without its ending. Not for words that are known as they
    /// are.
    fn without_ending(&self, word: &str, has: &dyn Fn(&str) -> bool) -> Option<&'static str> {
        if has(word) || table::row("", word).is_some() {
            return None;
        }
        let ends = word.char_indices().rev().map(|(end, _)| end).take(ENDING);
        let mut stems = ends.map(|end| &word[..end]).filter(|stem| LEFT <= stem.chars().count());
        stems.find_map(|stem| self.words.get(stem).copied())
    }

    /// Translates a run of a script without spaces: the longest known words, one after the
    /// other. Text between them is dropped as endings and particles, unless the catalog
    /// has it.
    fn translate_run(&self, run: &str, has: &dyn Fn(&str) -> bool, into: &mut String) {
        let (mut rest, mut between) = (run, run);
        while let Some(c) = rest.chars().next() {
            match self.longest_word(rest) {
                Some((length, english)) => {
                    let word = &rest[..length];
                    keep_if_known(&between[..between.len() - rest.len()], has, into);
                    keep_if_known(word, has, into);
                    into.extend([" ", english, " "]);
                    rest = &rest[length..];
                    between = rest;
                }
                None => rest = &rest[c.len_utf8()..],
            }
        }
        keep_if_known(between, has, into);
    }

    /// The longest known word at the start of a text in a script without spaces: its length
    /// and its translation.
    fn longest_word(&self, text: &str) -> Option<(usize, &'static str)> {
        let ends = text.char_indices().map(|(at, c)| at + c.len_utf8()).take(self.longest);
        let ends: Vec<usize> = ends.collect();
        ends.into_iter().rev().find_map(|end| Some((end, *self.words.get(&text[..end])?)))
    }
}

/// Adds a text of which the catalog has a word.
fn keep_if_known(text: &str, has: &dyn Fn(&str) -> bool, into: &mut String) {
    let mut is_had = false;
    words::each(text, |word, _| is_had |= has(word));
    if is_had {
        into.push_str(text);
    }
}

/// A part of a text.
#[derive(Clone, Copy)]
enum Piece<'a> {
    Word(&'a str),
    /// Words of a script without spaces.
    Unspaced(&'a str),
    Between(&'a str),
}

struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let script = Script::of_char(self.rest.chars().next()?);
        let end = self.rest.find(|c| Script::of_char(c) != script).unwrap_or(self.rest.len());
        let (piece, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(match script {
            Script::Spaced => Piece::Word(piece),
            Script::Unspaced => Piece::Unspaced(piece),
            Script::None => Piece::Between(piece),
        })
    }
}

/// Whether a script separates words by spaces; `None` for characters between words.
#[derive(PartialEq, Eq)]
enum Script {
    Spaced,
    Unspaced,
    None,
}

impl Script {
    fn of_char(c: char) -> Script {
        match c {
            c if words::is_unspaced(c) => Script::Unspaced,
            c if c.is_alphabetic() => Script::Spaced,
            _ => Script::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, expected: &str) {
        let english = english(query, &|word| word == "kunde");
        let english: Vec<&str> = english.split_whitespace().collect();
        assert_eq!(english.join(" "), expected);
    }

    #[test]
    fn a_wish_in_another_language_is_put_into_english() {
        check("lis den Inhalt der Datei notes.txt", "read content file notes.txt");
        check("Dateien auflisten", "file list");
        check("supprime les fichiers du répertoire", "delete file repertoire");
        check("Muéstrame las tablas de la base", "show table base");
        check("прочитать файл", "read file");
        check("ファイルを読む", "file read");
        check("请把这个文件删除一下", "file delete");
        check("파일을 읽어줘", "file read");
    }

    #[test]
    fn endings_that_are_not_listed_are_forgiven() {
        check("zeige die Kalendereinträge", "show Kalendereintrage".to_lowercase().as_str());
        check("покажи файлами", "show file");
    }

    #[test]
    fn english_stays_as_it_is() {
        for query in ["read a file", "What was the die cast of?", "list_pull_requests", "", "🎉"]
        {
            assert!(matches!(english(query, &|_| false), Cow::Borrowed(_)), "{query}");
        }
    }

    #[test]
    fn what_the_catalog_has_stays_beside_its_translation() {
        check("suche Kunde", "search kunde customer");
    }

    #[test]
    fn every_line_has_words_and_no_word_means_two_things() {
        let text = include_str!("glossary.txt");
        let mut seen = HashMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (english, foreign) = line.split_once(':').expect(line);
            assert!(foreign.split_whitespace().next().is_some(), "{line}");
            for word in foreign.split_whitespace() {
                let before = seen.insert(words::fold(word).to_lowercase(), english);
                assert!(before.is_none_or(|before| before == english), "{word}: {before:?}");
            }
        }
    }
}
