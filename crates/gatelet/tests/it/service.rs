//! One gatelet that stays, and hosts that reach it over pipes.

use serde_json::json;

use crate::kit::{Home, Pipe, Served, program, shell};

/// An upstream that leaves a mark whenever it is started.
fn counted(home: &Home) -> String {
    let starts = home.path().join("starts");
    let deed = "say(id, {\"content\": [{\"type\": \"text\", \"text\": str(os.getpid())}]})";
    let code = format!("open({starts:?}, 'a').write('x')\n{}", program(deed));
    format!(
        "[[upstream]]\nlabel = \"one\"\ncommand = \"python3\"\nargs = {}\n",
        json!(["-c", code])
    )
}

fn n_starts(home: &Home) -> usize {
    std::fs::read_to_string(home.path().join("starts")).unwrap_or_default().len()
}

#[test]
fn hosts_on_pipes_share_the_servers_of_the_gatelet_that_runs() {
    let home = Home::new();
    home.write("gatelet.toml", &counted(&home));
    let served = Served::start(&home);
    let mut one = Pipe::open_with(&home, &["connect"]);
    let mut other = Pipe::open_with(&home, &["connect"]);
    let first = one.call("one.act", &json!({}));
    assert_eq!(other.call("one.act", &json!({})), first, "the very same process answers");
    assert_eq!(n_starts(&home), 1);
    assert!(one.close().success(), "a host that goes is no error");
    assert_eq!(other.call("one.act", &json!({})), first);
    assert!(served.terminate().success());
    assert!(!other.close().success(), "its gatelet is gone");
}

#[test]
fn where_none_runs_a_host_is_served_all_the_same() {
    let home = Home::new();
    home.write("gatelet.toml", &counted(&home));
    let only = shell(&home, &["connect", "--only"]);
    assert!(only.code == 3 && only.err.contains("gatelet up"), "{only:?}");
    let mut pipe = Pipe::open_with(&home, &["connect"]);
    pipe.call("one.act", &json!({}));
    assert!(pipe.close().success());
}

/// A service manager that notes what it is told.
fn shell_with_manager(home: &Home, words: &[&str]) -> (i32, String) {
    if !home.path().join("bin/systemctl").exists() {
        let told = home.path().join("told");
        let script = format!("#!/bin/sh\necho \"$@\" >> {}\n", told.display());
        home.executable("bin/systemctl", &script);
    }
    let output =
        home.gatelet_with_bin().args(words).stdin(std::process::Stdio::null()).output().unwrap();
    let said = [output.stderr, output.stdout].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
}

#[cfg(target_os = "linux")]
#[test]
fn up_writes_a_unit_that_runs_and_down_takes_it_away() {
    let home = Home::with("[serve]\nlisten = \"127.0.0.1:0\"\n");
    let dry = shell(&home, &["up", "--dry-run"]);
    assert!(dry.code == 0 && dry.out.contains("ExecStart="), "{dry:?}");
    assert!(!home.path().join(".config").exists());
    let (code, err) = shell_with_manager(&home, &["up"]);
    assert_eq!(code, 0, "{err}");
    let unit = home.read(".config/systemd/user/gatelet.service");
    assert!(unit.contains("gatelet.toml") && unit.contains("PATH="), "{unit}");
    let told = home.read("told");
    assert_eq!(
        told.lines().collect::<Vec<_>>(),
        [
            "--user show-environment",
            "--user daemon-reload",
            "--user enable gatelet.service",
            "--user restart gatelet.service"
        ]
    );
    let (code, _) = shell_with_manager(&home, &["restart"]);
    assert_eq!(code, 0);
    let (code, err) = shell_with_manager(&home, &["down"]);
    assert!(code == 1 && err.contains("--yes"), "{err}");
    let (code, err) = shell_with_manager(&home, &["down", "--yes"]);
    assert_eq!(code, 0, "{err}");
    assert!(home.read("told").contains("--user disable --now gatelet.service"));
    assert!(!home.path().join(".config/systemd/user/gatelet.service").exists());
    let (code, err) = shell_with_manager(&home, &["down", "--yes"]);
    assert!(code == 2 && err.contains("gatelet up"), "{err}");
}

/// Runs gatelet where the service manager does not answer.
fn shell_without_manager(home: &Home, words: &[&str]) -> (i32, String) {
    home.executable("bin/systemctl", "#!/bin/sh\necho no bus >&2\nexit 1\n");
    shell_with_manager(home, words)
}

#[cfg(target_os = "linux")]
#[test]
fn without_a_service_manager_nothing_is_written_and_what_is_there_can_go() {
    let home = Home::with("[serve]\nlisten = \"127.0.0.1:0\"\n");
    let unit = home.path().join(".config/systemd/user/gatelet.service");
    let (code, err) = shell_without_manager(&home, &["up"]);
    assert!(code != 0 && err.contains("no service manager"), "{err}");
    assert!(!unit.exists());
    let (_, report) = shell_without_manager(&home, &["doctor"]);
    assert!(report.contains("not-running") && !report.contains("\"gatelet up\""), "{report}");
    // Written while there was a manager, or for one.
    let (code, err) = shell_without_manager(&home, &["up", "--no-start"]);
    assert!(code == 0 && unit.exists(), "{err}");
    let (code, err) = shell_without_manager(&home, &["down", "--yes"]);
    assert!(code == 0 && err.contains("no bus") && !unit.exists(), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_unit_of_somebody_else_is_left_alone_and_a_bad_configuration_is_no_service() {
    let home = Home::with("[builtin]\ntools = true\n");
    home.write(".config/systemd/user/gatelet.service", "[Unit]\n");
    let (code, err) = shell_with_manager(&home, &["up"]);
    assert!(code == 2 && err.contains("--force"), "{err}");
    let (code, _) = shell_with_manager(&home, &["down", "--yes"]);
    assert_eq!(code, 1);
    assert_eq!(home.read(".config/systemd/user/gatelet.service"), "[Unit]\n");
    home.write("gatelet.toml", "[serve]\nlisten = \"0.0.0.0:4747\"\n");
    let (code, err) = shell_with_manager(&home, &["up", "--force"]);
    assert!(code == 2 && err.contains("refuse to start"), "{err}");
    // Another configuration is another service.
    home.write("other.toml", "[builtin]\ntools = true\n");
    let (code, err) = shell_with_manager(&home, &["up", "--config", "other.toml", "--no-start"]);
    assert_eq!(code, 0, "{err}");
    let units = std::fs::read_dir(home.path().join(".config/systemd/user")).unwrap().count();
    assert_eq!(units, 2);
}
