//! `gatelet conform`: the CaSH checklist against any server.

use std::sync::Arc;

use async_trait::async_trait;
use conform::survey::Page;
use conform::{Options, Outcome, Report, Role, Subject, Trial, Verdict, Web, survey};
use mcp::connect::{Endpoint, Program, Target};
use reqwest::Url;
use tool::Client;

use crate::exit::{Done, Stop};
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
    target: Vec<String>,

    /// What the server is meant to be
    #[arg(long, value_enum, default_value = "server")]
    role: As,

    /// A harmless call with a short answer, such as `orders.list={"limit": 1}`
    #[arg(long, value_name = "CALL", value_parser = trial)]
    trial: Option<Trial>,

    /// A harmless call whose answer is over 10,000 characters
    #[arg(long, value_name = "CALL", value_parser = trial)]
    large: Option<Trial>,

    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    /// Leave out what passed and what was skipped
    #[arg(long)]
    brief: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum As {
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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(judge(args))?;
    match args.format {
        Format::Text => out(&text(&report, args.brief)),
        Format::Json => out(&report.json()),
        Format::Markdown => out(&report.markdown()),
    }
    Ok(if report.conforms() { Done::Fine } else { Done::AnswerIsError })
}

async fn judge(args: &Args) -> anyhow::Result<Report> {
    let url = args.target.first().and_then(|target| Url::parse(target).ok());
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
    let target = match (&url, args.target.split_first()) {
        (Some(url), _) => Target::Http(Endpoint { url: url.to_string(), ..Endpoint::default() }),
        (None, Some((command, rest))) => Target::Stdio(Program {
            command: command.into(),
            args: rest.to_vec(),
            ..Program::default()
        }),
        (None, None) => return Err(Stop::Usage("name a URL or a command".to_owned()).into()),
    };
    let client = Client::named("gatelet-conform", "");
    let options = mcp::connect::Options::default();
    let upstream = mcp::connect::connect(&target, &options, &client)
        .await
        .map_err(|error| Stop::NoAnswer(error.to_string()))?;
    let web = url.map(|url| Arc::new(Site(url)) as Arc<dyn Web>);
    let subject = Subject { provider: upstream, web };
    let role = match args.role {
        As::Server => Role::Server,
        As::StaticAggregator => Role::StaticAggregator,
        As::DynamicAggregator => Role::DynamicAggregator,
    };
    let (trial, large) = (args.trial.clone(), args.large.clone());
    let options = Options { role, trial, large, ..Options::default() };
    Ok(Report::new(&survey(&subject, &options).await))
}

/// The host of the server, for its manifest.
struct Site(Url);

#[async_trait]
impl Web for Site {
    async fn get(&self, path: &str, accept: &str) -> Result<Page, String> {
        let mut url = self.0.clone();
        url.set_path(path);
        url.set_query(None);
        let fetched =
            fetch::get(&url, accept, web::manifest::MAX_BYTES).await.map_err(|e| e.to_string())?;
        Ok(Page {
            status: fetched.status,
            content_type: fetched.content_type,
            vary: fetched.vary,
            body: fetched.body,
        })
    }
}

/// Reads `namespace.function={"key": "value"}`.
fn trial(text: &str) -> Result<Trial, String> {
    let (name, kwargs) = text.split_once('=').unwrap_or((text, "{}"));
    let (namespace, function) = name.rsplit_once('.').unwrap_or(("", name));
    let kwargs = serde_json::from_str(kwargs)
        .map_err(|error| format!("the arguments after `=` are not JSON: {error}"))?;
    Ok(Trial { namespace: namespace.to_owned(), function: function.to_owned(), kwargs })
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
