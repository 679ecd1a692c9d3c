//! The Debian package: an `ar` of two archives, one with what `dpkg` reads and one
//! with what it unpacks. It has no maintainer scripts.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::Package;
use super::archive::{Entry, ar, gzip, tar};
use super::needs::Needs;
use super::payload::{Payload, read};

pub(crate) fn make(payload: &Payload, architecture: &str) -> Result<Package> {
    let version = payload.version.debian();
    let files = files(payload)?;
    let size: usize = files.iter().map(|file| file.bytes.len().div_ceil(1024)).sum();
    let control = control(&version, architecture, size, &depends(&payload.needs)?);
    let packed = |files: &[Entry]| tar::gz(files, payload.stamp, payload.level);
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", packed(&[Entry::text("./control", control)])?),
        ("data.tar.gz", packed(&files)?),
    ];
    Ok(Package {
        name: format!("gatelet_{version}_{architecture}.deb"),
        bytes: ar::archive(&members, payload.stamp),
    })
}

/// Where everything goes, by Debian's policy.
fn files(payload: &Payload) -> Result<Vec<Entry>> {
    let shells = &payload.completions;
    let mut files = vec![
        Entry::program("./usr/bin/gatelet", payload.program.clone()),
        Entry::text("./usr/share/bash-completion/completions/gatelet", shells.bash.clone()),
        Entry::text("./usr/share/zsh/vendor-completions/_gatelet", shells.zsh.clone()),
        Entry::text("./usr/share/fish/vendor_completions.d/gatelet.fish", shells.fish.clone()),
        Entry::text("./usr/share/doc/gatelet/copyright", copyright(payload)?),
        Entry::text("./usr/share/doc/gatelet/sbom.cdx.json", payload.sbom.clone()),
        Entry::text(
            "./usr/share/doc/gatelet/changelog.gz",
            gzip(&read("CHANGELOG.md")?, payload.level)?,
        ),
    ];
    for (page, text) in &payload.manual {
        let place = format!("./usr/share/man/man1/{page}.gz");
        files.push(Entry::text(place, gzip(text, payload.level)?));
    }
    Ok(files)
}

fn control(version: &str, architecture: &str, kilobytes: usize, depends: &str) -> String {
    format!(
        "\
Package: gatelet
Version: {version}
Architecture: {architecture}
Maintainer: The gatelet developers <maintainers@gatelet.invalid>
Installed-Size: {kilobytes}
Depends: {depends}
Recommends: ca-certificates
Section: net
Priority: optional
Description: small gate to any number of MCP servers
 A client sees three tools, call, help and skill; behind them stands
 everything that the configured upstreams offer.
"
    )
}

/// The Debian packages of the libraries that the program loads.
fn depends(needs: &Needs) -> Result<String> {
    let mut packages = BTreeSet::new();
    for library in &needs.libraries {
        let package = match library.as_str() {
            "libc.so.6" | "libm.so.6" | "libdl.so.2" | "libpthread.so.0" | "librt.so.1" => "libc6",
            "libgcc_s.so.1" => "libgcc-s1",
            loader if loader.starts_with("ld-linux") => "libc6",
            _ => bail!("which Debian package has `{library}`? add it to dist/deb.rs"),
        };
        packages.insert(package);
    }
    let versioned = |package: &str| match (package, needs.glibc) {
        ("libc6", Some(glibc)) => format!("libc6 (>= {glibc})"),
        _ => package.to_owned(),
    };
    Ok(packages.into_iter().map(versioned).collect::<Vec<String>>().join(", "))
}

fn copyright(payload: &Payload) -> Result<Vec<u8>> {
    let mut text = b"gatelet is licensed under MIT or Apache-2.0, at your choice.\n\
        The crates compiled into it are listed with their licences in sbom.cdx.json.\n"
        .to_vec();
    for (name, licence) in payload.licences()? {
        text.extend(format!("\n--- {name} ---\n\n").bytes());
        text.extend(licence);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::needs::Glibc;
    use super::*;

    #[test]
    fn libraries_become_packages_and_unknown_ones_are_not_left_out() {
        let needs = |libraries: &[&str]| Needs {
            glibc: Some(Glibc(34)),
            libraries: libraries.iter().map(|name| (*name).to_owned()).collect(),
        };
        let known = needs(&["libgcc_s.so.1", "libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"]);
        assert_eq!(depends(&known).unwrap(), "libc6 (>= 2.34), libgcc-s1");
        let error = depends(&needs(&["libssl.so.3"])).unwrap_err().to_string();
        assert!(error.contains("libssl.so.3"), "{error}");
    }
}
