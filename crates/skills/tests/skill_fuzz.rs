//! Whatever a `SKILL.md` holds, reading it ends soon, in bounded memory, with a
//! skill that can be listed, filled in and written again.

use proptest::prelude::*;
use skills::{File, Library, Reader, Reference, export};

struct Nobody;

impl Reader for Nobody {
    fn signature(&self, _: &Reference) -> Option<String> {
        None
    }
}

/// Whether the name of a tag ends before this: `<script<` is no script.
fn ends_name(c: char) -> bool {
    c.is_ascii_whitespace() || matches!(c, '>' | '/' | '\u{b}')
}

/// Whether marks of code stand on both sides: only there may a script be named.
/// Which marks make code is tested where they are read.
fn is_between_marks(text: &str, at: usize) -> bool {
    let (before, after) = text.split_at(at);
    ['`', '~'].iter().any(|mark| before.contains(*mark) && after.contains(*mark))
}

/// Reads a text and does everything with it that can be done.
fn use_it(text: String) -> Library {
    let length = text.len();
    let file = File { path: "a/b/SKILL.md".to_owned(), text };
    let (library, findings) = Library::parse(&[file]);
    assert!(findings.len() < 100, "{} findings", findings.len());
    let index = library.index("", &Nobody).expect("the root is always there");
    assert!(index.len() < 4_000, "an index of {} bytes", index.len());
    for skill in library.skills() {
        let value = tool::Json::encode("value");
        if let Ok(told) = skill.fill(&[("a", &value), ("name", &value)]) {
            assert!(told.len() <= 2 * length + 4_000, "{} of {length}", told.len());
            let lower = told.to_lowercase();
            let tags = lower.match_indices("<script").map(|(at, _)| at);
            let tags = tags.filter(|at| !lower[at + 7..].starts_with(|c: char| !ends_name(c)));
            let bare = tags.filter(|at| !is_between_marks(&lower, *at)).count();
            assert_eq!(bare, 0, "{told}");
        }
        let written = export::export(skill).expect("the text is here");
        // What was nearly too large may be too large with notes in it.
        let expected = usize::from(written.text.len() <= 1 << 20);
        let path = format!("{}/SKILL.md", written.directory);
        let (again, _) = Library::parse(&[File { path, text: written.text }]);
        assert_eq!(again.skills().len(), expected);
    }
    library
}

/// Pieces that mean something to a reader of skills, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("---\n".to_owned()),
        Just("name: create-order\n".to_owned()),
        Just("description: a: b\n".to_owned()),
        Just("metadata:\n  version: 1\n  functions: a.b c\n".to_owned()),
        Just("x: &a [*a, *a]\n".to_owned()),
        Just("? - [{".to_owned()),
        Just("```bash\n".to_owned()),
        Just("~~~\n".to_owned()),
        Just("> - ```py\n".to_owned()),
        Just("{{ name }}".to_owned()),
        Just("{% for a in a %}".to_owned()),
        Just("{% endfor %}{% if a %}".to_owned()),
        Just("{% raw %}{{ ".to_owned()),
        Just("{% set a = a ~ a %}".to_owned()),
        Just("<script>".to_owned()),
        Just("</SCRIPT>!`date`](scripts/x)".to_owned()),
        Just("data:text/html,x call(namespace=\"a\", function=\"b\")".to_owned()),
        Just("\u{feff}\r\n\0\u{202e}ß漢".to_owned()),
        any::<String>(),
        "[-`~{}%#:\"'\\[\\]& *!|>\n]{0,40}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read(text in pieces()) {
        use_it(text);
    }

    #[test]
    fn any_text_with_a_head_is_read(head in pieces(), body in pieces()) {
        let library = use_it(format!("---\nname: s\n{head}\n---\n{body}"));
        prop_assert_eq!(library.skills().len(), 1);
    }
}

#[test]
fn hostile_files_are_read_in_bounded_time_and_memory() {
    let mib = 1 << 20;
    let head = |yaml: &str| format!("---\nname: s\ndescription: d\n{yaml}\n---\nbody");
    let fill = |piece: &str| piece.repeat((mib - 100) / piece.len());
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let all = format!("*a{},", level - 1).repeat(9);
        bomb.push_str(&format!("a{level}: &a{level} [{all}]\n"));
    }
    let texts = [
        head(&bomb),
        head(&format!("x: {}", "[".repeat(60_000))),
        head(&format!("x: {}", "{a: ".repeat(10_000))),
        head(&"k: v\n".repeat(10_000)),
        format!("---\n{}\n---\nbody", fill("a: b\n")),
        fill("---\n"),
        fill("```\n"),
        fill("<script"),
        fill("{{"),
        fill("{{ a }}"),
        fill("{{ a }}\n"),
        format!("{}{}", "{{ a }}\n".repeat(15_000), "{% if a %}".repeat(1_900)),
        fill("{% if a %}"),
        fill("{% for a in b %}"),
        fill("{% raw %}"),
        fill("](data:"),
        fill("call("),
        fill("call(function=\"a\" "),
        fill("> - "),
        fill("ß"),
        format!("{{{{ {} }}}}", "(".repeat(490)),
        format!("{{{{ {} }}}}", "-".repeat(490)),
        fill("x").repeat(2),
    ];
    for text in texts {
        use_it(text);
    }
}
