//! What the tests need from Debian: interpreters, a browser, a keyring, servers.
//!
//! The tests start servers of their own, each with its own port and directory, and end
//! them; here it is only made sure that the programs are there. This table is the only
//! list of packages: the workflows install none beside it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::run::{output, run};

/// Programs by name, or files by path, and the packages that bring them.
const PACKAGES: &[(&[&str], &[&str])] = &[
    (&["npm"], &["nodejs", "npm"]),
    (&["python3"], &["python3", "python3-venv"]),
    (&["git"], &["git"]),
    (&["dpkg"], &["dpkg"]),
    (&["strip"], &["binutils"]),
    (&["/usr/bin/chromium"], &["chromium", "fonts-noto-core"]),
    (
        &["gnome-keyring-daemon", "secret-tool", "dbus-run-session"],
        &["gnome-keyring", "libsecret-tools", "dbus"],
    ),
    (&["systemd-analyze"], &["systemd"]),
    (&["mariadbd"], &["mariadb-server"]),
    (&["initdb"], &["postgresql"]),
    (&["redis-server", "redis-cli"], &["redis-server"]),
    (&["faketime"], &["faketime"]),
    (&["nginx"], &["nginx-light"]),
    (&["haproxy"], &["haproxy"]),
    (&["prometheus", "promtool"], &["prometheus"]),
];

/// Installs what is missing.
pub(crate) fn ensure() -> Result<()> {
    let missing = missing(&is_here);
    match missing.is_empty() {
        true => Ok(()),
        false => install(&missing),
    }
}

/// The packages of every row of which something is not there.
fn missing(is_here: &dyn Fn(&str) -> bool) -> Vec<&'static str> {
    let incomplete =
        PACKAGES.iter().filter(|(programs, _)| !programs.iter().all(|name| is_here(name)));
    incomplete.flat_map(|(_, packages)| packages.iter().copied()).collect()
}

/// Whether a program can be found, where the tests look for it too.
fn is_here(program: &str) -> bool {
    let mut places: Vec<PathBuf> =
        ["/usr/sbin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from).into();
    places.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        places.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    // A path stays itself.
    places.iter().any(|place| place.join(program).exists())
}

/// Installs packages: as root, or with `sudo` where it asks for no password.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let is_root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    let has_sudo = || {
        let mut probe = Command::new("sudo");
        probe.args(["-n", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    };
    let Some(begin) = apt_get(Path::new("/usr/bin/apt-get").exists(), is_root, has_sudo) else {
        bail!("please install {} (or run as root, or with sudo, on Debian)", packages.join(" "));
    };
    let quiet = |words: &[&str]| {
        let mut command = Command::new(begin[0]);
        command.args(&begin[1..]).args(["-qq", "-y", "-o", "Dpkg::Use-Pty=0"]).args(words);
        command.stdout(Stdio::null());
        command
    };
    run(&mut quiet(&["update"]))?;
    run(quiet(&["install", "--no-install-recommends"]).args(packages))
}

/// The words that `apt-get` is started with, for whoever may start it. `sudo` passes
/// no environment on, so `env` sets it behind it.
fn apt_get(
    is_debian: bool,
    is_root: bool,
    has_sudo: impl FnOnce() -> bool,
) -> Option<&'static [&'static str]> {
    const WORDS: &[&str] =
        &["sudo", "-n", "env", "DEBIAN_FRONTEND=noninteractive", "/usr/bin/apt-get"];
    match (is_debian, is_root) {
        (true, true) => Some(&WORDS[2..]),
        (true, false) if has_sudo() => Some(WORDS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::root;

    #[test]
    fn a_row_of_which_one_program_is_missing_is_installed_whole() {
        assert_eq!(missing(&|_| true), Vec::<&str>::new());
        let found = missing(&|name| name != "secret-tool" && name != "haproxy");
        assert_eq!(found, ["gnome-keyring", "libsecret-tools", "dbus", "haproxy"]);
    }

    #[test]
    fn packages_are_installed_by_root_or_with_sudo_or_not_at_all() {
        let root = ["env", "DEBIAN_FRONTEND=noninteractive", "/usr/bin/apt-get"];
        assert_eq!(apt_get(true, true, || panic!("root needs no sudo")).unwrap(), root);
        let sudo = apt_get(true, false, || true).unwrap();
        assert_eq!((&sudo[..2], &sudo[2..]), (&["sudo", "-n"][..], &root[..]));
        assert_eq!(apt_get(true, false, || false), None);
        assert_eq!(apt_get(false, true, || true), None, "no apt-get, nothing to start");
    }

    /// What stands between two texts, every time.
    fn between<'t>(text: &'t str, before: &str, after: &str) -> Vec<&'t str> {
        text.split(before).skip(1).filter_map(|rest| Some(rest.split_once(after)?.0)).collect()
    }

    #[test]
    fn every_program_that_tests_ask_for_has_a_package() {
        let place = root().join("crates/testkit/src/needs.rs");
        let needs = std::fs::read_to_string(place).unwrap();
        let asked = between(&needs, "program(\"", "\"");
        assert!(asked.contains(&"redis-server"), "{asked:?}");
        for program in asked {
            let is_known = PACKAGES.iter().any(|(programs, _)| programs.contains(&program));
            assert!(is_known, "no package brings `{program}`");
        }
    }

    #[test]
    fn a_workflow_that_runs_everything_may_install_what_the_table_says_and_nothing_else() {
        let place = root().join(".github/workflows");
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let path = path.display();
            assert!(!text.contains("apt-get install"), "{path}: packages belong in the table");
            // Whoever runs all tests is root in Debian, where the names of the table hold,
            // and has the parts of Rust that the image leaves out.
            for job in text.split("\n\n  ").filter(|job| job.contains(".ci/run")) {
                for needed in ["image: rust:1-bookworm", "--init", "component add clippy rustfmt"] {
                    assert!(job.contains(needed), "{path}: no `{needed}` in {job}");
                }
            }
        }
    }
}
