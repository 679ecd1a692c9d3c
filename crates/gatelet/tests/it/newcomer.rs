//! What somebody new runs into: a fresh home, a full disk, files without rights, a
//! program that runs out of a cache.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::kit::{Home, shell};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn findings(home: &Home) -> Vec<String> {
    let report = shell(home, &["doctor"]).json();
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_first_command_leaves_nothing_that_the_doctor_complains_of() {
    for words in [&["help"][..], &["call", "time.now"], &["approvals"], &["install", "--dry-run"]] {
        let home = Home::new();
        home.write(".cursor/mcp.json", "{}\n");
        let ended = shell(&home, words);
        assert_eq!(ended.code, 0, "{words:?}: {ended:?}");
        let state = home.path().join("state");
        assert!(!state.exists() || mode(&state) == 0o700, "{words:?}");
        let found = findings(&home);
        assert!(!found.iter().any(|code| code == "state-open"), "{words:?}: {found:?}");
    }
    let home = Home::new();
    home.write(".cursor/mcp.json", "{}\n");
    assert_eq!(shell(&home, &["install", "cursor", "--yes"]).code, 0);
    assert_eq!(mode(&home.path().join("state")), 0o700);
    assert_eq!(mode(&home.path().join("state/hosts")), 0o700);
}

/// Puts something at a path.
type Make = fn(&Path);

#[test]
fn whatever_stands_in_the_place_of_the_configuration_is_never_ignored() {
    let own = ".config/gatelet/gatelet.toml";
    let place = |home: &Home| home.path().join(own);
    let make: [(&str, Make); 3] = [
        ("it is not a file", |path| {
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }),
        ("it is not a file", |path| std::fs::create_dir(path).unwrap()),
        ("it is a link to a file that is not there", |path| symlink("nowhere", path).unwrap()),
    ];
    for (why, make) in make {
        let home = Home::new();
        home.write(".cursor/mcp.json", "{}\n");
        std::fs::create_dir_all(place(&home).parent().unwrap()).unwrap();
        make(&place(&home));
        for words in [
            &["help"][..],
            &["install", "cursor", "--yes"],
            &["add", "one", "--", "cat"],
            &["serve", "--stdio"],
        ] {
            let ended = shell(&home, words);
            assert_eq!(ended.code, 2, "{words:?}: {ended:?}");
            assert!(ended.err.contains(why) && ended.err.contains(own), "{words:?}: {ended:?}");
            assert_eq!(ended.err.matches(why).count(), 1, "said once: {ended:?}");
        }
        let found = findings(&home);
        assert!(found.iter().any(|code| code == "config-wrong"), "{found:?}");
        assert!(place(&home).symlink_metadata().is_ok(), "it is left as it was");
        assert_eq!(home.read(".cursor/mcp.json"), "{}\n");
    }
}

#[test]
fn a_host_whose_file_is_protected_is_left_out_and_the_others_are_not() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{}\n");
    home.write(".kiro/settings/mcp.json", "{}\n");
    home.write(".junie/mcp/mcp.json", "{}\n");
    let set = |below: &str, mode: u32| {
        let rights = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(home.path().join(below), rights).unwrap();
    };
    set(".kiro/settings/mcp.json", 0o444);
    set(".junie/mcp", 0o555);
    let mut command = home.gatelet();
    command.env("PATH", "/nowhere").args(["install", "--all", "--yes"]);
    let ended = command.stdin(Stdio::null()).output().unwrap();
    let told: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let left_out = told["left_out"].as_array().unwrap();
    let whys: Vec<&str> = left_out.iter().filter_map(|one| one["why"].as_str()).collect();
    assert_eq!(whys.len(), 2, "{told}");
    assert!(whys.iter().all(|why| why.contains("write-protected")), "{whys:?}");
    assert!(home.read(".cursor/mcp.json").contains("gatelet"));
    assert_eq!(home.read(".kiro/settings/mcp.json"), "{}\n");
    let named = shell(&home, &["install", "kiro", "--yes"]);
    assert!(named.code == 2 && named.err.contains("write-protected"), "{named:?}");
    // What was protected after it was written stays as it is, too.
    set(".cursor/mcp.json", 0o444);
    let gone = shell(&home, &["uninstall", "cursor", "--yes"]);
    assert!(gone.code == 2 && gone.err.contains("write-protected"), "{gone:?}");
    set(".junie/mcp", 0o755);
}

/// Runs gatelet in a home on a disk of its own that has no room left. `None` where
/// this user may not mount one.
fn on_a_full_disk(home: &Home, words: &[&str]) -> Option<Output> {
    let can = Command::new("unshare").args(["-rm", "true"]).stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        return None;
    }
    let script = "mount -t tmpfs -o size=64k tmpfs \"$HOME\" && cd \"$HOME\" && mkdir .cursor && \
                  printf '{}\\n' > .cursor/mcp.json && \
                  dd if=/dev/zero of=fill bs=1k 2>/dev/null; \
                  \"$0\" \"$@\"; code=$?; \
                  rm fill; echo; find . -type f | sort; cat .cursor/mcp.json; exit $code";
    let mut command = Command::new("unshare");
    home.settle(&mut command);
    command.args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_gatelet")]).args(words);
    Some(command.stdin(Stdio::null()).output().unwrap())
}

#[test]
fn a_full_disk_leaves_everything_as_it_was_and_names_the_file() {
    for (words, file) in
        [(&["init"][..], "gatelet.toml"), (&["install", "cursor", "--yes"], "state/hosts")]
    {
        let home = Home::new();
        let Some(ended) = on_a_full_disk(&home, words) else { return };
        let err = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(4), "{words:?}: {err}");
        assert!(err.contains("No space left") && err.contains(file), "{words:?}: {err}");
        let left = String::from_utf8_lossy(&ended.stdout).into_owned();
        let left: Vec<&str> =
            left.lines().filter(|line| line.starts_with("./") && !line.ends_with("lock")).collect();
        assert_eq!(left, ["./.cursor/mcp.json"], "{words:?}");
    }
}

/// The program where `npx` would keep it, as a link to the real one.
fn in_a_cache(home: &Home) -> std::path::PathBuf {
    let cache = home.path().join(".npm/_npx/1f/node_modules/@gatelet/linux-x64/bin");
    std::fs::create_dir_all(&cache).unwrap();
    let program = cache.join("gatelet");
    std::fs::hard_link(env!("CARGO_BIN_EXE_gatelet"), &program)
        .or_else(|_| std::fs::copy(env!("CARGO_BIN_EXE_gatelet"), &program).map(drop))
        .unwrap();
    program
}

#[test]
fn a_program_in_a_cache_is_copied_to_where_it_stays_and_goes_with_its_last_host() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{}\n");
    home.write(".kiro/settings/mcp.json", "{}\n");
    let program = in_a_cache(&home);
    let run = |words: &[&str]| {
        let mut command = Command::new(&program);
        home.settle(&mut command);
        command.env_remove("XDG_DATA_HOME").args(words).stdin(Stdio::null()).output().unwrap()
    };
    let stays = home.path().join(".local/share/gatelet/bin/gatelet");
    let dry = run(&["install", "cursor", "--dry-run"]);
    let told: Value = serde_json::from_slice(&dry.stdout).unwrap();
    assert_eq!(told["program"], stays.to_str().unwrap(), "{told}");
    assert!(!stays.exists());

    assert!(run(&["install", "cursor", "kiro", "--yes"]).status.success());
    let entry: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).unwrap();
    let command = entry["mcpServers"]["gatelet"]["command"].as_str().unwrap();
    assert_eq!(Path::new(command), stays);
    // The cache is emptied: the entry works all the same.
    std::fs::rename(home.path().join(".npm"), home.path().join("emptied")).unwrap();
    let version = Command::new(command).arg("--version").output().unwrap();
    assert!(version.status.success(), "{version:?}");
    std::fs::rename(home.path().join("emptied"), home.path().join(".npm")).unwrap();
    let report: Value = serde_json::from_slice(&run(&["doctor"]).stdout).unwrap();
    assert!(!report["findings"].to_string().contains("host-other-program"), "{report}");

    // An older copy is brought up to date, though no file changes.
    std::fs::write(&stays, "old").unwrap();
    assert!(run(&["install", "cursor", "kiro", "--yes"]).status.success());
    assert!(std::fs::metadata(&stays).unwrap().len() > 1000);

    assert!(run(&["uninstall", "kiro", "--yes"]).status.success());
    assert!(stays.exists(), "Cursor still starts it");
    assert!(run(&["uninstall", "cursor", "--yes"]).status.success());
    assert!(!stays.exists() && !home.path().join(".local/share/gatelet").exists());
}
