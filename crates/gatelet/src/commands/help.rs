//! `gatelet help`: lists and searches the functions behind gatelet.

use serde_json::{Map, Value, json};
use tool::Reply;

use super::asking::{self, Author, Wait};
use super::output::Output;
use super::servers::config_file::ConfigFile;
use crate::exit::Done;
use crate::paths::Paths;
use crate::terminal::say;
use crate::wire::StartPolicy;

/// Ask what there is: namespaces, functions, one function, or a search
///
/// For help about gatelet itself, use `gatelet --help`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A namespace, `namespace.function`, or both as two words
    #[arg(value_name = "NAME", num_args = 0..=2)]
    names: Vec<String>,

    /// Search for functions by what they do
    #[arg(long, short, value_name = "WORDS", conflicts_with = "names")]
    query: Option<String>,

    /// Show every parameter of a function
    #[arg(long)]
    full: bool,

    /// Show examples
    #[arg(long)]
    examples: bool,

    /// How many functions a search gives
    #[arg(long, value_name = "NUMBER", requires = "query")]
    limit: Option<u32>,

    /// Which page of a long list
    #[arg(long, value_name = "NUMBER", conflicts_with = "query")]
    page: Option<u32>,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let names = match &args.names[..] {
        [name] => vec![asking::dotted(name)],
        names => names.to_vec(),
    };
    asking::with_gateway_or_running(paths, StartPolicy::OnDemand, async |gate| {
        let first = names.first().and_then(|name| name.split('.').next());
        gate.wait_until_known(first.map_or(Wait::Brief, Wait::For)).await;
        let mut reply = gate.call_tool("help", args.arguments(&names)).await?;
        if let [name] = &names[..]
            && is_error(&reply)
            && let Some((namespace, function)) = name.rsplit_once('.')
        {
            let names = [namespace.to_owned(), function.to_owned()];
            reply = gate.call_tool("help", args.arguments(&names)).await?;
        }
        if let Some(label) = first.filter(|_| is_error(&reply))
            && is_disabled(label, paths)
        {
            say(&format!("`{label}` is disabled: `gatelet enable {label}` switches it on"));
        }
        asking::print_reply(&reply, Author::Gatelet, args.output)
    })
}

impl Args {
    fn arguments(&self, names: &[String]) -> Map<String, Value> {
        let mut kwargs = Map::new();
        if let Some(query) = &self.query {
            kwargs.insert("query".to_owned(), json!(query));
        }
        if self.full {
            kwargs.insert("params".to_owned(), json!("full"));
        }
        if self.examples {
            kwargs.insert("examples".to_owned(), json!(true));
        }
        for (key, number) in [("limit", self.limit), ("page", self.page)] {
            kwargs.extend(number.map(|number| (key.to_owned(), json!(number))));
        }
        if self.output.is_json() {
            kwargs.insert("format".to_owned(), json!("json"));
        }
        let mut arguments = Map::new();
        for (key, name) in ["namespace", "function"].into_iter().zip(names) {
            arguments.insert(key.to_owned(), json!(name));
        }
        arguments.insert("kwargs".to_owned(), Value::Object(kwargs));
        arguments
    }
}

/// Whether the configuration file has an upstream with this label that is disabled. A
/// gateway does not know disabled upstreams.
fn is_disabled(label: &str, paths: &Paths) -> bool {
    let found = ConfigFile::open(paths).and_then(|file| file.upstream(label));
    found.is_ok_and(|raw| raw.disabled)
}

pub(super) fn is_error(reply: &Reply) -> bool {
    reply.tool_result().is_some_and(|result| result.is_error)
}
