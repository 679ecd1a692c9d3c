//! Finds the functions of a CaSH server by reading its `help`, as an agent would.

use std::collections::{HashSet, VecDeque};

use conform::outline::{self, Parameter};
use futures::stream::{self, StreamExt};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tool::{Context, Failure, Finding, Provider, Severity, Tool, hex};

use crate::request::{self, Page};

/// The deepest level of namespaces that is visited.
const MAX_DEPTH: usize = 8;
const MAX_NAMESPACES: usize = 500;
const MAX_FUNCTIONS: usize = 5_000;
/// The most pages of one listing, and of all together.
const MAX_PAGES: usize = 50;
const MAX_PAGES_IN_ALL: usize = 1_000;
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
    /// Its page, if that was requested.
    page: Option<FunctionPage>,
}

/// The facts on the page of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FunctionPage {
    parameters: Vec<Parameter>,
    /// The hints that the page claims, as annotations of a tool.
    hints: Map<String, Value>,
    /// A digest of the page, so that trust in a function ends when its page changes: the
    /// page is what a model reads of it.
    digest: String,
}

impl FunctionPage {
    fn parse(text: &str) -> FunctionPage {
        // A gatelet quotes the page of a server that is behind it.
        let unquoted = || {
            let lines = text.lines().map(|line| line.strip_prefix("> ").unwrap_or(line));
            outline::parameters(&lines.collect::<Vec<_>>().join("\n"))
        };
        let parameters = match outline::parameters(text) {
            none if none.is_empty() => unquoted(),
            some => some,
        };
        // Whether a function can be called now says nothing about what it does.
        let mut digest = Sha256::new();
        for line in text.lines().filter(|line| !line.starts_with("available:")) {
            digest.update(line);
            digest.update("\n");
        }
        FunctionPage { parameters, hints: hints(text), digest: hex::encode(&digest.finalize()) }
    }
}

/// Parses the line of hints, as CaSH servers write it: `Hints: destructive, idempotent.`
fn hints(text: &str) -> Map<String, Value> {
    let line = text.lines().find_map(|line| line.strip_prefix("Hints: "));
    let words = line.unwrap_or_default().trim_end_matches('.').split(", ");
    let known = words.filter_map(|word| match word {
        "read-only" => Some("readOnlyHint"),
        "destructive" => Some("destructiveHint"),
        "idempotent" => Some("idempotentHint"),
        _ => None,
    });
    known.map(|hint| (hint.to_owned(), Value::Bool(true))).collect()
}

/// What was left out because of a limit; each becomes a finding.
#[derive(Debug, Default)]
struct Omissions {
    /// The first namespaces that were not visited, and how many there are.
    namespaces: Vec<String>,
    n_namespaces: usize,
    /// Namespaces of which not every page was requested.
    unfinished: Vec<String>,
    /// How many functions are over the limit.
    functions: usize,
    /// How many functions have unknown parameters, because their page was not requested.
    without_parameters: usize,
}

impl Omissions {
    fn leave_out(&mut self, namespace: String) {
        self.n_namespaces += 1;
        if self.namespaces.len() < MAX_NAMED {
            self.namespaces.push(namespace);
        }
    }

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
        let Omissions { namespaces, n_namespaces: n, unfinished, functions, without_parameters } =
            self;
        let named = some(&namespaces);
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
    let (mut n_namespaces, mut pages_left) = (0, MAX_PAGES_IN_ALL);
    while let Some(namespace) = open.pop_front() {
        n_namespaces += 1;
        let (below, functions) =
            namespace_listing(upstream, &namespace, &context, &mut pages_left, &mut omissions)
                .await?;
        let depth = namespace.split('.').filter(|level| !level.is_empty()).count();
        let dot = if namespace.is_empty() { "" } else { "." };
        for name in below {
            let fits = depth < MAX_DEPTH && n_namespaces + open.len() < MAX_NAMESPACES;
            let name = format!("{namespace}{dot}{name}");
            if fits { open.push_back(name) } else { omissions.leave_out(name) }
        }
        found.extend(functions);
        omissions.functions += found.len().saturating_sub(MAX_FUNCTIONS);
        found.truncate(MAX_FUNCTIONS);
    }
    let n_read = found.len().min(MAX_DESCRIBED);
    let rest = found.split_off(n_read);
    let mut reads = Vec::with_capacity(n_read);
    for function in found {
        reads.push(with_page(upstream, function, &context));
    }
    let mut all: Vec<Function> = stream::iter(reads).buffered(MAX_PARALLEL).collect().await;
    all.extend(rest);
    omissions.without_parameters = all.iter().filter(|function| function.page.is_none()).count();
    Ok((all, omissions.findings()))
}

async fn namespace_listing(
    upstream: &dyn Provider,
    namespace: &str,
    context: &Context,
    pages_left: &mut usize,
    omissions: &mut Omissions,
) -> Result<(Vec<String>, Vec<Function>), Failure> {
    let (mut below, mut functions): (Vec<String>, Vec<Function>) = (Vec::new(), Vec::new());
    let (mut known_below, mut known_functions) = (HashSet::new(), HashSet::new());
    for page in 1..=MAX_PAGES {
        if *pages_left == 0 {
            omissions.unfinished.push(namespace.to_owned());
            break;
        }
        *pages_left -= 1;
        let mut arguments = json!({"namespace": namespace});
        if page != 1 {
            arguments["kwargs"] = json!({"page": page});
        }
        let page_read = request::page(upstream, "help", arguments, context).await?;
        let Ok(Page { text, is_cut }) = page_read else {
            omissions.unfinished.push(namespace.to_owned());
            break;
        };
        let listed = outline::listing(&text, namespace.is_empty());
        let before = below.len() + functions.len();
        for entry in listed.namespaces {
            if is_legal(&entry.name) && known_below.insert(entry.name.clone()) {
                below.push(entry.name);
            }
        }
        for entry in listed.functions {
            if is_legal(&entry.name) && known_functions.insert(entry.name.clone()) {
                let description =
                    catalog::summary::cut(without_argument_names(&entry.description), 300);
                let (namespace, name) = (namespace.to_owned(), entry.name);
                functions.push(Function { namespace, name, description, page: None });
            }
        }
        // Only a server that mentions pages has more of them.
        let more = text.contains("`page`") && text.contains(" more");
        if is_cut || MAX_FUNCTIONS < functions.len() {
            omissions.unfinished.push(namespace.to_owned());
            break;
        }
        if !more || before == below.len() + functions.len() {
            break;
        }
        if page == MAX_PAGES {
            omissions.unfinished.push(namespace.to_owned());
        }
    }
    Ok((below, functions))
}

async fn with_page(upstream: &dyn Provider, mut function: Function, context: &Context) -> Function {
    let arguments = json!({"namespace": function.namespace, "function": function.name});
    if let Ok(Ok(Page { text, .. })) = request::page(upstream, "help", arguments, context).await {
        function.page = Some(FunctionPage::parse(&text));
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
        let mut mark = json!({"namespace": self.namespace, "function": self.name});
        if let Some(page) = &self.page {
            mark["page"] = json!(page.digest);
        }
        let hints = self.page.as_ref().map(|page| page.hints.clone()).unwrap_or_default();
        let raw = json!({
            "name": format!("{}{dot}{}", self.namespace, self.name),
            "description": self.description,
            "inputSchema": self.schema(),
            "annotations": hints,
            "_meta": {gateway::surface::cash::REMOTE_FUNCTION: mark},
        });
        Tool::parse(raw.into()).ok()
    }

    /// Returns a schema of the documented arguments. It allows others too: the
    /// documentation may be incomplete, and the server checks them itself.
    fn schema(&self) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        let parameters = self.page.iter().flat_map(|page| &page.parameters);
        for parameter in parameters.take(200) {
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
