//! Estimates what a task costs with a catalogue of tools, directly and through a gateway.

use crate::{Conversation, HostModel, Listed, Loading, Turn};

/// The tools of a catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    /// Each tool in the order in which a host lists it.
    pub tools: Vec<ToolCost>,
    /// Tokens of the names of all servers, and of what they say of themselves.
    pub servers: u64,
}

/// The tokens of a tool's definition, and of its name alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolCost {
    pub definition: u64,
    pub name: u64,
}

/// A gateway in front of the catalogue; all numbers are tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gateway {
    /// The gateway's own tool definitions.
    pub definitions: u64,
    /// The result of one search.
    pub search: u64,
    /// What a model writes for a call, in addition to a direct call.
    pub call_overhead: u64,
}

/// A task: how often a model searches and calls, and the tokens of each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    pub question: u64,
    pub searches: usize,
    pub calls: usize,
    /// What a model writes for one call or search.
    pub written: u64,
    /// One result, as the server sends it.
    pub result: u64,
    /// One result, as the gateway returns it.
    pub result_through_gateway: u64,
}

impl Catalogue {
    /// Returns the tokens of all definitions.
    pub fn definitions(&self) -> u64 {
        self.tools.iter().map(|tool| tool.definition).sum()
    }

    /// Returns how many tools a host leaves out.
    pub fn n_left_out(&self, host: &HostModel) -> usize {
        host.cap.map_or(0, |cap| self.tools.len().saturating_sub(cap))
    }
}

impl Task {
    /// Returns the conversation of this task when the host connects to the servers itself.
    pub fn direct(&self, catalogue: &Catalogue, host: &HostModel) -> Conversation {
        let shown = host.cap.unwrap_or(usize::MAX).min(catalogue.tools.len());
        let shown = &catalogue.tools[..shown];
        let definitions: u64 = shown.iter().map(|tool| tool.definition).sum();
        let (in_front, searches) = match host.loading {
            Loading::Everything => (definitions, Vec::new()),
            Loading::OnSearch { listed, n_results } => {
                let names = match listed {
                    Listed::Tools => shown.iter().map(|tool| tool.name).sum(),
                    Listed::Servers => catalogue.servers,
                };
                (names, self.loading_searches(definitions, shown.len(), n_results))
            }
        };
        let call = Turn { written: self.written, read: self.result };
        self.conversation(in_front, searches, call)
    }

    /// Returns the searches of a host that loads definitions of average size: each loads other
    /// ones, until all are loaded.
    fn loading_searches(&self, definitions: u64, n_tools: usize, n_results: usize) -> Vec<Turn> {
        let mean = definitions / (n_tools.max(1) as u64);
        let search = |at: usize| {
            let left = n_tools.saturating_sub(at * n_results);
            Turn { written: self.written, read: mean * n_results.min(left) as u64 }
        };
        (0..self.searches).map(search).collect()
    }

    /// Returns the conversation of this task through a gateway, whose few definitions
    /// every host sends.
    pub fn through(&self, gateway: &Gateway) -> Conversation {
        let search = Turn { written: self.written, read: gateway.search };
        let written = self.written + gateway.call_overhead;
        let call = Turn { written, read: self.result_through_gateway };
        self.conversation(gateway.definitions, vec![search; self.searches], call)
    }

    fn conversation(&self, definitions: u64, searches: Vec<Turn>, call: Turn) -> Conversation {
        let mut turns = searches;
        turns.extend(std::iter::repeat_n(call, self.calls));
        Conversation { definitions, question: self.question, turns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HOST_MODELS;

    const TASK: Task = Task {
        question: 10,
        searches: 1,
        calls: 2,
        written: 5,
        result: 100,
        result_through_gateway: 50,
    };

    fn catalogue(n: usize) -> Catalogue {
        Catalogue { tools: vec![ToolCost { definition: 100, name: 4 }; n], servers: 50 }
    }

    fn host(id: &str) -> &'static HostModel {
        HOST_MODELS.iter().find(|host| host.id == id).unwrap()
    }

    #[test]
    fn a_host_that_sends_everything_does_not_search() {
        let conversation = TASK.direct(&catalogue(3), host("sends-all"));
        assert_eq!(conversation.definitions, 300);
        assert_eq!(conversation.turns, vec![Turn { written: 5, read: 100 }; 2]);
    }

    #[test]
    fn a_host_that_defers_lists_names_and_loads_as_many_as_there_are() {
        let few = TASK.direct(&catalogue(3), host("defers"));
        assert_eq!((few.definitions, few.turns[0].read), (12, 300));
        let many = TASK.direct(&catalogue(80), host("defers"));
        assert_eq!((many.definitions, many.turns[0].read), (320, 500));
        let none = TASK.direct(&catalogue(0), host("defers"));
        assert_eq!((none.definitions, none.turns[0].read), (0, 0));
    }

    #[test]
    fn a_host_that_defers_loads_no_definition_twice() {
        let task = Task { searches: 4, ..TASK };
        let read = |n_tools| {
            let conversation = task.direct(&catalogue(n_tools), host("defers"));
            conversation.turns[..4].iter().map(|turn| turn.read).collect::<Vec<_>>()
        };
        assert_eq!(read(3), [300, 0, 0, 0]);
        assert_eq!(read(12), [500, 500, 200, 0]);
        assert_eq!(read(20), [500; 4]);
    }

    #[test]
    fn a_host_that_lists_servers_sends_no_names_of_tools() {
        let conversation = TASK.direct(&catalogue(80), host("defers-servers"));
        assert_eq!((conversation.definitions, conversation.turns[0].read), (50, 800));
    }

    #[test]
    fn a_host_with_a_cap_sends_the_first_tools_and_leaves_out_the_others() {
        let (all, capped) = (catalogue(50), host("caps-40"));
        assert_eq!(TASK.direct(&all, capped).definitions, 4_000);
        assert_eq!((all.n_left_out(capped), all.n_left_out(host("sends-all"))), (10, 0));
    }

    #[test]
    fn through_a_gateway_a_task_has_one_turn_more_per_search() {
        let gateway = Gateway { definitions: 300, search: 200, call_overhead: 7 };
        let conversation = TASK.through(&gateway);
        assert_eq!(conversation.definitions, 300);
        let call = Turn { written: 12, read: 50 };
        assert_eq!(conversation.turns, [Turn { written: 5, read: 200 }, call, call]);
    }
}
