//! Two npm packages: `@gatelet/SYSTEM-PROCESSOR` with the program, and `gatelet`,
//! which starts it. npm installs the one that fits the machine; nothing is
//! downloaded by a script.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::Package;
use super::archive::{Entry, tar};
use super::payload::{Payload, read};
use super::target;

const DESCRIPTION: &str = "A small gate to any number of MCP servers.";

/// The package with this platform's program.
pub(crate) fn platform(payload: &Payload) -> Result<Package> {
    let (system, processor) = payload.target.npm;
    let mut manifest = json!({
        "name": payload.target.npm_name(),
        "version": payload.version.to_string(),
        "description": format!("The program of `gatelet` for {system} on {processor}."),
        "license": "MIT OR Apache-2.0",
        "os": [system],
        "cpu": [processor],
        "bin": { "gatelet": "bin/gatelet" },
        "preferUnplugged": true,
    });
    if payload.needs.glibc.is_some() {
        manifest["libc"] = json!(["glibc"]);
    }
    let files = vec![
        manifest_file(&manifest),
        Entry::program("package/bin/gatelet", payload.program.clone()),
        Entry::text("package/sbom.cdx.json", payload.sbom.clone()),
    ];
    packed(payload, &format!("gatelet-{system}-{processor}"), files)
}

/// The package that people ask for. It is the same on every platform.
pub(crate) fn launcher(payload: &Payload) -> Result<Package> {
    let version = payload.version.to_string();
    let platforms: Map<String, Value> =
        target::ALL.iter().map(|target| (target.npm_name(), json!(version))).collect();
    let manifest = json!({
        "name": "gatelet",
        "version": version,
        "description": DESCRIPTION,
        "keywords": ["mcp", "mcp-gateway", "model-context-protocol", "gateway"],
        "license": "MIT OR Apache-2.0",
        "bin": { "gatelet": "bin/gatelet.js" },
        "engines": { "node": ">=18" },
        "optionalDependencies": platforms,
    });
    let files = vec![
        manifest_file(&manifest),
        Entry::program("package/bin/gatelet.js", read("packaging/npm/gatelet.js")?),
        Entry::text("package/README.md", read("README.md")?),
    ];
    packed(payload, "gatelet", files)
}

fn manifest_file(manifest: &Value) -> Entry {
    Entry::text("package/package.json", format!("{manifest:#}\n"))
}

fn packed(payload: &Payload, name: &str, mut files: Vec<Entry>) -> Result<Package> {
    for (licence, text) in payload.licences()? {
        files.push(Entry::text(format!("package/{licence}"), text));
    }
    Ok(Package {
        name: format!("{name}-{}.tgz", payload.version),
        bytes: tar::gz(&files, payload.stamp, payload.level)?,
    })
}
