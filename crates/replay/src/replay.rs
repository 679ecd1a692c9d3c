//! Runs the recorded tasks through a gateway, step by step, and counts tokens.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use cost::{Conversation, Turn};
use serde_json::Value;
use validator::{Dialect, Validator};

use crate::count::{call_tokens, tokens};
use crate::gateway::{Gateway, Request, STDERR, ToolRef, plain_name};
use crate::mocks::Mocks;
use crate::recording::{Recording, Step, Task};
use crate::session::{Session, ToolOutput};
use crate::used_later;

/// The result for all tasks of a recording.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// The name of the gateway, for tables and plots.
    pub label: String,
    /// Tokens of the definitions.
    pub definitions: u64,
    pub n_definitions: usize,
    pub tasks: Vec<TaskReplay>,
}

/// The result for one task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskReplay {
    pub conversation: Conversation,
    pub replayed: ReplayCounts,
    /// For each search, the label and name of the tools that it showed, each once and in the
    /// order of the reply.
    pub shown: Vec<Vec<(String, String)>>,
}

/// Counts of what happened to calls and results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    pub searches: u64,
    pub calls: u64,
    /// Calls whose tool a search had shown.
    pub found_by_search: u64,
    /// Tools that had to be looked up.
    pub looked_up: u64,
    /// Calls that rightly never reached their server: no such tool, or invalid arguments.
    pub refused_rightly: u64,
    /// Calls that should have reached their server, and did not.
    pub refused_wrongly: u64,
    /// Results that the gateway kept: the reply says how to get at the rest.
    pub kept: u64,
    /// Results of which a tenth or more is missing in the reply, and that were not kept.
    pub cut: u64,
    /// Parts of results that the agent used later.
    pub used_later: u64,
    /// Those of them that were not in the reply.
    pub not_inline: u64,
    /// Those of them that one more call fetches.
    pub reachable: u64,
}

/// Whether it was right that a call never reached its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Rightly,
    Wrongly,
}

impl std::ops::Add for ReplayCounts {
    type Output = ReplayCounts;

    fn add(self, other: ReplayCounts) -> ReplayCounts {
        ReplayCounts {
            searches: self.searches + other.searches,
            calls: self.calls + other.calls,
            found_by_search: self.found_by_search + other.found_by_search,
            looked_up: self.looked_up + other.looked_up,
            refused_rightly: self.refused_rightly + other.refused_rightly,
            refused_wrongly: self.refused_wrongly + other.refused_wrongly,
            kept: self.kept + other.kept,
            cut: self.cut + other.cut,
            used_later: self.used_later + other.used_later,
            not_inline: self.not_inline + other.not_inline,
            reachable: self.reachable + other.reachable,
        }
    }
}

impl Replay {
    /// Returns the counts of all tasks.
    pub fn replayed(&self) -> ReplayCounts {
        self.tasks.iter().fold(ReplayCounts::default(), |sum, task| sum + task.replayed)
    }

    /// Returns the cost of all tasks.
    pub fn totals(&self) -> cost::Totals {
        self.tasks.iter().map(|task| task.conversation.totals()).sum()
    }
}

/// Runs every task of a recording through a gateway.
pub fn replay(recording: &Recording, gateway: &Gateway) -> io::Result<Replay> {
    replay_within(recording, gateway, LONGEST)
}

/// A replay that takes longer than this has lost its way.
const LONGEST: Duration = Duration::from_hours(1);

/// Runs every task of a recording through a gateway, which is ended after `limit`.
pub fn replay_within(
    recording: &Recording,
    gateway: &Gateway,
    limit: Duration,
) -> io::Result<Replay> {
    let mocks = Mocks::start(recording)?;
    let scratch = tempfile::tempdir()?;
    let command = gateway.command(&mocks.upstreams(), scratch.path())?;
    let last_words = |error: io::Error| {
        // What it wrote matters when it ended by itself.
        if error.kind() != io::ErrorKind::UnexpectedEof {
            return io::Error::new(error.kind(), format!("{}: {error}", gateway.name()));
        }
        let stderr = std::fs::read_to_string(scratch.path().join(STDERR)).unwrap_or_default();
        let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(3)..].join(" / ");
        io::Error::new(error.kind(), format!("{}: {error}: {last}", gateway.name()))
    };
    let mut session = Session::start_within(command, limit).map_err(last_words)?;
    let definitions = wait_for_definitions(&mut session, recording, gateway).map_err(last_words)?;
    let names = definitions.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned);
    let names: Vec<String> = names.collect();
    let definitions = definitions.iter().map(|definition| tokens(&definition.to_string())).sum();
    let mut run = Run { recording, gateway, mocks: &mocks, session: &mut session, names: &names };
    let tasks = recording.tasks.iter().map(|task| {
        let mut done = run.task(task)?;
        done.conversation.definitions = definitions;
        Ok(done)
    });
    let tasks = tasks.collect::<io::Result<Vec<_>>>().map_err(last_words)?;
    Ok(Replay { label: gateway.name(), definitions, n_definitions: names.len(), tasks })
}

/// How often a gateway is asked until it knows all tools.
const MAX_ATTEMPTS: usize = if cfg!(test) { 20 } else { 2_000 };
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until the gateway knows the tools of every server, and returns its definitions.
fn wait_for_definitions(
    session: &mut Session,
    recording: &Recording,
    gateway: &Gateway,
) -> io::Result<Vec<Value>> {
    let mut n_questions = 0;
    if gateway.search("").is_none() {
        // Every server shows in the definitions.
        loop {
            let definitions = session.definitions()?;
            n_questions += 1;
            let n_expected = gateway.n_expected_definitions(recording);
            if n_expected <= definitions.len() {
                return Ok(definitions);
            }
            let said = || format!("it lists {} definitions of {n_expected}", definitions.len());
            pause(n_questions, said)?;
        }
    }
    if gateway.lists_servers_per_request() {
        return session.definitions();
    }
    for server in &recording.servers {
        let Some(tool) = server.tools.last() else { continue };
        let tool_ref = ToolRef { label: &server.label, tool: &tool.name, listed: None };
        let Request { tool: name, arguments } = gateway.look_up(tool_ref);
        loop {
            let output = session.call(&name, &arguments)?;
            n_questions += 1;
            // A server lists its tools in one page, so whoever knows one of them knows all.
            let names =
                server.tools.iter().flat_map(|tool| [tool.name.clone(), plain_name(&tool.name)]);
            if !output.is_error && names.into_iter().any(|name| output.text.contains(&name)) {
                break;
            }
            pause(n_questions, || format!("it shows no tool of {}", server.label))?;
        }
    }
    session.definitions()
}

/// Pauses before the next attempt. There is none after too many: a gateway that does not know
/// all tools is not measured, because it would look cheaper than it is.
fn pause(n_questions: usize, said: impl Fn() -> String) -> io::Result<()> {
    if MAX_ATTEMPTS < n_questions {
        let text = format!("after {n_questions} questions {}", said());
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    std::thread::sleep(PAUSE);
    Ok(())
}

/// A running gateway, with everything needed to run tasks.
struct Run<'a> {
    recording: &'a Recording,
    gateway: &'a Gateway,
    mocks: &'a Mocks,
    session: &'a mut Session,
    /// The names of the tools that the gateway lists.
    names: &'a [String],
}

/// The state of a task that is being run.
#[derive(Default)]
struct Progress {
    /// The ids of the tools that the gateway has shown, by label and name.
    ids: BTreeMap<(String, String), String>,
    /// The text that the model knew before: the question and arguments.
    known: String,
    done: TaskReplay,
}

impl Run<'_> {
    fn task(&mut self, task: &Task) -> io::Result<TaskReplay> {
        let mut progress = Progress { known: task.question.clone(), ..Progress::default() };
        progress.done.conversation.question = tokens(&task.question);
        for (at, step) in task.steps.iter().enumerate() {
            match step {
                Step::Search { query } => self.search(query, &mut progress)?,
                Step::Call { server, tool, arguments, result } => {
                    let Some((server, _)) = self.recording.find(server, tool) else { continue };
                    let listed = self.gateway.listed(self.names, &server.label, tool);
                    let tool_ref = ToolRef { label: &server.label, tool, listed };
                    let raw = self.call(tool_ref, arguments, result, &mut progress)?;
                    let later = task.steps[at + 1..].iter().filter_map(arguments_of);
                    self.used_later(&raw, later, &mut progress)?;
                    progress.known += &arguments.to_string();
                }
            }
        }
        Ok(progress.done)
    }

    /// Calls a tool of the gateway, and counts the turn.
    fn turn(&mut self, request: &Request, progress: &mut Progress) -> io::Result<ToolOutput> {
        let output = self.session.call(&request.tool, &request.arguments)?;
        let written = call_tokens(&request.tool, &request.arguments);
        progress.done.conversation.turns.push(Turn { written, read: tokens(&output.text) });
        Ok(output)
    }

    fn search(&mut self, query: &str, progress: &mut Progress) -> io::Result<()> {
        let Some(request) = self.gateway.search(query) else { return Ok(()) };
        progress.done.replayed.searches += 1;
        let output = self.turn(&request, progress)?;
        progress.done.shown.push(self.shown_in(&output.text, &mut progress.ids));
        Ok(())
    }

    /// Returns the tools that a reply shows, in its order, and remembers their ids.
    fn shown_in(
        &self,
        text: &str,
        ids: &mut BTreeMap<(String, String), String>,
    ) -> Vec<(String, String)> {
        let mut shown = Vec::new();
        for line in text.split_inclusive('\n') {
            for server in &self.recording.servers {
                for tool in &server.tools {
                    let tool_ref = ToolRef { label: &server.label, tool: &tool.name, listed: None };
                    let Some(id) = self.gateway.tool_id_in(line, tool_ref) else { continue };
                    let key = (server.label.clone(), tool.name.clone());
                    ids.entry(key.clone()).or_insert(id);
                    if !shown.contains(&key) {
                        shown.push(key);
                    }
                }
            }
        }
        shown
    }

    /// Calls a tool of a server, and looks it up first if no search has shown it.
    fn call(
        &mut self,
        tool_ref: ToolRef<'_>,
        arguments: &Value,
        result: &Value,
        progress: &mut Progress,
    ) -> io::Result<CallOutput> {
        let key = (tool_ref.label.to_owned(), tool_ref.tool.to_owned());
        progress.done.replayed.calls += 1;
        match progress.ids.get(&key) {
            Some(_) if progress.done.shown.iter().flatten().any(|shown| *shown == key) => {
                progress.done.replayed.found_by_search += 1;
            }
            Some(_) => {}
            None => {
                progress.done.replayed.looked_up += 1;
                let output = self.turn(&self.gateway.look_up(tool_ref), progress)?;
                let id = self.gateway.tool_id_in(&output.text, tool_ref).unwrap_or_default();
                progress.ids.insert(key.clone(), id);
            }
        }
        self.mocks.expect(result);
        let id = progress.ids.get(&key).map(String::as_str).filter(|id| !id.is_empty());
        let output = self.turn(&self.gateway.call(tool_ref, id, arguments), progress)?;
        if !self.mocks.was_called(tool_ref.label, tool_ref.tool) {
            match self.judge_refusal(tool_ref, arguments) {
                Refusal::Rightly => progress.done.replayed.refused_rightly += 1,
                Refusal::Wrongly => progress.done.replayed.refused_wrongly += 1,
            }
            return Ok(CallOutput { raw: String::new(), output });
        }
        let answer = Mocks::answer(&self.recording.servers, tool_ref.label, tool_ref.tool, result);
        let raw = crate::session::tool_output(&answer).text;
        if self.gateway.request_stored_part(&output.text, "").is_some() {
            progress.done.replayed.kept += 1;
        } else if output.text.len() * 10 < raw.len() * 9 {
            progress.done.replayed.cut += 1;
        }
        Ok(CallOutput { raw, output })
    }

    /// Judges whether it was right that a call did not reach its server.
    fn judge_refusal(&self, tool_ref: ToolRef<'_>, arguments: &Value) -> Refusal {
        let server = self.recording.servers.iter().find(|server| server.label == tool_ref.label);
        let tool =
            server.and_then(|server| server.tools.iter().find(|tool| tool.name == tool_ref.tool));
        let Some(tool) = tool else { return Refusal::Rightly };
        match fits(&tool.definition["inputSchema"], arguments) {
            true => Refusal::Wrongly,
            false => Refusal::Rightly,
        }
    }

    /// Counts the parts of a result that were used later, and whether the model could read
    /// them.
    fn used_later<'a>(
        &mut self,
        call: &CallOutput,
        later: impl Iterator<Item = &'a Value>,
        progress: &mut Progress,
    ) -> io::Result<()> {
        let parts = used_later::used_parts(&call.raw, &progress.known, later);
        progress.done.replayed.used_later += parts.len() as u64;
        let missing = parts.iter().filter(|part| !call.output.text.contains(part.as_str()));
        for part in missing {
            progress.done.replayed.not_inline += 1;
            if let Some(request) = self.gateway.request_stored_part(&call.output.text, part) {
                // The model has to call for it, so that counts as a turn.
                let found = self.turn(&request, progress)?;
                progress.done.replayed.reachable += u64::from(found.text.contains(part.as_str()));
            }
        }
        Ok(())
    }
}

/// The result of a call.
struct CallOutput {
    /// The text that the server sent.
    raw: String,
    /// The output that the model read.
    output: ToolOutput,
}

fn arguments_of(step: &Step) -> Option<&Value> {
    match step {
        Step::Search { .. } => None,
        Step::Call { arguments, .. } => Some(arguments),
    }
}

/// Returns whether arguments fit a schema; nothing fits an invalid schema.
fn fits(schema: &Value, arguments: &Value) -> bool {
    let validator = Validator::compile(schema, Dialect::Declared);
    validator.is_ok_and(|validator| validator.is_valid(arguments))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;
    use crate::Surface;

    /// A gateway that answers `initialize` and then does what a line of a shell says.
    fn gateway(directory: &Path, then: &str) -> Gateway {
        let program = directory.join("gateway");
        let first = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let answer = r#"{"jsonrpc":"2.0","id":'$n',"result":{"tools":[{"name":"one"}]}}"#;
        let script = format!(
            "#!/bin/sh\nread l; echo '{first}'; read l; n=1\n\
             while read l; do n=$((n+1)); {then} echo '{answer}'; done\n"
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Gateway::Gatelet { program, surface: Surface::Proxy }
    }

    #[test]
    fn a_gateway_that_does_not_know_all_tools_is_not_measured() {
        let directory = tempfile::tempdir().unwrap();
        let error = replay(&Recording::own(), &gateway(directory.path(), "")).unwrap_err();
        let told = error.to_string();
        assert!(told.contains("it lists 1 definitions of 50"), "{told}");
    }

    #[test]
    fn a_gateway_that_does_not_answer_is_ended_and_said_to_take_too_long() {
        let directory = tempfile::tempdir().unwrap();
        let silent = gateway(directory.path(), "continue;");
        let limit = Duration::from_millis(200);
        let error = replay_within(&Recording::own(), &silent, limit).unwrap_err();
        assert!(error.to_string().contains("was ended after 0 min"), "{error}");
    }
}
