//! The definition of one tool: its description, its schemas and the function that
//! runs it.

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

use crate::state::{State, States};
use crate::{Answer, Context, Fault, schema};

/// How long a call may take unless the tool says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Something that is a tool: what [`tool`](macro@crate::tool) makes of a function.
pub trait Tool {
    fn definition() -> Definition;
}

/// A tool, before the registry has looked at it.
#[derive(Clone)]
pub struct Definition {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) input: Option<Value>,
    pub(crate) output: Option<Value>,
    /// Whether the output schema has the value under `result`.
    pub(crate) wraps: bool,
    pub(crate) hints: Hints,
    pub(crate) about: About,
    pub(crate) timeout: Duration,
    pub(crate) needs: Vec<Need>,
    pub(crate) run: Option<Run>,
}

/// What is known of a tool beside what MCP has fields for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct About {
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
    /// Written in seconds, and parts of one.
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

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hints {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub(crate) id: TypeId,
    pub(crate) name: &'static str,
}

pub(crate) type Answered = Pin<Box<dyn Future<Output = Result<Answer, Fault>> + Send>>;

/// What runs: on the blocking pool, or as part of the caller's task.
#[derive(Clone)]
pub(crate) enum Run {
    Blocking(Arc<dyn Fn(Call) -> Result<Answer, Fault> + Send + Sync>),
    Async(Arc<dyn Fn(Call) -> Answered + Send + Sync>),
}

/// One call of a tool, with valid arguments.
pub struct Call {
    arguments: Value,
    context: Context,
    states: Arc<States>,
}

impl Definition {
    /// A tool with this name, and nothing else yet.
    pub fn new(name: impl Into<String>) -> Definition {
        Definition {
            name: name.into(),
            title: None,
            description: String::new(),
            input: None,
            output: None,
            wraps: false,
            hints: Hints::default(),
            about: About {
                category: "general".to_owned(),
                version: "1.0.0".to_owned(),
                ..About::default()
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

    /// Where the tool is written. Names are unique across modules.
    #[must_use]
    pub fn module(mut self, module: &str, file: &str, line: u32) -> Definition {
        self.about = About { module: module.to_owned(), file: file.to_owned(), line, ..self.about };
        self
    }

    /// Takes its arguments as this type.
    #[must_use]
    pub fn takes<T: JsonSchema>(self) -> Definition {
        self.input_schema(schema::input_schema::<T>())
    }

    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Definition {
        self.input = Some(schema);
        self
    }

    /// Answers with this type; under `result` when it is no object.
    #[must_use]
    pub fn returns<T: JsonSchema>(self) -> Definition {
        self.output_schema(schema::output_schema::<T>())
    }

    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Definition {
        self.wraps = !schema::describes_object(&schema);
        self.output = Some(if self.wraps { schema::wrapped(schema) } else { schema });
        self
    }

    #[must_use]
    pub fn read_only(mut self, yes: bool) -> Definition {
        self.hints.read_only = Some(yes);
        self
    }

    #[must_use]
    pub fn destructive(mut self, yes: bool) -> Definition {
        self.hints.destructive = Some(yes);
        self
    }

    #[must_use]
    pub fn idempotent(mut self, yes: bool) -> Definition {
        self.hints.idempotent = Some(yes);
        self
    }

    #[must_use]
    pub fn open_world(mut self, yes: bool) -> Definition {
        self.hints.open_world = Some(yes);
        self
    }

    #[must_use]
    pub fn category(mut self, category: impl Into<String>) -> Definition {
        self.about.category = category.into();
        self
    }

    #[must_use]
    pub fn tags(mut self, tags: &[&str]) -> Definition {
        self.about.tags = tags.iter().map(|&tag| tag.to_owned()).collect();
        self
    }

    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Definition {
        self.about.version = version.into();
        self
    }

    /// Since when nobody should use it any more. It still runs.
    #[must_use]
    pub fn deprecated_in(mut self, version: impl Into<String>) -> Definition {
        self.about.deprecated_in = Some(version.into());
        self
    }

    /// Sets how long an answer stays good.
    #[must_use]
    pub fn cache_ttl(mut self, ttl: Duration) -> Definition {
        self.about.cache_ttl = Some(ttl);
        self
    }

    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Definition {
        self.timeout = timeout;
        self
    }

    /// Needs a `State<T>`.
    #[must_use]
    pub fn needs<T: 'static>(mut self) -> Definition {
        self.needs.push(Need { id: TypeId::of::<T>(), name: std::any::type_name::<T>() });
        self
    }

    /// Runs this, where it may block.
    #[must_use]
    pub fn runs(
        mut self,
        run: impl Fn(Call) -> Result<Answer, Fault> + Send + Sync + 'static,
    ) -> Definition {
        self.run = Some(Run::Blocking(Arc::new(run)));
        self
    }

    /// Runs this, which must not block.
    #[must_use]
    pub fn runs_async<F>(mut self, run: impl Fn(Call) -> F + Send + Sync + 'static) -> Definition
    where
        F: Future<Output = Result<Answer, Fault>> + Send + 'static,
    {
        self.run = Some(Run::Async(Arc::new(move |call| Box::pin(run(call)))));
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn about(&self) -> &About {
        &self.about
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
        raw.push("_meta", json!({"gatelet/tool": self.about}).into());
        raw.to_json()
    }

    /// The description, which is where a model sees that a tool is deprecated.
    fn full_description(&self) -> String {
        match &self.about.deprecated_in {
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
    pub(crate) fn new(arguments: Value, context: Context, states: Arc<States>) -> Call {
        Call { arguments, context, states }
    }

    /// Takes the arguments as a type. They fit the schema already; what can
    /// still go wrong is what a schema cannot say.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        // To a schema `1.0` is an integer, to serde it is none.
        let whole = |_| T::deserialize(whole(&self.arguments));
        T::deserialize(&self.arguments).or_else(whole).map_err(|cause| {
            let cause = schema::cut(&cause.to_string(), 200);
            Fault::new("SchemaError", format!("the arguments cannot be used: {cause}"))
        })
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    pub fn state<T: Send + Sync + 'static>(&self) -> Result<State<T>, Fault> {
        self.states.get().ok_or_else(|| {
            let message = format!("no `{}` is registered", std::any::type_name::<T>());
            Fault::new("RegistrationError", message)
        })
    }
}

/// The value with numbers such as `1.0` written as integers.
fn whole(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "checked to be small and whole")]
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => Value::from(float as i64),
            Some(_) | None => value.clone(),
        },
        Value::Array(items) => items.iter().map(whole).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(key, value)| (key.clone(), whole(value))).collect())
        }
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
