//! Finds the functions of a CaSH server by reading its `help`, as an agent would.

use std::collections::VecDeque;

use conform::outline::{self, Parameter};
use futures::stream::{self, StreamExt};
use serde_json::{Map, Value, json};
use tool::{Context, Failure, Finding, Provider, Severity, Tool};

use crate::request;

/// The deepest level of namespaces that is visited.
const MAX_DEPTH: usize = 8;
const MAX_NAMESPACES: usize = 500;
const MAX_FUNCTIONS: usize = 5_000;
/// The most pages of one listing.
const MAX_PAGES: usize = 50;
/// The most functions whose page is requested to learn their parameters.
const MAX_DESCRIBED: usize = 300;
/// The most requests at the same time.
const MAX_PARALLEL: usize = 8;

/// One function of the CaSH server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) namespace: String,
    pub(crate) name: String,
    description: String,
    /// The parameters on its page, if the page was requested.
    parameters: Option<Vec<Parameter>>,
}

/// What was left out because of a limit; each becomes a finding.
#[derive(Debug, Default)]
struct Omissions {
    /// Namespaces that were not visited.
    namespaces: Vec<String>,
    /// Namespaces of which not every page was requested.
    unfinished: Vec<String>,
    /// How many functions are over the limit.
    functions: usize,
    /// How many functions have unknown parameters, because their page was not requested.
    without_parameters: usize,
}

impl Omissions {
    fn findings(self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut report = |there: bool, message: String| {
            if there {
                findings.push(Finding::new(Severity::Warning, "nested-cut", "help", message));
            }
        };
        let some = |names: &[String]| {
            let named: Vec<String> =
                names.iter().take(MAX_NAMED).map(|n| format!("`{n}`")).collect();
            named.join(", ")
        };
        let Omissions { namespaces, unfinished, functions, without_parameters } = self;
        let (n, named) = (namespaces.len(), some(&namespaces));
        report(
            0 < n,
            format!("{n} namespaces are too deep or too many and were left out: {named}"),
        );
        let (n, named) = (unfinished.len(), some(&unfinished));
        report(0 < n, format!("{n} namespaces have pages that were not read: {named}"));
        report(0 < functions, format!("{functions} functions over {MAX_FUNCTIONS} were left out"));
        report(
            0 < without_parameters,
            format!(
                "the arguments of {without_parameters} functions are not known: their pages were not read"
            ),
        );
        findings
    }
}

/// The most namespaces that a finding names.
const MAX_NAMED: usize = 5;

/// Returns all functions that `help` leads to, and a finding for each kind of omission.
pub(crate) async fn discover(
    upstream: &dyn Provider,
) -> Result<(Vec<Function>, Vec<Finding>), Failure> {
    let context = request::own_context();
    let mut omissions = Omissions::default();
    let mut found: Vec<Function> = Vec::new();
    let mut open = VecDeque::from([String::new()]);
    let mut n_namespaces = 0;
    while let Some(namespace) = open.pop_front() {
        n_namespaces += 1;
        let (below, functions) =
            namespace_listing(upstream, &namespace, &context, &mut omissions).await?;
        let depth = namespace.split('.').filter(|level| !level.is_empty()).count();
        let dot = if namespace.is_empty() { "" } else { "." };
        for name in below {
            let fits = depth < MAX_DEPTH && n_namespaces + open.len() < MAX_NAMESPACES;
            let name = format!("{namespace}{dot}{name}");
            if fits { open.push_back(name) } else { omissions.namespaces.push(name) }
        }
        found.extend(functions);
        omissions.functions += found.len().saturating_sub(MAX_FUNCTIONS);
        found.truncate(MAX_FUNCTIONS);
    }
    let n_read = found.len().min(MAX_DESCRIBED);
    let rest = found.split_off(n_read);
    let mut reads = Vec::with_capacity(n_read);
    for function in found {
        reads.push(with_parameters(upstream, function, &context));
    }
    let mut all: Vec<Function> = stream::iter(reads).buffered(MAX_PARALLEL).collect().await;
    all.extend(rest);
    omissions.without_parameters =
        all.iter().filter(|function| function.parameters.is_none()).count();
    Ok((all, omissions.findings()))
}

async fn namespace_listing(
    upstream: &dyn Provider,
    namespace: &str,
    context: &Context,
    omissions: &mut Omissions,
) -> Result<(Vec<String>, Vec<Function>), Failure> {
    let (mut below, mut functions): (Vec<String>, Vec<Function>) = (Vec::new(), Vec::new());
    for page in 1..=MAX_PAGES {
        let mut arguments = json!({"namespace": namespace});
        if page != 1 {
            arguments["kwargs"] = json!({"page": page});
        }
        let Ok(text) = request::text(upstream, "help", arguments, context).await? else {
            omissions.unfinished.push(namespace.to_owned());
            break;
        };
        let listed = outline::listing(&text, namespace.is_empty());
        let before = below.len() + functions.len();
        for entry in listed.namespaces {
            if is_legal(&entry.name) && !below.contains(&entry.name) {
                below.push(entry.name);
            }
        }
        for entry in listed.functions {
            let known = functions.iter().any(|function| function.name == entry.name);
            if is_legal(&entry.name) && !known {
                let description =
                    catalog::summary::cut(without_argument_names(&entry.description), 300);
                let (namespace, name) = (namespace.to_owned(), entry.name);
                functions.push(Function { namespace, name, description, parameters: None });
            }
        }
        // Only a server that mentions pages has more of them.
        let more = text.contains("`page`") && text.contains(" more");
        if !more || before == below.len() + functions.len() {
            break;
        }
        if page == MAX_PAGES {
            omissions.unfinished.push(namespace.to_owned());
        }
    }
    Ok((below, functions))
}

async fn with_parameters(
    upstream: &dyn Provider,
    mut function: Function,
    context: &Context,
) -> Function {
    let arguments = json!({"namespace": function.namespace, "function": function.name});
    if let Ok(Ok(text)) = request::text(upstream, "help", arguments, context).await {
        let mut parameters = outline::parameters(&text);
        if parameters.is_empty() {
            // A gatelet quotes the page of a server that is behind it.
            let unquoted = text.lines().map(|line| line.strip_prefix("> ").unwrap_or(line));
            parameters = outline::parameters(&unquoted.collect::<Vec<_>>().join("\n"));
        }
        function.parameters = Some(parameters);
    }
    function
}

/// Removes the names of the arguments, which a gatelet puts into brackets at the end of
/// a description.
fn without_argument_names(description: &str) -> &str {
    let before = description.strip_suffix(']').and_then(|text| text.rsplit_once(" ["));
    before.map_or(description, |(before, _)| before)
}

fn is_legal(name: &str) -> bool {
    name.len() <= 64 && catalog::name::is_legal(name)
}

impl Function {
    /// Makes a tool definition of the function.
    pub(crate) fn tool(&self) -> Option<Tool> {
        let dot = if self.namespace.is_empty() { "" } else { "." };
        let raw = json!({
            "name": format!("{}{dot}{}", self.namespace, self.name),
            "description": self.description,
            "inputSchema": self.schema(),
            "_meta": {gateway::surface::cash::REMOTE_FUNCTION:
                {"namespace": self.namespace, "function": self.name}},
        });
        Tool::parse(raw.into()).ok()
    }

    /// Returns a schema of the documented arguments. It allows others too: the
    /// documentation may be incomplete, and the server checks them itself.
    fn schema(&self) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for parameter in self.parameters.iter().flatten().take(200) {
            let kinds = ["string", "integer", "number", "boolean", "array", "object"];
            let kind = kinds.into_iter().find(|kind| parameter.kind == *kind);
            properties.insert(
                parameter.name.clone(),
                kind.map_or_else(|| json!({}), |kind| json!({"type": kind})),
            );
            if parameter.required {
                required.push(parameter.name.as_str());
            }
        }
        json!({"type": "object", "properties": properties, "required": required})
    }
}
