//! Processes: none outlives us, none is leaked.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use mcp::connect::{ConnectError, Inherit, Options, Program, Target, connect};
use serde_json::json;
use tool::Provider;

use crate::support::{SCRIPTED, call, client, open, options, result, try_open};

/// The processes whose parent is `parent`, zombies included.
pub(crate) fn children_of(parent: u32) -> BTreeSet<u32> {
    let mut children = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let after_name = stat.rsplit_once(')').unwrap().1;
        if after_name.split_whitespace().nth(1) == Some(&parent.to_string()) {
            children.insert(pid);
        }
    }
    children
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'))
}

fn n_open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn n_threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

async fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}

/// One test, so that nothing else in this process opens files meanwhile: under
/// nextest every test has a process of its own.
#[tokio::test]
async fn two_hundred_deaths_and_restarts_leak_nothing() {
    let me = std::process::id();
    result(call(&*open("plain").await, "say", json!({"result": "{}"})).await);
    eventually("no child is left", || children_of(me).is_empty()).await;
    let (files, threads) = (n_open_files(), n_threads());
    for round in 0..200 {
        let upstream = open("plain").await;
        match round % 4 {
            0 => drop(upstream),
            1 => upstream.close().await,
            2 => assert!(call(&upstream, "die", json!({})).await.is_err()),
            _ => {
                let [child] = Vec::from_iter(children_of(me))[..] else { panic!("not one child") };
                let pid = rustix::process::Pid::from_raw(i32::try_from(child).unwrap()).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
                assert!(call(&upstream, "hang", json!({})).await.is_err());
            }
        }
        eventually("the child is reaped", || children_of(me).is_empty()).await;
    }
    eventually("every file is closed", || n_open_files() <= files).await;
    eventually("every thread ends", || n_threads() <= threads).await;
}

#[tokio::test]
async fn a_child_and_its_children_die_when_the_parent_is_killed() {
    let mut parent = Command::new(SCRIPTED)
        .arg("parent")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    let children = children_of(parent.id());
    let [child] = Vec::from_iter(children)[..] else { panic!("not one child") };
    let mut family = children_of(child);
    assert_eq!(family.len(), 2);
    family.insert(child);
    // SIGKILL: the parent cannot do anything about it any more.
    parent.kill().unwrap();
    parent.wait().unwrap();
    eventually("the family dies too", || !family.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn a_child_outlives_the_thread_that_happened_to_connect() {
    let upstream = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let upstream = open("plain").await;
            result(call(&upstream, "say", json!({"result": "{}"})).await);
            let child = children_of(std::process::id()).into_iter().next().unwrap();
            (upstream, child, ())
        })
    });
    // The runtime that served it is gone with its thread, and so is the child:
    // by our hand, not by the parent-death signal of a thread.
    let (upstream, child, ()) = upstream.join().unwrap();
    eventually("the child ends", || !is_alive(child)).await;
    drop(upstream);
}

#[tokio::test]
async fn a_stubborn_child_and_its_own_children_are_killed() {
    let target = mcp::connect::Target::Stdio(mcp::connect::Program {
        command: "/bin/sh".into(),
        // A shell that waits for its children, deaf to SIGTERM, as they are.
        args: vec!["-c".to_owned(), format!("trap '' TERM; sleep 1000 & {SCRIPTED} stubborn")],
        ..Default::default()
    });
    let options = Options { grace: Duration::from_millis(100), ..options() };
    let client = crate::support::client();
    let upstream = mcp::connect::connect(&target, &options, &client).await.unwrap();
    let me = std::process::id();
    let [shell] = Vec::from_iter(children_of(me))[..] else { panic!("not one child") };
    let family = children_of(shell);
    assert_eq!(family.len(), 2);
    upstream.close().await;
    assert!(children_of(me).is_empty());
    eventually("the family is dead", || !family.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn an_opening_that_is_abandoned_leaves_no_process() {
    let me = std::process::id();
    let options = options();
    let opening = try_open("hang-initialize", &options);
    assert!(tokio::time::timeout(Duration::from_millis(300), opening).await.is_err());
    eventually("the child is gone", || children_of(me).is_empty()).await;
}

#[tokio::test]
async fn a_program_that_does_not_answer_is_told_of_with_its_last_words() {
    let script = "echo reading the index >&2; echo waiting for the database >&2; exec sleep 60";
    let target = Target::Stdio(Program {
        command: "/bin/sh".into(),
        args: vec!["-c".to_owned(), script.to_owned()],
        ..Program::default()
    });
    let options = Options { opening_timeout: Duration::from_secs(3), ..options() };
    let error = connect(&target, &options, &client()).await.err().unwrap();
    let told = error.to_string();
    assert!(matches!(error, ConnectError::Silent { .. }), "{told}");
    assert!(told.ends_with("; it said: reading the index | waiting for the database"), "{told}");
}

#[tokio::test]
async fn what_a_child_logs_does_not_block_it() {
    let upstream = open("plain").await;
    let text = "x".repeat(300_000);
    for _ in 0..10 {
        result(call(&upstream, "log", json!({"text": text})).await);
    }
    assert!(upstream.gone().is_none());
    assert_eq!(upstream.listing().tools.len(), 2);
}

/// The names of the variables that a program finds.
async fn found_by_a_program(
    inherit: Inherit,
    named: &[(&str, &str)],
    options: &Options,
) -> Vec<String> {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("found");
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let target = mcp::connect::Target::Stdio(mcp::connect::Program {
        command: "/bin/sh".into(),
        args: vec!["-c".to_owned(), format!("env > {}", file.display())],
        inherit,
        env: named.iter().map(pair).collect(),
        ..Default::default()
    });
    // It speaks no protocol, and ends.
    let opened = mcp::connect::connect(&target, options, &crate::support::client()).await;
    assert!(opened.is_err());
    let found = std::fs::read_to_string(&file).unwrap();
    found.lines().map(|line| line.split('=').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_program_finds_what_it_needs_and_what_is_named_for_it_and_nothing_else() {
    // Whoever runs this test has set it, and no program needs it.
    let secret = "CARGO_MANIFEST_DIR".to_owned();
    let ours: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
    assert!(ours.contains(&secret) && ours.contains(&"PATH".to_owned()));
    for launcher in [None, options().launcher] {
        let options = Options { launcher, ..options() };
        let found = found_by_a_program(Inherit::Needed, &[("API_KEY", "k")], &options).await;
        assert!(!found.contains(&secret), "{found:?}");
        for name in ["PATH", "API_KEY"] {
            assert!(found.contains(&name.to_owned()), "{name}: {found:?}");
        }
        // The shell adds some of its own.
        let own = ["PWD", "OLDPWD", "SHLVL", "_", "API_KEY"];
        for name in found.iter().filter(|name| !own.contains(&name.as_str())) {
            let needed = mcp::connect::environment::is_needed(std::ffi::OsStr::new(name));
            assert!(needed || name.starts_with("GATELET_"), "{name}");
        }
    }
    let found = found_by_a_program(Inherit::All, &[], &options()).await;
    assert!(found.contains(&secret), "{found:?}");
}

/// A shell that does something before it becomes the server.
fn beside(script: &str, place: &std::path::Path) -> mcp::connect::Target {
    let script = script.replace("PLACE", &place.display().to_string());
    mcp::connect::Target::Stdio(mcp::connect::Program {
        command: "/bin/sh".into(),
        args: vec!["-c".to_owned(), script.replace("SCRIPTED", SCRIPTED)],
        ..Default::default()
    })
}

async fn pid_in(file: &std::path::Path) -> u32 {
    let read = || std::fs::read_to_string(file).ok()?.trim().parse().ok();
    eventually("it says its id", || read().is_some()).await;
    read().unwrap()
}

#[tokio::test]
async fn what_has_left_its_group_and_its_parent_ends_with_the_program_all_the_same() {
    let place = tempfile::tempdir().unwrap();
    let script = "(setsid sh -c 'echo $$ > PLACE/pid; exec sleep 1000' >/dev/null 2>&1 &) ; \
                  exec SCRIPTED plain";
    let target = beside(script, place.path());
    let client = crate::support::client();
    let upstream = mcp::connect::connect(&target, &options(), &client).await.unwrap();
    let stray = pid_in(&place.path().join("pid")).await;
    assert!(is_alive(stray));
    upstream.close().await;
    eventually("the stray ends", || !is_alive(stray)).await;
}

#[tokio::test]
async fn a_program_of_another_upstream_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let script = "setsid sh -c 'echo $$ > PLACE/pid; exec sleep 1000' >/dev/null 2>&1 & \
                  exec SCRIPTED plain";
    let client = crate::support::client();
    let target = beside(script, place.path());
    let kept = mcp::connect::connect(&target, &options(), &client).await.unwrap();
    let stray = pid_in(&place.path().join("pid")).await;
    open("plain").await.close().await;
    assert!(is_alive(stray), "its own program still runs");
    kept.close().await;
    eventually("the stray ends", || !is_alive(stray)).await;
}

#[tokio::test]
async fn everything_ends_together_by_the_end_of_input_and_then_by_sigterm() {
    let place = tempfile::tempdir().unwrap();
    let script = "trap 'echo TERM >> PLACE/seen; exit 0' TERM; SCRIPTED plain; \
                  echo EOF >> PLACE/seen; while :; do sleep 0.02; done";
    let grace = Duration::from_millis(500);
    let options = Options { grace, ..options() };
    let client = crate::support::client();
    let target = beside(script, place.path());
    let stubborn = mcp::connect::connect(&target, &options, &client).await.unwrap();
    let polite = try_open("plain", &options).await.unwrap();
    let started = tokio::time::Instant::now();
    // Both are still held: whoever holds them does not keep us.
    assert!(options.shutdown.end_all(Duration::from_secs(20)).await);
    assert!(started.elapsed() < Duration::from_secs(10));
    let seen = std::fs::read_to_string(place.path().join("seen")).unwrap();
    assert_eq!(seen, "EOF\nTERM\n");
    assert!(stubborn.gone().is_some() && polite.gone().is_some());
    assert!(children_of(std::process::id()).is_empty());
}
