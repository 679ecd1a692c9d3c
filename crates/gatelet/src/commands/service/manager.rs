//! Controls services of the user with the service manager: systemd or launchd.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use sha2::{Digest, Sha256};
use tool::hex;

use crate::paths;

/// The service manager of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manager {
    Systemd,
    Launchd,
}

/// The name of the service of a configuration; `None` is the default configuration.
pub(super) fn name(config: Option<&Path>) -> String {
    let Some(config) = config else { return "gatelet".to_owned() };
    let digest = Sha256::digest(config.display().to_string().as_bytes());
    format!("gatelet-{}", hex::encode(&digest[..4]))
}

impl Manager {
    pub(super) fn of_this_system() -> Manager {
        if cfg!(target_os = "macos") { Manager::Launchd } else { Manager::Systemd }
    }

    /// The file of a service.
    pub(super) fn file(self, name: &str) -> Option<PathBuf> {
        Some(match self {
            Manager::Systemd => {
                let user = paths::user_directory("XDG_CONFIG_HOME", ".config")?;
                user.join("systemd/user").join(format!("{name}.service"))
            }
            Manager::Launchd => {
                let home = paths::user_directory("HOME", "")?;
                home.join("Library/LaunchAgents").join(format!("{name}.plist"))
            }
        })
    }

    /// Checks that the service manager runs and accepts commands. Changes nothing.
    pub(super) fn check(self) -> anyhow::Result<()> {
        match self {
            Manager::Systemd => systemctl(&["show-environment"]),
            Manager::Launchd => launchctl(&["print", &domain()]),
        }
    }

    pub(super) fn start(self, name: &str, file: &Path) -> anyhow::Result<()> {
        match self {
            Manager::Systemd => {
                systemctl(&["daemon-reload"])?;
                systemctl(&["enable", &format!("{name}.service")])?;
                // `restart` also replaces a service that runs with the old file.
                systemctl(&["restart", &format!("{name}.service")])
            }
            Manager::Launchd => {
                let _ = launchctl(&["bootout", &target(name)]);
                launchctl(&["bootstrap", &domain(), &file.display().to_string()])
            }
        }
    }

    pub(super) fn stop(self, name: &str, _: &Path) -> anyhow::Result<()> {
        match self {
            Manager::Systemd => systemctl(&["disable", "--now", &format!("{name}.service")]),
            Manager::Launchd => launchctl(&["bootout", &target(name)]),
        }
    }

    pub(super) fn restart(self, name: &str) -> anyhow::Result<()> {
        match self {
            Manager::Systemd => systemctl(&["restart", &format!("{name}.service")]),
            Manager::Launchd => launchctl(&["kickstart", "-k", &target(name)]),
        }
    }

    /// Makes the service manager notice that a file was removed.
    pub(super) fn reload(self) {
        if self == Manager::Systemd {
            let _ = systemctl(&["daemon-reload"]);
        }
    }
}

fn domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

fn target(name: &str) -> String {
    format!("{}/{name}", domain())
}

fn launchctl(words: &[&str]) -> anyhow::Result<()> {
    run("launchctl", words)
}

fn systemctl(words: &[&str]) -> anyhow::Result<()> {
    let words: Vec<&str> = std::iter::once("--user").chain(words.iter().copied()).collect();
    run("systemctl", &words)
}

fn run(program: &str, words: &[&str]) -> anyhow::Result<()> {
    let line = format!("`{program} {}`", words.join(" "));
    let missing = "there is no service manager here; run `gatelet serve` by other means, such as your session's start";
    let output = Command::new(program).args(words).output();
    let output = output.with_context(|| format!("cannot run {line}: {missing}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next_back().unwrap_or_default();
    anyhow::ensure!(output.status.success(), "{line} failed: {said} ({missing})");
    Ok(())
}
