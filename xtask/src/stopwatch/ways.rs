//! Every way to install the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Fresh;
use crate::run::{cargo, has, output, root};

/// A way from a package to `gatelet install`.
pub(super) struct Way {
    pub(super) name: &'static str,
    /// What a person types.
    pub(super) line: &'static str,
    /// Whether it takes minutes.
    pub(super) is_slow: bool,
    /// Installs it, and returns the command line that puts it into the host.
    pub(super) install: fn(&Fresh, &Path) -> Result<String>,
}

pub(super) const WAYS: &[Way] = &[
    Way { name: "npx", line: "npx gatelet install", is_slow: false, install: npx },
    Way {
        name: "npm",
        line: "npm install -g gatelet && gatelet install",
        is_slow: false,
        install: npm,
    },
    Way { name: "uvx", line: "uvx gatelet install", is_slow: false, install: uvx },
    Way {
        name: "pip, in an environment of its own",
        line: "pip install gatelet && gatelet install",
        is_slow: false,
        install: pip,
    },
    Way {
        name: "Debian",
        line: "apt install ./gatelet.deb && gatelet install",
        is_slow: false,
        install: deb,
    },
    Way {
        name: "archive",
        line: "tar xzf gatelet.tar.gz && ./gatelet install",
        is_slow: false,
        install: archive,
    },
    Way {
        name: "source",
        line: "cargo build --release -p gatelet && … install",
        is_slow: true,
        install: source,
    },
];

fn npx(fresh: &Fresh, packages: &Path) -> Result<String> {
    needs("npm")?;
    let (launcher, program) = npm_files(packages)?;
    // As `npx` does it, from files.
    Ok(format!(
        "npm --cache {} exec --yes --offline --package={} --package={} -- gatelet install",
        quoted(&fresh.path("cache")),
        quoted(&launcher),
        quoted(&program),
    ))
}

fn npm(fresh: &Fresh, packages: &Path) -> Result<String> {
    needs("npm")?;
    let (launcher, program) = npm_files(packages)?;
    let mut command = fresh.command("npm");
    command.args(["install", "--global", "--offline", "--no-audit", "--no-fund", "--prefix"]);
    command.arg(fresh.path("prefix")).env("npm_config_cache", fresh.path("cache"));
    done(command.arg(launcher).arg(program))?;
    Ok(install_with(&fresh.path("prefix/bin/gatelet")))
}

fn uvx(fresh: &Fresh, packages: &Path) -> Result<String> {
    needs("uvx")?;
    let wheel = file(packages, |name| name.ends_with(".whl"))?;
    let cache = fresh.path("cache");
    Ok(format!(
        "uvx --offline --cache-dir {} --from {} gatelet install",
        quoted(&cache),
        quoted(&wheel)
    ))
}

fn pip(fresh: &Fresh, packages: &Path) -> Result<String> {
    needs("python3")?;
    let wheel = file(packages, |name| name.ends_with(".whl"))?;
    let prefix = fresh.path("prefix");
    done(fresh.command("python3").args(["-m", "venv"]).arg(&prefix))?;
    let mut pip = fresh.command(prefix.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-cache-dir"]);
    done(pip.arg(wheel))?;
    Ok(install_with(&prefix.join("bin/gatelet")))
}

fn deb(fresh: &Fresh, packages: &Path) -> Result<String> {
    needs("dpkg")?;
    let deb = file(packages, |name| name.ends_with(".deb"))?;
    let prefix = fresh.path("prefix");
    let database = prefix.join("var/lib/dpkg");
    std::fs::create_dir_all(database.join("info"))?;
    std::fs::create_dir_all(database.join("updates"))?;
    std::fs::write(database.join("status"), "")?;
    let mut command = fresh.command("dpkg");
    command.arg(format!("--root={}", prefix.display()));
    command.args(["--force-depends", "--force-not-root", "--log=/dev/null", "--install"]);
    done(command.arg(deb))?;
    Ok(install_with(&prefix.join("usr/bin/gatelet")))
}

fn archive(fresh: &Fresh, packages: &Path) -> Result<String> {
    let archive = file(packages, |name| name.ends_with(".tar.gz"))?;
    let prefix = fresh.path("prefix");
    let mut command = fresh.command("tar");
    command.args(["--strip-components=1", "-xzf"]).arg(archive).arg("-C").arg(&prefix);
    done(&mut command)?;
    Ok(install_with(&prefix.join("gatelet")))
}

/// What a clone has, built where nothing was built before.
fn source(fresh: &Fresh, _: &Path) -> Result<String> {
    let (clone, target) = (fresh.path("prefix/gatelet"), fresh.path("prefix/target"));
    done(fresh.command("git").args(["clone", "--quiet", "--local"]).arg(root()).arg(&clone))?;
    let mut build = cargo(&["build", "--locked", "--release", "--package", "gatelet"]);
    done(build.current_dir(&clone).env("CARGO_TARGET_DIR", &target))?;
    Ok(install_with(&target.join("release/gatelet")))
}

/// The launcher and the program, as npm installs them.
fn npm_files(packages: &Path) -> Result<(PathBuf, PathBuf)> {
    let is_launcher = |name: &str| {
        let version = name.strip_prefix("gatelet-").and_then(|rest| rest.strip_suffix(".tgz"));
        version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_program = |name: &str| name.ends_with(".tgz") && !is_launcher(name);
    Ok((file(packages, is_launcher)?, file(packages, is_program)?))
}

/// The one package that is called like this.
fn file(packages: &Path, is_it: impl Fn(&str) -> bool) -> Result<PathBuf> {
    let entries = std::fs::read_dir(packages)
        .with_context(|| format!("no packages in {}", packages.display()))?;
    for entry in entries {
        let entry = entry?;
        if is_it(&entry.file_name().to_string_lossy()) {
            return Ok(entry.path());
        }
    }
    bail!("no such package in {}", packages.display())
}

fn install_with(program: &Path) -> String {
    format!("{} install", quoted(program))
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

fn needs(program: &str) -> Result<()> {
    if has(program) {
        return Ok(());
    }
    bail!("there is no `{program}`")
}

fn done(command: &mut Command) -> Result<()> {
    output(command.stdin(Stdio::null())).map(drop)
}
