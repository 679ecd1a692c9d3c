//! Several gatelets behind a load balancer that knows nothing, with a store that
//! they share: a request goes to whichever replica it happens to reach.

mod approvals;
mod forms;
mod limits;
mod results;
mod rights;
mod scripts;
mod sessions;
mod single;
mod single_messages;
mod streams;

mod balanced;
mod chaos;

mod link;

use std::io::Write;

use serde_json::{Value, json};
use testkit::valkey::Server;

use crate::kit::{Home, Served, Site, program};

/// Replicas with one configuration, each with a home of its own.
struct Cluster {
    /// The address of the store, for replicas.
    url: String,
    store: Server,
    replicas: Vec<(Home, Served)>,
    /// What upstreams write down of each call, shared by all.
    deeds: tempfile::NamedTempFile,
    /// The upstream's program, the same for all.
    program: tempfile::NamedTempFile,
}

const BUILTIN: &str = "[builtin]\ntools = true\n\n";

impl Cluster {
    fn start(n_replicas: usize, config: &str) -> Cluster {
        Cluster::start_with(Server::start(&[]), n_replicas, config)
    }

    fn start_with(store: Server, n_replicas: usize, config: &str) -> Cluster {
        Cluster::start_at(&store.url(), store, n_replicas, config)
    }

    /// Starts replicas that reach the store by this address.
    fn start_at(url: &str, store: Server, n_replicas: usize, config: &str) -> Cluster {
        let deeds = tempfile::NamedTempFile::new().unwrap();
        let deed = format!(
            "open({:?}, 'a').write(str(message['params']['arguments'].get('n')) + '\\n'); \
             say(id, {{\"content\": [{{\"type\": \"text\", \"text\": \"acted\"}}]}})",
            deeds.path()
        );
        let mut script = tempfile::NamedTempFile::new().unwrap();
        script.write_all(program(&deed).as_bytes()).unwrap();
        let url = url.to_owned();
        let mut cluster = Cluster { url, store, replicas: Vec::new(), deeds, program: script };
        for _ in 0..n_replicas {
            let replica = cluster.replica(config);
            cluster.replicas.push(replica);
        }
        cluster
    }

    fn replica(&self, config: &str) -> (Home, Served) {
        let state = format!("[state]\nurl = {:?}\n\n", self.url);
        let home = Home::with(&format!("{BUILTIN}{state}{config}{}", self.upstream()));
        let served = Served::start(&home);
        (home, served)
    }

    fn upstream(&self) -> String {
        let program = self.program.path();
        format!("[[upstream]]\nlabel = \"work\"\ncommand = \"python3\"\nargs = [{program:?}]\n\n")
    }

    fn at(&self, replica: usize) -> &Site {
        &self.replicas[replica].1
    }

    fn home(&self, replica: usize) -> &Home {
        &self.replicas[replica].0
    }

    /// The numbers of the calls that ran, in order.
    fn deeds(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.deeds.path()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

fn act(n: u64) -> Value {
    json!({"namespace": "work", "function": "act", "kwargs": {"n": n}})
}

const ASK: &str = "[[controls.rule]]\naction = \"ask\"\ntool = \"work.*\"\n\n";
