//! What every package carries: the program, and what the program and the
//! repository say about it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::archive::Level;
use super::needs::Needs;
use super::sbom;
use super::target::Target;
use super::version::Version;
use crate::run::{cargo, output, root};

pub(crate) struct Payload {
    pub(crate) version: Version,
    pub(crate) target: &'static Target,
    pub(crate) program: Vec<u8>,
    pub(crate) needs: Needs,
    pub(crate) completions: Completions,
    /// Manual pages: `gatelet.1` and one for each command.
    pub(crate) manual: Vec<(String, Vec<u8>)>,
    /// The components that the program is made of, as CycloneDX.
    pub(crate) sbom: Vec<u8>,
    /// What all files are dated: the commit's time, in seconds since 1970.
    pub(crate) stamp: u64,
    pub(crate) level: Level,
}

/// What shells read.
pub(crate) struct Completions {
    pub(crate) bash: Vec<u8>,
    pub(crate) zsh: Vec<u8>,
    pub(crate) fish: Vec<u8>,
}

impl Payload {
    pub(crate) fn collect(binary: &Path, target: &'static Target, level: Level) -> Result<Payload> {
        let program =
            fs::read(binary).with_context(|| format!("no program at {}", binary.display()))?;
        let metadata = metadata(target)?;
        let version = Version::of_program(&metadata)?;
        let told = output(Command::new(binary).arg("--version"))?;
        if told.split_whitespace().nth(1) != Some(version.to_string().as_str()) {
            bail!("{} is `{}`, and the sources are {version}", binary.display(), told.trim());
        }
        let complete = |shell: &str| {
            output(Command::new(binary).args(["completions", shell])).map(String::into_bytes)
        };
        let stamp = stamp()?;
        Ok(Payload {
            target,
            program,
            needs: Needs::of(binary)?,
            completions: Completions {
                bash: complete("bash")?,
                zsh: complete("zsh")?,
                fish: complete("fish")?,
            },
            manual: manual(binary)?,
            sbom: sbom::make(&metadata, &version, target)?,
            stamp,
            level,
            version,
        })
    }

    /// The licences, which go wherever the program goes.
    pub(crate) fn licences(&self) -> Result<[(&'static str, Vec<u8>); 2]> {
        Ok([("LICENSE-MIT", read("LICENSE-MIT")?), ("LICENSE-APACHE", read("LICENSE-APACHE")?)])
    }
}

/// A file of the repository.
pub(crate) fn read(path: &str) -> Result<Vec<u8>> {
    fs::read(root().join(path)).with_context(|| format!("cannot read {path}"))
}

fn metadata(target: &Target) -> Result<serde_json::Value> {
    let flags = ["metadata", "--format-version", "1", "--locked", "--filter-platform"];
    let text = output(cargo(&flags).arg(target.triple))?;
    serde_json::from_str(&text).context("`cargo metadata` answers JSON")
}

fn manual(binary: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let place = tempfile::tempdir()?;
    output(Command::new(binary).arg("man").arg("--dir").arg(place.path()))?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(place.path())? {
        let entry = entry?;
        pages.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
    }
    if !pages.iter().any(|(name, _)| name == "gatelet.1") {
        bail!("{} writes no manual", binary.display());
    }
    pages.sort();
    Ok(pages)
}

/// `SOURCE_DATE_EPOCH`, or the time of the commit, or 1980 where there is none.
fn stamp() -> Result<u64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        return text.parse().with_context(|| format!("SOURCE_DATE_EPOCH is `{text}`"));
    }
    let commit =
        output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()));
    Ok(commit.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(315_532_800))
}
