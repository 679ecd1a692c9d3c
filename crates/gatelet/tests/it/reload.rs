//! A changed configuration is taken up while clients are connected.

use serde_json::json;

use crate::kit::{Home, Pipe, eventually, signal, text, tool, upstream};

#[test]
fn upstreams_come_and_go_without_dropping_the_session() {
    testkit::needs!(Tools);
    let clock = upstream("clock", &tool("py/bin/mcp-server-time"), &[]);
    let home = Home::with("[builtin]\ntools = true\n");
    let mut command = home.gatelet();
    command.args(["serve", "--stdio"]);
    command.stderr(std::fs::File::create(home.path().join("log")).unwrap());
    let mut pipe = Pipe::start_quiet(command);
    assert!(!text(&pipe.verb("help", &json!({}))).contains("clock"));

    home.write("gatelet.toml", &format!("[builtin]\ntools = true\n\n{clock}"));
    eventually("the new upstream is there", || {
        text(&pipe.verb("help", &json!({"namespace": "clock"}))).contains("get_current_time")
    });
    let now = pipe.call("clock.get_current_time", &json!({"timezone": "Asia/Tokyo"}));
    assert!(now.contains("Asia/Tokyo"), "{now}");

    // What is wrong changes nothing.
    home.write("gatelet.toml", "[[upstream]]\nlable = 7\n");
    eventually("it is looked at", || home.read("log").contains("so the old one stays"));
    assert!(text(&pipe.verb("help", &json!({}))).contains("clock"));

    home.write("gatelet.toml", "[builtin]\ntools = true\n");
    eventually("the old upstream is gone", || {
        !text(&pipe.verb("help", &json!({}))).contains("clock")
    });
    assert!(pipe.call("time.now", &json!({})).contains("UTC"));
}

/// The path of a program that runs leads to another program then, or nowhere.
#[test]
fn an_upstream_that_comes_after_an_upgrade_is_started_like_any_other() {
    testkit::needs!(Tools);
    let clock = upstream("clock", &tool("py/bin/mcp-server-time"), &[]);
    for upgraded in [true, false] {
        let home = Home::with("[builtin]\ntools = true\n");
        let own = home.path().join("gatelet");
        std::fs::copy(env!("CARGO_BIN_EXE_gatelet"), &own).unwrap();
        let mut command = std::process::Command::new(&own);
        home.settle(&mut command);
        command.args(["serve", "--stdio"]);
        let mut pipe = Pipe::start(command);
        std::fs::remove_file(&own).unwrap();
        if upgraded {
            std::fs::copy("/bin/false", &own).unwrap();
        }
        home.write("gatelet.toml", &format!("[builtin]\ntools = true\n\n{clock}"));
        eventually("the new upstream is there", || {
            text(&pipe.verb("help", &json!({"namespace": "clock"}))).contains("get_current_time")
        });
    }
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

#[test]
fn rules_limits_and_the_gate_change_without_dropping_the_session() {
    let builtin = "[builtin]\ntools = true\n";
    let home = Home::with(builtin);
    let mut pipe = Pipe::open(&home);
    let answer = |pipe: &mut Pipe, function: &str, kwargs: &serde_json::Value| {
        let (namespace, function) = function.split_once('.').unwrap();
        let call = json!({"namespace": namespace, "function": function, "kwargs": kwargs});
        text(&pipe.verb("call", &call))
    };
    let now = json!({});
    assert!(answer(&mut pipe, "time.now", &now).contains("UTC"));
    let numbers: Vec<u32> = (0..1000).collect();
    let some = json!({"json": numbers, "filter": "."});
    assert!(answer(&mut pipe, "json.query", &some).contains("999"));

    let rule = "[[controls.rule]]\naction = \"deny\"\ntool = \"time.*\"\nreason = \"no clocks\"\n";
    let gate = "[gate]\nlimit = 100\n";
    home.write("gatelet.toml", &format!("{builtin}{gate}{rule}"));
    eventually("the rule is kept", || answer(&mut pipe, "time.now", &now).contains("no clocks"));
    let held = answer(&mut pipe, "json.query", &some);
    assert!(!held.contains("999") && held.contains("sizelimit"), "{held}");

    // A limit counts from its beginning, whatever else changes beside it.
    let rate = "[[controls.rate]]\ntool = \"units.convert\"\nper_session = 2\n";
    home.write("gatelet.toml", &format!("{builtin}{rate}"));
    eventually("the rule is gone", || answer(&mut pipe, "time.now", &now).contains("UTC"));
    let miles = json!({"value": 1, "from": "mi", "to": "km"});
    assert!(answer(&mut pipe, "units.convert", &miles).contains("1.6"));
    home.write("gatelet.toml", &format!("{builtin}{rate}{rule}"));
    eventually("the rule is back", || answer(&mut pipe, "time.now", &now).contains("no clocks"));
    assert!(answer(&mut pipe, "units.convert", &miles).contains("1.6"));
    assert!(answer(&mut pipe, "units.convert", &miles).contains("rate limit"));

    home.write("gatelet.toml", builtin);
    eventually("the limit is gone", || answer(&mut pipe, "units.convert", &miles).contains("1.6"));
}

#[test]
fn what_needs_a_restart_says_so() {
    let home = Home::with("[builtin]\ntools = true\n");
    let log = home.path().join("log");
    let mut command = home.gatelet();
    command.args(["serve", "--stdio", "--log", "info"]);
    command.stderr(std::fs::File::create(&log).unwrap());
    let mut pipe = Pipe::start_quiet(command);
    let changed = "[builtin]\ntools = true\n[serve]\nlisten = \"127.0.0.1:4999\"\n\
        [records]\nfile = \"calls.jsonl\"\n[gate]\nlimit = 5000\n[search]\nmeaning = false\n";
    home.write("gatelet.toml", changed);
    eventually("the sections are named", || {
        home.read("log").contains("changes of [serve], [records], [search] need a restart")
    });
    assert!(pipe.call("time.now", &json!({})).contains("UTC"));
}

#[test]
fn a_configuration_behind_links_is_taken_up_when_one_of_them_is_swapped() {
    use std::os::unix::fs::symlink;
    let home = Home::new();
    let at = |name: &str| home.path().join(name);
    home.write("v1/gatelet.toml", "[builtin]\ntools = true\n");
    symlink("v1", at("..data")).unwrap();
    symlink("..data/gatelet.toml", at("gatelet.toml")).unwrap();
    let mut pipe = Pipe::open(&home);
    let mut shows = |label: &str| text(&pipe.verb("help", &json!({}))).contains(label);
    assert!(shows("units"));
    // As a volume of a cluster is renewed.
    home.write("v2/gatelet.toml", "[[upstream]]\nlabel = \"swapped\"\ncommand = \"x\"\n");
    symlink("v2", at("..new")).unwrap();
    std::fs::rename(at("..new"), at("..data")).unwrap();
    eventually("the swapped link is followed", || shows("swapped"));
    // And where it leads now, a change of the file itself.
    home.write("v2/gatelet.toml", "[[upstream]]\nlabel = \"edited\"\ncommand = \"x\"\n");
    eventually("the file behind the links is looked at", || shows("edited"));
}

#[test]
fn a_directory_of_skills_may_come_late_and_come_again() {
    let home = Home::with("[skills]\ndirectories = [\"more/skills\"]\n");
    let skill = |name: &str| {
        let text = format!("---\nname: {name}\ndescription: It is {name}.\n---\nGo.\n");
        home.write(&format!("more/skills/{name}/SKILL.md"), &text);
    };
    let mut pipe = Pipe::open(&home);
    let mut shows = |name: &str| text(&pipe.verb("skill", &json!({}))).contains(name);
    assert!(!shows("first"));
    skill("first");
    eventually("the new directory is found", || shows("first"));
    skill("second");
    eventually("it is watched from then on", || shows("second"));
    std::fs::remove_dir_all(home.path().join("more")).unwrap();
    eventually("it is gone", || !shows("first"));
    skill("third");
    eventually("it is there again", || shows("third"));
}

#[test]
fn a_hang_up_has_the_configuration_read_and_ends_nothing() {
    let home = Home::new();
    let mut command = home.gatelet();
    command.args(["serve", "--stdio"]);
    command.stderr(std::fs::File::create(home.path().join("log")).unwrap());
    let mut pipe = Pipe::start_quiet(command);
    assert!(text(&pipe.verb("help", &json!({}))).contains("units"));
    // Nobody watches for a file that was not there.
    home.write("gatelet.toml", "[[upstream]]\nlabel = \"late\"\ncommand = \"x\"\n");
    signal(pipe.id(), "HUP");
    eventually("the configuration is read", || {
        text(&pipe.verb("help", &json!({}))).contains("late")
    });
    // From then on the file is watched, and what is wrong in it changes nothing.
    home.write("gatelet.toml", "[[upstream]]\nlable = 7\n");
    signal(pipe.id(), "HUP");
    eventually("it is looked at", || home.read("log").contains("so the old one stays"));
    assert!(text(&pipe.verb("help", &json!({}))).contains("late"));
}

#[test]
fn a_configuration_is_taken_up_once_at_the_start() {
    let home = Home::with("[builtin]\ntools = true\n");
    let mut command = home.gatelet();
    command.args(["serve", "--stdio", "--log", "debug"]);
    command.stderr(std::fs::File::create(home.path().join("log")).unwrap());
    let mut pipe = Pipe::start_quiet(command);
    assert!(pipe.call("time.now", &json!({})).contains("UTC"));
    home.write("gatelet.toml", "[builtin]\ntools = true\n[gate]\nlimit = 5000\n");
    eventually("the change is taken up", || home.read("log").contains("configuration reloaded"));
    assert_eq!(home.read("log").matches("taking up the configuration").count(), 2);
}
