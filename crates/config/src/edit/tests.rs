//! Files that people wrote, changed by a command.

use proptest::prelude::*;

use super::*;

const FILE: &str = r#"# My servers.
# Do not touch.

[gate]
limit = 10000 # characters

# The files of this project.
[[upstream]]
label = "files"   # mine
command = "npx"
args = [
  "-y", # yes
  "server",
]

[upstream.env]
# what it is for
KEY = "${env:KEY}"

# Mail, one day.
[[upstream]]
label = "mail"
url = "https://mail.example/mcp"

[builtin]
tools = true
"#;

fn raw(label: &str) -> raw_upstream::Raw {
    raw_upstream::Raw {
        label: Some(label.to_owned()),
        command: Some("run".to_owned()),
        env: [("A".to_owned(), "b".to_owned())].into(),
        ..raw_upstream::Raw::default()
    }
}

#[track_caller]
fn check(text: &str, edit: &Edit<'_>) -> String {
    apply("gatelet.toml", text, edit).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn what_is_added_stands_at_the_end_and_the_rest_stays_to_the_letter() {
    let after = check(FILE, &Edit::Add(&raw("new")));
    assert!(after.starts_with(FILE), "{after}");
    let text = "upstream = [ { label = \"a\", command = \"x\" } ] # all\n";
    let after = check(text, &Edit::Add(&raw("new")));
    assert!(after.contains("# all") && after.contains("label = \"new\""), "{after}");
    for text in ["", "# only a comment", "[gate]"] {
        check(text, &Edit::Add(&raw("new")));
    }
}

#[test]
fn what_is_removed_takes_its_own_comment_along_and_no_other() {
    let after = check(FILE, &Edit::Remove("Files"));
    assert_eq!(
        after,
        "# My servers.\n# Do not touch.\n\n[gate]\nlimit = 10000 # characters\n\n# Mail, one day.\n\
         [[upstream]]\nlabel = \"mail\"\nurl = \"https://mail.example/mcp\"\n\n[builtin]\ntools = true\n"
    );
    let after = check(&after, &Edit::Remove("mail"));
    assert!(after.starts_with("# My servers.") && after.ends_with("tools = true\n"), "{after}");
    let headed = "# My file.\n[[upstream]]\nlabel = \"a\"\ncommand = \"x\"\n";
    assert_eq!(check(headed, &Edit::Remove("a")), "# My file.\n");
}

#[test]
fn a_key_is_set_and_taken_out_where_it_stands() {
    let on = Some(serde_json::Value::Bool(true));
    let off = check(FILE, &Edit::Set { label: "files", key: "disabled", value: on });
    assert!(off.contains("label = \"files\"   # mine") && off.contains("disabled = true"), "{off}");
    let back = check(&off, &Edit::Set { label: "files", key: "disabled", value: None });
    assert_eq!(back, FILE);
    let args = Some(serde_json::json!(["-y", "server@2"]));
    let updated = check(FILE, &Edit::Set { label: "files", key: "args", value: args });
    assert!(updated.contains(r#"args = ["-y", "server@2"]"#), "{updated}");
}

#[test]
fn a_file_that_is_not_ours_or_not_sound_is_left_alone() {
    let refused = |file: &str, text: &str, edit: &Edit<'_>| apply(file, text, edit).unwrap_err();
    let json =
        refused("mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#, &Edit::Remove("a"));
    assert!(matches!(json, EditError::Foreign(_)) && json.to_string().contains("gatelet import"));
    assert!(matches!(refused("g.toml", "[gate", &Edit::Remove("a")), EditError::Wrong(_)));
    assert!(matches!(refused("g.toml", FILE, &Edit::Add(&raw("FILES"))), EditError::Taken(_)));
    let unknown = refused("g.toml", FILE, &Edit::Remove("fils")).to_string();
    assert!(unknown.contains("files, mail"), "{unknown}");
}

/// Some way to write an entry, with comments where they may stand.
fn entry(label: &str, style: u8) -> String {
    match style % 4 {
        0 => format!("[[upstream]]\nlabel = {label:?}\ncommand = \"x\"\n"),
        1 => format!("# {label}\n[[upstream]] # here\ncommand = \"x\"\nlabel = '{label}' # it\n\n"),
        2 => format!(
            "[[upstream]]\nlabel = {label:?}\ncommand = \"x\"\n  [upstream.env]\n  A = '''\n[[upstream]]\n'''\n\n"
        ),
        _ => format!(
            "\n\n[[upstream]]\nenv = {{ B = \"# no\" }}\nlabel = {label:?}\ncommand = \"x\"\n# below\n"
        ),
    }
}

proptest! {
    #[test]
    fn adding_and_removing_is_nothing(styles in proptest::collection::vec(any::<u8>(), 0..5), pick in any::<u8>()) {
        let text: String = styles.iter().enumerate().map(|(at, style)| entry(&format!("u{at}"), *style)).collect();
        let added = check(&text, &Edit::Add(&raw("new")));
        let back = check(&added, &Edit::Remove("new"));
        prop_assert_eq!(back.trim_end(), text.trim_end());
        if !styles.is_empty() {
            let label = format!("u{}", usize::from(pick) % styles.len());
            let less = check(&text, &Edit::Remove(&label));
            for at in 0..styles.len() {
                let other = format!("u{at}");
                prop_assert_eq!(find("g.toml", &less, &other).is_ok(), other != label);
            }
            let off = check(&text, &Edit::Set { label: &label, key: "disabled", value: Some(true.into()) });
            let on = check(&off, &Edit::Set { label: &label, key: "disabled", value: None });
            prop_assert_eq!(on, text);
        }
    }
}
