//! `cargo xtask dist formula`: the Homebrew formula for the archives of a release.
//!
//! The template has a `{{version}}`, a `{{url}}` and a `{{sha256:TRIPLE}}` for each
//! archive; what is missing in the directory is an error, not a gap.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{USAGE, payload, sha256};
use crate::run::{cargo, output};

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [directory, flag, url] = arguments else { bail!("{USAGE}") };
    if flag != "--url" {
        bail!("{USAGE}");
    }
    let metadata = output(&mut cargo(&["metadata", "--format-version", "1", "--no-deps"]))?;
    let version = super::version::Version::of_program(&serde_json::from_str(&metadata)?)?;
    let template = String::from_utf8(payload::read("packaging/homebrew/gatelet.rb")?)?;
    let directory = Path::new(directory);
    let formula = fill(&template, &version.to_string(), url, |triple| {
        let name = format!("gatelet-{version}-{triple}.tar.gz");
        let archive = fs::read(directory.join(&name));
        Ok(sha256(&archive.with_context(|| format!("no {name} in {}", directory.display()))?))
    })?;
    let place = directory.join("gatelet.rb");
    fs::write(&place, formula).with_context(|| format!("cannot write {}", place.display()))?;
    println!("{}", place.display());
    Ok(())
}

fn fill(
    template: &str,
    version: &str,
    url: &str,
    checksum: impl Fn(&str) -> Result<String>,
) -> Result<String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (key, after) = after.split_once("}}").context("a `{{` without its `}}`")?;
        filled.push_str(before);
        filled.push_str(&match key.split_once(':') {
            Some(("sha256", triple)) => checksum(triple)?,
            None if key == "version" => version.to_owned(),
            None if key == "url" => url.trim_end_matches('/').to_owned(),
            _ => bail!("`{{{{{key}}}}}` means nothing here"),
        });
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str) -> Result<String> {
        fill(template, "0.1.0", "https://x.example/v0.1.0/", |triple| match triple {
            "here" => Ok("00ff".to_owned()),
            _ => bail!("no archive of {triple}"),
        })
    }

    #[test]
    fn every_gap_of_the_template_is_filled_or_refused() {
        assert_eq!(filled("a {{version}} {{sha256:here}}").unwrap(), "a 0.1.0 00ff");
        assert_eq!(filled("{{url}}/a").unwrap(), "https://x.example/v0.1.0/a");
        for wrong in ["{{sha256:elsewhere}}", "{{name}}", "{{version"] {
            assert!(filled(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_template_asks_only_for_platforms_that_are_packed() {
        let template = String::from_utf8(payload::read("packaging/homebrew/gatelet.rb").unwrap());
        let filled = fill(&template.unwrap(), "1", "u", |triple| {
            let known = super::super::target::ALL.iter().any(|target| target.triple == triple);
            assert!(known, "{triple}");
            Ok(triple.to_owned())
        });
        assert!(filled.unwrap().contains("aarch64-apple-darwin"));
    }
}
