//! Scripts that stop at one replica and go on at another.

use serde_json::{Value, json};
use testkit::valkey::Server;
use testkit::valkey::sentinel::Sentinel;

use super::Cluster;
use crate::kit::{eventually, shell};

#[test]
fn a_script_that_stopped_on_one_replica_goes_on_at_another_without_doing_anything_twice() {
    testkit::needs!(Valkey);
    let rule = "[[controls.rule]]\naction = \"ask\"\ntool = \"work.act\"\n\n";
    let config = format!("[scripts]\nenabled = true\n\n[trust]\nmode = \"off\"\n\n{rule}");
    let cluster = Cluster::start(2, &config);
    let run = |replica: usize, kwargs: Value| {
        let call = json!({"namespace": "gatelet", "function": "run", "kwargs": kwargs});
        cluster.at(replica).told(None, "call", &call)
    };
    eventually("both replicas have listed it", || {
        let listed =
            |replica| cluster.at(replica).told(None, "help", &json!({"namespace": "work"}));
        (0..2).all(|replica| listed(replica).contains("act"))
    });
    let code = "await tools.work.act({n: 1}); await tools.work.act({n: 2}); return 'both'";
    let mut told = run(0, json!({"code": code}));
    let handle = told.split("\"resume\": \"").nth(1).and_then(|rest| rest.split('"').next());
    let handle = handle.unwrap_or_else(|| panic!("{told}")).to_owned();
    // A decision reaches the other replicas in a moment.
    let mut turn = 0;
    eventually("it comes to its end, now here, now there", || {
        if let Some(number) = told.split("approval request ").nth(1) {
            let number: String = number.chars().take_while(char::is_ascii_digit).collect();
            shell(&cluster.replicas[0].0, &["approvals", "allow", &number, "--yes"]);
        }
        turn += 1;
        told = run(turn % 2, json!({"resume": handle}));
        told.contains("both")
    });
    assert!(told.contains("both"), "{told}");
    assert_eq!(cluster.deeds(), ["1", "2"]);
    let again = run(1, json!({"resume": handle}));
    assert!(again.contains("has ended"), "{again}");
    assert_eq!(cluster.deeds().len(), 2);
}

#[test]
fn a_script_that_is_resumed_everywhere_at_once_does_everything_once() {
    testkit::needs!(Valkey);
    let rule = "[[controls.rule]]\naction = \"ask\"\ntool = \"units.convert\"\n\n";
    let config = format!("[scripts]\nenabled = true\n\n[trust]\nmode = \"off\"\n\n{rule}");
    let cluster = Cluster::start(2, &config);
    let run = |replica: usize, kwargs: &Value| {
        let call = json!({"namespace": "gatelet", "function": "run", "kwargs": kwargs});
        cluster.at(replica).told(None, "call", &call)
    };
    let code = "await tools.units.convert({value: 1, from: 'km', to: 'mi'}); \
                for (let n = 0; n < 10; n++) await tools.work.act({n}); return 'all of them'";
    let told = run(0, &json!({"code": code}));
    let handle = told.split("\"resume\": \"").nth(1).and_then(|rest| rest.split('"').next());
    let resume = json!({"resume": handle.unwrap_or_else(|| panic!("{told}"))});
    // Nobody has to agree any more, so nothing but the journal is between them.
    for (home, _) in &cluster.replicas {
        home.write("gatelet.toml", &home.read("gatelet.toml").replace(rule, ""));
    }
    let free = json!({"namespace": "units", "function": "convert", "kwargs": {"value": 1, "from": "km", "to": "mi"}});
    eventually("both know", || {
        (0..2).all(|replica| cluster.at(replica).told(None, "call", &free).contains("0.62"))
    });
    // Four at each, at the same moment.
    let start = std::sync::Barrier::new(8);
    let all: Vec<String> = std::thread::scope(|scope| {
        let one = |n: usize| {
            let (start, run, resume) = (&start, &run, &resume);
            scope.spawn(move || {
                start.wait();
                run(n % 2, resume)
            })
        };
        let runs: Vec<_> = (0..8).map(one).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(all.iter().filter(|told| told.contains("all of them")).count(), 1, "{all:#?}");
    let is_clear = |told: &&String| {
        ["all of them", "is under way already", "has ended"]
            .iter()
            .any(|known| told.contains(known))
    };
    assert_eq!(all.iter().find(|told| !is_clear(told)), None);
    assert!(all.iter().any(|told| told.contains("is under way already")), "{all:#?}");
    let expected: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    assert_eq!(cluster.deeds(), expected, "each once");
}

#[test]
fn after_a_failover_of_the_store_a_script_says_that_its_journal_is_void_and_repeats_nothing() {
    testkit::needs!(Valkey);
    let rule = "[[controls.rule]]\naction = \"ask\"\ntool = \"units.convert\"\n\n";
    let config = format!("[scripts]\nenabled = true\n\n[trust]\nmode = \"off\"\n\n{rule}");
    let (primary, promoted) = (Server::start(&[]), Server::start(&[]));
    promoted.cli(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]).unwrap();
    let sentinel = Sentinel::start(&primary);
    let cluster = Cluster::start_at(&sentinel.url(), primary, 2, &config);
    let run = |replica: usize, kwargs: &Value| {
        let call = json!({"namespace": "gatelet", "function": "run", "kwargs": kwargs});
        cluster.at(replica).told(None, "call", &call)
    };
    let code = "await tools.work.act({n: 1}); await tools.units.convert({value: 1, from: 'km', to: 'mi'}); \
                await tools.work.act({n: 2}); return 'both'";
    let mut told = String::new();
    eventually("its functions are listed", || {
        told = run(0, &json!({"code": code}));
        !told.contains("there is no function")
    });
    let handle = told.split("\"resume\": \"").nth(1).and_then(|rest| rest.split('"').next());
    let resume = json!({"resume": handle.unwrap_or_else(|| panic!("{told}"))});
    assert_eq!(cluster.deeds(), ["1"]);
    cluster.store.wait_for_replica();
    cluster.store.kill();
    for replica in [0, 1] {
        let mut told = String::new();
        eventually("the store can be used again", || {
            told = run(replica, &resume);
            told.contains("failed over")
        });
        assert!(told.contains("fresh"), "{told}");
    }
    assert_eq!(cluster.deeds(), ["1"], "nothing ran again");
    let fresh = run(1, &json!({"code": code, "fresh": true}));
    assert!(fresh.contains("\"resume\": \""), "it can be started anew: {fresh}");
    assert_eq!(cluster.deeds(), ["1", "1"], "as it was told to");
}
