//! Running other programs, with an error that says which one failed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("xtask stands in the repository's root").to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    // This program is in `debug` there.
    let own = std::env::current_exe().ok();
    let found = own.as_deref().and_then(|own| own.parent()?.parent());
    found.map_or_else(|| root().join("target"), Path::to_owned)
}

/// Runs a command to its end; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// Runs a command quietly and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` ended with {}: {}", output.status, reason.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a program can be started at all.
pub(crate) fn has(program: &str) -> bool {
    let probe = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    probe.is_ok_and(|status| status.success())
}

/// `cargo`, in the repository's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root());
    command
}

/// Where Cargo puts what it builds.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let text = output(&mut cargo(&["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let place = metadata["target_directory"].as_str();
    Ok(PathBuf::from(place.context("`cargo metadata` names no target directory")?))
}

fn show(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    words.join(" ")
}
