use super::*;

fn call(number: u64, function: &str, arguments: &str) -> Call {
    let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
    Call { number, path: vec!["shop".to_owned(), function.to_owned()], arguments }
}

fn journal() -> Journal {
    let inputs = RawValue::from_string("{}".to_owned()).unwrap();
    let mut journal = Journal::new("return 1".to_owned(), inputs);
    let answer = |text: &str| Ok(RawValue::from_string(text.to_owned()).unwrap());
    for (number, text) in [(1, "1"), (0, "0")] {
        let made = call(number, "get", "{}");
        journal.begin(&made);
        journal.note(&made, &answer(text));
    }
    journal.begin(&call(2, "create", "{}"));
    journal
}

/// As it is read after a restart, or on another replica.
fn reread(journal: &Journal) -> Journal {
    let text = serde_json::to_string(journal).unwrap();
    serde_json::from_str::<Journal>(&text).unwrap().indexed()
}

#[test]
fn answers_are_given_again_in_the_order_in_which_they_came() {
    let journal = reread(&journal());
    let given: Vec<u64> = (0..2).map(|at| journal.answer(at).unwrap().number).collect();
    assert_eq!(given, [1, 0]);
    assert!(journal.answer(2).is_none());
}

#[test]
fn a_call_is_known_by_its_number_function_and_arguments() {
    for journal in [journal(), reread(&journal())] {
        assert!(matches!(journal.known(&call(0, "get", "{}")), Ok(Known::Answered)));
        assert!(matches!(journal.known(&call(2, "create", "{}")), Ok(Known::Begun)));
        assert!(matches!(journal.known(&call(3, "create", "{}")), Ok(Known::New)));
        for other in [call(0, "get", "{\"a\":1}"), call(1, "list", "{}"), call(2, "create", "[]")] {
            let why = journal.known(&other).expect_err("it is another call");
            assert_eq!(why.number, other.number);
        }
    }
}
