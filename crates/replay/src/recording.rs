//! Parses recordings: tools with their definitions, and tasks with the steps of an agent.

use std::io;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

/// The servers and tasks of a recording.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub servers: Vec<Server>,
    pub tasks: Vec<Task>,
}

/// A server with its tools.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its name in the recorded steps.
    pub name: String,
    /// Its label in a configuration: a-z, 0-9 and `_`.
    pub label: String,
    pub tools: Vec<Tool>,
}

/// A tool as its server defines it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub name: String,
    /// The definition, as `tools/list` has it.
    pub definition: Value,
    /// What it answers when no recorded result is expected of it.
    pub answer: Value,
}

/// A user's question, and the steps that an agent took.
#[derive(Clone, Debug, Deserialize)]
pub struct Task {
    pub task: String,
    pub question: String,
    pub steps: Vec<Step>,
}

/// One step of an agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Step {
    /// It looked for a tool in words.
    Search { query: String },
    /// It called a tool. The result is text, or a whole MCP result as JSON.
    Call { server: String, tool: String, arguments: Value, result: Value },
}

#[derive(Deserialize)]
struct ToolLine {
    server: String,
    name: String,
    #[serde(default)]
    description: String,
    input_schema: Value,
}

impl Recording {
    /// Reads tools and tasks, each from a file or from a directory, in which they are
    /// `tools.jsonl` and `tasks.jsonl` (also under the names that LiveMCPBench's data has:
    /// `corpus.jsonl` and `trajectories.jsonl`).
    pub fn read(tools: &Path, tasks: &Path) -> io::Result<Recording> {
        let text = |place: &Path, names: [&str; 2]| {
            let paths = names.map(|name| place.join(name));
            let in_directory = paths.iter().find(|path| path.is_file()).unwrap_or(&paths[0]);
            let found = if place.is_file() { place } else { in_directory };
            std::fs::read_to_string(found).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", found.display()))
            })
        };
        Recording::parse(
            &text(tools, ["tools.jsonl", "corpus.jsonl"])?,
            &text(tasks, ["tasks.jsonl", "trajectories.jsonl"])?,
        )
    }

    /// Returns the built-in recording: ten small tasks in an imaginary office.
    pub fn own() -> Recording {
        Recording::parse(include_str!("../data/tools.jsonl"), include_str!("../data/tasks.jsonl"))
            .expect("a test reads our own recording")
    }

    /// Parses both texts, which have one JSON object per line.
    pub fn parse(tools: &str, tasks: &str) -> io::Result<Recording> {
        let mut servers: Vec<Server> = Vec::new();
        for line in lines::<ToolLine>(tools)? {
            let definition = json!({
                "name": line.name, "description": line.description, "inputSchema": line.input_schema,
            });
            let tool = Tool { name: line.name, definition, answer: Value::Null };
            match servers.iter_mut().find(|server| server.name == line.server) {
                Some(server) => server.tools.push(tool),
                None => {
                    let label = label(&line.server, &servers);
                    servers.push(Server { name: line.server, label, tools: vec![tool] });
                }
            }
        }
        Ok(Recording { servers, tasks: lines(tasks)? })
    }

    /// Returns the tasks of which no result has more than `max_chars` characters, with all
    /// servers. In such tasks a gateway saves definitions only, and nothing of the results.
    pub fn with_short_results(&self, max_chars: usize) -> Recording {
        let n_chars = |result: &Value| match result.as_str() {
            Some(text) => text.chars().count(),
            None => result.to_string().chars().count(),
        };
        let is_short = |step: &Step| match step {
            Step::Search { .. } => true,
            Step::Call { result, .. } => n_chars(result) <= max_chars,
        };
        let tasks = self.tasks.iter().filter(|task| task.steps.iter().all(is_short));
        Recording { servers: self.servers.clone(), tasks: tasks.cloned().collect() }
    }

    pub fn n_tools(&self) -> usize {
        self.servers.iter().map(|server| server.tools.len()).sum()
    }

    /// Returns the server and the tool of a call; the tool is `None` when it does not exist.
    pub fn find(&self, server: &str, tool: &str) -> Option<(&Server, Option<&Tool>)> {
        let server = self.servers.iter().find(|known| known.name == server)?;
        Some((server, server.tools.iter().find(|known| known.name == tool)))
    }
}

fn lines<T: for<'a> Deserialize<'a>>(text: &str) -> io::Result<Vec<T>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(at, line)| {
        serde_json::from_str(line)
            .map_err(|error| io::Error::other(format!("line {}: {error}", at + 1)))
    });
    read.collect()
}

/// Makes a unique label from the name of a server.
pub(crate) fn label(name: &str, servers: &[Server]) -> String {
    let legal = name.to_lowercase();
    let legal = legal.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut legal = legal.collect::<Vec<_>>().join("_");
    legal.truncate(24);
    let legal = legal.trim_end_matches('_');
    let base = match legal.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => legal.to_owned(),
        Some(_) | None => format!("server_{legal}").trim_end_matches('_').to_owned(),
    };
    let is_free = |label: &String| servers.iter().all(|server| server.label != *label);
    let names = std::iter::once(base.clone()).chain((2..).map(|n| format!("{base}_{n}")));
    let mut free = names.filter(is_free);
    free.next().unwrap_or(base)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TOOLS: &str = r#"{"server": "A b", "name": "one", "input_schema": {"type": "object"}}
{"server": "a-b", "name": "two", "input_schema": {"type": "object"}}
{"server": "A b", "name": "three", "input_schema": {"type": "object"}}"#;
    const TASKS: &str = r#"{"task": "1", "question": "?", "steps": [
        {"kind": "search", "query": "x"},
        {"kind": "call", "server": "a-b", "tool": "two", "arguments": {}, "result": "r"}]}"#;

    #[test]
    fn tools_are_grouped_by_server_and_labels_are_legal() {
        let recording = Recording::parse(TOOLS, &TASKS.replace('\n', "")).unwrap();
        let labels: Vec<&str> =
            recording.servers.iter().map(|server| server.label.as_str()).collect();
        assert_eq!((labels, recording.n_tools()), (vec!["a_b", "a_b_2"], 3));
        assert!(recording.find("a-b", "two").unwrap().1.is_some());
        assert!(recording.find("a-b", "gone").unwrap().1.is_none());
    }

    #[test]
    fn tools_and_tasks_may_be_in_two_places_under_either_name() {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        std::fs::write(one.path().join("corpus.jsonl"), TOOLS).unwrap();
        let tasks = other.path().join("mine.jsonl");
        std::fs::write(&tasks, TASKS.replace('\n', "")).unwrap();
        assert_eq!(Recording::read(one.path(), &tasks).unwrap().tasks.len(), 1);
        let missing = Recording::read(one.path(), other.path()).unwrap_err().to_string();
        assert!(missing.contains("tasks.jsonl"), "{missing}");
    }

    #[test]
    fn tasks_with_one_long_result_can_be_left_out() {
        let recording = Recording::parse(TOOLS, &TASKS.replace('\n', "")).unwrap();
        let n_tasks = |max_chars| recording.with_short_results(max_chars).tasks.len();
        assert_eq!((n_tasks(0), n_tasks(1)), (0, 1));
    }

    #[test]
    fn a_catalogue_of_another_size_keeps_what_the_tasks_use() {
        let recording = Recording::parse(TOOLS, &TASKS.replace('\n', "")).unwrap();
        for too_few in [0, 1] {
            let small = recording.with_tools(&recording.tasks, too_few);
            assert!(small.n_tools() == 1 && small.find("a-b", "two").is_some());
        }
        let large = recording.with_tools(&recording.tasks, 70);
        let mut labels: Vec<&str> = large.servers.iter().map(|one| one.label.as_str()).collect();
        assert_eq!((large.n_tools(), &labels[..2]), (70, &["a_b", "a_b_2"][..]));
        labels.dedup();
        assert_eq!(labels.len(), large.servers.len(), "labels are unique");
    }

    #[test]
    fn no_tool_of_a_larger_catalogue_is_a_copy() {
        let own = Recording::own();
        let large = own.with_tools(&own.tasks, 500);
        let tools = large.servers.iter().flat_map(|server| &server.tools);
        let about: BTreeSet<String> =
            tools.map(|tool| tool.definition["description"].to_string()).collect();
        assert!(450 <= about.len(), "{}", about.len());
    }
}
