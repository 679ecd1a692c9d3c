//! Scripts that stop before their end, because somebody has to agree, their gatelet was
//! killed or their worker died: they go on, and nothing is done twice without a word.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::kit::{Home, Pipe, Served, eventually, shell, signal, text};
use crate::scripts::{created, fails, handle, returns, run, run_with, serve_shop, shop, told};

const DISK: &str = "[artifacts]\nstore = \"disk\"\n";

/// Creates twice, and then waits until it may go on.
const TWO: &str = "await tools.shop.create({id: 1}); await tools.shop.create({id: 2}); \
                   await tools.shop.wait({}); return 'end'";

/// Lets `shop.wait` answer.
fn let_go(home: &Home) {
    home.write("created.go", "");
}

fn has_begun(home: &Home) -> bool {
    home.path().join("created.waits").exists()
}

/// Whether the journal has the answers to both calls of [`TWO`] that create.
fn has_both(home: &Home) -> bool {
    let kept = std::fs::read_dir(home.path().join("state/artifacts")).into_iter().flatten();
    let mut texts =
        kept.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default());
    has_begun(home) && texts.any(|text| text.contains(r#"{"answered":{"number":1,"#))
}

/// A call that is sent and not waited for.
fn send(pipe: &mut Pipe, function: &str, kwargs: &Value) {
    let (namespace, function) = function.rsplit_once('.').unwrap();
    let arguments = json!({"namespace": namespace, "function": function, "kwargs": kwargs});
    let params = json!({"name": "call", "arguments": arguments});
    pipe.send(&json!({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params}));
}

/// Calls what runs [`TWO`], and kills its gatelet when both are created.
fn kill_within_two(home: &Home, function: &str, kwargs: &Value) {
    let mut pipe = Pipe::open(home);
    pipe.call("shop.list", &json!({}));
    send(&mut pipe, function, kwargs);
    eventually("both are created", || has_both(home));
    pipe.kill();
}

#[test]
fn all_calls_of_a_promise_all_are_asked_about_at_once() {
    let home =
        shop(&format!("[[controls.rule]]\naction = \"ask\"\ntool = \"shop.create\"\n\n{DISK}"));
    let mut pipe = Pipe::open(&home);
    let code = "const all = await Promise.all([...Array(10).keys()].map(async id => {\n\
                  const { price } = await tools.shop.price({id});\n\
                  return (await tools.shop.create({id, price})).created.price;\n\
                }));\n\
                return all";
    let told = text(&run(&mut pipe, code));
    assert!(told.starts_with("**Paused:**"), "{told}");
    let numbers: Vec<String> = told
        .split("approval request ")
        .skip(1)
        .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect())
        .collect();
    assert_eq!(numbers.len(), 10, "{told}");
    assert_eq!(created(&home), 0);
    for number in &numbers {
        assert_eq!(shell(&home, &["approvals", "allow", number, "--yes"]).code, 0);
    }
    let done = text(&run_with(&mut pipe, &json!({"resume": handle(&told)})));
    assert_eq!(done, "[0,10,20,30,40,50,60,70,80,90]");
    assert_eq!(created(&home), 10);
}

#[test]
fn a_script_that_stopped_at_its_first_call_ends_once_as_well() {
    for store in ["memory", "disk"] {
        let rule = "[[controls.rule]]\naction = \"ask\"\ntool = \"shop.create\"\n\n";
        let home = shop(&format!("{rule}[artifacts]\nstore = {store:?}\n"));
        let mut pipe = Pipe::open(&home);
        let told = text(&run(&mut pipe, "return (await tools.shop.create({id: 1})).created.id"));
        let number = told.split("approval request ").nth(1).unwrap_or_else(|| panic!("{told}"));
        let number: String = number.chars().take_while(char::is_ascii_digit).collect();
        assert_eq!(shell(&home, &["approvals", "allow", &number, "--yes"]).code, 0);
        let resume = json!({"resume": handle(&told)});
        assert_eq!(text(&run_with(&mut pipe, &resume)), "1");
        let again = text(&run_with(&mut pipe, &resume));
        assert!(again.contains("has ended"), "{store}: {again}");
        assert_eq!(created(&home), 1);
    }
}

#[test]
fn a_script_that_does_not_wait_for_what_it_calls_pauses_all_the_same() {
    let home =
        shop(&format!("[[controls.rule]]\naction = \"ask\"\ntool = \"shop.create\"\n\n{DISK}"));
    let mut pipe = Pipe::open(&home);
    let code = "tools.shop.create({id: 1}); await tools.shop.list({}); await tools.shop.price({id: 1}); \
                return 'done'";
    let told = text(&run(&mut pipe, code));
    assert!(told.starts_with("**Paused:**") && told.contains("2 calls are done"), "{told}");
    let quiet = "tools.shop.price({id: 1}); return 'quiet'";
    returns(&mut pipe, quiet, "quiet");
    let failing = "tools.shop.create({id: 1}); await tools.shop.list({}); throw new Error('no')";
    let told = text(&run(&mut pipe, failing));
    assert!(told.starts_with("**Script failed:** no"), "{told}");
    assert_eq!(created(&home), 0);
}

#[test]
fn the_code_of_a_script_whose_gatelet_was_killed_is_not_run_again_without_a_word() {
    let home = shop(DISK);
    kill_within_two(&home, "gatelet.run", &json!({"code": TWO}));
    let mut pipe = Pipe::open(&home);
    let told = text(&run(&mut pipe, TWO));
    assert!(told.contains("was begun before and did not end"), "{told}");
    assert_eq!(created(&home), 2);
    let_go(&home);
    assert_eq!(text(&run_with(&mut pipe, &json!({"resume": handle(&told)}))), "end");
    assert_eq!(created(&home), 2, "nothing was done twice");
    // One that has ended is run again, also after a restart.
    assert!(pipe.close().success());
    let mut pipe = Pipe::open(&home);
    returns(&mut pipe, TWO, "end");
    assert_eq!(created(&home), 4);
}

#[test]
fn a_script_that_stopped_is_started_again_where_the_caller_says_so() {
    let home = shop(DISK);
    kill_within_two(&home, "gatelet.run", &json!({"code": TWO}));
    let_go(&home);
    let mut pipe = Pipe::open(&home);
    let told = text(&run(&mut pipe, TWO));
    let again = json!({"resume": handle(&told), "fresh": true});
    assert_eq!(text(&run_with(&mut pipe, &again)), "end");
    assert_eq!(created(&home), 4);
    returns(&mut pipe, TWO, "end");
}

#[test]
fn a_recipe_whose_gatelet_was_killed_goes_on_and_is_not_begun_again() {
    let home = shop(DISK);
    let head = "/*---\nname: two\ndescription: Creates two.\n---*/\n";
    home.write("recipes/two.js", &format!("{head}{TWO}"));
    kill_within_two(&home, "gatelet.recipes.two", &json!({}));
    let mut pipe = Pipe::open(&home);
    let call = json!({"namespace": "gatelet.recipes", "function": "two", "kwargs": {}});
    let told = text(&pipe.verb("call", &call));
    assert!(told.contains("recipe was begun before and did not end"), "{told}");
    assert_eq!(created(&home), 2);
    let_go(&home);
    assert_eq!(text(&run_with(&mut pipe, &json!({"resume": handle(&told)}))), "end");
    assert_eq!(created(&home), 2);
    assert_eq!(text(&pipe.verb("call", &call)), "end", "it ended, so it runs again");
    assert_eq!(created(&home), 4);
}

#[test]
fn a_stranger_who_sends_the_code_of_a_script_that_stopped_is_told_but_gets_no_handle() {
    let home = shop(DISK);
    let mut served = Served::start(&home);
    let call = |kwargs: Value| json!({"namespace": "gatelet", "function": "run", "kwargs": kwargs});
    let find = call(json!({"code": "return (await tools.find('create orders')).includes('shop')"}));
    eventually("the shop is listed", || served.told(None, "call", &find) == "true");
    std::thread::scope(|scope| {
        let begun = scope.spawn(|| served.told(None, "call", &call(json!({"code": TWO}))));
        eventually("both are created", || has_both(&home));
        signal(served.id(), "KILL");
        assert!(begun.join().is_err(), "it got no answer");
    });
    served = Served::start(&home);
    eventually("the shop is listed", || served.told(None, "call", &find) == "true");
    let told = served.told(None, "call", &call(json!({"code": TWO})));
    assert!(told.contains("begun before, on another connection"), "{told}");
    assert!(!told.contains("resume"), "{told}");
    assert_eq!(created(&home), 2);
    let_go(&home);
    let fresh = served.told(None, "call", &call(json!({"code": TWO, "fresh": true})));
    assert_eq!((fresh.as_str(), created(&home)), ("end", 4));
}

/// The workers of a gate, by the id of its process.
#[cfg(target_os = "linux")]
fn workers(gate: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{gate}/task")).into_iter().flatten().flatten();
    let children =
        tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let children = children.collect::<String>();
    let is_worker = |id: &u32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("__script")
    };
    children.split_whitespace().filter_map(|id| id.parse().ok()).filter(is_worker).collect()
}

/// The worker that has most in memory, if that is more than so many megabytes.
#[cfg(target_os = "linux")]
pub(crate) fn worker_with(gate: u32, megabytes: u64) -> Option<u32> {
    let resident = |id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let all = workers(gate).into_iter().filter_map(|id| Some((resident(&id)?, id)));
    all.max().filter(|(kilobytes, _)| megabytes << 10 < *kilobytes).map(|(_, id)| id)
}

/// Has something large in memory, and waits until it may go on.
const LARGE: &str =
    "const large = 'x'.repeat(40 << 20); await tools.shop.wait({}); return large.length >> 20";

#[test]
#[cfg(target_os = "linux")]
fn a_worker_that_is_killed_fails_its_script_and_nothing_else() {
    let home = shop("");
    let served = serve_shop(&home, None);
    let told = |code: &str| told(&served, None, code);
    std::thread::scope(|scope| {
        let killed = scope.spawn(|| told(LARGE));
        eventually("one waits", || has_begun(&home) && worker_with(served.id(), 40).is_some());
        let other = scope.spawn(|| told("await tools.shop.wait({}); return 'other'"));
        let victim = worker_with(served.id(), 40).unwrap();
        signal(victim, "KILL");
        let killed = killed.join().unwrap();
        assert!(killed.starts_with("**Script stopped:** its process ended"), "{killed}");
        assert_eq!(told("return 'next'"), "next");
        let_go(&home);
        assert_eq!(other.join().unwrap(), "other");
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_worker_serves_one_caller_only() {
    let home = shop("");
    let key = |name: &str| shell(&home, &["key", "create", name]).out.trim().to_owned();
    let (ann, bob) = (key("ann"), key("bob"));
    let served = serve_shop(&home, Some(&ann));
    let told = |key: &str, code: &str| told(&served, Some(key), code);
    // The process that a script of this caller runs in.
    let worker_of = |key: &str| {
        let _ = std::fs::remove_file(home.path().join("created.go"));
        let mut id = None;
        std::thread::scope(|scope| {
            let script = scope.spawn(|| told(key, LARGE));
            eventually("it waits", || {
                id = worker_with(served.id(), 40);
                id.is_some()
            });
            let_go(&home);
            assert_eq!(script.join().unwrap(), "40");
        });
        id.unwrap()
    };
    let (one, other) = (worker_of(&ann), worker_of(&bob));
    assert_ne!(one, other, "a process of ann is not bob's");
    let (one_again, other_again) = (worker_of(&ann), worker_of(&bob));
    assert_ne!(one_again, other_again);
    assert_eq!(one_again, one, "it is kept warm for its caller");
    assert_ne!(one, other_again);
}

#[test]
#[cfg(target_os = "linux")]
fn a_worker_is_confined_by_the_kernel_and_holds_one_descriptor() {
    let home = shop("");
    let mut pipe = Pipe::open(&home);
    returns(&mut pipe, "return 1", "1");
    fails(&mut pipe, "await import('fs')", "");
    let ids = workers(pipe.id());
    assert!(!ids.is_empty());
    let open = |id: &str| -> HashSet<String> {
        let all = std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().flatten();
        all.filter_map(|one| Some(std::fs::read_link(one.path()).ok()?.display().to_string()))
            .collect()
    };
    // What the tests were started with, gatelet and its workers are too.
    let inherited = open("self");
    for id in ids {
        // One that was started a moment ago is confined before it is given anything.
        let status = || std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        for line in ["NoNewPrivs:\t1", "Seccomp:\t2"] {
            eventually(&format!("{line} is true of a worker"), || status().contains(line));
        }
        let mut open = open(&id.to_string());
        open.retain(|to| to != "/dev/null" && !inherited.contains(to));
        assert_eq!(open.len(), 1, "one socket and nothing else: {open:?}");
        assert!(open.iter().all(|to| to.starts_with("socket:")), "{open:?}");
    }
}
