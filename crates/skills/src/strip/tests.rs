use super::{executable, scripts};

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(executable(text).0, expected, "{text}");
}

#[test]
fn a_mention_of_a_script_takes_nothing_with_it() {
    for text in [
        "Run the check on `<script_path>` first.\n\nThen go on.",
        "Run it on <script_path> or <scripts> or <script-name>.\n\nThen go on.",
        "Never write `<script>` there.\n\nThen go on.",
        "Both `<script>` and ``</script>`` are words.\n\nThen go on.",
        "```html-ish\n```\n\nThen go on.",
        "```xml\n<script>a</script>\n```\n\nThen go on.",
        "- a\n\n  ```xml\n  <script>a</script>\n  ```\n\nThen go on.",
        "<!-- About this. -->\nIt has `x`.\n\nNever `<script>`, never `</script>`.\n\nThen go on.",
    ] {
        let told = executable(text).0;
        assert!(told.ends_with("Then go on."), "{told}");
        assert_eq!(told.matches("<script").count(), text.matches("<script").count(), "{told}");
    }
}

#[test]
fn a_script_goes_with_all_that_is_in_it() {
    check("a <script>x()</script> b", "a [script omitted] b");
    check("a <script>x()</script > b", "a [script omitted] b");
    check("a <SCRIPT type='m'>x()</Script\t> b", "a [script omitted] b");
    check("<script\nsrc='x'>\n\nx()\n\n</script\n>\nb", "[script omitted]\nb");
    check("a <script/src=x>x()</script foo> b", "a [script omitted] b");
    check(
        "a <script>x()</script> b <script>y()</script> c",
        "a [script omitted] b [script omitted] c",
    );
    check("<scr<script>a</script>ipt>x()</script>", "<scr[script omitted]ipt>x()</script>");
}

#[test]
fn a_script_takes_no_mention_of_one_on_its_line_with_it() {
    check(
        "Not <script>x()</script> but `<script>` and `</script>`.\n\nThen `<script>`.",
        "Not [script omitted] but `<script>` and `</script>`.\n\nThen `<script>`.",
    );
    check(
        "Both `<script>` and <script src='a'>x()</script >, and `<script>`.",
        "Both `<script>` and [script omitted], and `<script>`.",
    );
    check("<script>x()</script> is no `<script>`.", "[script omitted] is no `<script>`.");
    check("`<script> <script>x()</script> a", "`[script omitted] a");
}

#[test]
fn a_script_that_is_never_closed_takes_its_paragraph_at_most() {
    check("<script>\nx()\n\nThen go on.", "[script omitted]\n\nThen go on.");
    check("a\n<script src=x\n\nThen go on.", "a\n[script omitted]\n\nThen go on.");
    check(
        "Never use <script> there.\n\nThen go on.",
        "Never use [script omitted] there.\n\nThen go on.",
    );
    check("ends with <script", "ends with [script omitted]");
}

/// Each of these is a script to some reader, though it looks like code.
#[test]
fn no_odd_back_tick_hides_a_script() {
    for text in [
        "a\\` <script>x()</script> `b",
        "`a\nb` <script>x()</script> `c`",
        "# a ` b\ntext <script>x()</script> `",
        "# ` b\nc ` d\n` <script>x()</script> `",
        "`a\n<script>x()</script>`",
        "<a title=\"`\"><script>x()</script>`",
        "<a title=\">`\"><script>x()</script>`",
        "<!--\n\n` --> <script>x()</script> `",
        "<pre>\n\n` <script>x()</script> `",
        "<div>\n```\n<script>x()</script>\n```",
        "    ```\n<script>x()</script>\n    ```",
        "- a\n\n  ```\n<script>x()</script>\n  ```",
        "1. ```\n   a\n   ```\n<script>x()</script>\n```",
        "* ```\n  a\n  ```\n<script>x()</script>\n```",
        "`\u{a0}\n\u{a0}\nb` <script>x()</script> `c`",
        "| ` | <script>x()</script> | ` |",
        "`a\r<script>x()</script>`",
        "` `` <script>x()</script> `` a",
        "<a`b@c.d> <script>x()</script> `",
        "<script>`</script> <script>x()</script> `",
        "<script a=`>y()</script> <script>x()</script> `",
        "` <script>y()</script>\n` <script>x()</script> `",
        "<script>y()</script>`\n<script>x()</script>`",
    ] {
        let told = executable(text).0;
        assert!(!told.contains("<script") && !told.contains("x()"), "{text:?} gave {told:?}");
    }
}

#[test]
fn no_odd_fence_hides_a_script() {
    for text in [
        "```\n> ```\n```\n<script>x()</script>\n```",
        "```\na\n```\u{a0}\n```\n<script>x()</script>\n```",
        "```\na\n ```\n<script>x()</script>\n```",
    ] {
        assert!(!scripts::omit(text).0.contains("<script"), "{text:?}");
    }
}

#[test]
fn a_page_of_open_tags_is_read_in_one_go() {
    let (told, omitted) = executable(&"a <script `".repeat(50_000));
    assert_eq!(omitted, 50_000);
    assert!(!told.contains("<script"));
}
