//! Computes what the tasks would cost without a gateway, by how a host sends definitions.
//! Nothing is started, because definitions and results are recorded.

use cost::{Conversation, HostModel, Loading, Turn};
use serde_json::Value;

use crate::count::{call_tokens, tokens};
use crate::mocks::Mocks;
use crate::recording::{Recording, Step, Task};
use crate::replay::{Replay, ReplayCounts, TaskReplay};
use crate::session;

/// Returns label, tool, tokens of the definition and tokens of the name, for every tool of a
/// recording. A host puts the server's label before the name.
fn definitions(recording: &Recording) -> Vec<(String, String, u64, u64)> {
    let servers = recording.servers.iter();
    let all = servers.flat_map(|server| server.tools.iter().map(move |tool| (server, tool)));
    let counted = all.map(|(server, tool)| {
        let name = format!("{}__{}", server.label, tool.name);
        let mut definition = tool.definition.clone();
        definition["name"] = Value::String(name.clone());
        (server.label.clone(), tool.name.clone(), tokens(&definition.to_string()), tokens(&name))
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
    let total = visible.iter().map(|(_, _, tokens, _)| tokens).sum();
    let tasks = recording.tasks.iter().map(|task| {
        let mut done = TaskReplay::default();
        done.conversation.definitions = total;
        done.conversation.question = tokens(&task.question);
        for_each_call(recording, task, &mut |label, tool, turn| {
            done.replayed.calls += 1;
            let is_among = |tools: &[(String, String, u64, u64)]| {
                tools.iter().any(|(known, name, ..)| known == label && name == tool)
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

/// Computes the cost with a host that lists names, and loads definitions on every recorded
/// search: those of the tools that `ranking` found with the same search, filled up to the
/// host's number with definitions of average size. A tool that no search found is loaded by
/// its name.
pub fn replay_deferred(recording: &Recording, host: &HostModel, ranking: &Replay) -> Replay {
    let Loading::OnSearch { n_results } = host.loading else { return replay_listed(recording) };
    let all = definitions(recording);
    let names: u64 = all.iter().map(|(.., name)| name).sum();
    let mean = all.iter().map(|(_, _, tokens, _)| tokens).sum::<u64>() / all.len().max(1) as u64;
    let cost = |label: &str, tool: &str| {
        let found = all.iter().find(|(known, name, ..)| known == label && name == tool);
        found.map(|(_, _, tokens, _)| *tokens)
    };
    let tasks = recording.tasks.iter().zip(&ranking.tasks).map(|(task, ranked)| {
        let mut done = TaskReplay::default();
        let mut conversation = Conversation {
            definitions: names,
            question: tokens(&task.question),
            turns: Vec::new(),
        };
        let mut loaded: Vec<(String, String)> = Vec::new();
        let mut searches = ranked.shown.iter();
        for step in &task.steps {
            match step {
                Step::Search { query } => {
                    let mut shown = searches.next().cloned().unwrap_or_default();
                    shown.dedup();
                    shown.truncate(n_results);
                    let known: u64 =
                        shown.iter().filter_map(|(label, tool)| cost(label, tool)).sum();
                    let read = known + mean * (n_results - shown.len()) as u64;
                    let written = call_tokens("tool_search", &serde_json::json!({"query": query}));
                    conversation.turns.push(Turn { written, read });
                    done.replayed.searches += 1;
                    loaded.extend(shown);
                }
                Step::Call { server, tool, arguments, result } => {
                    let Some((server, _)) = recording.find(server, tool) else { continue };
                    done.replayed.calls += 1;
                    let key = (server.label.clone(), tool.clone());
                    if loaded.contains(&key) {
                        done.replayed.found_by_search += 1;
                    } else if let Some(read) = cost(&server.label, tool) {
                        let by_name =
                            serde_json::json!({"select": [format!("{}__{tool}", server.label)]});
                        let written = call_tokens("tool_search", &by_name);
                        conversation.turns.push(Turn { written, read });
                        done.replayed.looked_up += 1;
                        loaded.push(key);
                    }
                    conversation.turns.push(turn(
                        recording,
                        &server.label,
                        tool,
                        arguments,
                        result,
                    ));
                }
            }
        }
        done.conversation = conversation;
        done
    });
    Replay {
        label: "direct, definitions on search".to_owned(),
        definitions: names,
        n_definitions: all.len(),
        tasks: tasks.collect(),
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
