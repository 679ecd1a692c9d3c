//! Packages are made of the debug program, installed into clean places and run
//! from there, as people install and run them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use testkit::needs;

/// The packages of one kind, in a directory of their own.
struct Packages {
    place: TempDir,
}

impl Packages {
    /// Makes them of the program that stands beside the chores, without its symbols:
    /// those of a debug build are most of it.
    fn of(kind: &str) -> Packages {
        let place = TempDir::new().unwrap();
        let stripped = place.path().join("gatelet");
        done(Command::new("strip").arg("-o").arg(&stripped).arg(program()));
        let mut dist = Command::new(env!("CARGO_BIN_EXE_xtask"));
        dist.args(["dist", "--fast", "--only", kind, "--binary"]).arg(&stripped);
        let told = done(dist.arg("--out").arg(place.path().join("out")));
        if cfg!(target_os = "linux") {
            assert!(told.contains("it needs glibc 2."), "{told}");
        }
        Packages { place }
    }

    /// The one that is called like this.
    #[track_caller]
    fn named(&self, matches: impl Fn(&str) -> bool) -> PathBuf {
        let files: Vec<PathBuf> =
            fs::read_dir(self.out()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let found: Vec<&PathBuf> = files
            .iter()
            .filter(|path| matches(path.file_name().unwrap().to_str().unwrap()))
            .collect();
        assert_eq!(found.len(), 1, "{files:?}");
        found[0].clone()
    }

    fn out(&self) -> PathBuf {
        self.place.path().join("out")
    }

    /// An empty directory to install into.
    fn prefix(&self) -> PathBuf {
        let prefix = self.place.path().join("prefix");
        fs::create_dir(&prefix).unwrap();
        prefix
    }
}

/// The debug program. `cargo xtask test` builds it before the tests.
#[track_caller]
fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name("gatelet");
    assert!(program.exists(), "no {}: run `cargo build -p gatelet` first", program.display());
    program
}

/// Runs a command that must succeed, and returns what it printed.
#[track_caller]
fn done(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{told}\n{error}", output.status);
    told
}

/// The program in an empty home.
fn at_home(program: &Path, home: &TempDir) -> Command {
    let mut command = Command::new(program);
    command.env("HOME", home.path()).current_dir(home.path());
    for variable in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "GATELET_CONFIG", "GATELET_STATE"] {
        command.env_remove(variable);
    }
    command
}

/// An installed program tells its version, calls a tool, and serves a pipe.
#[track_caller]
fn works(program: &Path) {
    let home = TempDir::new().unwrap();
    let told = done(at_home(program, &home).arg("--version"));
    assert!(told.starts_with("gatelet "), "{told}");
    let called = done(at_home(program, &home).args(["call", "text.count", "text=one two"]));
    assert!(called.contains('2'), "{called}");

    let mut serving = serve(at_home(program, &home).args(["serve", "--stdio"]));
    let answer = initialize(&mut serving);
    assert!(answer.contains("\"serverInfo\""), "{answer}");
    drop(serving.stdin.take());
    assert!(serving.wait().unwrap().success());
}

fn serve(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Greets a server on a pipe, and returns its answer.
fn initialize(serving: &mut Child) -> String {
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    writeln!(serving.stdin.as_mut().unwrap(), "{hello}").unwrap();
    let mut answer = String::new();
    BufReader::new(serving.stdout.as_mut().unwrap()).read_line(&mut answer).unwrap();
    answer
}

#[test]
fn the_archive_unpacks_to_a_program_with_its_manual_and_its_components() {
    needs!(Packing);
    let packages = Packages::of("archive");
    let archive = packages.named(|name| name.ends_with(".tar.gz"));
    let prefix = packages.prefix();
    done(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&prefix));
    let inside = fs::read_dir(&prefix).unwrap().next().unwrap().unwrap().path();
    works(&inside.join("gatelet"));
    for file in ["man/gatelet.1", "man/gatelet-serve.1", "completions/_gatelet", "LICENSE-MIT"] {
        assert!(fs::metadata(inside.join(file)).unwrap().len() > 100, "{file}");
    }
    let manual = fs::read_to_string(inside.join("man/gatelet.1")).unwrap();
    assert!(manual.contains(".TH"), "{manual}");

    let bill = fs::read_to_string(inside.join("sbom.cdx.json")).unwrap();
    let bill: serde_json::Value = serde_json::from_str(&bill).unwrap();
    let names: Vec<&str> = bill["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|component| component["name"].as_str().unwrap())
        .collect();
    for inside in ["tokio", "ring", "libsqlite3-sys", "gatelet-gateway"] {
        assert!(names.contains(&inside), "{inside} is not in {names:?}");
    }
    for outside in ["syn", "proptest", "cc", "gatelet-testkit"] {
        assert!(!names.contains(&outside), "{outside} is in {names:?}");
    }
}

#[test]
fn checksums_hold_and_notice_a_changed_byte() {
    needs!(Packing);
    let packages = Packages::of("archive");
    let list = packages.named(|name| name.ends_with(".sha256"));
    let check = || {
        let mut command = Command::new("sha256sum");
        command.arg("--check").arg(&list).current_dir(packages.out());
        command
    };
    done(&mut check());
    let archive = packages.named(|name| name.ends_with(".tar.gz"));
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&archive, bytes).unwrap();
    assert!(!check().stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
}

#[test]
fn the_same_program_makes_the_same_bytes() {
    needs!(Packing);
    let [one, two] = ["wheel", "wheel"].map(Packages::of);
    let wheel =
        |packages: &Packages| fs::read(packages.named(|name| name.ends_with(".whl"))).unwrap();
    assert!(wheel(&one) == wheel(&two));
}

#[test]
#[cfg(target_os = "linux")]
fn the_debian_package_installs_runs_and_leaves_nothing_behind() {
    needs!(Dpkg);
    let packages = Packages::of("deb");
    let deb = packages.named(|name| name.ends_with(".deb"));
    let fields = done(Command::new("dpkg-deb").arg("--field").arg(&deb));
    assert!(fields.contains("Depends: libc6 (>= 2."), "{fields}");
    let root = packages.prefix();
    let database = root.join("var/lib/dpkg");
    fs::create_dir_all(database.join("info")).unwrap();
    fs::create_dir_all(database.join("updates")).unwrap();
    fs::write(database.join("status"), "").unwrap();
    // Libraries are the machine's, so what the package depends on is not in there.
    let dpkg = |words: &[&str]| {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", root.display())).args(["--force-depends"]);
        command.args(["--force-not-root", "--log=/dev/null"]).args(words);
        command
    };
    done(&mut dpkg(&["--install", deb.to_str().unwrap()]));
    works(&root.join("usr/bin/gatelet"));
    let manual = root.join("usr/share/man/man1/gatelet.1.gz");
    assert!(done(Command::new("gzip").arg("-dc").arg(manual)).contains(".TH"));
    assert!(root.join("usr/share/bash-completion/completions/gatelet").exists());
    done(&mut dpkg(&["--purge", "gatelet"]));
    let left = done(Command::new("find").arg(&root).args(["-name", "*gatelet*"]));
    assert_eq!(left, "");
}

#[test]
fn npm_installs_the_launcher_and_the_program_without_a_network() {
    needs!(Tools);
    let packages = Packages::of("npm");
    let launcher = packages.named(|name| {
        name.strip_prefix("gatelet-")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            && name.ends_with(".tgz")
    });
    let program = packages.named(|name| name.ends_with(".tgz") && name.contains("64-"));
    let prefix = packages.prefix();
    fs::write(prefix.join("package.json"), "{\"private\": true}\n").unwrap();
    let mut npm = Command::new("npm");
    npm.args(["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"]);
    npm.env("npm_config_cache", packages.place.path().join("cache"));
    done(npm.arg(&launcher).arg(&program).current_dir(&prefix));
    let installed = prefix.join("node_modules/gatelet/bin/gatelet.js");
    works(&installed);
    assert!(prefix.join("node_modules/.bin/gatelet").exists());

    // It ends as the program ends.
    let home = TempDir::new().unwrap();
    let status = at_home(&installed, &home).arg("--no-such-flag").stderr(Stdio::null()).status();
    assert_eq!(status.unwrap().code(), Some(2));
    let mut serving = serve(at_home(&installed, &home).args(["serve", "--stdio"]));
    initialize(&mut serving);
    done(Command::new("kill").arg("-TERM").arg(serving.id().to_string()));
    assert!(serving.wait().unwrap().success());

    // Without the program it says what is missing.
    fs::remove_dir_all(prefix.join("node_modules/@gatelet")).unwrap();
    let alone = at_home(&installed, &home).arg("--version").output().unwrap();
    assert_eq!(alone.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&alone.stderr).contains("@gatelet/"));
}

#[test]
fn pip_installs_the_wheel_and_takes_it_away_again() {
    needs!(Tools);
    let packages = Packages::of("wheel");
    let wheel = packages.named(|name| name.ends_with(".whl"));
    done(Command::new("python3").args(["-m", "zipfile", "--test"]).arg(&wheel));
    let prefix = packages.prefix();
    done(Command::new("python3").args(["-m", "venv"]).arg(&prefix));
    let pip = |words: &[&str]| {
        let mut command = Command::new(prefix.join("bin/pip"));
        command.arg("--disable-pip-version-check").args(words);
        command
    };
    done(pip(&["install", "--no-index", "--no-cache-dir"]).arg(&wheel));
    works(&prefix.join("bin/gatelet"));
    let shown = done(&mut pip(&["show", "--files", "gatelet"]));
    assert!(shown.contains("sboms/gatelet.cdx.json"), "{shown}");
    done(&mut pip(&["uninstall", "--yes", "gatelet"]));
    assert!(!prefix.join("bin/gatelet").exists());
}

/// What a host starts after `install` by a runner, of which only the cache has the program.
#[track_caller]
fn works_after_install(home: &TempDir, install: &mut Command) {
    let cursor = home.path().join(".cursor");
    fs::create_dir_all(&cursor).unwrap();
    done(install.args(["install", "cursor", "--yes"]));
    let entry = fs::read_to_string(cursor.join("mcp.json")).unwrap();
    let entry: serde_json::Value = serde_json::from_str(&entry).unwrap();
    let command = entry["mcpServers"]["gatelet"]["command"].as_str().unwrap();
    assert!(Path::new(command).starts_with(home.path().join(".local")), "{command}");
    works(Path::new(command));
}

#[test]
fn npm_exec_runs_the_program_without_installing_it_and_hosts_start_a_copy() {
    needs!(Tools);
    let packages = Packages::of("npm");
    let all = fs::read_dir(packages.out()).unwrap().map(|entry| entry.unwrap().path());
    let all: Vec<PathBuf> =
        all.filter(|path| path.extension().is_some_and(|end| end == "tgz")).collect();
    let home = TempDir::new().unwrap();
    let exec = || {
        let mut npm = at_home(Path::new("npm"), &home);
        npm.env("npm_config_cache", packages.place.path().join("cache"));
        npm.args(["exec", "--yes", "--offline", "--ignore-scripts"]);
        npm.args(all.iter().map(|file| format!("--package={}", file.display())));
        npm.args(["--", "gatelet"]);
        npm
    };
    let told = done(exec().arg("--version"));
    assert!(told.starts_with("gatelet "), "{told}");
    let mut serving = serve(exec().args(["serve", "--stdio"]));
    let answer = initialize(&mut serving);
    assert!(answer.contains("\"serverInfo\""), "{answer}");
    drop(serving.stdin.take());
    assert!(serving.wait().unwrap().success());
    works_after_install(&home, &mut exec());
}

#[test]
fn uvx_runs_the_wheel_without_installing_it_and_hosts_start_a_copy() {
    needs!(Tools);
    let packages = Packages::of("wheel");
    let wheel = packages.named(|name| name.ends_with(".whl"));
    let home = TempDir::new().unwrap();
    let uvx = || {
        let mut uvx = at_home(&needs::tool("uv/bin/uvx"), &home);
        uvx.env("UV_CACHE_DIR", packages.place.path().join("cache"));
        uvx.env("UV_PYTHON_DOWNLOADS", "never");
        uvx.args(["--offline", "--no-config", "--from"]).arg(&wheel).arg("gatelet");
        uvx
    };
    let told = done(uvx().arg("--version"));
    assert!(told.starts_with("gatelet "), "{told}");
    let mut serving = serve(uvx().args(["serve", "--stdio"]));
    let answer = initialize(&mut serving);
    assert!(answer.contains("\"serverInfo\""), "{answer}");
    drop(serving.stdin.take());
    assert!(serving.wait().unwrap().success());
    works_after_install(&home, &mut uvx());
}

#[test]
fn what_the_image_runs_serves_and_its_health_check_sees_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = fs::read_to_string(root.join("packaging/docker/Dockerfile")).unwrap();
    let user = text.lines().rfind(|line| line.starts_with("USER ")).unwrap();
    assert!(!user.contains("root") && user != "USER 0", "{user}");
    let entry: Vec<String> = exec_form(&text, "ENTRYPOINT ");
    assert_eq!(entry, ["gatelet"]);
    let health = exec_form(&text, "    CMD ");
    // The port is the machine's choice here, and nobody else can reach it.
    let serves: Vec<String> = exec_form(&text, "CMD ")
        .into_iter()
        .map(|word| word.replace("0.0.0.0:4747", "127.0.0.1:0"))
        .collect();

    let home = TempDir::new().unwrap();
    let checked = || {
        let mut check = at_home(&program(), &home);
        check.args(&health[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap()
    };
    assert!(!checked().success(), "no gate runs yet");
    let mut serving = at_home(&program(), &home)
        .args(&serves)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // What it says first, it says when it listens.
    let mut said = BufReader::new(serving.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("http://127.0.0.1:")));
    let healthy = checked().success();
    done(Command::new("kill").arg("-TERM").arg(serving.id().to_string()));
    assert!(serving.wait().unwrap().success());
    assert!(healthy);
}

/// The words of an instruction in its JSON form.
#[track_caller]
fn exec_form(dockerfile: &str, instruction: &str) -> Vec<String> {
    let line = dockerfile.lines().find_map(|line| line.strip_prefix(instruction));
    serde_json::from_str(line.unwrap()).unwrap()
}
