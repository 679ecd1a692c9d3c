//! `gatelet conform`: checks any server against the CaSH checklist.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use conform::survey::Page;
use conform::{Options, Outcome, Report, Role, Subject, Trial, Verdict, Web, survey};
use mcp::connect::{Certificates, Endpoint, Inherit, Program, Target};
use reqwest::Url;
use tool::Client;

use crate::exit::{CliError, Done};
use crate::fetch;
use crate::terminal::{BAD, DIM, GOOD, WARNING, out, paint};

/// Judge a server by the CaSH checklist, as a client that knows only what it is told
///
/// Prints PASS, WARN, FAIL or SKIP with evidence for each of the 127 items, and
/// ends with 1 when one failed. Nothing with side effects is called: a function
/// is only run when it needs no arguments and is called like something that
/// reads, or when it is named with --trial or --large.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A URL, or a command and its arguments
    #[arg(required = true, value_name = "URL|COMMAND", trailing_var_arg = true)]
    pub(crate) target: Vec<String>,

    /// What the server is meant to be
    #[arg(long, value_enum, default_value = "server")]
    pub(crate) role: RoleArg,

    /// A harmless call with a short answer, such as `orders.list={"limit": 1}`
    #[arg(long, value_name = "CALL", value_parser = trial)]
    pub(crate) trial: Option<Trial>,

    /// A harmless call whose answer is over 10,000 characters
    #[arg(long, value_name = "CALL", value_parser = trial)]
    large: Option<Trial>,

    /// A header for every request to a URL, such as `Authorization: Bearer …`; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,

    /// A file of certificates in PEM that may have signed that of the URL
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    /// Leave out what passed and what was skipped
    #[arg(long)]
    pub(crate) brief: bool,
}

/// The value of `--role`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum RoleArg {
    Server,
    StaticAggregator,
    DynamicAggregator,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Markdown,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Done> {
    let Some(url) = url(&args.target) else {
        return report(args, None);
    };
    if args.target.len() == 1 {
        return report(args, Some(&url));
    }
    let more = args.target[1..].join(" ");
    Err(CliError::Usage(format!("a URL takes no further words: `{more}`")).into())
}

impl Args {
    /// The command line with the options moved before the URL, if they stood after it and
    /// were parsed as words of the target.
    pub(crate) fn options_first(&self, words: &[OsString]) -> Option<Vec<OsString>> {
        let n_target = self.target.len();
        url(&self.target).filter(|_| n_target != 1)?;
        let mut words = words.to_vec();
        let at = words.len().saturating_sub(n_target);
        words[at..].rotate_left(1);
        Some(words)
    }

    /// Whether the target is the URL with which the other target begins.
    pub(crate) fn is_for_target_of(&self, other: &Args) -> bool {
        self.target == other.target[..1]
    }

    #[cfg(test)]
    pub(crate) fn is_json(&self) -> bool {
        matches!(self.format, Format::Json)
    }
}

fn url(target: &[String]) -> Option<Url> {
    let url = target.first().and_then(|target| Url::parse(target).ok());
    url.filter(|url| matches!(url.scheme(), "http" | "https"))
}

fn report(args: &Args, url: Option<&Url>) -> anyhow::Result<Done> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (report, unusable) = runtime.block_on(judge(args, url))?;
    match args.format {
        Format::Text => out(&text(&report, args.brief)),
        Format::Json => out(&report.json()),
        Format::Markdown => out(&report.markdown()),
    }
    if !unusable.is_empty() {
        let message = format!("a named call is not usable: {}", unusable.join("; "));
        return Err(CliError::Usage(message).into());
    }
    Ok(if report.conforms() { Done::Fine } else { Done::AnswerIsError })
}

/// Makes the report. Also returns the calls of `--trial` and `--large` that could not be
/// used.
async fn judge(args: &Args, url: Option<&Url>) -> anyhow::Result<(Report, Vec<String>)> {
    let ca = args.ca.as_ref().map(|file| {
        std::fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))
    });
    let ca = ca.transpose().map_err(|error| CliError::Usage(format!("{error:#}")))?;
    let target = match (url, args.target.split_first()) {
        (Some(url), _) => Target::Http(Endpoint {
            url: url.to_string(),
            headers: args.headers.iter().cloned().collect::<BTreeMap<_, _>>(),
            certificates: Certificates { authority: ca.clone(), identity: None },
            ..Endpoint::default()
        }),
        (None, Some(_)) if ca.is_some() || !args.headers.is_empty() => {
            return Err(CliError::Usage("--header and --ca go with a URL".to_owned()).into());
        }
        (None, Some((command, rest))) => Target::Stdio(Program {
            command: command.into(),
            args: rest.to_vec(),
            // Typed by hand, as in any shell.
            inherit: Inherit::All,
            ..Program::default()
        }),
        (None, None) => return Err(CliError::Usage("name a URL or a command".to_owned()).into()),
    };
    let client = Client::named("gatelet-conform", "");
    let options = mcp::connect::Options::default();
    let upstream = mcp::connect::connect(&target, &options, &client)
        .await
        .map_err(|error| CliError::NoAnswer(error.to_string()))?;
    let host = |url: &Url| Arc::new(ServerHost { url: url.clone(), authority: ca.clone() });
    let web = url.map(|url| host(url) as Arc<dyn Web>);
    let subject = Subject { provider: upstream, web };
    let role = match args.role {
        RoleArg::Server => Role::Server,
        RoleArg::StaticAggregator => Role::StaticAggregator,
        RoleArg::DynamicAggregator => Role::DynamicAggregator,
    };
    let (trial, large) = (args.trial.clone(), args.large.clone());
    let options = Options { role, trial, large, ..Options::default() };
    let transcript = survey(&subject, &options).await;
    Ok((Report::new(&transcript), transcript.unusable))
}

/// Fetches pages, such as the manifest, from the host of the server.
struct ServerHost {
    url: Url,
    authority: Option<Vec<u8>>,
}

#[async_trait]
impl Web for ServerHost {
    async fn get(&self, path: &str, accept: &str) -> Result<Page, String> {
        let mut url = self.url.clone();
        url.set_path(path);
        url.set_query(None);
        let limit = web::manifest::MAX_BYTES;
        let fetched = fetch::get(&url, accept, limit, self.authority.as_deref()).await;
        let fetched = fetched.map_err(|error| error.to_string())?;
        Ok(Page {
            status: fetched.status,
            content_type: fetched.content_type,
            vary: fetched.vary,
            body: fetched.body,
        })
    }
}

/// Parses `namespace.function={"key": "value"}`.
fn trial(text: &str) -> Result<Trial, String> {
    let (name, kwargs) = text.split_once('=').unwrap_or((text, "{}"));
    let (namespace, function) = name.rsplit_once('.').unwrap_or(("", name));
    let kwargs = serde_json::from_str(kwargs)
        .map_err(|error| format!("the arguments after `=` are not JSON: {error}"))?;
    Ok(Trial { namespace: namespace.to_owned(), function: function.to_owned(), kwargs })
}

/// Parses `Name: value`.
fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write it as `Name: value`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn text(report: &Report, brief: bool) -> String {
    let telling =
        |outcome: &&Outcome| !brief || matches!(outcome.verdict, Verdict::Fail | Verdict::Warn);
    let line = |outcome: &Outcome| {
        let verdict = match outcome.verdict {
            Verdict::Pass => paint(GOOD, "PASS"),
            Verdict::Warn => paint(WARNING, "WARN"),
            Verdict::Fail => paint(BAD, "FAIL"),
            Verdict::Skip => paint(DIM, "SKIP"),
        };
        let evidence = paint(DIM, format!("          {}", outcome.evidence));
        format!("{verdict} {} {}\n{evidence}\n", outcome.id, outcome.requirement)
    };
    report.outcomes.iter().filter(telling).map(line).collect::<String>() + &report.summary()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_written_as_a_call() {
        let found = trial(r#"orders.retail.list={"limit": 1}"#).unwrap();
        assert_eq!((found.namespace.as_str(), found.function.as_str()), ("orders.retail", "list"));
        assert_eq!(found.kwargs["limit"], 1);
        assert_eq!(trial("now").unwrap().namespace, "");
        assert!(trial("a.b={").is_err());
    }
}
