use bytes::Bytes;

use super::*;

fn parse(text: &str) -> Result<Message, Invalid> {
    Message::parse(&Bytes::copy_from_slice(text.as_bytes()))
}

#[track_caller]
fn check_round_trip(text: &str) {
    let mut out = String::new();
    match parse(text).unwrap() {
        Message::Request(r) => {
            write_request(&mut out, r.id.as_str(), &r.method, r.params.as_ref());
        }
        Message::Notification(n) => write_notification(&mut out, &n.method, n.params.as_ref()),
        Message::Response(r) => write_response(&mut out, r.id.as_str(), &r.reply),
    }
    assert_eq!(out, text);
}

#[test]
fn what_is_read_is_written_byte_for_byte() {
    check_round_trip(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    check_round_trip(
        r#"{"jsonrpc":"2.0","id":"a\u0041","method":"x/y","params":{"a": 1e400,"a":2}}"#,
    );
    check_round_trip(r#"{"jsonrpc":"2.0","method":"weird \"name\"","params":{}}"#);
    check_round_trip(r#"{"jsonrpc":"2.0","id":18446744073709551617,"result":{}}"#);
    check_round_trip(r#"{"jsonrpc":"2.0","id":1.0,"result":{"isError":null,"s":"\ud800"}}"#);
    check_round_trip(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"m","x":[1 ]}}"#);
    check_round_trip(r#"{"jsonrpc":"2.0","id":3,"result":null}"#);
}

#[test]
fn nesting_of_any_depth_is_forwarded() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    check_round_trip(&format!(r#"{{"jsonrpc":"2.0","id":3,"result":{deep}}}"#));
}

#[test]
fn members_come_in_any_order_and_unknown_ones_do_no_harm() {
    let message = parse(r#"{"result":{"a":1},"x":{"id":9},"jsonrpc":"2.0","id":7}"#).unwrap();
    let Message::Response(response) = message else { panic!("{message:?}") };
    assert_eq!(response.id.as_str(), "7");
}

#[test]
fn an_error_counts_more_than_a_result_unless_it_is_null() {
    let reply = |text: &str| match parse(text).unwrap() {
        Message::Response(response) => response.reply,
        Message::Request(_) | Message::Notification(_) => panic!("no answer: {text}"),
    };
    assert!(matches!(reply(r#"{"id":1,"result":{},"error":null}"#), Reply::Result(_)));
    assert!(matches!(reply(r#"{"id":1,"result":{},"error":{"code":5}}"#), Reply::Error(_)));
}

#[track_caller]
fn check_invalid(text: &str, fault: Fault, id: Option<&str>) {
    let invalid = parse(text).unwrap_err();
    assert_eq!((invalid.fault, invalid.id.as_ref().map(Json::as_str)), (fault, id), "{invalid}");
}

#[test]
fn garbage_says_what_is_wrong_and_names_the_id_where_it_can() {
    check_invalid("starting server on port 80", Fault::NotJson, None);
    check_invalid("", Fault::NotJson, None);
    check_invalid(r#"{"jsonrpc":"2.0","id":4,"result":{"a":}}"#, Fault::NotJson, Some("4"));
    check_invalid(r#"{"jsonrpc":"2.0","id":4,"resu"#, Fault::NotJson, Some("4"));
    check_invalid(r#"{"id":4}"#, Fault::NotMessage, Some("4"));
    check_invalid(r#"{"id":4,"method":[]}"#, Fault::NotMessage, Some("4"));
    check_invalid("{}", Fault::NotMessage, None);
    check_invalid("42", Fault::NotMessage, None);
    check_invalid(r#"{"id":1,"result":{}} {"id":2}"#, Fault::NotJson, Some("1"));
}

#[test]
fn text_that_is_not_utf8_is_no_message() {
    let bytes = Bytes::from_static(b"{\"id\":1,\"result\":\"\xff\"}");
    assert_eq!(Message::parse(&bytes).unwrap_err().fault, Fault::NotJson);
}

#[test]
fn in_a_batch_each_message_stands_alone() {
    let text = r#" [{"id":1,"result":{}}, 5, {"method":"n"}]"#;
    let frame = Frame::parse(&Bytes::from_static(text.as_bytes())).unwrap();
    let Frame::Batch(items) = frame else { panic!("{frame:?}") };
    assert_eq!(items.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert!(Frame::parse(&Bytes::from_static(b"[]")).is_err());
    assert!(Frame::parse(&Bytes::from_static(b"[1")).is_err());
}

#[test]
fn line_breaks_inside_a_payload_do_not_break_the_line() {
    let pretty = Json::parse("{\n  \"a\":\r\n 1}").unwrap();
    let mut out = "before\n".to_owned();
    let start = out.len();
    write_response(&mut out, "1", &Reply::Result(pretty));
    let mut out = out.into_bytes();
    replace_line_breaks(&mut out, start);
    let line = String::from_utf8(out).unwrap();
    assert_eq!(line, "before\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{   \"a\":   1}}");
}

#[test]
fn a_byte_order_mark_before_a_message_is_passed_over() {
    let bytes = Bytes::from_static(b"\xef\xbb\xbf{\"id\":1,\"result\":{}}");
    assert!(matches!(Message::parse(&bytes), Ok(Message::Response(_))));
    let batch = Bytes::from_static(b"\xef\xbb\xbf[{\"id\":1,\"result\":{}}]");
    assert!(matches!(Frame::parse(&batch), Ok(Frame::Batch(_))));
}

fn ones(n: usize) -> Bytes {
    format!("[{}]", vec!["1"; n].join(",")).into()
}

#[test]
fn a_batch_over_the_limit_is_refused_as_a_whole_and_says_so() {
    let Ok(Frame::Batch(members)) = Frame::parse(&ones(BATCH_MEMBERS)) else { panic!() };
    assert_eq!(members.len(), BATCH_MEMBERS);
    let invalid = Frame::parse(&ones(BATCH_MEMBERS + 1)).unwrap_err();
    assert_eq!(invalid.fault, Fault::NotMessage);
    assert!(invalid.reason.contains("more than 1000 messages"), "{invalid}");
}

#[test]
fn a_batch_over_the_limit_is_not_read_to_its_end() {
    // What follows is no JSON at all, and is never looked at.
    let mut text = ones(BATCH_MEMBERS + 1).to_vec();
    text.pop();
    text.extend_from_slice(b",]]]]");
    let invalid = Frame::parse(&Bytes::from(text)).unwrap_err();
    assert!(invalid.reason.contains("more than 1000 messages"), "{invalid}");
}
