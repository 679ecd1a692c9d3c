use std::sync::Arc;

use serde_json::json;
use testkit::{listing, tool};

use super::*;
use crate::Source;

fn catalog() -> Catalog {
    let source = |label: &str, tools: &[(&str, &str)]| {
        let read = |(name, words): &(&str, &str)| tool(name, words, &json!({}));
        Source::new(label, Arc::new(listing(tools.iter().map(read).collect())))
    };
    let files = [
        ("read_path", "Reads the contents of a file."),
        ("remove_path", "Deletes a file or an empty directory."),
        ("copy_path", "Copies a file to another place."),
        ("hidden_delete_file", "Deletes a file, for administrators."),
    ];
    let tracker =
        [("create_issue", "Opens an issue in a project."), ("close_issue", "Closes an issue.")];
    let mail = [("deliver", "Sends an email to somebody."), ("inbox", "Lists received messages.")];
    let sources = vec![source("files", &files), source("tracker", &tracker), source("mail", &mail)];
    Catalog::build(sources).0
}

#[track_caller]
fn check(namespace: &str, function: &str, first: &str) {
    let catalog = catalog();
    let keep = |slot: Slot| !catalog.function(slot).name.starts_with("hidden");
    let near =
        catalog.nearest_functions(namespace, function, 3, GuessBy::SpellingAndMeaning, &keep);
    let written = |slot: &Slot| format!("{}.{}", catalog.path(*slot), catalog.function(*slot).name);
    let near: Vec<String> = near.iter().map(written).collect();
    assert_eq!(near.first().map(String::as_str), Some(first), "{near:?}");
    assert!(near.len() <= 3 && near.iter().all(|name| !name.contains("hidden")), "{near:?}");
}

#[test]
fn a_slip_of_the_pen_is_put_right() {
    check("files", "raed_path", "files.read_path");
    check("files", "ReadPath2", "files.read_path");
    check("tracker", "creat_isue", "tracker.create_issue");
}

#[test]
fn another_word_for_the_same_is_understood() {
    check("files", "delete_file", "files.remove_path");
    check("mail", "send_email", "mail.deliver");
    check("tracker", "open_ticket", "tracker.create_issue");
}

#[test]
fn the_right_function_in_the_wrong_namespace_is_found() {
    check("files", "create_issue", "tracker.create_issue");
    check("nowhere", "send_email", "mail.deliver");
    check("", "remove_path", "files.remove_path");
}

#[test]
fn a_name_that_means_nothing_gets_no_guess() {
    let near =
        catalog().nearest_functions("files", "qqqqqq", 3, GuessBy::SpellingAndMeaning, &|_| true);
    assert_eq!(near, []);
}

#[track_caller]
fn check_namespace(path: &str, first: Option<&str>) {
    let catalog = catalog();
    let near = catalog.nearest_namespaces(path, 3, GuessBy::SpellingAndMeaning, &|_| true);
    assert_eq!(near.first().map(|namespace| namespace.path.as_str()), first, "{path}");
}

#[test]
fn a_namespace_is_guessed_by_spelling_and_by_what_is_in_it() {
    check_namespace("trackr", Some("tracker"));
    check_namespace("email", Some("mail"));
    check_namespace("issues", Some("tracker"));
    check_namespace("filesystem", Some("files"));
    check_namespace("qqqqqq", None);
}

#[test]
fn what_a_caller_may_not_see_names_no_namespace() {
    let catalog = catalog();
    let keep = |slot: Slot| catalog.path(slot) != "tracker";
    let near = catalog.nearest_namespaces("issues", 3, GuessBy::SpellingAndMeaning, &keep);
    assert!(near.iter().all(|namespace| namespace.path != "tracker"));
}
