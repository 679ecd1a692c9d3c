//! `gatelet update`: what changed in a server's tools, in words, before it is
//! trusted again.

use serde_json::json;

use super::config_file::ConfigFile;
use super::review;
use crate::commands::output::Output;
use crate::commands::person;
use crate::config::RawUpstream;
use crate::config::edit::Edit;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::{GOOD, out, paint, say};

/// Look at what changed in a server's tools, and trust it again as it is now
///
/// The server is started beside the one that runs, and its tools are compared
/// with those that were last seen. With `--to` another version of its npm or
/// PyPI package is tried, and written down when you agree.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The label of the upstream
    label: String,
    /// The version of its package to go to
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// Trust it as it is now without asking
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let file = ConfigFile::open(paths)?;
    let before = file.upstream(&args.label)?;
    let label = before.label.clone().unwrap_or_default();
    let after = match &args.to {
        Some(version) => at_version(&before, version)?,
        None => before.clone(),
    };
    let (old, new) = (file.meant(&before, paths)?, file.meant(&after, paths)?);
    let probed = review::probe(&new, paths)?;
    let probed = probed.map_err(|failure| review::probe_error(&label, &failure))?;
    let changes = review::changes(&old, &probed.listing, paths)?;
    if changes.no_previous_record {
        say("nobody has looked at its tools so far; this is what there is now");
        review::show(&label, &probed);
    } else {
        changes.lines().iter().for_each(|line| say(line));
    }
    if args.output.is_json() {
        let told = json!({
            "label": label, "changes": changes.as_json(), "listed": review::as_json(&probed),
        });
        out(&serde_json::to_string_pretty(&told)?);
    }
    let is_same = before == after && !before.quarantine;
    if changes.is_unchanged() && is_same {
        say(&format!("nothing changed in the {} tools of `{label}`", probed.listing.tools.len()));
        return Ok(Done::Fine);
    }
    let question = format!("Trust `{label}` as it is now?");
    if !changes.is_unchanged() && !args.yes && !person::agrees(&question) {
        let why = format!("nobody agreed, so `{label}` stays as it was; --yes agrees beforehand");
        return Err(CliError::Refused(why).into());
    }
    if !is_same {
        let args = (before.args != after.args).then(|| json!(after.args));
        let mut edits = Vec::new();
        edits.extend(args.map(|args| Edit::Set { label: &label, key: "args", value: Some(args) }));
        edits.extend(before.quarantine.then(|| Edit::Set {
            label: &label,
            key: "quarantine",
            value: None,
        }));
        file.write(&file.changed(&edits)?)?;
    }
    // Removed tools are forgotten, so that they count as new if they come back.
    review::forget_removed_tools(&old, &changes, paths)?;
    review::pin_tools(&new, &probed.listing, paths)?;
    say(&format!(
        "{} `{label}`: {} tools as they are now",
        paint(GOOD, "trusted"),
        probed.listing.tools.len()
    ));
    Ok(Done::Fine)
}

/// The registry of the packages that a program runs, and where the package
/// stands among its arguments.
fn package(command: &str, args: &[String]) -> Option<(&'static str, usize)> {
    let kind = match command.rsplit(['/', '\\']).next().unwrap_or_default() {
        "npx" | "bunx" | "pnpx" => "npm",
        "uvx" | "pipx" => "pypi",
        _ => return None,
    };
    let is_named = |word: &String| !word.starts_with('-') && word != "run";
    Some((kind, args.iter().position(is_named)?))
}

/// The package that is run in whatever version there is.
pub(crate) fn unpinned(command: &str, args: &[String]) -> Option<String> {
    let (_, at) = package(command, args)?;
    let word = &args[at];
    let is_pinned =
        word.get(1..).is_some_and(|rest| rest.contains('@')) && !word.ends_with("@latest");
    let is_path = word.starts_with(['.', '/']);
    (!is_pinned && !is_path && !word.contains("==")).then(|| word.clone())
}

/// The same entry with another version of its package.
fn at_version(raw: &RawUpstream, version: &str) -> Result<RawUpstream, CliError> {
    let (kind, at) = match package(raw.command.as_deref().unwrap_or_default(), &raw.args) {
        Some(found) => found,
        None => {
            let why = "--to changes packages that `npx` or `uvx` runs; change the entry by hand, then \
                       `gatelet update` shows what that does to its tools";
            return Err(CliError::Usage(why.to_owned()));
        }
    };
    let word = raw.args[at].as_str();
    let name = match word.rfind('@').filter(|at| *at != 0) {
        Some(at) => &word[..at],
        None => word,
    };
    // Read as if it had been typed, so that nothing else passes for a version.
    packages::source::read(&format!("{kind}:{name}@{version}"))
        .map_err(|unclear| CliError::Usage(unclear.to_string()))?;
    let mut after = raw.clone();
    after.args[at] = format!("{name}@{version}");
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, args: &[&str], expected: Option<&str>) {
        let raw = RawUpstream {
            command: Some(command.to_owned()),
            args: args.iter().map(|word| (*word).to_owned()).collect(),
            ..RawUpstream::default()
        };
        let after = at_version(&raw, "2.0.0").ok().map(|raw| raw.args.join(" "));
        assert_eq!(after.as_deref(), expected);
    }

    #[test]
    fn the_version_of_a_package_is_changed_and_nothing_else() {
        check("npx", &["-y", "@a/b@1.0.0", "x@1"], Some("-y @a/b@2.0.0 x@1"));
        check("/usr/bin/uvx", &["mcp-git"], Some("mcp-git@2.0.0"));
        check("node", &["x.js"], None);
        check("npx", &["-y"], None);
        let raw = RawUpstream {
            command: Some("npx".to_owned()),
            args: vec!["a".to_owned()],
            ..RawUpstream::default()
        };
        assert!(at_version(&raw, "1 --registry=x").is_err());
    }
}
