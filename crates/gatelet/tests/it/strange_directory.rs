//! A configuration that merely lies where gatelet is run.

use std::process::Stdio;

use crate::kit::{Home, shell};

/// Leaves a mark when it is read, and another one when its upstream is started.
const HOSTILE: &str = "[[upstream]]\nlabel = \"evil\"\ncommand = \"touch\"\nargs = [\"started\"]\n\
                       env = { X = \"${cmd:touch read}\" }\n";

/// Runs a command in a directory below home.
fn run_in(home: &Home, directory: &str, words: &[&str]) -> (i32, String) {
    let mut command = home.gatelet();
    command.current_dir(home.path().join(directory)).args(words);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_configuration_in_a_directory_that_nobody_trusts_is_not_even_read() {
    let home = Home::new();
    home.write("cloned/gatelet.toml", HOSTILE);
    let is_marked =
        || ["read", "started"].iter().any(|mark| home.path().join("cloned").join(mark).exists());
    for words in [
        &["config", "check"][..],
        &["serve"],
        &["connect"],
        &["help"],
        &["call", "evil.x"],
        &["upstreams"],
        &["status"],
        &["tokens"],
        &["bench"],
        &["doctor"],
        &["add", "x", "--yes", "--", "true"],
        &["enable", "evil"],
        &["trust", "list"],
        &["login", "evil"],
        &["install", "cursor", "--yes"],
        &["up"],
    ] {
        let (code, said) = run_in(&home, "cloned", words);
        assert_eq!(code, 2, "{words:?}: {said}");
        assert!(said.contains("is not trusted") && said.contains("gatelet config trust"), "{said}");
        assert!(!is_marked(), "{words:?}");
    }
    assert_eq!(run_in(&home, "cloned", &["config", "path"]).0, 0, "this reads nothing");
    assert!(!is_marked());
}

#[test]
fn a_directory_is_trusted_once_and_no_other_with_it() {
    let home = Home::new();
    for directory in ["mine", "mine/below", "other"] {
        home.write(&format!("{directory}/gatelet.toml"), "[builtin]\ntools = true\n");
    }
    let check = |directory: &str| run_in(&home, directory, &["config", "check"]).0;
    assert_eq!(["mine", "mine/below", "other"].map(check), [2, 2, 2]);
    assert_eq!(run_in(&home, "mine", &["config", "trust"]).0, 0);
    assert_eq!(["mine", "mine/below", "other"].map(check), [0, 2, 2]);
    home.write("mine/gatelet.toml", "[gate]\nlimit = 5000\n");
    assert_eq!(check("mine"), 0, "its owner may change it");
    std::os::unix::fs::symlink(home.path().join("mine"), home.path().join("link")).unwrap();
    assert_eq!(check("link"), 0, "it is the same directory");
    let named = ["--config", "gatelet.toml", "config", "check"];
    assert_eq!(run_in(&home, "other", &named).0, 0, "who names a file means it");
}

#[test]
fn what_the_user_made_or_keeps_at_home_is_trusted() {
    let home = Home::with("[builtin]\ntools = true\n");
    assert_eq!(shell(&home, &["config", "check"]).code, 0);
    std::fs::create_dir(home.path().join("new")).unwrap();
    assert_eq!(run_in(&home, "new", &["init"]).0, 0);
    let (code, said) = run_in(&home, "new", &["config", "check"]);
    assert_eq!(code, 0, "{said}");
}
