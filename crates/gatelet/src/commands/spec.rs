//! `gatelet spec`: checks, repairs, generates, compares and serves documents that describe
//! tools.

mod baseline;
mod report;
mod subject;

use std::path::{Path, PathBuf};

use anyhow::Context;
use toolspec::{Finding, LintContext, Options};

use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::{BAD, DIM, GOOD, HEADING, WARNING, out, paint, say};
use baseline::Baseline;
use report::{Format, Report};

pub(crate) use subject::live_upstream;

/// Check, repair, write, compare and serve documents that describe tools
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Check documents against the rules; exit code 1 when there is an error
    Lint {
        /// Documents, or directories in which `MCP_TOOL_SPECIFICATION.md` are looked for
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        #[arg(long, default_value = "text")]
        format: Format,
        /// Findings to be silent about, as `--write-baseline` wrote them
        #[arg(long, value_name = "FILE")]
        baseline: Option<PathBuf>,
        /// Write all present findings to the baseline and report none
        #[arg(long, requires = "baseline")]
        write_baseline: bool,
        /// Warnings count as errors
        #[arg(long)]
        strict: bool,
        /// Compare versions with this git revision of the same file
        #[arg(long, value_name = "REVISION")]
        since: Option<String>,
    },
    /// Bring documents to the canonical form, without touching prose
    Fix {
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Only say what would change; exit code 1 when something would
        #[arg(long)]
        check: bool,
    },
    /// Write the document of a server, a listing or the built-in tools
    Generate {
        /// A listing (JSON), a document, a server's address or command, or `builtin`
        subject: String,
        /// The name in the title [default: the server's]
        #[arg(long)]
        module: Option<String>,
        /// The version of the document, and of tools that have none [default: the server's]
        #[arg(long)]
        version: Option<String>,
        /// Where to write [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Compare a document with a live server, both ways
    Check {
        document: PathBuf,
        /// An upstream of the configuration, an address, a command, or a listing (JSON)
        #[arg(long, value_name = "SERVER")]
        server: String,
        #[arg(long, default_value = "text")]
        format: Format,
    },
    /// Tell breaking changes from others, and which version is owed; exit code 1 when one is
    Diff {
        /// A document, a listing, a server, or `REVISION:PATH` of git
        old: String,
        new: String,
        #[arg(long)]
        json: bool,
    },
    /// Serve the documented tools on standard input and output, answering with the examples
    Serve { document: PathBuf },
    /// Say what a rule asks for and show what breaks it; all rules without a code
    Explain { code: Option<String> },
}

pub(crate) fn run(action: &Action, paths: &Paths) -> anyhow::Result<Done> {
    match action {
        Action::Lint { paths, format, baseline, write_baseline, strict, since } => {
            let (reports, errors) = lint(paths, since.as_deref())?;
            let done =
                print_reports(reports, *format, baseline.as_deref(), *write_baseline, *strict)?;
            done_unless(errors, done)
        }
        Action::Fix { paths, check } => fix(paths, *check),
        Action::Generate { subject, module, version, output } => {
            generate(subject, module.as_deref(), version.as_deref(), output.as_deref(), paths)
        }
        Action::Check { document, server, format } => check(document, server, *format, paths),
        Action::Diff { old, new, json } => diff(old, new, *json, paths),
        Action::Serve { document } => serve(document),
        Action::Explain { code } => explain(code.as_deref()),
    }
}

/// Ends the command with the first error, if there is one, after the other documents were
/// treated; prints the further errors.
fn done_unless(errors: Vec<anyhow::Error>, done: Done) -> anyhow::Result<Done> {
    let mut errors = errors.into_iter();
    let Some(first) = errors.next() else { return Ok(done) };
    errors.for_each(|error| say(&format!("{}: {error}", paint(BAD, "error"))));
    Err(first)
}

/// A report for each document, and the errors of those that could not be read.
fn lint(
    paths: &[PathBuf],
    since: Option<&str>,
) -> anyhow::Result<(Vec<Report>, Vec<anyhow::Error>)> {
    let today = jiff::Zoned::now();
    let month = u8::try_from(today.month()).unwrap_or(1);
    let today = u16::try_from(today.year()).ok().map(|year| (year, month));
    let (mut reports, mut errors) = (Vec::new(), Vec::new());
    for path in subject::documents(paths)? {
        let text = match subject::read(&path) {
            Ok(text) => text,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        let previous = since.map(|revision| subject::revision(revision, &path)).transpose()?;
        let previous = previous.flatten().map(|text| toolspec::parse(&text).0);
        let context = LintContext { previous: previous.as_ref(), today, ..LintContext::default() };
        let (_, findings) = toolspec::lint(&text, &context);
        reports.push(Report { path: path.display().to_string(), text, findings });
    }
    Ok((reports, errors))
}

/// Prints the findings that are not in the baseline, or writes them into it.
fn print_reports(
    mut reports: Vec<Report>,
    format: Format,
    baseline: Option<&Path>,
    write_baseline: bool,
    strict: bool,
) -> anyhow::Result<Done> {
    if let Some(file) = baseline {
        if write_baseline {
            let known = Baseline::new(&reports);
            known.save(file)?;
            say(&format!(
                "{} {} findings in `{}`",
                paint(GOOD, "kept"),
                known.len(),
                file.display()
            ));
            return Ok(Done::Fine);
        }
        let known = Baseline::load(file)?;
        for report in &mut reports {
            known.hide(report);
        }
    }
    out(&report::write(&reports, format));
    let fails = |finding: &Finding| match finding.severity {
        tool::Severity::Error => true,
        tool::Severity::Warning => strict,
        tool::Severity::Info => false,
    };
    let failed = reports.iter().any(|report| report.findings.iter().any(fails));
    Ok(if failed { Done::AnswerIsError } else { Done::Fine })
}

fn fix(paths: &[PathBuf], check: bool) -> anyhow::Result<Done> {
    let (mut changed, mut errors) = (0, Vec::new());
    for path in subject::documents(paths)? {
        let text = match subject::read(&path) {
            Ok(text) => text,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        let (fixed, left) = toolspec::fix(&text);
        if fixed == text {
            continue;
        }
        changed += 1;
        let left = left.iter().filter(|finding| finding.severity != tool::Severity::Info).count();
        if !check {
            std::fs::write(&path, fixed)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        let word = if check { "would change" } else { "changed" };
        say(&format!("{} `{}`, {left} findings are left", paint(GOOD, word), path.display()));
    }
    if changed == 0 {
        say(&paint(DIM, "nothing to repair"));
    }
    done_unless(errors, if check && changed != 0 { Done::AnswerIsError } else { Done::Fine })
}

fn generate(
    subject: &str,
    module: Option<&str>,
    version: Option<&str>,
    output: Option<&Path>,
    paths: &Paths,
) -> anyhow::Result<Done> {
    let found = subject::find(subject, paths)?;
    let usual = if found.version.is_empty() { "1.0.0" } else { &found.version };
    let options = Options {
        module: module.unwrap_or(&found.name).to_owned(),
        version: version.unwrap_or(usual).trim_start_matches('v').to_owned(),
        updated: jiff::Zoned::now().strftime("%B %Y").to_string(),
    };
    let text = toolspec::generate(&found.tools, &options);
    match output {
        Some(file) => {
            std::fs::write(file, text)
                .with_context(|| format!("cannot write `{}`", file.display()))?;
            say(&format!(
                "{} {} tools to `{}`",
                paint(GOOD, "wrote"),
                found.tools.len(),
                file.display()
            ));
        }
        None => out(&text),
    }
    Ok(Done::Fine)
}

fn check(document: &Path, server: &str, format: Format, paths: &Paths) -> anyhow::Result<Done> {
    let text = subject::read(document)?;
    let (parsed, _) = toolspec::parse(&text);
    let live = subject::find(server, paths)?;
    let findings = toolspec::check(&parsed, &live.tools);
    let report = Report { path: document.display().to_string(), text, findings };
    print_reports(vec![report], format, None, false, false)
}

fn diff(old: &str, new: &str, json: bool, paths: &Paths) -> anyhow::Result<Done> {
    let (old, new) = (subject::find(old, paths)?, subject::find(new, paths)?);
    let mut report = toolspec::diff(&old.tools, &new.tools);
    // A listing has one version, the server's, for all of its tools.
    if old.tools.iter().all(|tool| tool.version.is_none()) {
        let needed = report.changes.iter().map(|change| change.bump).max();
        let to = if new.version.is_empty() { &old.version } else { &new.version };
        report.missing_bumps.extend(toolspec::missing_bump(&new.name, &old.version, to, needed));
    }
    if json {
        out(&crate::terminal::json_text(&report)?);
    } else {
        for change in &report.changes {
            let (style, word) = match change.bump {
                toolspec::Bump::Major => (BAD, "breaking"),
                toolspec::Bump::Minor => (WARNING, "minor   "),
                toolspec::Bump::Patch => (DIM, "patch   "),
            };
            out(&format!("{} `{}`: {}", paint(style, word), change.tool, change.what));
        }
        for missing in &report.missing_bumps {
            out(&format!(
                "{} `{}` went from {} to {} and owes at least {}",
                paint(BAD, "owed    "),
                missing.tool,
                missing.from,
                missing.to,
                missing.expected
            ));
        }
        if report.changes.is_empty() {
            out("no change");
        }
    }
    Ok(if report.missing_bumps.is_empty() { Done::Fine } else { Done::AnswerIsError })
}

fn serve(document: &Path) -> anyhow::Result<Done> {
    let text = subject::as_document(document)?;
    let (parsed, _) = toolspec::parse(&text);
    let (mock, findings) = toolspec::mock::Mock::from_document(&parsed);
    for finding in &findings {
        say(&format!("{}: {}", paint(WARNING, finding.code), finding.message));
    }
    let n_tools = tool::Provider::listing(&*mock).tools.len();
    say(&paint(DIM, format!("serving {n_tools} tools of `{}`", document.display())));
    if n_tools == 0 {
        let hint =
            format!("no tool is described there; ask `gatelet spec lint {}`", document.display());
        say(&format!("{}: {hint}", paint(WARNING, "hint")));
    }
    let source = std::sync::Arc::new(tool::FixedProvider(mock));
    let runtime = tokio::runtime::Runtime::new()?;
    let ended = runtime
        .block_on(mcp::serve::stdio::stdio(source, mcp::serve::stdio::Options::default()))?;
    say(&paint(DIM, ended));
    // A reader thread may still wait for standard input.
    runtime.shutdown_background();
    Ok(Done::Fine)
}

fn explain(code: Option<&str>) -> anyhow::Result<Done> {
    let Some(code) = code else {
        for rule in toolspec::rules::all() {
            let fix = if rule.fixable { " (can be repaired)" } else { "" };
            out(&format!("{}  {}{}", paint(HEADING, rule.code), rule.title, paint(DIM, fix)));
        }
        return Ok(Done::Fine);
    };
    let Some(rule) = toolspec::rules::find(code) else {
        return Err(CliError::Usage(format!(
            "no rule is called `{code}`; `gatelet spec explain` lists all"
        ))
        .into());
    };
    out(&format!("{}: {}\n\n{}\n", paint(HEADING, rule.code), rule.title, rule.explanation));
    let example = rule.example();
    let context = LintContext {
        previous: example.previous.as_ref(),
        live: example.live.as_deref(),
        ..LintContext::default()
    };
    let (_, findings) = toolspec::lint(&example.text, &context);
    let findings = findings.into_iter().filter(|finding| finding.code == rule.code).collect();
    let report = Report { path: "example.md".to_owned(), text: example.text, findings };
    out(&report::write(&[report], Format::Text));
    if rule.fixable {
        out("`gatelet spec fix` repairs this.");
    }
    Ok(Done::Fine)
}
