//! A changed configuration is taken up while clients are connected.

use serde_json::json;

use crate::kit::{Home, Pipe, eventually, text, tool, upstream};

#[test]
fn upstreams_come_and_go_without_dropping_the_session() {
    let clock = upstream("clock", &tool("py/bin/mcp-server-time"), &[]);
    let home = Home::with("[builtin]\ntools = true\n");
    let mut pipe = Pipe::open(&home);
    assert!(!text(&pipe.verb("help", &json!({}))).contains("clock"));

    home.write("gatelet.toml", &format!("[builtin]\ntools = true\n\n{clock}"));
    eventually("the new upstream is there", || {
        text(&pipe.verb("help", &json!({"namespace": "clock"}))).contains("get_current_time")
    });
    let now = pipe.call("clock.get_current_time", &json!({"timezone": "Asia/Tokyo"}));
    assert!(now.contains("Asia/Tokyo"), "{now}");

    // What is wrong changes nothing.
    home.write("gatelet.toml", "[[upstream]]\nlable = 7\n");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(text(&pipe.verb("help", &json!({}))).contains("clock"));

    home.write("gatelet.toml", "[builtin]\ntools = true\n");
    eventually("the old upstream is gone", || {
        !text(&pipe.verb("help", &json!({}))).contains("clock")
    });
    assert!(pipe.call("time.now", &json!({})).contains("UTC"));
}

#[test]
fn a_new_skill_is_there_at_once() {
    let home = Home::with("[skills]\ndirectories = [\"skills\"]\n");
    let skill = |name: &str, text: &str| {
        let text = format!("---\nname: {name}\ndescription: {text}\n---\n{text}\n");
        home.write(&format!("skills/{name}/SKILL.md"), &text);
    };
    skill("first", "The one that was there.");
    let mut pipe = Pipe::open(&home);
    assert!(text(&pipe.verb("skill", &json!({}))).contains("first"));
    skill("second", "The one that came later.");
    eventually("the new skill is there", || {
        text(&pipe.verb("skill", &json!({}))).contains("second")
    });
}
