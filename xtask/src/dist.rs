//! `cargo xtask dist`: the program as people install it.
//!
//! One run builds the `dist` profile for the machine it runs on, asks the program
//! itself for its completions and manual, and makes every package of that
//! platform: an archive, a Debian package, two npm packages, a wheel, and a list
//! of checksums. The same sources make the same bytes. It uploads nothing.

mod archive;
mod needs;
mod payload;
mod sbom;
mod target;
mod version;

mod deb;
mod formula;
mod npm;
mod tarball;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::run::{self, cargo, root};
use archive::Level;
use payload::Payload;
use target::Target;

const USAGE: &str = "\
usage: cargo xtask dist [--binary FILE] [--out DIR] [--glibc 2.N] [--only KIND] [--fast]
       cargo xtask dist formula DIR --url URL

  --binary FILE   pack this program instead of building the `dist` profile
  --out DIR       where the packages go (target/packages)
  --glibc 2.N     fail when the program needs a newer glibc than this
  --only KIND     only one of: archive, deb, npm, wheel
  --fast          compress little: for tests
  formula DIR     the Homebrew formula of the archives in DIR, which are found under URL";

/// A file that is handed out.
struct Package {
    name: String,
    bytes: Vec<u8>,
}

/// What a run was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    binary: Option<PathBuf>,
    out: Option<PathBuf>,
    glibc: Option<needs::Glibc>,
    only: Option<Kind>,
    level: Level,
}

/// A kind of package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Archive,
    Deb,
    Npm,
    Wheel,
}

/// Every kind, and what the command line calls it.
const KINDS: [(&str, Kind); 4] =
    [("archive", Kind::Archive), ("deb", Kind::Deb), ("npm", Kind::Npm), ("wheel", Kind::Wheel)];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((first, rest)) if first == "formula" => formula::run(rest),
        _ => pack(wanted(arguments)?),
    }
}

fn wanted(arguments: &[String]) -> Result<Wanted> {
    let mut wanted = Wanted::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` needs a value\n{USAGE}"));
        match word.as_str() {
            "--binary" => wanted.binary = Some(value()?.into()),
            "--out" => wanted.out = Some(value()?.into()),
            "--glibc" => wanted.glibc = Some(value()?.parse()?),
            "--only" => wanted.only = Some(kind(value()?)?),
            "--fast" => wanted.level = Level::Fast,
            _ => bail!("`{word}` is no argument\n{USAGE}"),
        }
    }
    Ok(wanted)
}

fn kind(word: &str) -> Result<Kind> {
    let found = KINDS.iter().find(|(name, _)| *name == word);
    Ok(found.with_context(|| format!("`{word}` is no kind of package\n{USAGE}"))?.1)
}

fn pack(wanted: Wanted) -> Result<()> {
    let target = Target::here()?;
    let binary = match wanted.binary {
        Some(binary) => binary,
        None => build()?,
    };
    let payload = Payload::collect(&binary, target, wanted.level)?;
    if let (Some(most), Some(found)) = (wanted.glibc, payload.needs.glibc)
        && most < found
    {
        bail!("{} needs glibc {found}, and at most {most} was wanted", binary.display());
    }
    let out = wanted.out.unwrap_or_else(|| root().join("target/packages"));
    let packages = packages(&payload, wanted.only)?;
    write(&out, &packages)?;
    report(&payload, &packages, &out);
    Ok(())
}

/// Builds the program as it ships, and says where it is.
fn build() -> Result<PathBuf> {
    run::run(&mut cargo(&["build", "--locked", "--profile", "dist", "--package", "gatelet"]))?;
    Ok(run::target_directory()?.join("dist").join("gatelet"))
}

/// Every package of this platform, or those of one kind, with their checksums.
fn packages(payload: &Payload, only: Option<Kind>) -> Result<Vec<Package>> {
    let mut packages = Vec::new();
    for (_, kind) in KINDS {
        if only.is_none_or(|only| only == kind) {
            packages.extend(make(payload, kind)?);
        }
    }
    packages.push(Package {
        name: format!("gatelet-{}-{}.cdx.json", payload.version, payload.target.triple),
        bytes: payload.sbom.clone(),
    });
    packages.push(checksums(payload, &packages));
    Ok(packages)
}

fn make(payload: &Payload, kind: Kind) -> Result<Vec<Package>> {
    Ok(match (kind, payload.target.debian) {
        (Kind::Archive, _) => vec![tarball::make(payload)?],
        (Kind::Deb, Some(architecture)) => vec![deb::make(payload, architecture)?],
        (Kind::Deb, None) => Vec::new(),
        (Kind::Npm, _) => vec![npm::platform(payload)?, npm::launcher(payload)?],
        (Kind::Wheel, _) => vec![wheel::make(payload)?],
    })
}

/// What `sha256sum --check` reads.
fn checksums(payload: &Payload, packages: &[Package]) -> Package {
    let line = |package: &Package| format!("{}  {}\n", sha256(&package.bytes), package.name);
    Package {
        name: format!("gatelet-{}-{}.sha256", payload.version, payload.target.triple),
        bytes: packages.iter().map(line).collect::<String>().into_bytes(),
    }
}

fn write(out: &Path, packages: &[Package]) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    for package in packages {
        let place = out.join(&package.name);
        fs::write(&place, &package.bytes)
            .with_context(|| format!("cannot write {}", place.display()))?;
    }
    Ok(())
}

fn report(payload: &Payload, packages: &[Package], out: &Path) {
    let megabytes = |bytes: usize| format!("{:.1} MB", bytes as f64 / 1e6);
    println!("gatelet {} for {}", payload.version, payload.target.triple);
    println!("  the program has {}", megabytes(payload.program.len()));
    match payload.needs.glibc {
        Some(glibc) => println!("  it needs glibc {glibc} or newer"),
        None => println!("  it needs no glibc"),
    }
    println!("  it loads {}", payload.needs.libraries.join(", "));
    println!("in {}:", out.display());
    for package in packages {
        println!("  {:>9}  {}", megabytes(package.bytes.len()), package.name);
    }
}

/// A SHA-256 in hexadecimal digits.
fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A SHA-256 as a wheel's record wants it: for URLs, without padding.
fn sha256_base64(bytes: &[u8]) -> String {
    use base64::Engine;
    use sha2::Digest;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(sha2::Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn arguments_are_read_and_unknown_ones_refused() {
        let line = "--binary b --out o --glibc 2.31 --only deb --fast";
        let found = wanted(&words(line)).unwrap();
        let expected = Wanted {
            binary: Some("b".into()),
            out: Some("o".into()),
            glibc: Some("2.31".parse().unwrap()),
            only: Some(Kind::Deb),
            level: Level::Fast,
        };
        assert_eq!(found, expected);
        for wrong in ["--outs x", "--out", "--glibc new", "--only rpm"] {
            assert!(wanted(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_checksum_is_written_as_sha256sum_writes_it() {
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
