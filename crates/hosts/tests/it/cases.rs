//! Every host's files under `tests/cases/HOST`:
//!
//! - `paths.txt`: the file that is written, by platform;
//! - `before`: a file as the host has it; `stdio` and `http`: with gatelet in it, as
//!   `gatelet install` writes it; `macos` and `windows`: `stdio` there;
//! - `changed`: what became of `stdio` meanwhile; `undone`: that without gatelet.
//!
//! `GATELET_BLESS=1` writes what comes out; read the difference before you
//! commit it.

use std::path::{Path, PathBuf};

use document::Format;
use hosts::change::FileChange;
use hosts::plan::{self, Scope, Server};
use hosts::{HOSTS, Host, Platform, Reach};

use crate::made_up::{MadeUp, address, environment, is_ours, program, program_on};

const PLATFORMS: [(Platform, &str); 3] =
    [(Platform::Linux, "linux"), (Platform::MacOs, "macos"), (Platform::Windows, "windows")];

fn directory(host: &Host) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(host.id)
}

fn file(host: &Host, name: &str) -> PathBuf {
    let ending = match host.format {
        Format::Json => "json",
        Format::Toml => "toml",
        Format::Yaml => "yaml",
    };
    directory(host).join(format!("{name}.{ending}"))
}

#[track_caller]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[expect(clippy::disallowed_methods, reason = "whether to write the files anew")]
fn is_blessing() -> bool {
    std::env::var_os("GATELET_BLESS").is_some()
}

#[track_caller]
fn compare(path: &Path, found: &str) {
    if is_blessing() {
        std::fs::write(path, found).unwrap();
    }
    assert_eq!(found, read(path), "{}", path.display());
}

/// A machine with the host on it, with this in every one of its files.
fn machine(host: &Host, platform: Platform, text: Option<&str>) -> MadeUp {
    let environment = environment(platform);
    let mut machine = MadeUp::default();
    for location in host.locations.on(platform) {
        let sign = environment.expand(&location.marker.replace('*', "pzs8sxrjxfjjc"));
        machine.files.insert(environment.join(sign.to_str().unwrap(), "anything"), Vec::new());
    }
    for file in host.files(&environment, &machine) {
        if let Some(text) = text {
            machine.files.insert(file, text.as_bytes().to_vec());
        }
    }
    machine
}

fn install(host: &'static Host, machine: &MadeUp, reach: Reach) -> Vec<FileChange> {
    install_on(host, machine, Platform::Linux, &[reach, program()])
}

fn install_on(
    host: &'static Host,
    machine: &MadeUp,
    platform: Platform,
    reach: &[Reach],
) -> Vec<FileChange> {
    let server = Server { name: "gatelet", reach, is_same: &is_ours };
    plan::install(host, &server, &Scope::User, &environment(platform), machine).unwrap()
}

fn text(change: &FileChange) -> String {
    String::from_utf8(change.after.clone().unwrap()).unwrap()
}

#[test]
fn every_host_is_written_as_its_files_say() {
    for host in HOSTS {
        let before = read(&file(host, "before"));
        let machine = machine(host, Platform::Linux, Some(&before));
        for (name, reach) in [("stdio", program()), ("http", address())] {
            for change in install(host, &machine, reach) {
                compare(&file(host, name), &text(&change));
                let reverted = change
                    .steps
                    .iter()
                    .rev()
                    .fold(text(&change), |text, step| step.revert(&text, host.format).unwrap());
                assert_eq!(reverted, before, "{}: taken back by structure", host.id);
            }
        }
    }
}

#[test]
fn on_macos_and_windows_every_host_reads_the_paths_that_were_meant() {
    for host in HOSTS {
        let before = read(&file(host, "before"));
        for (platform, name) in &PLATFORMS[1..] {
            let machine = machine(host, *platform, Some(&before));
            let reach = program_on(*platform);
            for change in install_on(host, &machine, *platform, std::slice::from_ref(&reach)) {
                compare(&file(host, name), &text(&change));
                let entries = plan::entries_after(&change);
                let (_, entry) = entries.iter().find(|(name, _)| name == "gatelet").unwrap();
                assert_eq!(Reach::from_entry(entry), Some(reach.clone()), "{}", host.id);
                let steps = change.steps.iter().rev();
                let reverted = steps
                    .fold(text(&change), |text, step| step.revert(&text, host.format).unwrap());
                assert_eq!(reverted, before, "{}: taken back by structure", host.id);
            }
        }
    }
}

#[test]
fn what_a_host_wrote_meanwhile_stays_when_gatelet_goes() {
    for host in HOSTS {
        let machine = machine(host, Platform::Linux, Some(&read(&file(host, "before"))));
        let change = install(host, &machine, program()).remove(0);
        let changed = read(&file(host, "changed"));
        let undone = change
            .steps
            .iter()
            .rev()
            .fold(changed, |text, step| step.revert(&text, host.format).unwrap());
        compare(&file(host, "undone"), &undone);
        assert!(!undone.contains("gatelet"), "{}", host.id);
    }
}

#[test]
fn every_host_reads_its_file_where_its_platform_keeps_it() {
    for host in HOSTS {
        let mut found = String::new();
        for (platform, name) in PLATFORMS {
            let machine = machine(host, platform, Some(&read(&file(host, "before"))));
            for change in install_on(host, &machine, platform, &[program()]) {
                found += &format!("{name}: {}\n", change.path.display());
            }
        }
        compare(&directory(host).join("paths.txt"), &found);
    }
}

#[test]
fn to_install_twice_is_to_install_once() {
    for host in HOSTS {
        for name in ["stdio", "http"] {
            let installed = read(&file(host, name));
            let machine = machine(host, Platform::Linux, Some(&installed));
            let reach = if name == "stdio" { program() } else { address() };
            for change in install(host, &machine, reach) {
                assert!(change.is_empty(), "{}: {:?}", host.id, change.steps);
            }
        }
    }
}

#[test]
fn a_host_without_a_file_gets_one_that_holds_gatelet_alone() {
    for host in HOSTS {
        let machine = machine(host, Platform::Linux, None);
        let server = Server { name: "gatelet", reach: &[program()], is_same: &is_ours };
        let planned =
            plan::install(host, &server, &Scope::User, &environment(Platform::Linux), &machine);
        match host.if_missing {
            hosts::host::IfMissing::Create => {
                for change in planned.unwrap() {
                    assert!(change.before.is_none(), "{}", host.id);
                    let root = document::parse(&text(&change), host.format).unwrap().to_json();
                    assert_eq!(root.as_object().unwrap().len(), 1, "{}: {root}", host.id);
                    assert!(text(&change).contains("/usr/local/bin/gatelet"));
                }
            }
            hosts::host::IfMissing::Refuse(remedy) => {
                assert!(planned.unwrap_err().to_string().contains(remedy), "{}", host.id);
            }
        }
    }
}

#[test]
fn nothing_is_invented_for_a_host_that_is_not_there() {
    let nothing = MadeUp::default();
    for host in HOSTS {
        for (platform, _) in PLATFORMS {
            let server = Server { name: "gatelet", reach: &[program()], is_same: &is_ours };
            let environment = environment(platform);
            let refused = plan::install(host, &server, &Scope::User, &environment, &nothing);
            let why = refused.unwrap_err().to_string();
            assert!(why.contains("is not on this machine (looked for "), "{why}");
        }
    }
}

#[test]
fn a_program_alone_shows_that_a_host_is_there() {
    for host in HOSTS.iter().filter(|host| !host.programs.is_empty()) {
        let machine = MadeUp { programs: vec![host.programs[0]], ..MadeUp::default() };
        assert!(host.is_here(&environment(Platform::Linux), &machine), "{}", host.id);
        assert_eq!(host.files(&environment(Platform::Linux), &machine).len(), 1, "{}", host.id);
    }
}

#[test]
fn a_project_has_a_file_of_its_own() {
    let server = Server { name: "gatelet", reach: &[program()], is_same: &is_ours };
    for host in HOSTS.iter().filter(|host| host.if_missing == hosts::host::IfMissing::Create) {
        let scope = Scope::Project("/src/app".into());
        let environment = environment(Platform::Linux);
        let planned = plan::install(host, &server, &scope, &environment, &MadeUp::default());
        match host.project {
            Some(file) => assert_eq!(planned.unwrap()[0].path, Path::new("/src/app").join(file)),
            None => assert!(planned.unwrap_err().to_string().contains("--project"), "{}", host.id),
        }
    }
}

#[test]
fn the_guide_lists_every_host() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/install.md");
    let guide = read(&guide);
    for host in HOSTS {
        let row = format!("| {} | `{}` | ", host.name, host.id);
        assert!(guide.contains(&row), "{row}");
    }
    assert_eq!(guide.lines().filter(|line| line.starts_with("| ")).count(), HOSTS.len() + 1);
}

#[test]
fn names_are_unique_and_found_in_every_spelling() {
    for host in HOSTS {
        assert_eq!(Host::named(host.id).unwrap().id, host.id);
        assert_eq!(Host::named(host.name).unwrap().id, host.id);
        assert_eq!(Host::named(&host.id.to_uppercase().replace('-', "_")).unwrap().id, host.id);
    }
    assert!(Host::named("notepad").is_none());
}

#[track_caller]
fn cursor(before: &str) -> FileChange {
    let host = Host::named("cursor").unwrap();
    install(host, &machine(host, Platform::Linux, Some(before)), program()).remove(0)
}

#[test]
fn an_entry_that_leads_here_under_another_name_is_not_doubled() {
    let before =
        r#"{"mcpServers": {"my-gate": {"url": "http://localhost:4747/mcp", "timeout": 9}}}"#;
    let after = document::parse(&text(&cursor(before)), Format::Json).unwrap().to_json();
    let entry = &after["mcpServers"]["my-gate"];
    assert_eq!(after["mcpServers"].as_object().unwrap().len(), 1);
    assert_eq!((&entry["timeout"], entry.get("url")), (&serde_json::json!(9), None));
    assert_eq!(entry["command"], "/usr/local/bin/gatelet");
}

#[test]
fn of_two_that_lead_here_one_is_kept_and_the_other_is_named() {
    let before = r#"{"mcpServers": {"a": {"url": "http://h:4747/"}, "gatelet": {"command": "/old/gatelet"}}}"#;
    let change = cursor(before);
    assert!(text(&change).contains(r#""a": {"url": "http://h:4747/"}"#));
    assert!(change.notes[0].starts_with("`a` leads to the same place"), "{:?}", change.notes);
    let host = Host::named("cursor").unwrap();
    let machine = machine(host, Platform::Linux, Some(before));
    let server = Server { name: "gatelet", reach: &[], is_same: &is_ours };
    let environment = environment(Platform::Linux);
    let gone = plan::uninstall(host, &server, &Scope::User, &environment, &machine).unwrap();
    assert_eq!(text(&gone[0]), r#"{"mcpServers": {}}"#);
}

#[test]
fn what_a_user_set_in_our_entry_stays() {
    let before = r#"{"mcpServers": {"gatelet": {"type": "http", "url": "http://h:4747/", "alwaysLoad": false, "env": {"A": "b"}}}}"#;
    let host = Host::named("claude-code").unwrap();
    let machine = machine(host, Platform::Linux, Some(before));
    let change = install(host, &machine, program()).remove(0);
    let entry =
        &document::parse(&text(&change), Format::Json).unwrap().to_json()["mcpServers"]["gatelet"];
    assert_eq!(entry["alwaysLoad"], false);
    assert_eq!(entry["env"]["A"], "b");
    assert_eq!((&entry["type"], entry.get("url")), (&serde_json::json!("stdio"), None));
}

#[test]
fn a_list_that_would_hide_gatelet_is_told() {
    let host = Host::named("gemini").unwrap();
    let note = |before: &str| {
        let machine = machine(host, Platform::Linux, Some(before));
        install(host, &machine, program()).remove(0).notes.join(" ")
    };
    assert!(note(r#"{"mcp": {"allowed": ["x"]}}"#).contains("add `gatelet` to `mcp.allowed`"));
    assert_eq!(note(r#"{"mcp": {"allowed": ["gatelet"]}}"#), "");
    assert_eq!(note("{}"), "");
}

#[test]
fn the_newer_layout_of_opencode_is_recognised() {
    let host = Host::named("opencode").unwrap();
    let before = r#"{"mcp": {"servers": {"x": {"type": "local", "command": ["x"]}}}}"#;
    let machine = machine(host, Platform::Linux, Some(before));
    let after = text(&install(host, &machine, program())[0]);
    let after = document::parse(&after, Format::Json).unwrap().to_json();
    assert_eq!(after["mcp"]["servers"]["gatelet"]["codemode"], false);
}
