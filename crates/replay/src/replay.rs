//! Recorded tasks, taken through a gateway step by step.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use cost::{Conversation, Turn};
use serde_json::Value;
use validator::{Dialect, Validator};

use crate::count::{call_tokens, tokens};
use crate::mocks::Mocks;
use crate::recording::{Recording, Step, Task};
use crate::session::{Said, Session};
use crate::used_later;
use crate::way::{Meant, Request, STDERR, Way};

/// All tasks of a recording through one way.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    pub way: String,
    /// Tokens of the definitions, and how many there are.
    pub definitions: u64,
    pub n_definitions: usize,
    pub tasks: Vec<TaskReplay>,
}

/// One task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskReplay {
    pub conversation: Conversation,
    pub replayed: Replayed,
    /// The tools that each search showed, of those that the task calls.
    pub shown: Vec<Vec<(String, String)>>,
}

/// What happened to calls and results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    pub searches: u64,
    pub calls: u64,
    /// Calls whose tool a search had shown.
    pub found_by_search: u64,
    /// Tools that had to be looked up.
    pub looked_up: u64,
    /// Calls that never reached their server, and rightly so: no such tool, or
    /// arguments that do not fit.
    pub refused_rightly: u64,
    pub refused_wrongly: u64,
    /// Parts of results that were used later, and those that the model could not read
    /// in the reply.
    pub used_later: u64,
    pub not_inline: u64,
    /// Those of them that one more question brings back.
    pub reachable: u64,
}

/// How a call ended that never reached its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Rightly,
    Wrongly,
}

impl std::ops::Add for Replayed {
    type Output = Replayed;

    fn add(self, other: Replayed) -> Replayed {
        Replayed {
            searches: self.searches + other.searches,
            calls: self.calls + other.calls,
            found_by_search: self.found_by_search + other.found_by_search,
            looked_up: self.looked_up + other.looked_up,
            refused_rightly: self.refused_rightly + other.refused_rightly,
            refused_wrongly: self.refused_wrongly + other.refused_wrongly,
            used_later: self.used_later + other.used_later,
            not_inline: self.not_inline + other.not_inline,
            reachable: self.reachable + other.reachable,
        }
    }
}

impl Replay {
    /// What happened in all tasks.
    pub fn replayed(&self) -> Replayed {
        self.tasks.iter().fold(Replayed::default(), |sum, task| sum + task.replayed)
    }

    /// What all tasks cost.
    pub fn totals(&self) -> cost::Totals {
        self.tasks.iter().map(|task| task.conversation.totals()).sum()
    }
}

/// Takes every task of a recording through a way.
pub fn replay(recording: &Recording, way: &Way) -> io::Result<Replay> {
    let mocks = Mocks::start(recording)?;
    let scratch = tempfile::tempdir()?;
    let command = way.command(&mocks.upstreams(), scratch.path())?;
    let last_words = |error: io::Error| {
        let stderr = std::fs::read_to_string(scratch.path().join(STDERR)).unwrap_or_default();
        let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(3)..].join(" / ");
        io::Error::new(error.kind(), format!("{}: {error}: {last}", way.name()))
    };
    let mut session = Session::start(command).map_err(last_words)?;
    let definitions = settled(&mut session, recording, way).map_err(last_words)?;
    let names = definitions.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned);
    let names: Vec<String> = names.collect();
    let definitions = definitions.iter().map(|definition| tokens(&definition.to_string())).sum();
    let mut run = Run { recording, way, mocks: &mocks, session: &mut session, names: &names };
    let tasks = recording.tasks.iter().map(|task| {
        let mut done = run.task(task)?;
        done.conversation.definitions = definitions;
        Ok(done)
    });
    let tasks = tasks.collect::<io::Result<Vec<_>>>()?;
    Ok(Replay { way: way.name(), definitions, n_definitions: names.len(), tasks })
}

/// How often a gateway is asked for a tool that it does not know yet, and how long it
/// gets between.
const MOST_QUESTIONS: usize = 2000;
const BETWEEN: Duration = Duration::from_millis(5);

/// The definitions once the gateway knows all servers: the last tool of each is looked
/// up until it is there.
fn settled(session: &mut Session, recording: &Recording, way: &Way) -> io::Result<Vec<Value>> {
    let mut n_questions = 0;
    if way.search("").is_none() {
        // Every server shows in the definitions.
        loop {
            let definitions = session.definitions()?;
            n_questions += 1;
            let is_whole = way.n_listed(recording) <= definitions.len();
            if is_whole || MOST_QUESTIONS < n_questions {
                return Ok(definitions);
            }
            std::thread::sleep(BETWEEN);
        }
    }
    if way.asks_servers_anew() {
        return session.definitions();
    }
    for server in &recording.servers {
        let Some(tool) = server.tools.last() else { continue };
        let meant = Meant { label: &server.label, tool: &tool.name, listed: None };
        let Request { tool: name, arguments } = way.look_up(meant);
        loop {
            let said = session.call(&name, &arguments)?;
            n_questions += 1;
            let is_there = !said.is_error && said.text.contains(&tool.name);
            if is_there || MOST_QUESTIONS < n_questions {
                break;
            }
            std::thread::sleep(BETWEEN);
        }
    }
    session.definitions()
}

struct Run<'a> {
    recording: &'a Recording,
    way: &'a Way,
    mocks: &'a Mocks,
    session: &'a mut Session,
    /// What the gateway lists.
    names: &'a [String],
}

/// What is known of a task on its way.
#[derive(Default)]
struct Progress {
    /// How the gateway called the tools that it showed.
    ids: BTreeMap<(String, String), String>,
    /// Everything that the model knew before: the question and arguments.
    known: String,
    done: TaskReplay,
}

impl Run<'_> {
    fn task(&mut self, task: &Task) -> io::Result<TaskReplay> {
        let mut progress = Progress { known: task.question.clone(), ..Progress::default() };
        progress.done.conversation.question = tokens(&task.question);
        for (at, step) in task.steps.iter().enumerate() {
            match step {
                Step::Search { query } => self.search(query, task, &mut progress)?,
                Step::Call { server, tool, arguments, result } => {
                    let Some((server, _)) = self.recording.find(server, tool) else { continue };
                    let listed = self.way.listed(self.names, &server.label, tool);
                    let meant = Meant { label: &server.label, tool, listed };
                    let raw = self.call(meant, arguments, result, &mut progress)?;
                    let later = task.steps[at + 1..].iter().filter_map(arguments_of);
                    self.used_later(&raw, later, &mut progress)?;
                    progress.known += &arguments.to_string();
                }
            }
        }
        Ok(progress.done)
    }

    /// Asks the gateway, and counts the turn.
    fn turn(&mut self, request: &Request, progress: &mut Progress) -> io::Result<Said> {
        let said = self.session.call(&request.tool, &request.arguments)?;
        let written = call_tokens(&request.tool, &request.arguments);
        progress.done.conversation.turns.push(Turn { written, read: tokens(&said.text) });
        Ok(said)
    }

    fn search(&mut self, query: &str, task: &Task, progress: &mut Progress) -> io::Result<()> {
        let Some(request) = self.way.search(query) else { return Ok(()) };
        progress.done.replayed.searches += 1;
        let said = self.turn(&request, progress)?;
        let mut shown = Vec::new();
        for step in &task.steps {
            let Step::Call { server, tool, .. } = step else { continue };
            let Some((server, _)) = self.recording.find(server, tool) else { continue };
            let meant = Meant { label: &server.label, tool, listed: None };
            if let Some(id) = self.way.id_in(&said.text, meant) {
                let key = (server.label.clone(), tool.clone());
                progress.ids.entry(key.clone()).or_insert(id);
                shown.push(key);
            }
        }
        progress.done.shown.push(shown);
        Ok(())
    }

    /// Calls a tool. Returns what the model read, with what the server said.
    fn call(
        &mut self,
        meant: Meant<'_>,
        arguments: &Value,
        result: &Value,
        progress: &mut Progress,
    ) -> io::Result<Heard> {
        let key = (meant.label.to_owned(), meant.tool.to_owned());
        progress.done.replayed.calls += 1;
        match progress.ids.get(&key) {
            Some(_) if progress.done.shown.iter().flatten().any(|shown| *shown == key) => {
                progress.done.replayed.found_by_search += 1;
            }
            Some(_) => {}
            None => {
                progress.done.replayed.looked_up += 1;
                let said = self.turn(&self.way.look_up(meant), progress)?;
                let id = self.way.id_in(&said.text, meant).unwrap_or_default();
                progress.ids.insert(key.clone(), id);
            }
        }
        self.mocks.expect(result);
        let id = progress.ids.get(&key).map(String::as_str).filter(|id| !id.is_empty());
        let said = self.turn(&self.way.call(meant, id, arguments), progress)?;
        if !self.mocks.was_called(meant.label, meant.tool) {
            match self.judged(meant, arguments) {
                Refusal::Rightly => progress.done.replayed.refused_rightly += 1,
                Refusal::Wrongly => progress.done.replayed.refused_wrongly += 1,
            }
            return Ok(Heard { raw: String::new(), said });
        }
        let answer = Mocks::answer(&self.recording.servers, meant.label, meant.tool, result);
        Ok(Heard { raw: crate::session::read(&answer).text, said })
    }

    /// Whether it was right that a call did not reach its server.
    fn judged(&self, meant: Meant<'_>, arguments: &Value) -> Refusal {
        let server = self.recording.servers.iter().find(|server| server.label == meant.label);
        let tool =
            server.and_then(|server| server.tools.iter().find(|tool| tool.name == meant.tool));
        let Some(tool) = tool else { return Refusal::Rightly };
        match fits(&tool.definition["inputSchema"], arguments) {
            true => Refusal::Wrongly,
            false => Refusal::Rightly,
        }
    }

    /// Counts the parts of a result that were used later, and whether they could be.
    fn used_later<'a>(
        &mut self,
        heard: &Heard,
        later: impl Iterator<Item = &'a Value>,
        progress: &mut Progress,
    ) -> io::Result<()> {
        let parts = used_later::parts(&heard.raw, &progress.known, later);
        progress.done.replayed.used_later += parts.len() as u64;
        let missing = parts.iter().filter(|part| !heard.said.text.contains(part.as_str()));
        for part in missing {
            progress.done.replayed.not_inline += 1;
            if let Some(request) = self.way.find_in_kept(&heard.said.text, part) {
                // The model has to ask for it, so that counts as a turn.
                let found = self.turn(&request, progress)?;
                progress.done.replayed.reachable += u64::from(found.text.contains(part.as_str()));
            }
        }
        Ok(())
    }
}

/// What a server said, and what the model read of it.
struct Heard {
    raw: String,
    said: Said,
}

fn arguments_of(step: &Step) -> Option<&Value> {
    match step {
        Step::Search { .. } => None,
        Step::Call { arguments, .. } => Some(arguments),
    }
}

/// Whether arguments fit a schema; nothing fits what is no schema.
fn fits(schema: &Value, arguments: &Value) -> bool {
    let validator = Validator::compile(schema, Dialect::Named);
    validator.is_ok_and(|validator| validator.is_valid(arguments))
}
