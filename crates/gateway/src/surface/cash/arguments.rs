//! What a model wrote as the arguments of `call`, `help` and `skill`.

use std::fmt;

use catalog::{Contract, Problem, name};
use tool::{Json, Object};

use artifacts::pick::Pick;
use policy::confirm;

/// The arguments of `call`, as far as they are the same for every function.
#[derive(Debug)]
pub(super) struct CallArguments {
    pub(super) namespace: String,
    pub(super) function: String,
    /// `None` for an empty object.
    pub(super) kwargs: Option<Json>,
    pub(super) wanted: Option<usize>,
    pub(super) pick: Option<Pick>,
}

/// What of the arguments of a call is the function's, and what is ours.
#[derive(Debug)]
pub(super) struct ForFunction {
    pub(super) kwargs: Json,
    pub(super) wanted: Option<usize>,
    pub(super) pick: Option<Pick>,
    /// What is wrong with what is ours.
    pub(super) problems: Vec<Problem>,
}

/// What is wrong with them.
#[derive(Debug)]
pub(super) enum BadCall {
    NotAnObject,
    MalformedCall(Box<MalformedCall>),
}

/// A call as far as it can be read, and everything that is wrong with it.
#[derive(Debug)]
pub(super) struct MalformedCall {
    pub(super) call: CallArguments,
    /// Members that cannot be read.
    pub(super) wrong: Vec<BadMember>,
    /// Members that `call` does not have.
    pub(super) flat: Object,
}

/// A member that cannot be read, and what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadMember {
    Namespace,
    Function,
    /// It is missing, or empty.
    NoFunction,
    Kwargs,
    Size,
    /// And why.
    Pick(String),
}

impl fmt::Display for BadMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadMember::Namespace => "`namespace` must be a string",
            BadMember::Function => "`function` must be a string",
            BadMember::NoFunction => "`function` is required",
            BadMember::Kwargs => "`kwargs` must be an object",
            BadMember::Size => "`sizelimit` must be a positive integer",
            BadMember::Pick(why) => return write!(f, "`pick`: {why}"),
        })
    }
}

impl CallArguments {
    pub(super) fn read(arguments: Option<&Json>) -> Result<CallArguments, BadCall> {
        let object = arguments.map_or(Ok(Object::new()), Object::parse);
        let object = object.map_err(|_| BadCall::NotAnObject)?;
        let (mut namespace, mut function) = (None, None);
        let (mut kwargs, mut wanted, mut pick) = (None, None, None);
        let (mut wrong, mut flat) = (Vec::new(), Object::new());
        for (key, value) in object {
            if value.is_null() {
                continue;
            }
            let mistake = match name::canonical(&key).as_str() {
                "namespace" => read(&mut namespace, value.string_value(), BadMember::Namespace),
                "function" => read(&mut function, value.string_value(), BadMember::Function),
                "kwargs" => read(&mut kwargs, object_of(value), BadMember::Kwargs),
                "sizelimit" => read(&mut wanted, size(&value), BadMember::Size),
                "pick" => match Pick::read(&value) {
                    Ok(read) => {
                        pick = Some(read);
                        None
                    }
                    Err(why) => Some(BadMember::Pick(why)),
                },
                _ => {
                    flat.push(key, value);
                    None
                }
            };
            wrong.extend(mistake);
        }
        let function: String = function.unwrap_or_default();
        if function.is_empty() && !wrong.contains(&BadMember::Function) {
            wrong.push(BadMember::NoFunction);
        }
        let namespace = namespace.unwrap_or_default();
        let call = CallArguments { namespace, function, kwargs, wanted, pick };
        if wrong.is_empty() && flat.is_empty() {
            return Ok(call);
        }
        Err(BadCall::MalformedCall(Box::new(MalformedCall { call, wrong, flat })))
    }

    /// What is the function's own, and what is ours.
    ///
    /// A `sizelimit` or `pick` in `kwargs` means gatelet's when the function has
    /// no such argument.
    pub(super) fn for_function(self, contract: &Contract) -> ForFunction {
        let kwargs = self.kwargs.unwrap_or_else(Json::empty_object);
        let problems = confirm::misread(&kwargs, contract).into_iter().collect();
        let mut ours = ForFunction { kwargs, wanted: self.wanted, pick: self.pick, problems };
        if let Some(value) = ours.lift("sizelimit", b"limit", contract) {
            let size = size(&value);
            if size.is_none() {
                let why = "must be a positive integer".to_owned();
                ours.problems.push(Problem::new("sizelimit", why));
            }
            ours.wanted = ours.wanted.or(size);
        }
        if let Some(value) = ours.lift("pick", b"pick", contract) {
            match Pick::read(&value) {
                Ok(read) => ours.pick = ours.pick.or(Some(read)),
                Err(why) => ours.problems.push(Problem::new("pick", why)),
            }
        }
        ours
    }
}

impl ForFunction {
    /// Takes an argument of ours out of `kwargs`, unless the function has one of
    /// that name; `part` is in every spelling of it.
    fn lift(&mut self, name: &str, part: &[u8], contract: &Contract) -> Option<Json> {
        // Cheap and almost always true: no key spells anything like it.
        let text = self.kwargs.as_str().as_bytes();
        let mentions = text.windows(part.len()).any(|w| w.eq_ignore_ascii_case(part));
        if !mentions || contract.parameter(name).is_some() {
            return None;
        }
        let mut object = Object::parse(&self.kwargs).ok()?;
        let key = object.keys().find(|key| name::same(key, name)).map(str::to_owned)?;
        let value = object.remove(&key)?;
        self.kwargs = object.to_json();
        Some(value)
    }
}

/// Stores the value that could be read, else returns what is wrong.
fn read<T>(into: &mut Option<T>, value: Option<T>, wrong: BadMember) -> Option<BadMember> {
    match value {
        Some(value) => {
            *into = Some(value);
            None
        }
        None => Some(wrong),
    }
}

/// An object, also one that was written as text.
pub(super) fn object_of(value: Json) -> Option<Json> {
    if value.is_object() {
        return Some(value);
    }
    let text = value.string_value()?.trim().to_owned();
    if text.is_empty() {
        return Some(Json::empty_object());
    }
    Json::parse(text).ok().filter(Json::is_object)
}

/// A whole number from 1 on, however it is written: `100`, `"100"`, `100.0`.
pub(super) fn size(value: &Json) -> Option<usize> {
    let written = value.string_value().unwrap_or_else(|| value.to_string());
    let written = written.trim();
    let whole = |number: f64| number.fract() == 0.0 && number < EXACT;
    let size = written.parse::<usize>().ok().or_else(|| {
        written.parse::<f64>().ok().filter(|number| whole(*number)).map(|number| number as usize)
    });
    size.filter(|size| 0 < *size)
}

/// Every whole number below it is itself as a float.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The arguments of `help` and `skill`: strings by canonical name, those in
/// `kwargs` and those beside it together. What cannot be read counts as absent,
/// because help is never withheld.
#[derive(Debug, Default)]
pub(super) struct LenientArguments(Vec<Given>);

#[derive(Debug)]
struct Given {
    /// The canonical name.
    key: String,
    /// As the caller spells it.
    spelled: String,
    value: Json,
}

impl LenientArguments {
    pub(super) fn read(arguments: Option<&Json>) -> LenientArguments {
        let (mut beside, mut inside) = (Vec::new(), Vec::new());
        let members = |json: &Json| Object::parse(json).unwrap_or_default();
        let given = |(spelled, value): (String, Json)| {
            let key = name::canonical(&spelled);
            Given { key, spelled, value }
        };
        for (key, value) in arguments.map(members).unwrap_or_default() {
            if name::canonical(&key) == "kwargs" {
                let inner = object_of(value).unwrap_or_else(Json::empty_object);
                inside.extend(members(&inner).into_iter().map(given));
            } else {
                beside.push(given((key, value)));
            }
        }
        // Of two with the same name, the later counts.
        LenientArguments(beside.into_iter().rev().chain(inside).collect())
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        let Given { value, .. } = self.0.iter().find(|g| g.key == key && !g.value.is_null())?;
        value.string_value().or_else(|| Some(value.to_string()))
    }

    pub(super) fn is_true(&self, key: &str) -> bool {
        self.text(key).is_some_and(|text| matches!(text.as_str(), "true" | "1" | "yes"))
    }

    pub(super) fn number(&self, key: &str) -> Option<usize> {
        self.text(key)?.trim().parse().ok()
    }

    /// Everything under its canonical name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|given| (given.key.as_str(), &given.value))
    }

    /// Everything under the names as spelled, for forwarding.
    pub(super) fn spelled(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|given| (given.spelled.as_str(), &given.value))
    }
}
