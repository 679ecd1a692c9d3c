//! The registry of tools: registered by hand, or found because they are linked in.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use tool::{Json, Server};
use validator::Validator;

use crate::definition::{Definition, Tool};
use crate::error::{Error, RegistrationError, Which};
use crate::schema;
use crate::state::States;

/// One tool that is linked into the program, made by [`tool`](macro@crate::tool).
pub struct Entry {
    define: fn() -> Definition,
    module: &'static str,
    function: &'static str,
}

inventory::collect!(Entry);

/// The tools of one provider.
pub struct Registry {
    pub(crate) server: Server,
    pub(crate) tools: Vec<Ready>,
    pub(crate) by_name: HashMap<String, usize>,
    pub(crate) states: States,
    pub(crate) report: Report,
    /// What was found and needs a state that may still come.
    waiting: Vec<Definition>,
}

/// A tool that can be called.
pub(crate) struct Ready {
    pub(crate) definition: Definition,
    pub(crate) input: Validator,
    pub(crate) output: Option<Validator>,
    pub(crate) listed: tool::Tool,
}

/// What a registration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    New,
    /// The very same tool was there already.
    Already,
}

/// What discovery found, what it could not use and why, and how long it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub found: Vec<Found>,
    pub failed: Vec<Failed>,
    /// How many linked tools were looked at.
    pub n_scanned: usize,
    pub took: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    pub name: String,
    pub module: String,
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated_in: Option<String>,
    /// `file:line`
    pub place: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
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
    /// A registry without tools, and what its provider says of itself.
    pub fn new(name: &str, version: &str) -> Registry {
        let capabilities = json!({"tools": {}, "resources": {}});
        Registry {
            server: Server::new(name, version, capabilities.into()),
            tools: Vec::new(),
            by_name: HashMap::new(),
            states: States::default(),
            report: Report::default(),
            waiting: Vec::new(),
        }
    }

    /// What clients are told about the whole.
    #[must_use]
    pub fn instructions(mut self, text: &str) -> Registry {
        self.server.instructions = Some(text.to_owned());
        self
    }

    /// Keeps something that tools take as `State<T>`, those that were found
    /// before too.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(self, state: T) -> Registry {
        self.shared_state(Arc::new(state))
    }

    /// As [`Registry::state`], for what is shared already.
    #[must_use]
    pub fn shared_state<T: Send + Sync + 'static>(mut self, state: Arc<T>) -> Registry {
        self.states.insert(state);
        for definition in std::mem::take(&mut self.waiting) {
            let is_it = |failed: &Failed| failed.name == definition.name;
            self.report.failed.retain(|failed| !is_it(failed));
            self.find_one(definition);
        }
        self
    }

    /// Registers every tool that is linked into the program. What cannot be
    /// registered stands in the [`Report`]; the others still work.
    #[must_use]
    pub fn discover(self) -> Registry {
        self.discover_in("")
    }

    /// As [`Registry::discover`], for one module and those below it.
    #[must_use]
    pub fn discover_in(mut self, module: &str) -> Registry {
        let start = Instant::now();
        let mut entries: Vec<&Entry> =
            inventory::iter::<Entry>().filter(|entry| is_within(entry.module, module)).collect();
        // Link order is the linker's business; ours is by place.
        entries.sort_by_key(|entry| (entry.module, entry.function));
        self.report.n_scanned += entries.len();
        for entry in entries {
            self.find_one((entry.define)());
        }
        self.report.took += start.elapsed();
        self
    }

    /// Registers what was found, or notes why not.
    fn find_one(&mut self, definition: Definition) {
        let Err(error) = self.register(definition.clone()) else { return };
        self.report.failed.push(Failed {
            name: definition.name.clone(),
            module: definition.about.module.clone(),
            error: error.to_string(),
        });
        if let RegistrationError::MissingState { .. } = error {
            self.waiting.push(definition);
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
            return same(&self.tools[at], &definition);
        }
        self.check(&definition)?;
        let ready = Ready::new(definition)?;
        let about = &ready.definition.about;
        self.report.found.push(Found {
            name: ready.definition.name.clone(),
            module: about.module.clone(),
            version: about.version.clone(),
            deprecated_in: about.deprecated_in.clone(),
            place: format!("{}:{}", about.file, about.line),
        });
        self.by_name.insert(ready.definition.name.clone(), self.tools.len());
        self.tools.push(ready);
        Ok(Registered::New)
    }

    /// The names of all tools, in the order of registration.
    pub fn list_registered_tools(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|ready| ready.definition.name.as_str())
    }

    /// The input schema of a tool.
    pub fn get_tool_schema(&self, name: &str) -> Result<&Json, Error> {
        self.find(name).map(|ready| &ready.listed.input_schema)
    }

    pub fn report(&self) -> &Report {
        &self.report
    }

    pub(crate) fn find(&self, name: &str) -> Result<&Ready, Error> {
        match self.by_name.get(name) {
            Some(&at) => Ok(&self.tools[at]),
            None => {
                // No tool has a longer name, so the rest of it tells nothing.
                let name = schema::cut(name, 64);
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

impl Ready {
    fn new(definition: Definition) -> Result<Ready, RegistrationError> {
        let tool = definition.name.clone();
        let Some(input) = &definition.input else {
            return Err(RegistrationError::NoSchema { tool });
        };
        let input = compile(&tool, input, Which::Input)?;
        let output = match &definition.output {
            Some(schema) => Some(compile(&tool, schema, Which::Output)?),
            None => None,
        };
        let listed = tool::Tool::parse(definition.to_json()).expect("a definition has a name");
        Ok(Ready { definition, input, output, listed })
    }
}

fn compile(tool: &str, schema: &Value, which: Which) -> Result<Validator, RegistrationError> {
    let tool = || tool.to_owned();
    let validator = schema::compile(schema)
        .map_err(|problem| RegistrationError::InvalidSchema { tool: tool(), which, problem })?;
    if !schema::describes_object(schema) {
        return Err(RegistrationError::NotAnObject { tool: tool(), which });
    }
    Ok(validator)
}

/// Checks whether a second registration is the same tool again.
fn same(first: &Ready, second: &Definition) -> Result<Registered, RegistrationError> {
    let tool = || second.name.clone();
    let known = &first.definition;
    if known.about.module != second.about.module {
        return Err(RegistrationError::NameTaken {
            tool: tool(),
            module: second.about.module.clone(),
            first: known.about.module.clone(),
        });
    }
    match difference(first, second) {
        Some(differs) => {
            Err(RegistrationError::Changed { tool: tool(), differs: differs.to_owned() })
        }
        None => Ok(Registered::Already),
    }
}

/// Returns what a second registration has otherwise. What runs cannot be compared,
/// but two functions do not stand on one line.
fn difference(first: &Ready, second: &Definition) -> Option<&'static str> {
    let known = &first.definition;
    let (listed, raw) = (&first.listed.raw, second.to_json());
    let other = |member: &str| listed.member(member) != raw.member(member);
    let place = |definition: &Definition| (definition.about.file.clone(), definition.about.line);
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

fn is_within(module: &str, parent: &str) -> bool {
    let below = module.strip_prefix(parent);
    parent.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

impl Report {
    /// The report as it is read over MCP.
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

/// At most three names that someone may have meant, best first.
fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let allowed = name.chars().count() / 3 + 1;
    let mut close: Vec<(usize, &str)> = known
        .map(|other| (distance(name, other), other))
        .filter(|&(far, other)| far <= allowed || other.contains(name))
        .collect();
    close.sort_unstable();
    close.into_iter().take(3).map(|(_, other)| other.to_owned()).collect()
}

/// Edit distance, ignoring case.
fn distance(one: &str, two: &str) -> usize {
    let two: Vec<char> = two.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (i, a) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &b) in two.iter().enumerate() {
            let substitute = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[two.len()]
}
