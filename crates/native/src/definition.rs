//! The definition of one tool: its description, its schemas and the function to run.

use std::any::TypeId;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tool::{Json, Object};

use crate::state::{SharedStates, State};
use crate::{Context, Output, ToolError, schema};

/// How long a call may take unless the tool sets its own timeout.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The type that [`tool`](macro@crate::tool) makes of a function, which can define itself.
pub trait Tool {
    fn definition() -> Definition;
}

/// The definition of a tool, built step by step; the registry checks it.
#[derive(Clone)]
pub struct Definition {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    /// The JSON Schemas of the arguments and of the result.
    pub(crate) input: Option<Value>,
    pub(crate) output: Option<Value>,
    /// Whether the result is an object with the value as its member `result`.
    pub(crate) wraps_in_result: bool,
    pub(crate) hints: Hints,
    pub(crate) metadata: Metadata,
    pub(crate) timeout: Duration,
    pub(crate) needs: Vec<RequiredState>,
    pub(crate) run: Option<ToolBody>,
}

/// Facts about a tool that MCP has no fields for; listed under `_meta`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// The Rust module with its function.
    pub module: String,
    #[serde(skip)]
    pub file: String,
    #[serde(skip)]
    pub line: u32,
    pub category: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated_in: Option<String>,
    /// How long a result may be cached; serialized in seconds.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub cache_ttl: Option<Duration>,
}

#[expect(clippy::ref_option, reason = "serde wants it so")]
fn seconds<S: serde::Serializer>(
    time: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let time = time.unwrap_or_default();
    match time.subsec_nanos() {
        0 => serializer.serialize_u64(time.as_secs()),
        _ => serializer.serialize_f64(time.as_secs_f64()),
    }
}

/// The annotations of MCP.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hints {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
}

/// A type `T` of which the tool takes a `State<T>`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequiredState {
    pub(crate) id: TypeId,
    pub(crate) name: &'static str,
}

pub(crate) type OutputFuture = Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send>>;

/// The function of a tool: one that may block, for the blocking pool, or an async one.
#[derive(Clone)]
pub(crate) enum ToolBody {
    Blocking(Arc<dyn Fn(Call) -> Result<Output, ToolError> + Send + Sync>),
    Async(Arc<dyn Fn(Call) -> OutputFuture + Send + Sync>),
}

/// One call of a tool, with arguments that fit the input schema.
pub struct Call {
    arguments: Value,
    context: Context,
    states: Arc<SharedStates>,
}

impl Definition {
    /// A definition with only a name yet.
    pub fn new(name: impl Into<String>) -> Definition {
        Definition {
            name: name.into(),
            title: None,
            description: String::new(),
            input: None,
            output: None,
            wraps_in_result: false,
            hints: Hints::default(),
            metadata: Metadata {
                category: "general".to_owned(),
                version: "1.0.0".to_owned(),
                ..Metadata::default()
            },
            timeout: DEFAULT_TIMEOUT,
            needs: Vec::new(),
            run: None,
        }
    }

    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Definition {
        self.title = Some(title.into());
        self
    }

    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Definition {
        self.description = description.into();
        self
    }

    /// Sets where the function is in the source.
    #[must_use]
    pub fn module(mut self, module: &str, file: &str, line: u32) -> Definition {
        self.metadata =
            Metadata { module: module.to_owned(), file: file.to_owned(), line, ..self.metadata };
        self
    }

    /// Derives the input schema from a type.
    #[must_use]
    pub fn takes<T: JsonSchema>(self) -> Definition {
        self.input_schema(schema::input_schema::<T>())
    }

    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Definition {
        self.input = Some(schema);
        self
    }

    /// Derives the output schema from a type.
    #[must_use]
    pub fn returns<T: JsonSchema>(self) -> Definition {
        self.output_schema(schema::output_schema::<T>())
    }

    /// Sets the output schema; one that is not for an object is wrapped in `result`.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Definition {
        self.wraps_in_result = !schema::describes_object(&schema);
        self.output =
            Some(if self.wraps_in_result { schema::wrap_in_result(schema) } else { schema });
        self
    }

    #[must_use]
    pub fn read_only(mut self, hint: bool) -> Definition {
        self.hints.read_only = Some(hint);
        self
    }

    #[must_use]
    pub fn destructive(mut self, hint: bool) -> Definition {
        self.hints.destructive = Some(hint);
        self
    }

    #[must_use]
    pub fn idempotent(mut self, hint: bool) -> Definition {
        self.hints.idempotent = Some(hint);
        self
    }

    #[must_use]
    pub fn open_world(mut self, hint: bool) -> Definition {
        self.hints.open_world = Some(hint);
        self
    }

    #[must_use]
    pub fn category(mut self, category: impl Into<String>) -> Definition {
        self.metadata.category = category.into();
        self
    }

    #[must_use]
    pub fn tags(mut self, tags: &[&str]) -> Definition {
        self.metadata.tags = tags.iter().map(|&tag| tag.to_owned()).collect();
        self
    }

    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Definition {
        self.metadata.version = version.into();
        self
    }

    /// Marks the tool as deprecated since this version. It can still be called.
    #[must_use]
    pub fn deprecated_in(mut self, version: impl Into<String>) -> Definition {
        self.metadata.deprecated_in = Some(version.into());
        self
    }

    /// Sets how long a result may be cached.
    #[must_use]
    pub fn cache_ttl(mut self, ttl: Duration) -> Definition {
        self.metadata.cache_ttl = Some(ttl);
        self
    }

    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Definition {
        self.timeout = timeout;
        self
    }

    /// Declares that the function takes a `State<T>`.
    #[must_use]
    pub fn needs_state<T: 'static>(mut self) -> Definition {
        self.needs.push(RequiredState { id: TypeId::of::<T>(), name: std::any::type_name::<T>() });
        self
    }

    /// Sets the function to run, which may block.
    #[must_use]
    pub fn runs(
        mut self,
        run: impl Fn(Call) -> Result<Output, ToolError> + Send + Sync + 'static,
    ) -> Definition {
        self.run = Some(ToolBody::Blocking(Arc::new(run)));
        self
    }

    /// Sets the async function to run, which must not block.
    #[must_use]
    pub fn runs_async<F>(mut self, run: impl Fn(Call) -> F + Send + Sync + 'static) -> Definition
    where
        F: Future<Output = Result<Output, ToolError>> + Send + 'static,
    {
        self.run = Some(ToolBody::Async(Arc::new(move |call| Box::pin(run(call)))));
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The definition as MCP lists it.
    pub fn to_json(&self) -> Json {
        let mut raw = Object::new();
        raw.push("name", Json::encode(&self.name));
        if let Some(title) = &self.title {
            raw.push("title", Json::encode(title));
        }
        raw.push("description", Json::encode(&self.full_description()));
        raw.push("inputSchema", Json::encode(&self.input));
        if let Some(output) = &self.output {
            raw.push("outputSchema", Json::encode(output));
        }
        if let Some(annotations) = self.hints.to_json() {
            raw.push("annotations", annotations);
        }
        raw.push("_meta", json!({"gatelet/tool": self.metadata}).into());
        raw.to_json()
    }

    /// The description, with a note for the model if the tool is deprecated.
    fn full_description(&self) -> String {
        match &self.metadata.deprecated_in {
            Some(version) => format!("Deprecated since {version}. {}", self.description),
            None => self.description.clone(),
        }
    }
}

impl Hints {
    fn to_json(self) -> Option<Json> {
        let mut raw = Object::new();
        let hints = [
            ("readOnlyHint", self.read_only),
            ("destructiveHint", self.destructive),
            ("idempotentHint", self.idempotent),
            ("openWorldHint", self.open_world),
        ];
        for (key, hint) in hints {
            if let Some(hint) = hint {
                raw.push(key, Json::encode(&hint));
            }
        }
        (!raw.is_empty()).then(|| raw.to_json())
    }
}

impl Call {
    pub(crate) fn new(arguments: Value, context: Context, states: Arc<SharedStates>) -> Call {
        Call { arguments, context, states }
    }

    /// Deserializes the arguments. They fit the schema already, so this fails only for
    /// rules that a schema cannot express.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        // JSON Schema takes `1.0` for an integer, serde does not.
        let retry = |_| T::deserialize(with_integers(&self.arguments));
        T::deserialize(&self.arguments).or_else(retry).map_err(|cause| {
            let cause = schema::truncate(&cause.to_string(), 200);
            ToolError::new("SchemaError", format!("the arguments cannot be used: {cause}"))
        })
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the shared value of this type.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<State<T>, ToolError> {
        self.states.get().ok_or_else(|| {
            let message = format!("no `{}` is registered", std::any::type_name::<T>());
            ToolError::new("RegistrationError", message)
        })
    }
}

/// Returns the value with numbers such as `1.0` turned into integers.
fn with_integers(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "checked to be small and whole")]
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => Value::from(float as i64),
            Some(_) | None => value.clone(),
        },
        Value::Array(items) => items.iter().map(with_integers).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(key, value)| (key.clone(), with_integers(value))).collect(),
        ),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lifetime_of_an_answer_is_told_in_seconds_and_parts_of_one() {
        let told = |time| {
            let raw = Definition::new("t").cache_ttl(Duration::from_millis(time)).to_json();
            raw.to_value().unwrap()["_meta"]["gatelet/tool"]["cache_ttl"].clone()
        };
        assert_eq!((told(300_000), told(500)), (json!(300), json!(0.5)));
    }
}
