//! What the system around gatelet really does: its keyring, its service manager, its
//! container engine as far as a stand-in goes.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::kit::{Home, program, shell};

/// Runs a script of the shell in a desktop session of its own, whose keyring is
/// unlocked with a password first or stays locked. `$GATELET` is the program.
fn in_session(home: &Home, unlock: bool, script: &str) -> Output {
    let run = home.path().join("run");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o700)).unwrap();
    let unlocked =
        "printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1\n";
    let script = if unlock { format!("{unlocked}{script}") } else { script.to_owned() };
    let mut session = Command::new("dbus-run-session");
    home.settle(&mut session);
    session.args(["--", "sh", "-c", &script]).env("GATELET", env!("CARGO_BIN_EXE_gatelet"));
    session.env("XDG_RUNTIME_DIR", run).env_remove("DBUS_SESSION_BUS_ADDRESS");
    session.env_remove("XDG_DATA_HOME").stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_secret_lives_in_the_keyring_of_a_real_desktop_session() {
    testkit::needs!(Keyring);
    let deed = "say(id, {\"content\": [{\"type\": \"text\", \"text\": 'length ' + str(len(os.environ['KEY']))}]})";
    let args = json!(["-c", program(deed)]);
    let home = Home::with(&format!(
        "[[upstream]]\nlabel = \"one\"\ncommand = \"python3\"\nargs = {args}\nenv = {{ KEY = \"${{keyring:one/KEY}}\" }}\n"
    ));
    let script = "\
        printf 'k\\303\\266nig \"$x\"' | $GATELET secret set one/KEY || exit 10\n\
        $GATELET secret list || exit 11\n\
        secret-tool lookup service gatelet account one/KEY || exit 12\n\
        $GATELET call one.act --text || exit 13\n\
        $GATELET secret rm one/KEY --force || exit 14\n\
        secret-tool lookup service gatelet account one/KEY && exit 15\n\
        $GATELET call one.act && exit 16\n\
        exit 0";
    let ended = in_session(&home, true, script);
    let (out, err) = (text(&ended.stdout), text(&ended.stderr));
    assert!(ended.status.success(), "{:?}\n{out}\n{err}", ended.status);
    assert!(out.contains("\"place\": \"keyring\""), "{out}");
    assert!(out.contains("könig \"$x\""), "the keyring has it as it is: {out}");
    assert!(out.contains("length 10"), "the server got it: {out}");
    assert!(err.contains("gatelet secret set one/KEY"), "{err}");
    assert!(!home.path().join("state/credentials").exists(), "nothing is kept twice");
}

/// The unit as `gatelet up` would write it, under a name that systemd takes.
#[cfg(target_os = "linux")]
#[test]
fn systemd_finds_nothing_wrong_with_the_unit_and_reads_its_words() {
    testkit::needs!(Systemd);
    let home = Home::new();
    // What systemd would take for a specifier, a variable, a quote or the end of a word.
    let odd = "100% $HOME \\n \"y\" 'z'.toml";
    home.write(odd, "[serve]\nlisten = \"127.0.0.1:0\"\n");
    let dry = shell(&home, &["up", "--dry-run", "--config", odd]);
    assert_eq!(dry.code, 0, "{dry:?}");
    home.write("units/gatelet.service", &dry.out);
    let verify = |name: &str| {
        let mut command = Command::new("systemd-analyze");
        home.settle(&mut command);
        command.args(["verify", "--user", "--man=no", "--recursive-errors=no"]);
        command.env("XDG_RUNTIME_DIR", home.path()).arg(home.path().join(name));
        let ended = command.stdin(Stdio::null()).output().unwrap();
        (ended.status.success(), text(&ended.stderr))
    };
    let (is_sound, told) = verify("units/gatelet.service");
    assert!(is_sound && !told.contains("gatelet.service"), "{told}");
    // It does notice: a key that it does not know, and a program that is not there.
    let damaged = dry.out.replace("RestartSec=2", "RestartSecs=2");
    home.write("units/gatelet-odd.service", &damaged);
    let (_, told) = verify("units/gatelet-odd.service");
    assert!(told.contains("RestartSecs"), "{told}");
    let gone = dry.out.replace(env!("CARGO_BIN_EXE_gatelet"), "/nowhere/gatelet");
    home.write("units/gatelet-gone.service", &gone);
    let (is_sound, told) = verify("units/gatelet-gone.service");
    assert!(!is_sound && told.contains("/nowhere/gatelet"), "{told}");
}

#[test]
fn a_parser_of_property_lists_reads_the_words_of_the_agent() {
    let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    // What `gatelet up` writes on macOS, as a unit test compares it.
    let agent = own.join("src/commands/service/cases/gatelet.plist");
    let script =
        "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
    let read = Command::new("python3").args(["-c", script]).arg(agent).output().unwrap();
    let told: Value = serde_json::from_slice(&read.stdout).unwrap_or_else(|_| panic!("{read:?}"));
    let words =
        json!(["/opt/my tools/gatelet", "serve", "--config", "/home/ann/100%/$x \"y\" <&>.toml"]);
    assert_eq!(told["ProgramArguments"], words);
    assert_eq!(told["KeepAlive"]["SuccessfulExit"], false);
    assert_eq!(told["RunAtLoad"], true);
}

/// An engine that notes its command line and then runs what it was to run, without
/// any container: what a real engine would do with the words was never seen here.
fn stand_in(home: &Home) {
    let note = home.path().join("told");
    let script = format!(
        "#!/usr/bin/env python3\nimport json, os, sys\nwords = sys.argv[1:]\n\
         json.dump({{'words': words, 'key': os.environ.get('KEY')}}, open({note:?}, 'w'))\n\
         at = words.index('python:3-slim')\nos.execvp(words[at + 1], words[at + 1:])\n",
        note = note.display().to_string(),
    );
    home.executable("bin/docker", &script);
}

#[test]
fn a_server_in_a_container_is_started_with_what_its_policy_allows_and_nothing_more() {
    let home = Home::new();
    stand_in(&home);
    let deed = "say(id, {\"content\": [{\"type\": \"text\", \"text\": \"acted\"}]})";
    let (read, write) = (home.path().join("in"), home.path().join("out"));
    for directory in [&read, &write] {
        std::fs::create_dir(directory).unwrap();
    }
    let args = json!(["-c", program(deed)]);
    home.write(
        "gatelet.toml",
        &format!(
            "[[upstream]]\nlabel = \"one\"\ncommand = \"python3\"\nargs = {args}\nenv = {{ KEY = \"S3CRET\" }}\n\
             sandbox = {{ container = \"python:3-slim\", read = [{read:?}], write = [{write:?}], network = \"none\" }}\n"
        ),
    );
    let mut call = home.gatelet_with_bin();
    let called = call.args(["call", "one.act", "--text"]).output().unwrap();
    assert!(text(&called.stdout).contains("acted"), "{called:?}");
    let told: Value = serde_json::from_str(&home.read("told")).unwrap();
    let words: Vec<&str> =
        told["words"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let at = words.iter().position(|word| *word == "python:3-slim").unwrap();
    let flags = words[..at].join(" ");
    assert!(flags.starts_with("run ") && flags.contains("--rm") && flags.contains("-i"), "{flags}");
    assert!(flags.contains("--network none") || flags.contains("--network=none"), "{flags}");
    assert!(
        flags.contains(&format!("{}:ro", read.display())) || flags.contains("readonly"),
        "{flags}"
    );
    assert!(flags.contains(write.to_str().unwrap()), "{flags}");
    // Its variable goes by name, so that no list of processes shows what it holds.
    assert!(!words.join(" ").contains("S3CRET") && told["key"] == "S3CRET", "{told}");
    assert!(flags.contains("KEY") && !flags.contains("--privileged"), "{flags}");
    let home_mounted = words.iter().any(|word| *word == format!("{0}:{0}", home.path().display()));
    assert!(!home_mounted && !flags.contains("docker.sock"), "{flags}");
}
