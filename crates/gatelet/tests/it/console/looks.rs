//! What an operator finds in the console: tools as somebody is told of them, answers by
//! their handles, who calls, what was saved.

use serde_json::json;

use super::{Operator, cookie, link};
use crate::kit::{Home, Served, eventually, program, shell, upstream};

fn operator<'a>(home: &Home, served: &'a Served) -> Operator<'a> {
    Operator { served, cookie: cookie(served, &link(home)) }
}

#[test]
fn a_search_is_shown_as_an_identity_is_told_beside_the_ranking_of_all_tools() {
    let home = Home::with(
        "[builtin]\ntools = true\n\
         [[visibility.rule]]\ncallers = [\"role:ops\"]\nshow = [\"*\"]\n\
         [[visibility.rule]]\nhide = [\"units\"]\n",
    );
    let served = Served::start(&home);
    let operator = operator(&home, &served);
    let parts = |query: &str| {
        let page = operator.page(&format!("/tools?q=convert%20miles%20to%20km{query}"));
        let (_, found) = page.split_once("How all tools rank").expect("a ranking");
        let (rank, told) = found.split_once("id=\"told\"").expect("what is told");
        (told.to_owned(), rank.to_owned())
    };
    let (told, rank) = parts("");
    assert!(!told.contains("units") && rank.contains("units.convert"), "{told}\n{rank}");
    let (told, rank) = parts("&subject=key%3Aann&roles=ops");
    assert!(told.contains("convert") && rank.contains("units.convert"), "{told}\n{rank}");
    // Word for word what a caller is told.
    let key = shell(&home, &["key", "create", "ann", "--role", "ops"]).out.trim().to_owned();
    let wish = json!({"query": "convert miles to km"});
    let help = served.told(Some(&key), "help", &wish);
    let first = help.lines().find(|line| line.contains("convert")).unwrap();
    let shown = told.replace("&quot;", "\"").replace("&gt;", ">").replace("&lt;", "<");
    assert!(shown.replace("&amp;", "&").contains(first), "{first}\n{shown}");
}

#[test]
fn an_answer_that_was_kept_before_the_first_look_is_opened_by_its_handle() {
    let home = Home::with("[builtin]\ntools = true\n");
    let key = shell(&home, &["key", "create", "ann"]).out.trim().to_owned();
    let served = Served::start(&home);
    let numbers: Vec<u32> = (0..10_000).collect();
    let kwargs = json!({"json": numbers, "filter": "."});
    let long = json!({"namespace": "json", "function": "query", "kwargs": kwargs});
    served.told(Some(&key), "call", &long);
    let listed = served.asked(Some(&key), "resources/list", &json!({}))["result"].clone();
    let uri = listed["resources"][0]["uri"].as_str().unwrap().to_owned();
    let handle = uri.rsplit('/').next().unwrap();
    let operator = operator(&home, &served);
    assert!(!operator.page("/artifacts").contains(handle), "it was not noted");
    let page = operator.page(&format!("/artifacts?handle={handle}"));
    assert!(page.contains("json/query") && page.contains("0,1,2,3"), "{page}");
    let page = operator.page(&format!("/artifacts/{handle}?by=grep&value=4242&caller=key%3Aann"));
    assert!(page.contains("4242"), "{page}");
    let path = "/console/artifacts?handle=000000000000";
    let missing = served.path(path).send("GET", &[("Cookie", &operator.cookie)], "");
    assert_eq!(missing.status, 404, "{}", missing.body);
}

#[test]
fn sessions_that_call_are_listed_without_their_ids_and_count_as_saved_definitions() {
    let home = Home::with("[builtin]\ntools = true\n");
    let served = Served::start(&home);
    let operator = operator(&home, &served);
    operator.page("/calls");
    operator.page("");
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "walker", "version": "1"}}});
    let mut ids = Vec::new();
    for _ in 0..2 {
        let id = served.post(&hello, &[]).header("mcp-session-id").unwrap().to_owned();
        let params = json!({"name": "call",
                            "arguments": {"namespace": "time", "function": "now", "kwargs": {}}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let headers = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
        (0..3).for_each(|_| assert_eq!(served.post(&call, &headers).status, 200));
        ids.push(id);
    }
    let page = operator.page("/callers");
    let (_, sessions) = page.split_once("Sessions that called lately").expect("a list");
    let rows = sessions.split("</table>").next().unwrap();
    assert_eq!(rows.matches("walker").count(), 2, "{rows}");
    assert!(!ids.iter().any(|id| page.contains(id.as_str())), "{page}");
    let overview = operator.page("");
    assert!(overview.contains("Tokens saved per minute"), "{overview}");
    assert!(overview.contains("2 sessions came"), "{overview}");
    let hour = shell(&home, &["top", "--json"]).json()["figures"]["hour"].clone();
    assert_eq!((&hour["sessions"], &hour["calls"]), (&json!(2), &json!(6)), "{hour}");
}

#[test]
fn the_page_of_an_upstream_has_the_lines_that_it_wrote_and_no_others() {
    let server = |label: &str| {
        let said = format!("import sys\nprint('I am {label}', file=sys.stderr, flush=True)\n");
        let code = said + &program("say(id, {\"content\": []})");
        upstream(label, std::path::Path::new("python3"), &["-c", &code])
    };
    let home = Home::with(&format!("{}{}", server("one"), server("two")));
    let served = Served::start(&home);
    let operator = operator(&home, &served);
    let page = |label: &str| operator.page(&format!("/upstreams/{label}"));
    eventually("both wrote", || {
        page("one").contains("I am one") && page("two").contains("I am two")
    });
    assert!(!page("one").contains("I am two") && !page("two").contains("I am one"));
    let told = shell(&home, &["logs", "--format", "text"]);
    assert!(told.out.contains("I am one") && told.out.contains("I am two"), "{}", told.out);
}
