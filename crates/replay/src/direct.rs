//! Computes what the tasks would cost without a gateway, by how a host sends definitions.
//! Nothing is started, because definitions and results are recorded.

use std::collections::BTreeSet;

use cost::{HostModel, Listed, Loading, SERVER_DESCRIPTION, Turn};
use serde_json::Value;

use crate::count::{call_tokens, tokens};
use crate::mocks::Mocks;
use crate::recording::{Recording, Step, Task};
use crate::replay::{Replay, ReplayCounts, TaskReplay};
use crate::session;

/// A tool as a host without a gateway sends it.
struct Definition<'a> {
    label: &'a str,
    tool: &'a str,
    tokens: u64,
    /// Tokens of its name, with the label of its server before it.
    name: u64,
}

fn definitions(recording: &Recording) -> Vec<Definition<'_>> {
    let servers = recording.servers.iter();
    let all = servers.flat_map(|server| server.tools.iter().map(move |tool| (server, tool)));
    let counted = all.map(|(server, tool)| {
        let name = format!("{}__{}", server.label, tool.name);
        let mut definition = tool.definition.clone();
        definition["name"] = Value::String(name.clone());
        Definition {
            label: &server.label,
            tool: &tool.name,
            tokens: tokens(&definition.to_string()),
            name: tokens(&name),
        }
    });
    counted.collect()
}

/// Computes the cost with a host that sends every definition with every request.
pub fn replay_listed(recording: &Recording) -> Replay {
    direct_replay(recording, "direct, every definition", usize::MAX)
}

/// Computes the cost with a host that sends at most `cap` definitions; calls of other tools
/// are not possible.
pub fn replay_capped(recording: &Recording, cap: usize) -> Replay {
    direct_replay(recording, &format!("direct, at most {cap} tools"), cap)
}

fn direct_replay(recording: &Recording, label: &str, cap: usize) -> Replay {
    let all = definitions(recording);
    let visible = &all[..all.len().min(cap)];
    let total = visible.iter().map(|definition| definition.tokens).sum();
    let tasks = recording.tasks.iter().map(|task| {
        let mut done = TaskReplay::default();
        done.conversation.definitions = total;
        done.conversation.question = tokens(&task.question);
        for_each_call(recording, task, &mut |label, tool, turn| {
            done.replayed.calls += 1;
            let is_among = |tools: &[Definition<'_>]| {
                tools.iter().any(|known| known.label == label && known.tool == tool)
            };
            match (is_among(visible), is_among(&all)) {
                (true, _) => done.conversation.turns.push(turn),
                // Its server says that there is no such tool.
                (false, false) => {
                    done.conversation.turns.push(turn);
                    done.replayed.refused_rightly += 1;
                }
                (false, true) => done.replayed.refused_wrongly += 1,
            }
        });
        done
    });
    Replay {
        label: label.to_owned(),
        definitions: total,
        n_definitions: visible.len(),
        tasks: tasks.collect(),
    }
}

/// Computes the cost with a host that loads definitions on every recorded search: those of
/// the tools that `ranking` found with the same words, in its order, and others of average
/// size where it found fewer than the host asks for. No definition is loaded twice in a task,
/// and never more than there are. A tool that no search found is loaded by its name, or
/// searched for where the host knows no names.
pub fn replay_deferred(recording: &Recording, host: &HostModel, ranking: &Replay) -> Replay {
    let Loading::OnSearch { listed, n_results } = host.loading else {
        return replay_listed(recording);
    };
    let all = definitions(recording);
    let in_front = match listed {
        Listed::Tools => all.iter().map(|definition| definition.name).sum(),
        Listed::Servers => {
            let servers = recording.servers.iter();
            servers.map(|server| tokens(&server.label) + SERVER_DESCRIPTION).sum()
        }
    };
    let tasks = recording.tasks.iter().zip(&ranking.tasks).map(|(task, ranked)| {
        let loaded = Loaded::new(&all, n_results);
        let mut done = deferred_task(recording, task, &ranked.shown, loaded, listed);
        done.conversation.definitions = in_front;
        done.conversation.question = tokens(&task.question);
        done
    });
    let label = match listed {
        Listed::Tools => "direct, on search, names listed",
        Listed::Servers => "direct, on search, servers listed",
    };
    Replay {
        label: label.to_owned(),
        definitions: in_front,
        n_definitions: all.len(),
        tasks: tasks.collect(),
    }
}

fn deferred_task(
    recording: &Recording,
    task: &Task,
    shown: &[Vec<(String, String)>],
    mut loaded: Loaded<'_>,
    listed: Listed,
) -> TaskReplay {
    let mut done = TaskReplay::default();
    let mut searches = shown.iter();
    let mut looked_up = BTreeSet::new();
    let mut turns = Vec::new();
    for step in &task.steps {
        match step {
            Step::Search { query } => {
                let read = loaded.search(searches.next().map_or(&[][..], Vec::as_slice));
                let written = call_tokens("tool_search", &serde_json::json!({"query": query}));
                turns.push(Turn { written, read });
                done.replayed.searches += 1;
            }
            Step::Call { server, tool, arguments, result } => {
                let Some((server, known)) = recording.find(server, tool) else { continue };
                done.replayed.calls += 1;
                let key = (server.label.clone(), tool.clone());
                if known.is_none() {
                    // Its server says that there is no such tool.
                    done.replayed.refused_rightly += 1;
                } else if loaded.has(&key) {
                    done.replayed.found_by_search += u64::from(!looked_up.contains(&key));
                } else {
                    looked_up.insert(key.clone());
                    let name = format!("{}__{tool}", server.label);
                    let (asked, read) = match listed {
                        Listed::Tools => {
                            (serde_json::json!({"select": [name]}), loaded.by_name(&key))
                        }
                        Listed::Servers => {
                            (serde_json::json!({"query": name}), loaded.search(&[key]))
                        }
                    };
                    turns.push(Turn { written: call_tokens("tool_search", &asked), read });
                    done.replayed.looked_up += 1;
                }
                turns.push(turn(recording, &server.label, tool, arguments, result));
            }
        }
    }
    done.conversation.turns = turns;
    done
}

/// The definitions that a conversation has.
struct Loaded<'a> {
    all: &'a [Definition<'a>],
    n_results: usize,
    mean: u64,
    known: BTreeSet<(String, String)>,
    /// How many beside the known ones; nobody knows which.
    n_others: usize,
}

impl<'a> Loaded<'a> {
    fn new(all: &'a [Definition<'a>], n_results: usize) -> Loaded<'a> {
        let sum: u64 = all.iter().map(|definition| definition.tokens).sum();
        let mean = sum / all.len().max(1) as u64;
        Loaded { all, n_results, mean, known: BTreeSet::new(), n_others: 0 }
    }

    fn n_left(&self) -> usize {
        self.all.len().saturating_sub(self.known.len() + self.n_others)
    }

    fn has(&self, key: &(String, String)) -> bool {
        self.known.contains(key) || self.n_left() == 0
    }

    /// Loads what a search finds, and returns the tokens of what is new.
    fn search(&mut self, found: &[(String, String)]) -> u64 {
        let mut seen = BTreeSet::new();
        let found: Vec<_> =
            found.iter().filter(|key| seen.insert(*key)).take(self.n_results).collect();
        let read = found.iter().map(|key| self.by_name(key)).sum::<u64>();
        let n_others = (self.n_results - found.len()).min(self.n_left());
        self.n_others += n_others;
        read + self.mean * n_others as u64
    }

    /// Loads one definition, and returns its tokens if it is new.
    fn by_name(&mut self, key: &(String, String)) -> u64 {
        let found = self.all.iter().find(|known| known.label == key.0 && known.tool == key.1);
        let Some(definition) = found else { return 0 };
        if self.has(key) {
            return 0;
        }
        self.known.insert(key.clone());
        definition.tokens
    }
}

fn for_each_call(recording: &Recording, task: &Task, visit: &mut impl FnMut(&str, &str, Turn)) {
    for step in &task.steps {
        let Step::Call { server, tool, arguments, result } = step else { continue };
        let Some((server, _)) = recording.find(server, tool) else { continue };
        let turn = turn(recording, &server.label, tool, arguments, result);
        visit(&server.label, tool, turn);
    }
}

fn turn(recording: &Recording, label: &str, tool: &str, arguments: &Value, result: &Value) -> Turn {
    let answer = Mocks::answer(&recording.servers, label, tool, result);
    let written = call_tokens(&format!("{label}__{tool}"), arguments);
    Turn { written, read: tokens(&session::tool_output(&answer).text) }
}

impl ReplayCounts {
    /// Returns the share of calls whose tool a search had shown, in percent.
    pub fn found_percent(&self) -> u64 {
        100 * self.found_by_search / self.calls.max(1)
    }
}

#[cfg(test)]
mod tests {
    use cost::HOST_MODELS;

    use super::*;

    fn key(tool: &str) -> (String, String) {
        ("a".to_owned(), tool.to_owned())
    }

    /// A server `a` with the tools `t0` to `t(n-1)`, and a task that searches twice and
    /// calls `t1`.
    fn recording(n_tools: usize) -> Recording {
        let tool = |n| {
            format!(r#"{{"server": "a", "name": "t{n}", "input_schema": {{"type": "object"}}}}"#)
        };
        let tools: Vec<String> = (0..n_tools).map(tool).collect();
        let call =
            r#"{"kind": "call", "server": "a", "tool": "t1", "arguments": {}, "result": "r"}"#;
        let search = r#"{"kind": "search", "query": "x"}"#;
        let task =
            format!(r#"{{"task": "1", "question": "?", "steps": [{search}, {search}, {call}]}}"#);
        Recording::parse(&tools.join("\n"), &task).unwrap()
    }

    fn host(id: &str) -> &'static HostModel {
        HOST_MODELS.iter().find(|host| host.id == id).unwrap()
    }

    /// What the turns read with a host, when both searches found `found`, in definitions; all
    /// are of the same size.
    #[track_caller]
    fn check(n_tools: usize, id: &str, found: &[&str], expected: &[u64]) {
        let recording = recording(n_tools);
        let found: Vec<_> = found.iter().map(|tool| key(tool)).collect();
        let ranked = TaskReplay { shown: vec![found.clone(), found], ..TaskReplay::default() };
        let ranking = Replay { tasks: vec![ranked], ..Replay::default() };
        let done = replay_deferred(&recording, host(id), &ranking);
        let size = definitions(&recording)[0].tokens;
        let turns = &done.tasks[0].conversation.turns;
        let read: Vec<u64> = turns[..turns.len() - 1].iter().map(|turn| turn.read / size).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn a_host_loads_no_definition_twice_and_no_more_than_there_are() {
        check(3, "defers", &[], &[3, 0]);
        check(8, "defers", &[], &[5, 3]);
        check(9, "defers", &["t1", "t2"], &[5, 3]);
        check(9, "defers", &["t1", "t2", "t1", "t3", "t4", "t5"], &[5, 0]);
    }

    #[test]
    fn a_tool_that_no_search_found_is_loaded_by_name_or_with_another_search() {
        check(9, "defers", &["t0", "t2", "t3", "t4", "t5"], &[5, 0, 1]);
        let eight = ["t0", "t2", "t3", "t4", "t5", "t6", "t7", "t8"];
        check(99, "defers-servers", &eight, &[8, 0, 8]);
        check(10, "defers-servers", &eight, &[8, 0, 2]);
    }
}
