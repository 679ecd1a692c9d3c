//! `gatelet update`: moves a server to a newer version, after showing what changed in its
//! tools.

use packages::run_package::RunPackage;
use serde_json::json;
use tool::Tool;

use super::config_file::ConfigFile;
use super::{newest, review};
use crate::commands::output::Output;
use crate::commands::person;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::{self, DIM, GOOD, HEADING, WARNING, foreign, foreign_line, out, paint, say};
use config::RawUpstream;
use config::edit::Edit;

/// Go to a newer version of a server, once you have seen what changed in its tools
///
/// The newest version of its npm or PyPI package is looked up and started beside
/// the one that runs. Its tools are compared with those that were last seen; when
/// you agree, the version is written down and the tools are trusted as they are
/// now. Without a label it only says which servers have a newer version.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The label of the upstream
    label: Option<String>,
    /// The version of its package to go to [default: the newest]
    #[arg(long, value_name = "VERSION", requires = "label")]
    to: Option<String>,
    /// Look for no newer version, only at the tools as they are now
    #[arg(long, conflicts_with = "to")]
    same_version: bool,
    /// Trust it as it is now without asking
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let file = ConfigFile::open(paths)?;
    match &args.label {
        Some(label) => update_one(args, &file, label, paths),
        None => list_versions(args, &file),
    }
}

fn update_one(args: &Args, file: &ConfigFile, label: &str, paths: &Paths) -> anyhow::Result<Done> {
    let before = file.upstream(label)?;
    let label = before.label.clone().unwrap_or_default();
    let after = match &args.to {
        Some(version) => at_version(&before, version)?,
        None if args.same_version => before.clone(),
        None => at_newest(&before)?,
    };
    let (old, new) = (file.parse(&before, paths)?, file.parse(&after, paths)?);
    let probed = review::probe(&new, paths)?;
    let probed = probed.map_err(|failure| review::probe_error(&label, &failure))?;
    let changes = review::changes(&old, &probed.listing, paths)?;
    if changes.no_previous_record {
        say("nobody has looked at its tools so far; this is what there is now");
        review::show(&label, &probed);
    } else {
        changes.lines().iter().for_each(|line| say(line));
        show_descriptions(&changes, &probed.listing.tools);
    }
    if args.output.is_json() {
        let version = |raw: &RawUpstream| Some(package(raw)?.version()?.to_owned());
        let told = json!({
            "label": label, "from": version(&before), "to": version(&after),
            "changes": changes.as_json(), "listed": review::as_json(&probed),
        });
        out(&crate::terminal::json_text(&told)?);
    }
    let n_tools = probed.listing.tools.len();
    let is_same = before == after && !before.quarantine;
    if changes.is_unchanged() {
        say(&format!("nothing changed in the {n_tools} tools of `{label}`"));
        if is_same {
            return Ok(Done::Fine);
        }
    }
    // Another version is another program, also when its tools look the same.
    let question = match before.args == after.args {
        true => format!("Trust `{label}` as it is now?"),
        false => format!("Go to this version of `{label}`?"),
    };
    if !args.yes && !person::agrees(&question) {
        let why = format!("nobody agreed, so `{label}` stays as it was; --yes agrees beforehand");
        return Err(CliError::Refused(why).into());
    }
    if !is_same {
        write(file, &label, &before, &after)?;
    }
    // Removed tools are forgotten, so that they count as new if they come back.
    review::forget_removed_tools(&old, &changes, paths)?;
    review::pin_tools(&new, &probed.listing, paths)?;
    say(&format!("{} `{label}`: {n_tools} tools as they are now", paint(GOOD, "trusted")));
    Ok(Done::Fine)
}

/// Prints the descriptions of new and changed tools.
fn show_descriptions(changes: &review::Changes, tools: &[Tool]) {
    let is_shown = |tool: &&Tool| changes.names().any(|name| name == tool.name);
    for tool in tools.iter().filter(is_shown) {
        let about = tool.description.as_deref().unwrap_or("nothing");
        let about: String = about.split_whitespace().collect::<Vec<_>>().join(" ");
        let about = foreign(&about.chars().take(400).collect::<String>()).into_owned();
        say(&paint(DIM, format!("  {} says: {about}", foreign_line(&tool.name))));
    }
}

fn write(
    file: &ConfigFile,
    label: &str,
    before: &RawUpstream,
    after: &RawUpstream,
) -> anyhow::Result<()> {
    let args = (before.args != after.args).then(|| json!(after.args));
    let mut edits = Vec::new();
    edits.extend(args.map(|args| Edit::Set { label, key: "args", value: Some(args) }));
    edits.extend(before.quarantine.then(|| Edit::Set { label, key: "quarantine", value: None }));
    file.write(&file.edited(&edits)?)
}

/// Prints which servers have a newer version, without starting any.
fn list_versions(args: &Args, file: &ConfigFile) -> anyhow::Result<Done> {
    let entries = file.upstreams()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let progress = terminal::progress("looking up versions");
    let rows = runtime.block_on(async {
        let mut rows = Vec::new();
        for raw in &entries {
            let Some(package) = package(raw) else { continue };
            let newest = newest::version(raw, &package).await.map_err(|error| format!("{error:#}"));
            rows.push((raw.label.clone().unwrap_or_default(), package, newest));
        }
        rows
    });
    progress.finish_and_clear();
    if args.output.is_json() {
        let rows = rows.iter().map(|(label, package, newest)| {
            json!({
                "label": label, "package": package.name(), "version": package.version(),
                "newest": newest.as_ref().ok(), "error": newest.as_ref().err(),
            })
        });
        out(&crate::terminal::json_text(&rows.collect::<Vec<_>>())?);
        return Ok(Done::Fine);
    }
    if rows.is_empty() {
        say("no server here is a package of `npx` or `uvx`, so there is nothing to look up");
        return Ok(Done::Fine);
    }
    let mut table = terminal::table(&["server", "package", "version", "newest"]);
    for (label, package, newest) in &rows {
        let newest = newest.as_ref().unwrap_or_else(|why| why);
        let version = package.version().unwrap_or("any");
        table.add_row(
            [label, package.name(), version, newest].map(|text| foreign_line(text).into_owned()),
        );
    }
    out(&table.to_string());
    say(&paint(DIM, "`gatelet update NAME` shows what changed in its tools and asks"));
    Ok(Done::Fine)
}

/// The package that an entry runs.
fn package(raw: &RawUpstream) -> Option<RunPackage> {
    RunPackage::find(raw.command.as_deref().unwrap_or_default(), &raw.args)
}

/// The name of the package that a command runs without a pinned version.
pub(crate) fn unpinned(command: &str, args: &[String]) -> Option<String> {
    let package = RunPackage::find(command, args)?;
    package.version().is_none().then(|| package.name().to_owned())
}

/// The same entry with another version of its package.
fn at_version(raw: &RawUpstream, version: &str) -> Result<RawUpstream, CliError> {
    let package = package(raw).ok_or_else(|| {
        let why = "--to changes packages that `npx` or `uvx` runs; change the entry by hand, then \
                   `gatelet update` shows what that does to its tools";
        CliError::Usage(why.to_owned())
    })?;
    let args = package.at_version(&raw.args, version);
    let args = args.map_err(|bad| CliError::Usage(bad.to_string()))?;
    Ok(RawUpstream { args, ..raw.clone() })
}

/// The same entry with the newest version of its package; unchanged if there is no newer one
/// or it cannot be looked up.
fn at_newest(raw: &RawUpstream) -> anyhow::Result<RawUpstream> {
    let Some(package) = package(raw) else { return Ok(raw.clone()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let newest = match runtime.block_on(newest::version(raw, &package)) {
        Ok(newest) => newest,
        Err(error) => {
            let note = format!(
                "its newest version cannot be looked up ({error:#}): only its tools are compared"
            );
            say(&format!("{} {}", paint(WARNING, "note:"), foreign(&note)));
            return Ok(raw.clone());
        }
    };
    let name = foreign_line(package.name()).into_owned();
    match package.version() {
        Some(now) if package.is_behind(&newest) => {
            say(&format!("{} {name} {now} → {newest}", paint(HEADING, "newer")));
        }
        Some(now) => {
            say(&format!("{name} {now} is the newest version"));
            return Ok(raw.clone());
        }
        None => say(&format!(
            "{} {name} has no version: {newest} is written down",
            paint(HEADING, "pins")
        )),
    }
    Ok(at_version(raw, &newest)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_package_is_changed_and_nothing_else() {
        let entry = |command: &str, args: &[&str]| RawUpstream {
            command: Some(command.to_owned()),
            args: args.iter().map(|word| (*word).to_owned()).collect(),
            ..RawUpstream::default()
        };
        let after = at_version(&entry("npx", &["-y", "@a/b@1.0.0", "x@1"]), "2.0.0").unwrap();
        assert_eq!(after, entry("npx", &["-y", "@a/b@2.0.0", "x@1"]));
        assert!(at_version(&entry("node", &["x.js"]), "2.0.0").is_err());
        assert!(at_version(&entry("npx", &["a"]), "1 --registry=x").is_err());
        assert_eq!(unpinned("npx", &["-y".to_owned(), "a".to_owned()]).as_deref(), Some("a"));
        assert_eq!(unpinned("npx", &["a@1.0.0".to_owned()]), None);
    }
}
