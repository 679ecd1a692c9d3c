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
        journal.record_start(&made);
        journal.record_answer(&made, &answer(text));
    }
    journal.record_start(&call(2, "create", "{}"));
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
        assert!(matches!(journal.lookup(&call(0, "get", "{}")), Ok(CallState::Answered)));
        assert!(matches!(journal.lookup(&call(2, "create", "{}")), Ok(CallState::Begun)));
        assert!(matches!(journal.lookup(&call(3, "create", "{}")), Ok(CallState::New)));
        for other in [call(0, "get", "{\"a\":1}"), call(1, "list", "{}"), call(2, "create", "[]")] {
            let why = journal.lookup(&other).expect_err("it is another call");
            assert_eq!(why.number, other.number);
        }
    }
}

/// A journal that was stored whole when it had nothing, and the lines since.
fn logged() -> (Journal, Vec<u8>) {
    let mut journal =
        Journal::new("return 1".to_owned(), RawValue::from_string("{}".to_owned()).unwrap());
    let whole = reread(&journal);
    journal.start_lines();
    let pretty = RawValue::from_string("{\n  \"text\": \"two\\nlines\"\n}".to_owned()).unwrap();
    journal.record_start(&call(0, "create", "{}"));
    journal.record_answer(&call(0, "create", "{}"), &Ok(pretty));
    for number in [1, 2] {
        journal.record_start(&call(number, "create", "{}"));
    }
    journal.forget(&call(2, "create", "{}"));
    journal.record_stop(false, Some(2), BTreeMap::from([(2, None)]));
    (whole, journal.take_lines())
}

#[test]
fn a_journal_is_the_same_after_its_lines_were_added() {
    let (whole, lines) = logged();
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 6, "a line each");
    let journal = whole.with_lines(&lines).unwrap();
    assert!(matches!(journal.lookup(&call(0, "create", "{}")), Ok(CallState::Answered)));
    assert!(matches!(journal.lookup(&call(1, "create", "{}")), Ok(CallState::Begun)));
    assert!(matches!(journal.lookup(&call(2, "create", "{}")), Ok(CallState::New)));
    assert_eq!((journal.waiting, journal.questions.len(), journal.finished), (Some(2), 1, false));
    let answer: serde_json::Value =
        serde_json::from_str(journal.answer(0).unwrap().result.unwrap().get()).unwrap();
    assert_eq!(answer["text"], "two\nlines");
}

#[test]
fn a_line_that_was_cut_is_left_out_and_one_that_is_damaged_is_told() {
    let (whole, lines) = logged();
    let cut = &lines[..lines.len() - 9];
    assert_eq!(whole.clone().with_lines(cut).unwrap().waiting, None, "its last line is not there");
    let mut next = whole.clone().with_lines(cut).unwrap();
    next.start_lines();
    next.record_resume(7);
    next.record_start(&call(3, "create", "{}"));
    let went_on = [cut, b"\n", &next.take_lines()].concat();
    let went_on = whole.clone().with_lines(&went_on).unwrap();
    assert!(matches!(went_on.lookup(&call(3, "create", "{}")), Ok(CallState::Begun)));
    let damaged = [b"{\"begun\":\n".as_slice(), &lines].concat();
    assert_eq!(whole.with_lines(&damaged).unwrap_err(), DamagedLog { line: 1 });
}
