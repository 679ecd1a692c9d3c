//! The wheel: `pip install`, `uvx` and `pipx` put the program where scripts go.

use anyhow::{Context, Result};

use super::archive::{Entry, zip};
use super::payload::{Payload, read};
use super::target::Wheel;
use super::{Package, sha256_base64};

pub(crate) fn make(payload: &Payload) -> Result<Package> {
    let version = payload.version.python()?;
    let tag = format!("py3-none-{}", platform(payload)?);
    let info = format!("gatelet-{version}.dist-info");
    let at = |path: &str| format!("{info}/{path}");
    let mut files = vec![
        Entry::program(format!("gatelet-{version}.data/scripts/gatelet"), payload.program.clone()),
        Entry::text(at("METADATA"), metadata(&version)?),
        Entry::text(at("WHEEL"), about(&tag)),
        Entry::text(at("sboms/gatelet.cdx.json"), payload.sbom.clone()),
    ];
    for (licence, text) in payload.licences()? {
        files.push(Entry::text(at(&format!("licenses/{licence}")), text));
    }
    // The record comes last: it has a line for every file.
    files.push(Entry::text(at("RECORD"), record(&files, &at("RECORD"))));
    Ok(Package {
        name: format!("gatelet-{version}-{tag}.whl"),
        bytes: zip::archive(&files, payload.level)?,
    })
}

fn platform(payload: &Payload) -> Result<String> {
    Ok(match &payload.target.wheel {
        Wheel::Fixed(name) => (*name).to_owned(),
        Wheel::ManyLinux(processor) => {
            let glibc = payload.needs.glibc.context("a program for Linux without glibc")?;
            format!("manylinux_2_{}_{processor}", glibc.0)
        }
    })
}

fn metadata(version: &str) -> Result<Vec<u8>> {
    let mut text = format!(
        "\
Metadata-Version: 2.4
Name: gatelet
Version: {version}
Summary: A small gate to any number of MCP servers.
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
Keywords: mcp,model-context-protocol,gateway
Requires-Python: >=3.8
Description-Content-Type: text/markdown

"
    )
    .into_bytes();
    text.extend(read("README.md")?);
    Ok(text)
}

fn about(tag: &str) -> String {
    format!("Wheel-Version: 1.0\nGenerator: gatelet-xtask\nRoot-Is-Purelib: false\nTag: {tag}\n")
}

/// A line for every file: path, hash and size; for itself only the path.
fn record(files: &[Entry], itself: &str) -> String {
    let line = |file: &Entry| {
        let hash = sha256_base64(&file.bytes);
        format!("{},sha256={hash},{}\n", file.path, file.bytes.len())
    };
    files.iter().map(line).chain([format!("{itself},,\n")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_has_every_file_and_no_hash_of_its_own() {
        let files = [Entry::text("a", "abc")];
        assert_eq!(
            record(&files, "d/RECORD"),
            "a,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\nd/RECORD,,\n"
        );
    }
}
