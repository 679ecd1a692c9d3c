//! The registry of tools: some registered by hand, others discovered because they are
//! linked into the program.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use tool::{Json, Server};
use validator::Validator;

use crate::definition::{Definition, Tool};
use crate::error::{Error, RegistrationError, SchemaKind};
use crate::schema;
use crate::state::SharedStates;

/// A tool that [`tool`](macro@crate::tool) made, as discovery finds it in the program.
pub struct Entry {
    define: fn() -> Definition,
    module: &'static str,
    function: &'static str,
}

inventory::collect!(Entry);

/// The tools of one provider.
pub struct Registry {
    pub(crate) server: Server,
    pub(crate) tools: Vec<CallableTool>,
    pub(crate) by_name: HashMap<String, usize>,
    pub(crate) states: SharedStates,
    pub(crate) report: DiscoveryReport,
    /// Tools that were discovered but need a state that was not added yet.
    waiting_for_state: Vec<Definition>,
}

/// A tool that passed all checks and can be called.
pub(crate) struct CallableTool {
    pub(crate) definition: Definition,
    pub(crate) input: Validator,
    pub(crate) output: Option<Validator>,
    /// The definition as MCP lists it.
    pub(crate) listed: tool::Tool,
}

/// The outcome of a registration that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    New,
    /// The identical tool had been registered before.
    Already,
}

/// The tools that were registered, those that discovery had to leave out and why, and
/// how long discovery took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveryReport {
    pub found: Vec<FoundTool>,
    pub failed: Vec<FailedTool>,
    /// How many linked tools discovery tried to register.
    pub n_scanned: usize,
    pub took: Duration,
}

/// A tool that was registered, as the report shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundTool {
    pub name: String,
    pub module: String,
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated_in: Option<String>,
    /// Where its function is in the source, as `file:line`.
    pub place: String,
}

/// A discovered tool that could not be registered, as the report shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedTool {
    pub name: String,
    pub module: String,
    pub error: String,
}

impl Entry {
    pub const fn new(
        define: fn() -> Definition,
        module: &'static str,
        function: &'static str,
    ) -> Entry {
        Entry { define, module, function }
    }
}

impl Registry {
    /// An empty registry; clients see its provider as a server of this name and version.
    pub fn new(name: &str, version: &str) -> Registry {
        let capabilities = json!({"tools": {}, "resources": {}});
        Registry {
            server: Server::new(name, version, capabilities.into()),
            tools: Vec::new(),
            by_name: HashMap::new(),
            states: SharedStates::default(),
            report: DiscoveryReport::default(),
            waiting_for_state: Vec::new(),
        }
    }

    /// Sets the server's instructions to clients.
    #[must_use]
    pub fn instructions(mut self, text: &str) -> Registry {
        self.server.instructions = Some(text.to_owned());
        self
    }

    /// Adds a value that tools take as `State<T>`. Tools that were discovered before and
    /// lacked it are registered now.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(self, state: T) -> Registry {
        self.shared_state(Arc::new(state))
    }

    /// Adds a value as [`Registry::state`] does, one that is in an `Arc` already.
    #[must_use]
    pub fn shared_state<T: Send + Sync + 'static>(mut self, state: Arc<T>) -> Registry {
        self.states.insert(state);
        for definition in std::mem::take(&mut self.waiting_for_state) {
            self.report.failed.retain(|failed| failed.name != definition.name);
            self.register_discovered(definition);
        }
        self
    }

    /// Registers every tool that is linked into the program. Those that cannot be
    /// registered are listed in the [`DiscoveryReport`].
    #[must_use]
    pub fn discover(self) -> Registry {
        self.discover_in("")
    }

    /// Registers the linked tools of one module and of its submodules.
    #[must_use]
    pub fn discover_in(mut self, module: &str) -> Registry {
        let start = Instant::now();
        let mut entries: Vec<&Entry> =
            inventory::iter::<Entry>().filter(|entry| is_within(entry.module, module)).collect();
        // The order of the linker is arbitrary.
        entries.sort_by_key(|entry| (entry.module, entry.function));
        self.report.n_scanned += entries.len();
        for entry in entries {
            self.register_discovered((entry.define)());
        }
        self.report.took += start.elapsed();
        self
    }

    /// Registers a discovered tool, or reports why that failed.
    fn register_discovered(&mut self, definition: Definition) {
        let Err(error) = self.register(definition.clone()) else { return };
        self.report.failed.push(FailedTool {
            name: definition.name.clone(),
            module: definition.metadata.module.clone(),
            error: error.to_string(),
        });
        if let RegistrationError::MissingState { .. } = error {
            self.waiting_for_state.push(definition);
        }
    }

    /// Registers the tool made of a function: `registry.add::<my_function>()`.
    pub fn add<T: Tool>(&mut self) -> Result<Registered, RegistrationError> {
        self.register(T::definition())
    }

    /// Registers one tool.
    ///
    /// The same tool again is a no-op; the same name from another module, or
    /// with anything changed, is an error.
    pub fn register(&mut self, definition: Definition) -> Result<Registered, RegistrationError> {
        if let Some(&at) = self.by_name.get(&definition.name) {
            return check_same_tool(&self.tools[at], &definition);
        }
        self.check(&definition)?;
        let callable = CallableTool::new(definition)?;
        let metadata = &callable.definition.metadata;
        self.report.found.push(FoundTool {
            name: callable.definition.name.clone(),
            module: metadata.module.clone(),
            version: metadata.version.clone(),
            deprecated_in: metadata.deprecated_in.clone(),
            place: format!("{}:{}", metadata.file, metadata.line),
        });
        self.by_name.insert(callable.definition.name.clone(), self.tools.len());
        self.tools.push(callable);
        Ok(Registered::New)
    }

    /// The names of all tools, in the order of registration.
    pub fn list_registered_tools(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|callable| callable.definition.name.as_str())
    }

    /// The input schema of a tool.
    pub fn get_tool_schema(&self, name: &str) -> Result<&Json, Error> {
        self.find(name).map(|callable| &callable.listed.input_schema)
    }

    pub fn report(&self) -> &DiscoveryReport {
        &self.report
    }

    pub(crate) fn find(&self, name: &str) -> Result<&CallableTool, Error> {
        match self.by_name.get(name) {
            Some(&at) => Ok(&self.tools[at]),
            None => {
                // A name this long is a mistake; there is no need to compare all of it.
                let name = schema::truncate(name, 64);
                let similar = similar(&name, self.list_registered_tools());
                Err(Error::ToolNotFound { name, similar })
            }
        }
    }

    fn check(&self, definition: &Definition) -> Result<(), RegistrationError> {
        let tool = || definition.name.clone();
        let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/');
        let name = &definition.name;
        if name.is_empty() || 128 < name.len() || !name.bytes().all(legal) {
            return Err(RegistrationError::InvalidName { tool: tool() });
        }
        if let Some(need) = definition.needs.iter().find(|need| !self.states.has(need.id)) {
            return Err(RegistrationError::MissingState {
                tool: tool(),
                state: need.name.to_owned(),
            });
        }
        if definition.run.is_none() {
            return Err(RegistrationError::NothingToRun { tool: tool() });
        }
        Ok(())
    }
}

impl CallableTool {
    fn new(definition: Definition) -> Result<CallableTool, RegistrationError> {
        let tool = definition.name.clone();
        let Some(input) = &definition.input else {
            return Err(RegistrationError::NoSchema { tool });
        };
        let input = compile(&tool, input, SchemaKind::Input)?;
        let output = match &definition.output {
            Some(schema) => Some(compile(&tool, schema, SchemaKind::Output)?),
            None => None,
        };
        let listed = tool::Tool::parse(definition.to_json()).expect("a definition has a name");
        Ok(CallableTool { definition, input, output, listed })
    }
}

fn compile(tool: &str, schema: &Value, which: SchemaKind) -> Result<Validator, RegistrationError> {
    let tool = || tool.to_owned();
    let validator = schema::compile(schema)
        .map_err(|problem| RegistrationError::InvalidSchema { tool: tool(), which, problem })?;
    if !schema::describes_object(schema) {
        return Err(RegistrationError::NotAnObject { tool: tool(), which });
    }
    Ok(validator)
}

/// Checks that a second registration under one name is the same tool again.
fn check_same_tool(
    first: &CallableTool,
    second: &Definition,
) -> Result<Registered, RegistrationError> {
    let tool = || second.name.clone();
    let known = &first.definition;
    if known.metadata.module != second.metadata.module {
        return Err(RegistrationError::NameTaken {
            tool: tool(),
            module: second.metadata.module.clone(),
            first: known.metadata.module.clone(),
        });
    }
    match difference(first, second) {
        Some(differs) => {
            Err(RegistrationError::Changed { tool: tool(), differs: differs.to_owned() })
        }
        None => Ok(Registered::Already),
    }
}

/// Names the first thing in which two registrations differ. Functions cannot be
/// compared, so their places in the source are.
fn difference(first: &CallableTool, second: &Definition) -> Option<&'static str> {
    let known = &first.definition;
    let (listed, raw) = (&first.listed.raw, second.to_json());
    let other = |member: &str| listed.member(member) != raw.member(member);
    let place =
        |definition: &Definition| (definition.metadata.file.clone(), definition.metadata.line);
    let checks = [
        (known.input != second.input, "input schema"),
        (known.output != second.output, "output schema"),
        (other("description"), "description"),
        (other("title"), "title"),
        (other("annotations"), "set of hints"),
        (*listed != raw, "category, tags or version"),
        (known.timeout != second.timeout, "timeout"),
        (place(known) != place(second), "function"),
    ];
    checks.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
}

/// Returns whether a module is `parent` or below it; the empty parent contains all.
fn is_within(module: &str, parent: &str) -> bool {
    let below = module.strip_prefix(parent);
    parent.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

impl DiscoveryReport {
    /// The report as clients read it over MCP.
    pub fn to_json(&self) -> Json {
        let millis = self.took.as_secs_f64() * 1_000.0;
        let report = json!({
            "total_tools": self.found.len(),
            "scanned": self.n_scanned,
            "scan_duration_ms": millis,
            "tools": self.found,
            "failed": self.failed,
        });
        report.into()
    }
}

/// Returns at most three of the names that are close to a wrong one, closest first.
fn similar<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let allowed = name.chars().count() / 3 + 1;
    let mut close: Vec<(usize, &str)> = names
        .map(|other| (edit_distance(name, other), other))
        .filter(|&(far, other)| far <= allowed || other.contains(name))
        .collect();
    close.sort_unstable();
    close.into_iter().take(3).map(|(_, other)| other.to_owned()).collect()
}

/// The edit distance of two names, ignoring case.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &b) in right.iter().enumerate() {
            let substitute = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
