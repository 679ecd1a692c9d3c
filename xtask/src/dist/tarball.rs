//! The archive for whoever has no package manager: unpack it, run what is inside.

use anyhow::Result;

use super::Package;
use super::archive::{Entry, tar};
use super::payload::{Payload, read};

pub(crate) fn make(payload: &Payload) -> Result<Package> {
    let name = format!("gatelet-{}-{}", payload.version, payload.target.triple);
    let at = |path: &str| format!("{name}/{path}");
    let mut files = vec![
        Entry::program(at("gatelet"), payload.program.clone()),
        Entry::text(at("README.md"), read("README.md")?),
        Entry::text(at("CHANGELOG.md"), read("CHANGELOG.md")?),
        Entry::text(at("sbom.cdx.json"), payload.sbom.clone()),
        Entry::text(at("completions/gatelet.bash"), payload.completions.bash.clone()),
        Entry::text(at("completions/_gatelet"), payload.completions.zsh.clone()),
        Entry::text(at("completions/gatelet.fish"), payload.completions.fish.clone()),
    ];
    for (licence, text) in payload.licences()? {
        files.push(Entry::text(at(licence), text));
    }
    for (page, text) in &payload.manual {
        files.push(Entry::text(at(&format!("man/{page}")), text.clone()));
    }
    let bytes = tar::gz(&files, payload.stamp, payload.level)?;
    Ok(Package { name: format!("{name}.tar.gz"), bytes })
}
