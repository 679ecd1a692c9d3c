//! `gatelet doctor`: checks everything that can be wrong with an installation.
//!
//! Facts are collected here; which findings follow from them is decided in the crate
//! `doctor`, which has the table of all findings.

mod hosts;
mod machine;
mod mend;
mod upstreams;

use doctor::{Code, Finding, Report, Severity, code};
use serde_json::{Value, json};

use super::output::Output;
use super::running;
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::local_socket::LocalRequest;
use crate::paths::Paths;
use crate::terminal::{
    self, BAD, DIM, GOOD, HEADING, PLACE, WARNING, foreign, foreign_line, out, paint, say,
};
use upstreams::Examined;

/// Look for everything that can be wrong, and say who can mend it how
///
/// The program, the configuration, the state directory, hosts, the machine
/// and every upstream are looked at. Upstreams are asked through the gatelet that
/// runs, or started for the occasion. Ends with 1 when something does not work.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Look at this upstream only; may be given several times
    #[arg(long, value_name = "LABEL")]
    only: Vec<String>,
    /// Start every upstream anew, also when a gatelet runs
    #[arg(long)]
    fresh: bool,
    /// Mend what can be mended without harm: the rights of files, what killed ones left
    #[arg(long)]
    fix: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Say what a finding means; all of them without a code
    Explain {
        code: Option<String>,
        /// As a table of the documentation
        #[arg(long, hide = true)]
        markdown: bool,
    },
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    if let Some(Action::Explain { code, markdown }) = &args.action {
        return explain(code.as_deref(), *markdown);
    }
    let running = match running::ask(paths, &LocalRequest::Status) {
        Ok(rows) => rows,
        Err(error) => {
            say(&paint(WARNING, foreign(&format!("{error:#}"))));
            None
        }
    };
    let facts = machine::facts(paths, running.is_some());
    let mut findings = doctor::machine::judge(&facts);
    findings.extend(hosts::facts(paths).iter().filter_map(doctor::host::judge));
    let loaded = config_loader::load(paths).ok();
    let wanted = |label: &str| {
        args.only.is_empty() || args.only.iter().any(|one| catalog::name::same(one, label))
    };
    let config = loaded.map(|loaded| loaded.config);
    let checks = config.as_ref().map(|config| config.controls.inspection.clone());
    let mut all = config.map(|config| config.upstreams).unwrap_or_default();
    if let Some(unknown) =
        args.only.iter().find(|one| all.iter().all(|known| !catalog::name::same(one, &known.label)))
    {
        return Err(CliError::Usage(format!("no upstream is called `{unknown}`")).into());
    }
    all.retain(|upstream| wanted(&upstream.label));
    let running =
        running.filter(|_| !args.fresh).map(|rows| upstreams::Running::with_rows(rows, paths));
    let checks = checks.unwrap_or_default();
    let examined = upstreams::examine(&all, running.as_ref(), &checks, paths)?;
    findings.extend(examined.iter().flat_map(|one| doctor::upstream::judge(&one.facts)));
    let mut report = Report::new(findings);
    let mended = if args.fix { mend::mend(&mut report) } else { Vec::new() };
    if args.output.is_json() {
        out(&crate::terminal::json_text(&as_json(&report, &examined, &facts, &mended))?);
    } else {
        show(&report, &examined, &facts, &mended);
    }
    Ok(if report.has_errors() { Done::AnswerIsError } else { Done::Fine })
}

fn as_json(
    report: &Report,
    examined: &[Examined],
    facts: &doctor::machine::Facts,
    mended: &[String],
) -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "config": facts.config.as_ref().map(|config| &config.file),
        "state": facts.state.directory,
        "is_running": facts.service.is_running,
        "upstreams": examined.iter().map(Examined::to_json).collect::<Vec<_>>(),
        "findings": report.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
        "errors": report.count(Severity::Error),
        "warnings": report.count(Severity::Warning),
        "mended": mended,
    })
}

fn show(report: &Report, examined: &[Examined], facts: &doctor::machine::Facts, mended: &[String]) {
    let config = facts.config.as_ref().map_or("none", |config| config.file.as_str());
    out(&format!("{} {}", paint(DIM, "program      "), env!("CARGO_PKG_VERSION")));
    out(&format!("{} {config}", paint(DIM, "configuration")));
    out(&format!("{} {}", paint(DIM, "state        "), facts.state.directory));
    let service = if facts.service.is_running { "runs" } else { "does not run" };
    out(&format!("{} {service}", paint(DIM, "gatelet      ")));
    if !examined.is_empty() {
        let mut table = terminal::table(&[
            "upstream",
            "state",
            "server",
            "protocol",
            "tools",
            "ready after",
            "ping",
        ]);
        for one in examined {
            table.add_row(one.cells());
        }
        out(&table.to_string());
    }
    for finding in &report.findings {
        out("");
        out(&lines(finding));
    }
    mended.iter().for_each(|what| out(&format!("{} {what}", paint(GOOD, "mended"))));
    out("");
    let (n_errors, n_warnings) = (report.count(Severity::Error), report.count(Severity::Warning));
    match (n_errors, n_warnings) {
        (0, 0) => out(&paint(GOOD, "nothing is wrong")),
        _ => out(&format!(
            "{}, {}; `gatelet doctor explain CODE` says more",
            counted(n_errors, "error"),
            counted(n_warnings, "warning"),
        )),
    }
}

fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn lines(finding: &Finding) -> String {
    let (style, word) = match finding.code.severity {
        Severity::Error => (BAD, "error"),
        Severity::Warning => (WARNING, "warning"),
        Severity::Note => (DIM, "note"),
    };
    let subject = foreign_line(&finding.subject).into_owned();
    let mut text = format!(
        "{} {}: {} {}",
        paint(style, word),
        paint(HEADING, subject),
        finding.code.title,
        paint(DIM, format!("[{}]", finding.code.code))
    );
    for line in foreign(&finding.detail).lines().filter(|line| !line.trim().is_empty()) {
        text += &format!("\n  {line}");
    }
    if let Some(fix) = &finding.fix {
        text += &format!("\n  {} {}", paint(DIM, "try"), paint(PLACE, foreign(fix)));
    }
    text
}

fn explain(name: Option<&str>, markdown: bool) -> anyhow::Result<Done> {
    if markdown {
        out(&code::markdown());
        return Ok(Done::Fine);
    }
    let Some(name) = name else {
        let width = code::ALL.iter().map(|code| code.code.len()).max().unwrap_or(0);
        for code in code::ALL {
            out(&format!("{:<width$}  {}", code.code, code.title));
        }
        return Ok(Done::Fine);
    };
    let unknown = || {
        CliError::Usage(format!(
            "no finding is called `{name}`; `gatelet doctor explain` lists all"
        ))
    };
    let Code { code, severity, title, meaning, who, fix, is_fixable, .. } =
        code::find(name).ok_or_else(unknown)?;
    out(&format!("{} ({}): {title}", paint(HEADING, code), severity.word()));
    out(meaning);
    out(&format!("Who can mend it: {}.", who.word()));
    if let Some(fix) = fix {
        let also = if *is_fixable { ", or `gatelet doctor --fix`" } else { "" };
        out(&format!("How: `{}`{also}.", fix.replace("{}", "NAME")));
    }
    Ok(Done::Fine)
}
