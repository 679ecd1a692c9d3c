use tool::Server;

use super::*;

fn listing(protocol: &str) -> Listing {
    let server =
        Server { protocol: protocol.to_owned(), ..Server::new("s", "1", Json::empty_object()) };
    Listing { server, ..Listing::default() }
}

const ABOUT: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}"#;

#[track_caller]
fn check_modern(method: &str, result: &str, expected: &str) {
    let reply = Reply::Result(Json::parse(result.to_owned()).unwrap());
    let Reply::Result(fitted) = to_modern(method, reply, &listing("")) else { panic!() };
    assert_eq!(fitted.as_str(), expected.replace("ABOUT", ABOUT));
}

#[track_caller]
fn check_legacy(result: &str, expected: &str) {
    let reply = Reply::Result(Json::parse(result.to_owned()).unwrap());
    let Reply::Result(fitted) = to_legacy("tools/call", reply) else { panic!() };
    assert_eq!(fitted.as_str(), expected);
}

#[test]
fn a_modern_client_learns_what_kind_of_result_it_is_and_who_made_it() {
    check_modern(
        "tools/call",
        r#"{"content":[ ],"n":1e400}"#,
        r#"{"content":[ ],"n":1e400,"resultType":"complete",ABOUT}"#,
    );
    check_modern("tools/call", "{ }", r#"{ "resultType":"complete",ABOUT}"#);
}

#[test]
fn what_a_result_says_of_itself_is_left_alone() {
    check_modern(
        "tools/call",
        r#"{"resultType":"task","_meta":{"a":1}}"#,
        r#"{"resultType":"task","_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#,
    );
    let whole = r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#;
    check_modern("tools/call", whole, whole);
}

#[test]
fn lists_and_reads_say_how_long_they_may_be_kept() {
    check_modern(
        "resources/read",
        r#"{"contents":[],"ttlMs":5}"#,
        r#"{"contents":[],"ttlMs":5,"resultType":"complete","cacheScope":"private",ABOUT}"#,
    );
    check_modern(
        "resources/read",
        r#"{"resultType":"input_required"}"#,
        r#"{"resultType":"input_required",ABOUT}"#,
    );
}

#[test]
fn a_list_may_be_kept_as_long_as_its_provider_says() {
    let mut listing = listing("");
    listing.lifetimes.tools = Some(Lifetime { milliseconds: 300_000, is_public: true });
    let list = |method| {
        let reply = Reply::Result(Json::empty_object());
        let Reply::Result(fitted) = to_modern(method, reply, &listing) else { panic!() };
        (fitted.member_as::<u64>("ttlMs"), fitted.member_as::<String>("cacheScope"))
    };
    assert_eq!(list("tools/list"), (Some(300_000), Some("public".to_owned())));
    assert_eq!(list("prompts/list"), (Some(0), Some("private".to_owned())));
    assert_eq!(list("tools/call"), (None, None));
}

#[test]
fn an_older_client_sees_none_of_that() {
    check_legacy(r#"{"resultType":"complete","a":[ 1 ],"ttlMs":0}"#, r#"{"a":[ 1 ]}"#);
    check_legacy(
        r#"{"text":"a \"resultType\" in a text"}"#,
        r#"{"text":"a \"resultType\" in a text"}"#,
    );
    check_legacy(r#"{"resultType":"task","task":{}}"#, r#"{"resultType":"task","task":{}}"#);
}

#[test]
fn a_missing_resource_has_the_code_of_the_revision() {
    let data = Json::parse(r#"{"uri":"a://b"}"#).unwrap();
    let old = RpcError::with_data(-32002, "not here", &data);
    let Reply::Error(new) = to_modern("resources/read", Reply::Error(old.clone()), &listing(""))
    else {
        panic!()
    };
    assert_eq!((new.code, new.data()), (-32602, Some(data)));
    let back = |error: RpcError| match to_legacy("resources/read", Reply::Error(error)) {
        Reply::Error(error) => error.code,
        Reply::Result(_) => panic!(),
    };
    // Who is behind the provider nobody knows here; the error says enough.
    assert_eq!(back(new), -32002);
    assert_eq!(back(RpcError::new(-32602, "no such cursor")), -32602);
}

#[test]
fn only_a_top_level_result_type_asks_for_input() {
    let wants = |text: &str| wants_input(&Json::parse(text.to_owned()).unwrap());
    assert!(wants(r#"{"resultType":"input_required"}"#));
    assert!(!wants(r#"{"content":[{"resultType":"input_required"}]}"#));
}
