//! Real files: links, rights, other writers, and files that nobody wishes for.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use hosts::apply::{ApplyError, apply};
use hosts::change::FileChange;
use hosts::history::{History, State};
use hosts::plan::{self, Refusal, Scope, Server};
use hosts::{Disk, Environment, Host, Platform, undo};

use crate::made_up::{is_ours, program};

struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    fn new() -> Home {
        let home = Home { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir(home.path(".cursor")).unwrap();
        home
    }

    fn with(text: &str) -> Home {
        let home = Home::new();
        std::fs::write(home.cursor(), text).unwrap();
        home
    }

    fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    fn cursor(&self) -> PathBuf {
        self.path(".cursor/mcp.json")
    }

    fn environment(&self) -> Environment {
        let home = self.directory.path().display().to_string();
        Environment { platform: Platform::Linux, home, variables: [].into() }
    }

    fn disk(&self) -> Disk {
        Disk::new(&self.environment())
    }

    fn history(&self) -> History {
        History::at(self.path("state/hosts"))
    }

    fn plan(&self) -> Result<Vec<FileChange>, Refusal> {
        let server = Server { name: "gatelet", reach: &[program()], is_same: &is_ours };
        let host = Host::named("cursor").unwrap();
        plan::install(host, &server, &Scope::User, &self.environment(), &self.disk())
    }

    fn apply(&self, changes: &[FileChange]) -> Result<(), ApplyError> {
        apply(changes, "install", &self.history(), &self.disk()).map(drop)
    }

    #[track_caller]
    fn install(&self) {
        self.apply(&self.plan().unwrap()).unwrap();
    }

    #[track_caller]
    fn undo(&self) {
        let history = self.history();
        let records = history.records();
        let record = undo::latest(&records).unwrap();
        let changes = undo::plan(record, &history, &self.disk(), |_| true).unwrap();
        apply(&changes, "undo", &history, &self.disk()).unwrap();
        history.mark(record, State::Undone).unwrap();
    }

    /// All files below the home but the state, with what is in them.
    fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut open = vec![self.path(".cursor")];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                match entry.file_type().unwrap().is_dir() {
                    true => open.push(entry.path()),
                    false => {
                        found.push((entry.path(), std::fs::read(entry.path()).unwrap_or_default()))
                    }
                }
            }
        }
        found.sort();
        found
    }
}

const BEFORE: &str = "{\n\t// mine\n\t\"mcpServers\": {\n\t\t\"x\": {\"command\": \"x\"},\n\t},\n}";

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn what_is_installed_and_undone_is_as_it_was_to_the_byte() {
    for before in [BEFORE, "{}", "", "\u{feff}{\r\n}\r\n", "{\"mcpServers\": null}", "{ }\n\n"] {
        let home = Home::with(before);
        home.install();
        let text = std::fs::read_to_string(home.cursor()).unwrap();
        assert!(text.contains("/usr/local/bin/gatelet"), "{text}");
        home.undo();
        assert_eq!(std::fs::read_to_string(home.cursor()).unwrap(), before);
    }
}

#[test]
fn a_file_that_was_made_is_gone_after_undo() {
    let home = Home::new();
    home.install();
    assert_eq!(mode(&home.cursor()), 0o600);
    home.undo();
    assert!(home.everything().is_empty());
}

#[test]
fn rights_stay_and_links_stay_links() {
    let home = Home::new();
    std::fs::create_dir(home.path("dotfiles")).unwrap();
    let real = home.path("dotfiles/cursor.json");
    std::fs::write(&real, BEFORE).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink("../dotfiles/cursor.json", home.cursor()).unwrap();
    home.install();
    assert!(home.cursor().symlink_metadata().unwrap().file_type().is_symlink());
    assert!(std::fs::read_to_string(&real).unwrap().contains("gatelet"));
    assert_eq!(mode(&real), 0o640);
    assert_eq!(std::fs::read_dir(home.path("dotfiles")).unwrap().count(), 1);
    home.undo();
    assert_eq!(std::fs::read_to_string(&real).unwrap(), BEFORE);
}

#[test]
fn a_file_that_changed_since_the_preview_is_not_written() {
    let home = Home::with(BEFORE);
    let planned = home.plan().unwrap();
    std::fs::write(home.cursor(), "{\"other\": 1}").unwrap();
    let why = home.apply(&planned).unwrap_err();
    assert!(matches!(why, ApplyError::Changed(_)), "{why}");
    assert_eq!(std::fs::read_to_string(home.cursor()).unwrap(), "{\"other\": 1}");
    assert!(home.history().records().is_empty());
}

#[test]
fn of_several_files_all_are_written_or_none() {
    let home = Home::with(BEFORE);
    let mut planned = home.plan().unwrap();
    let blocked = home.path("blocked");
    std::fs::write(&blocked, "not a directory").unwrap();
    let second = FileChange { path: blocked.join("mcp.json"), before: None, ..planned[0].clone() };
    planned.push(second);
    let before = home.everything();
    let why = home.apply(&planned).unwrap_err().to_string();
    assert!(why.contains("nothing was changed"), "{why}");
    assert_eq!(home.everything(), before);
    assert!(home.history().records().is_empty());
}

#[test]
fn what_was_moved_already_is_put_back_when_a_later_file_cannot_be() {
    let home = Home::with(BEFORE);
    let mut planned = home.plan().unwrap();
    // A file is to go that has become a directory: known only when it is moved.
    let gone = home.path(".cursor/gone.json");
    std::fs::write(&gone, "x").unwrap();
    planned.push(FileChange {
        path: gone.clone(),
        before: Some(b"x".to_vec()),
        after: None,
        ..planned[0].clone()
    });
    struct Stubborn(Disk, PathBuf);
    impl hosts::Machine for Stubborn {
        fn read(&self, path: &Path) -> std::io::Result<Option<Vec<u8>>> {
            let is_moved = std::fs::read(&self.1).is_ok_and(|text| text != BEFORE.as_bytes());
            if is_moved && path.ends_with("gone.json") {
                return Err(std::io::Error::other("the disk is gone"));
            }
            self.0.read(path)
        }
        fn exists(&self, path: &Path) -> bool {
            self.0.exists(path)
        }
        fn names_in(&self, directory: &Path) -> Vec<String> {
            self.0.names_in(directory)
        }
        fn has_program(&self, name: &str) -> bool {
            self.0.has_program(name)
        }
        fn protection(&self, path: &Path) -> Option<&'static str> {
            self.0.protection(path)
        }
    }
    let machine = Stubborn(home.disk(), home.cursor());
    let why = apply(&planned, "install", &home.history(), &machine).unwrap_err().to_string();
    assert!(why.contains("nothing was changed"), "{why}");
    assert_eq!(std::fs::read_to_string(home.cursor()).unwrap(), BEFORE);
    assert_eq!(home.everything().len(), 2);
}

#[test]
fn two_at_once_do_not_write_at_once() {
    let home = Home::with(BEFORE);
    std::fs::create_dir_all(home.path("state/hosts")).unwrap();
    let lock = std::fs::File::create(home.path("state/hosts/lock")).unwrap();
    lock.lock().unwrap();
    assert!(matches!(home.apply(&home.plan().unwrap()), Err(ApplyError::Busy)));
}

#[test]
fn what_changed_since_is_undone_by_structure() {
    let home = Home::with(BEFORE);
    home.install();
    let text = std::fs::read_to_string(home.cursor()).unwrap();
    let changed = text.replace("// mine", "// mine, too");
    std::fs::write(home.cursor(), changed).unwrap();
    home.undo();
    let text = std::fs::read_to_string(home.cursor()).unwrap();
    assert_eq!(text, BEFORE.replace("// mine", "// mine, too"));
}

#[test]
fn what_somebody_else_took_out_or_removed_is_not_brought_back() {
    let home = Home::with(BEFORE);
    home.install();
    std::fs::write(home.cursor(), "{\"mcpServers\": {}}").unwrap();
    home.undo();
    assert_eq!(std::fs::read_to_string(home.cursor()).unwrap(), "{\"mcpServers\": {}}");
    let home = Home::with(BEFORE);
    home.install();
    std::fs::remove_file(home.cursor()).unwrap();
    home.undo();
    assert!(!home.cursor().exists());
}

#[test]
fn backups_are_for_their_owner_alone() {
    let home = Home::with(BEFORE);
    home.install();
    assert_eq!(mode(&home.path("state/hosts/0001")), 0o700);
    assert_eq!(mode(&home.path("state/hosts/0001/0.before")), 0o600);
    assert_eq!(mode(&home.path("state/hosts/0001/manifest.json")), 0o600);
}

#[test]
fn files_that_nobody_wishes_for_are_refused_and_left_alone() {
    let check = |prepare: &dyn Fn(&Home), expected: &str| {
        let home = Home::new();
        prepare(&home);
        let before = home.everything();
        let why = home.plan().unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
        assert!(why.contains("mcp.json"), "{why}");
        assert_eq!(home.everything(), before);
    };
    let text =
        |text: &'static [u8]| move |home: &Home| std::fs::write(home.cursor(), text).unwrap();
    check(&text(b"{\"mcpServers\": {"), "line 1, column 17");
    check(&text(b"{\"mcpServers\": []}"), "`mcpServers` is not a table");
    check(&text(b"{\"mcpServers\": {}, \"mcpServers\": {}}"), "twice");
    check(&text(b"\xff\xfe{\x00}\x00"), "not UTF-8");
    check(&|home| std::fs::create_dir(home.cursor()).unwrap(), "not a file");
    let pipe = |home: &Home| {
        let made = std::process::Command::new("mkfifo").arg(home.cursor()).status().unwrap();
        assert!(made.success());
    };
    let home = Home::new();
    pipe(&home);
    assert!(home.plan().unwrap_err().to_string().contains("not a file"));
    check(&|home| symlink("mcp.json", home.cursor()).unwrap(), "cannot read");
    check(&|home| symlink("nothing", home.cursor()).unwrap(), "a link to a file that is not there");
    check(
        &|home| std::fs::write(home.cursor(), "[".repeat(1_000_000)).unwrap(),
        "nested too deeply",
    );
    check(
        &|home| {
            let file = std::fs::File::create(home.cursor()).unwrap();
            file.set_len(hosts::machine::MAX_FILE_BYTES + 1).unwrap();
        },
        "longer than 64 MiB",
    );
}

#[test]
fn a_record_that_was_tampered_with_reads_no_other_file() {
    let home = Home::with(BEFORE);
    home.install();
    std::fs::write(home.path("secret"), "S3CRET").unwrap();
    let manifest = home.path("state/hosts/0001/manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("0.before", "../../../secret")).unwrap();
    let (history, records) = (home.history(), home.history().records());
    assert!(undo::plan(&records[0], &history, &home.disk(), |_| true).is_err());
}
