//! Recordings with as many tools as a benchmark wants.

use std::collections::BTreeSet;

use crate::invented;
use crate::recording::{Recording, Server, Step, Task, Tool, label};

impl Recording {
    /// Returns a recording of these tasks with `n_tools` tools: those that the tasks use,
    /// also when these are more, then others in order, then invented ones.
    pub fn with_tools(&self, tasks: &[Task], n_tools: usize) -> Recording {
        let places = self.servers.iter().enumerate();
        let places: Vec<(usize, usize)> = places
            .flat_map(|(at, server)| (0..server.tools.len()).map(move |tool| (at, tool)))
            .collect();
        let is_used = |&(at, tool): &(usize, usize)| {
            let (server, tool) = (&self.servers[at], &self.servers[at].tools[tool]);
            tasks.iter().flat_map(|task| &task.steps).any(|step| match step {
                Step::Search { .. } => false,
                Step::Call { server: name, tool: wanted, .. } => {
                    *name == server.name && *wanted == tool.name
                }
            })
        };
        let mut kept: BTreeSet<(usize, usize)> = places.iter().copied().filter(is_used).collect();
        for place in places {
            if kept.len() < n_tools {
                kept.insert(place);
            }
        }
        let mut servers = Vec::new();
        for (at, server) in self.servers.iter().enumerate() {
            let tools = server.tools.iter().enumerate();
            let tools = tools.filter(|(tool, _)| kept.contains(&(at, *tool)));
            let tools: Vec<Tool> = tools.map(|(_, tool)| tool.clone()).collect();
            if !tools.is_empty() {
                servers.push(Server { tools, ..server.clone() });
            }
        }
        for mut server in invented::servers(n_tools.saturating_sub(kept.len())) {
            server.label = label(&server.name, &servers);
            servers.push(server);
        }
        Recording { servers, tasks: tasks.to_vec() }
    }

    /// Returns a recording without tasks, with `n_tools` invented tools that answer calls.
    pub fn invented(n_tools: usize) -> Recording {
        Recording { servers: invented::servers(n_tools), tasks: Vec::new() }
    }
}
