//! `gatelet skill`: prints skills as a model gets them, and checks, locks and exports them.

use std::path::{Path, PathBuf};

use ::skills::{Flag, Library, Reader, Reference, Skill, SkillLock, export, lock};
use anyhow::Context;
use gateway::Gateway;
use serde_json::{Map, Value, json};
use tool::{Finding, Severity};

use super::asking::{self, Author, Wait};
use super::help::is_error;
use super::output::Output;
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::{BAD, DIM, GOOD, WARNING, out, paint, say};
use crate::wire::{StartPolicy, skills};
use config::Config;

/// List skills, print one, or check and write them
///
/// `lint`, `lock` and `export` are commands; a skill of such a name is printed
/// with its namespace before it.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// A skill, a namespace, or both as two words; then the skill's arguments as `key=text` or
    /// `key:=JSON`
    #[arg(value_name = "NAME")]
    words: Vec<String>,

    /// Another version than the latest
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    /// Search for skills by what they are for
    #[arg(long, short, value_name = "WORDS", conflicts_with = "version")]
    query: Option<String>,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Say what is odd, missing or out of date; exits with 1 when something is wrong
    Lint {
        /// Let warnings count as errors
        #[arg(long)]
        strict: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Note how the functions that skills speak of are called now, in `skills.lock`
    Lock,
    /// Write every skill in the strict form of the Agent Skills format
    Export {
        /// The directory to write to
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    match &args.action {
        None => show(args, paths),
        Some(Action::Lint { strict, output }) => lint(*strict, *output, paths),
        Some(Action::Lock) => write_lock(paths),
        Some(Action::Export { directory }) => export_all(directory, paths),
    }
}

/// The size limit for a skill: more than any skill has.
const NO_LIMIT: usize = 4 << 20;

fn show(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let is_argument = |word: &&String| word.contains('=');
    let (given, names): (Vec<&String>, Vec<&String>) = args.words.iter().partition(is_argument);
    let mut kwargs = Map::new();
    for word in given {
        let (key, value) = asking::parse_pair(word)?;
        kwargs.insert(key, value);
    }
    for (key, value) in [("version", &args.version), ("query", &args.query)] {
        kwargs.extend(value.as_ref().map(|value| (key.to_owned(), json!(value))));
    }
    let keys: &[&str] = match (names.len(), &args.query) {
        (0, _) => &[],
        (1, Some(_)) => &["namespace"],
        (1, None) => &["skillname"],
        (2, None) => &["namespace", "skillname"],
        (_, _) => {
            return Err(
                CliError::Usage("name a skill, or a namespace and a skill".to_owned()).into()
            );
        }
    };
    asking::with_gateway(paths, StartPolicy::OnDemand, async |gateway| {
        let ask = async |keys: &[&str]| {
            let names = keys.iter().zip(&names);
            let mut arguments: Map<String, Value> =
                names.map(|(key, name)| ((*key).to_owned(), json!(name))).collect();
            arguments.insert("kwargs".to_owned(), Value::Object(kwargs.clone()));
            // A terminal takes all of it, and has no other call to read a part with.
            if keys.contains(&"skillname") {
                arguments.insert("sizelimit".to_owned(), json!(NO_LIMIT));
            }
            asking::call_tool(gateway, "skill", arguments).await
        };
        let mut reply = ask(keys).await?;
        let mut author =
            if keys.contains(&"skillname") { Author::Upstream } else { Author::Gatelet };
        if keys == ["skillname"] && is_error(&reply) {
            // The name may be that of a namespace with skills.
            let listed = ask(&["namespace"]).await?;
            if !is_error(&listed) {
                (reply, author) = (listed, Author::Gatelet);
            }
        }
        asking::print_reply(&reply, author, args.output)
    })
}

/// Reads signatures of functions as the operator, who sees the whole catalog.
struct OperatorView<'a>(&'a Gateway);

impl Reader for OperatorView<'_> {
    fn signature(&self, reference: &Reference) -> Option<String> {
        reference.signature(&self.0.roster().default_pool().snapshot().catalog)
    }
}

/// Loads the skills, connects to every upstream, and runs `run` with both.
fn with_skills<T>(
    paths: &Paths,
    run: impl FnOnce(&Config, &Library, Vec<Finding>, &OperatorView<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let loaded = config_loader::load(paths)?;
    let (library, findings) = skills::load(&loaded.config);
    // Remembered listings would hide changes, so every upstream is started.
    asking::with_gateway(paths, StartPolicy::AllAtOnce, async |gateway| {
        asking::wait_until_known(gateway, Wait::All).await;
        run(&loaded.config, &library, findings, &OperatorView(gateway))
    })
}

fn lint(strict: bool, output: Output, paths: &Paths) -> anyhow::Result<Done> {
    with_skills(paths, |_, library, mut findings, view| {
        for skill in library.skills() {
            findings.extend(library.flags(skill, view).iter().map(|flag| finding(skill, flag)));
        }
        let count = |severity| findings.iter().filter(|found| found.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        if output.is_json() {
            out(&crate::terminal::json_text(&findings)?);
        } else {
            findings.iter().for_each(|finding| out(&line(finding)));
            let n_skills = library.skills().len();
            say(&format!("{n_skills} skills, {errors} errors, {warnings} warnings"));
        }
        let bad = 0 < errors || strict && 0 < warnings;
        Ok(if bad { Done::AnswerIsError } else { Done::Fine })
    })
}

fn finding(skill: &Skill, flag: &Flag) -> Finding {
    let (code, advice) = match flag {
        Flag::Missing(_) => ("skill-function-missing", ""),
        Flag::Changed(_) => ("skill-function-changed", "; check it, then run `gatelet skill lock`"),
        Flag::Unavailable(_) => ("skill-away", ""),
    };
    Finding::new(Severity::Error, code, skill.path(), format!("{flag}{advice}"))
}

fn line(finding: &Finding) -> String {
    let (style, word) = match finding.severity {
        Severity::Error => (BAD, "error"),
        Severity::Warning => (WARNING, "warning"),
        Severity::Info => (DIM, "info"),
    };
    let Finding { code, subject, message, .. } = finding;
    format!("{} {subject}: {message} {}", paint(style, word), paint(DIM, format!("[{code}]")))
}

fn write_lock(paths: &Paths) -> anyhow::Result<Done> {
    with_skills(paths, |config, library, _, view| {
        let [first, ..] = config.skills.directories.as_slice() else {
            let why = "no skills directories are configured: there is nothing to lock";
            return Err(CliError::Usage(why.to_owned()).into());
        };
        let all = library.skills().iter().map(|skill| &**skill);
        let lock = SkillLock::from_skills(all, &|reference| view.signature(reference));
        let file = first.join(lock::LOCK_FILE_NAME);
        std::fs::write(&file, lock.to_string())
            .with_context(|| format!("cannot write `{}`", file.display()))?;
        let n = lock.len();
        say(&format!("{} {n} functions in `{}`", paint(GOOD, "noted"), file.display()));
        Ok(Done::Fine)
    })
}

fn export_all(directory: &Path, paths: &Paths) -> anyhow::Result<Done> {
    let (library, _) = skills::load(&config_loader::load(paths)?.config);
    let mut written = std::collections::BTreeSet::new();
    for skill in library.skills() {
        let Some(exported) = export::export(skill) else { continue };
        let levels = skill.namespace.split('.').filter(|level| !level.is_empty());
        let mut target = directory.to_owned();
        target.extend(levels);
        target.push(&exported.directory);
        // Versions come latest first; a directory holds one.
        if !written.insert(target.clone()) {
            let path = skill.path();
            let version = skill.version.as_deref().unwrap_or("0");
            say(&format!("left out: version {version} of `{path}`, which has a later one"));
            continue;
        }
        let write = std::fs::create_dir_all(&target)
            .and_then(|()| std::fs::write(target.join("SKILL.md"), &exported.text));
        write.with_context(|| format!("cannot write `{}`", target.display()))?;
    }
    say(&format!("{} {} skills", paint(GOOD, "wrote"), written.len()));
    Ok(Done::Fine)
}
