//! The components that the program is made of, as CycloneDX 1.5.
//!
//! `cargo tree` says which crates are compiled into the program, with its features
//! and on its platform; `cargo metadata` what they are; `Cargo.lock` the checksums
//! that Cargo compared when it fetched them. C libraries are in the `-sys` crates
//! that bring their sources.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::target::Target;
use super::version::Version;
use super::{payload, sha256};
use crate::run::{cargo, output};

pub(crate) fn make(metadata: &Value, version: &Version, target: &Target) -> Result<Vec<u8>> {
    let flags =
        ["tree", "--locked", "-p", "gatelet", "-e", "normal,no-proc-macro", "--prefix", "none"];
    let tree = output(cargo(&flags).args(["--format", "{p}", "--target", target.triple]))?;
    let checksums = checksums(&String::from_utf8(payload::read("Cargo.lock")?)?);
    let bill = bill(metadata, &compiled(&tree), &checksums, version)?;
    Ok(format!("{bill:#}\n").into_bytes())
}

/// Name and version of every crate in what `cargo tree` prints.
fn compiled(tree: &str) -> BTreeSet<(String, String)> {
    let mut crates = BTreeSet::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            // Macros run in the compiler and are not in the program.
            if !line.contains("(proc-macro)") {
                crates.insert((name.to_owned(), version.trim_start_matches('v').to_owned()));
            }
        }
    }
    crates
}

/// The checksum of every crate in `Cargo.lock` that has one.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut checksums = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |key: &str| {
            let start = format!("{key} = \"");
            package.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix('"'))
        };
        if let (Some(name), Some(version), Some(sum)) =
            (field("name"), field("version"), field("checksum"))
        {
            checksums.insert((name.to_owned(), version.to_owned()), sum.to_owned());
        }
    }
    checksums
}

fn bill(
    metadata: &Value,
    compiled: &BTreeSet<(String, String)>,
    checksums: &BTreeMap<(String, String), String>,
    version: &Version,
) -> Result<Value> {
    let packages = metadata["packages"].as_array().context("metadata without packages")?;
    let key = |package: &Value| {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        (text("name"), text("version"))
    };
    let inside: BTreeMap<&str, &Value> = packages
        .iter()
        .filter(|package| compiled.contains(&key(package)))
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let components: Vec<Value> = inside
        .values()
        .filter(|package| package["name"] != "gatelet")
        .map(|package| component(package, checksums.get(&key(package))))
        .collect();
    let dependencies = edges(metadata, &inside)?;
    let content = json!({ "components": components, "dependencies": dependencies });
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial(&content.to_string()),
        "version": 1,
        "metadata": { "component": {
            "type": "application",
            "bom-ref": purl("gatelet", &version.to_string()),
            "name": "gatelet",
            "version": version.to_string(),
            "licenses": [{ "expression": "MIT OR Apache-2.0" }],
        }},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Value, checksum: Option<&String>) -> Value {
    let (name, version) = (&package["name"], &package["version"]);
    let purl = purl_of(package);
    let mut component = json!({
        "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
    });
    if let Some(licence) = package["license"].as_str() {
        // Older manifests write a slash where the standard says OR.
        component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
    }
    if let Some(checksum) = checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = package["repository"].as_str() {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

/// Which crate uses which, of those in the program.
fn edges(metadata: &Value, inside: &BTreeMap<&str, &Value>) -> Result<Vec<Value>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("metadata without a resolve")?;
    let mut edges = Vec::new();
    for node in nodes {
        let Some(package) = node["id"].as_str().and_then(|id| inside.get(id)) else { continue };
        let used: BTreeSet<String> = node["deps"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|used| is_normal(used))
            .filter_map(|used| Some(purl_of(inside.get(used["pkg"].as_str()?)?)))
            .collect();
        edges.push(json!({ "ref": purl_of(package), "dependsOn": used }));
    }
    Ok(edges)
}

/// Whether a dependency is one of the program, not of its tests or build scripts.
fn is_normal(used: &Value) -> bool {
    let kinds = used["dep_kinds"].as_array();
    kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

fn purl_of(package: &Value) -> String {
    let text = |field: &str| package[field].as_str().unwrap_or_default();
    purl(text("name"), text("version"))
}

fn purl(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

/// A UUID that is the same for the same content (version 8: made our own way).
fn serial(content: &str) -> String {
    let hash = sha256(content.as_bytes());
    let part = |from: usize, to: usize| &hash[from..to];
    format!(
        "urn:uuid:{}-{}-8{}-a{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Value {
        let package = |name: &str, licence: &str| json!({ "id": format!("{name}#1"), "name": name, "version": "1.0.0", "license": licence });
        let uses = |name: &str, kind: Value| json!({ "pkg": format!("{name}#1"), "dep_kinds": [{ "kind": kind }] });
        json!({
            "packages": [package("gatelet", "MIT"), package("a", "MIT/Apache-2.0"), package("b", "ISC"), package("t", "MIT")],
            "resolve": { "nodes": [
                { "id": "gatelet#1", "deps": [uses("a", Value::Null), uses("t", json!("dev"))] },
                { "id": "a#1", "deps": [uses("b", json!("build"))] },
                { "id": "b#1", "deps": [] },
                { "id": "t#1", "deps": [] },
            ] },
        })
    }

    fn made() -> Value {
        let tree = "gatelet v1.0.0 (/x)\na v1.0.0\nb v1.0.0 (*)\nm v1.0.0 (proc-macro)\n";
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"00ff\"\n";
        let metadata = metadata();
        let version = Version::of_program(&metadata).unwrap();
        bill(&metadata, &compiled(tree), &checksums(lock), &version).unwrap()
    }

    #[test]
    fn what_only_tests_and_build_scripts_use_is_not_in_the_program() {
        let bill = made();
        let names: Vec<&Value> =
            bill["components"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
        assert_eq!(names, ["a", "b"]);
        let expected = json!([
            { "ref": "pkg:cargo/gatelet@1.0.0", "dependsOn": ["pkg:cargo/a@1.0.0"] },
            { "ref": "pkg:cargo/a@1.0.0", "dependsOn": [] },
            { "ref": "pkg:cargo/b@1.0.0", "dependsOn": [] },
        ]);
        assert_eq!(bill["dependencies"], expected);
    }

    #[test]
    fn a_component_has_its_checksum_and_a_licence_in_today_s_spelling() {
        let first = &made()["components"][0];
        assert_eq!(first["hashes"], json!([{ "alg": "SHA-256", "content": "00ff" }]));
        assert_eq!(first["licenses"], json!([{ "expression": "MIT OR Apache-2.0" }]));
    }

    #[test]
    fn the_same_content_has_the_same_serial_number() {
        let serial = made()["serialNumber"].as_str().unwrap().to_owned();
        assert_eq!(serial, made()["serialNumber"]);
        assert_eq!(serial.len(), "urn:uuid:".len() + 36);
    }
}
