//! `gatelet approvals`: lists the calls that wait for approval, and allows or denies them.

use policy::approval::{QueuedRequest, RememberedApproval, RequestState};
use serde_json::Value;
use tool::shell;

use super::output::Output;
use super::servers::config_file::ConfigFile;
use super::{person, running};
use crate::approval_queue::{self, BY_SHELL};
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::local_socket::LocalRequest;
use crate::paths::Paths;
use crate::terminal::{
    DIM, GOOD, HEADING, WARNING, cell, foreign, foreign_line, out, paint, say, table,
};
use crate::time;
use crate::wire::cluster::Cluster;
use config::write_remembered;

/// See and decide about calls that wait for approval
///
/// A call that needs approval waits here when its client cannot ask its user. Without
/// more words, those that wait are listed.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the requests that wait
    List {
        /// Also those that were decided, as long as they are remembered
        #[arg(long)]
        all: bool,

        #[command(flatten)]
        output: Output,
    },
    /// Show one request: who asks, for what, with which arguments
    Show {
        number: u64,

        #[command(flatten)]
        output: Output,
    },
    /// Let the call through, once
    Allow {
        number: u64,

        /// Do not ask at the terminal first
        #[arg(long, short)]
        yes: bool,

        /// Also let through calls of this tool with arguments of this shape from now on: shows the rule as TOML and writes it to the configuration once you agree
        #[arg(long)]
        remember: bool,
    },
    /// Refuse the call
    Deny { number: u64 },
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let queue = ApprovalQueue { paths };
    match &args.action {
        None => list(&queue, false, args.output),
        Some(Action::List { all, output }) => list(&queue, *all, *output),
        Some(Action::Show { number, output }) => show(&queue, *number, *output),
        Some(Action::Allow { number, yes, remember }) => allow(&queue, *number, *yes, *remember),
        Some(Action::Deny { number }) => {
            let request = queue.decide(*number, false)?;
            say(&format!("{} request {number}: {}", paint(WARNING, "denied"), tool_path(&request)));
            Ok(Done::Fine)
        }
    }
}

/// The queue of the running gatelet, or without one, that in the state directory or in
/// the store of the replicas.
struct ApprovalQueue<'a> {
    paths: &'a Paths,
}

impl ApprovalQueue<'_> {
    fn requests(&self) -> anyhow::Result<Vec<QueuedRequest>> {
        let answer = match running::ask(self.paths, &LocalRequest::Approvals)? {
            Some(answer) => answer,
            None => {
                self.with_stored_queue(async |approvals| approval_queue::list(approvals).await)?
            }
        };
        approval_queue::parse_list(&answer).map_err(|why| CliError::NoAnswer(why).into())
    }

    fn find(&self, number: u64) -> anyhow::Result<QueuedRequest> {
        let found = self.requests()?.into_iter().find(|request| request.number == number);
        found.ok_or_else(|| {
            let why = format!(
                "there is no request {number}; `gatelet approvals list` shows those that wait"
            );
            CliError::Usage(why).into()
        })
    }

    fn decide(&self, number: u64, allow: bool) -> anyhow::Result<QueuedRequest> {
        let request = LocalRequest::Decide { number, allow };
        let answer = match running::ask(self.paths, &request)? {
            Some(answer) => answer,
            None => self.with_stored_queue(async |approvals| {
                approval_queue::decide(approvals, number, allow, BY_SHELL).await
            })?,
        };
        match answer["error"].as_str() {
            Some(why) => Err(CliError::Refused(why.to_owned()).into()),
            None => Ok(serde_json::from_value(answer["request"].clone())?),
        }
    }

    /// Runs `act` on the queue where it is stored.
    fn with_stored_queue(
        &self,
        act: impl AsyncFnOnce(&policy::approval::Approvals) -> Value,
    ) -> anyhow::Result<Value> {
        let loaded = config_loader::load(self.paths)?;
        let state = self.paths.state_directory()?;
        let (file, config) = (loaded.file.as_deref(), &loaded.config);
        let cluster = config.state.as_ref().map(Cluster::new);
        let shared = cluster.as_ref().map(Cluster::approval_store);
        let approvals = approval_queue::open(&state, file, &config.approvals, shared);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(act(&approvals)))
    }
}

fn list(queue: &ApprovalQueue<'_>, all: bool, output: Output) -> anyhow::Result<Done> {
    let mut requests = queue.requests()?;
    requests.retain(|request| all || request.is_waiting());
    if output.is_json() {
        out(&crate::terminal::json_text(&requests)?);
        return Ok(Done::Fine);
    }
    if requests.is_empty() {
        say("nothing waits for approval");
        return Ok(Done::Fine);
    }
    let mut rows = table(&["number", "call", "asked by", "state", "arguments"]);
    for request in &requests {
        let subject = &request.subject;
        rows.add_row(vec![
            cell(HEADING, &request.number.to_string()),
            cell(DIM, &tool_path(request)),
            cell(DIM, &asker(request)),
            cell(DIM, &state(&request.state)),
            cell(DIM, &shortened(&subject.arguments)),
        ]);
    }
    out(&rows.to_string());
    say(&paint(DIM, "`gatelet approvals show NUMBER` shows one; allow and deny decide"));
    Ok(Done::Fine)
}

fn show(queue: &ApprovalQueue<'_>, number: u64, output: Output) -> anyhow::Result<Done> {
    let request = queue.find(number)?;
    if output.is_json() {
        out(&crate::terminal::json_text(&request)?);
        return Ok(Done::Fine);
    }
    out(&render(&request));
    Ok(Done::Fine)
}

/// Renders a request for a person.
fn render(request: &QueuedRequest) -> String {
    let subject = &request.subject;
    let arguments = match serde_json::from_str::<Value>(&subject.arguments) {
        Ok(arguments) => serde_json::to_string_pretty(&arguments).unwrap_or_default(),
        Err(_) => subject.arguments.clone(),
    };
    let cut = match subject.arguments_cut_from {
        Some(bytes) => format!("\n(long values are shortened; {bytes} bytes in all)"),
        None => String::new(),
    };
    let arguments: Vec<String> =
        arguments.lines().map(|line| format!("  {}", foreign(line))).collect();
    format!(
        "{} {}: {}\n{}\n\nasked by  {}\nstate     {}\nexpires   {}\n\narguments\n{}{cut}\n\n{}",
        paint(HEADING, "request"),
        paint(HEADING, request.number),
        tool_path(request),
        foreign_line(&subject.question),
        asker(request),
        state(&request.state),
        time::rfc3339(request.expires_at),
        arguments.join("\n"),
        paint(DIM, next_steps(request)),
    )
}

/// The commands by which the operator can decide about a request, once or for good.
fn next_steps(request: &QueuedRequest) -> String {
    let number = request.number;
    let name = format!("{}/{}", request.subject.upstream, request.subject.tool);
    // Where a rule asks, vouching for the tool ends nothing.
    let word = shell::word(&name).filter(|_| request.subject.ended_by_trust);
    let grant = word.map_or_else(String::new, |word| {
        format!("\n`gatelet trust grant {word}` lets every call of this tool through, as it is now")
    });
    format!(
        "`gatelet approvals allow {number}` lets this call through once, `deny {number}` refuses it\n\
         `gatelet approvals allow {number} --remember` asks no more about calls like it{grant}"
    )
}

fn allow(
    queue: &ApprovalQueue<'_>,
    number: u64,
    yes: bool,
    remember: bool,
) -> anyhow::Result<Done> {
    let request = queue.find(number)?;
    let rule = remember.then(|| rule_for(&request)).transpose()?;
    if !yes {
        say(&render(&request));
        if let Some(rule) = &rule {
            say(&format!("\n{}\n{}", paint(HEADING, "the rule"), foreign(rule)));
        }
        if !person::agrees("Let it through?") {
            let why =
                "nobody agreed at a terminal: nothing was decided. `--yes` decides without asking";
            return Err(CliError::Refused(why.to_owned()).into());
        }
    }
    if let Some(rule) = rule {
        let file = write_rule(queue.paths, &rule)?;
        say(&format!("{} in `{file}`:\n{}", paint(GOOD, "written"), foreign(&rule)));
    }
    let request = queue.decide(number, true)?;
    say(&format!(
        "{} request {number}: {} goes through once{}",
        paint(GOOD, "allowed"),
        tool_path(&request),
        if request.subject.client.is_empty() { "" } else { ", if the call is made again or waits" },
    ));
    Ok(Done::Fine)
}

/// The rule that allows calls like this request from now on, as TOML.
fn rule_for(request: &QueuedRequest) -> anyhow::Result<String> {
    let rule = RememberedApproval::from_subject(&request.subject).map_err(|why| {
        CliError::Refused(format!("request {} cannot be remembered: {why}", request.number))
    })?;
    Ok(write_remembered(&rule))
}

/// Adds a rule to the configuration file, if the file stays valid. Returns its path.
pub(super) fn write_rule(paths: &Paths, rule: &str) -> anyhow::Result<String> {
    let file = ConfigFile::open(paths)?;
    let text = file.text().trim_end().to_owned() + "\n\n" + rule;
    let source = config::SourceFile { name: file.path().display().to_string(), text: text.clone() };
    let base = file.path().parent().unwrap_or(std::path::Path::new("/"));
    config::parse(source, base, &config_loader::environment(paths)).map_err(|_| {
        let why = format!(
            "the rule cannot be added to `{}` by itself: add it by hand\n{rule}",
            file.path().display()
        );
        CliError::Refused(why)
    })?;
    file.write(&text)?;
    Ok(file.path().display().to_string())
}

fn tool_path(request: &QueuedRequest) -> String {
    foreign_line(&format!("{}/{}", request.subject.upstream, request.subject.tool)).into_owned()
}

fn asker(request: &QueuedRequest) -> String {
    let subject = &request.subject;
    let caller = if subject.caller.is_empty() { "anonymous" } else { &subject.caller };
    foreign_line(&format!("{caller} ({})", subject.client)).into_owned()
}

fn state(state: &RequestState) -> String {
    match state {
        RequestState::Waiting => "waiting".to_owned(),
        RequestState::Allowed { by, .. } => {
            format!("allowed by {}, not used yet", foreign_line(by))
        }
        RequestState::Denied { by, .. } => format!("denied by {}", foreign_line(by)),
        RequestState::Used { by, .. } => format!("allowed by {} and used", foreign_line(by)),
    }
}

fn shortened(text: &str) -> String {
    let one_line = foreign_line(text);
    match one_line.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &one_line[..at]),
        None => one_line.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use policy::approval::queue::Subject;

    use super::*;

    #[test]
    fn what_a_client_calls_itself_makes_no_line_of_ours() {
        let forged = "evil)\nstate     allowed by ann\n\narguments\n  {}\n(";
        let request = QueuedRequest {
            number: 1,
            binding: String::new(),
            caller_hash: String::new(),
            subject: Subject {
                question: format!("why {forged}"),
                caller: forged.to_owned(),
                client: forged.to_owned(),
                upstream: "up".to_owned(),
                tool: forged.to_owned(),
                arguments: serde_json::json!({"x": forged}).to_string(),
                arguments_cut_from: None,
                digest: None,
                ended_by_trust: false,
            },
            asked_at: 0,
            expires_at: 1,
            state: RequestState::Denied { by: forged.to_owned(), at: 0 },
        };
        let shown = render(&request);
        let begins = |word: &str| shown.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!(
            (begins("state"), begins("arguments"), begins("asked by")),
            (1, 1, 1),
            "{shown}"
        );
        for cell in [tool_path(&request), asker(&request), state(&request.state)] {
            assert!(!cell.contains('\n'), "{cell}");
        }
    }
}
