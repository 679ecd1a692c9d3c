//! Parses the arguments of `call`, `help` and `skill`.

use std::fmt;

use catalog::{Contract, Problem, name};
use tool::{Json, Object};

use artifacts::pick::Pick;
use policy::confirm;

/// The arguments of `call`.
#[derive(Debug)]
pub(super) struct CallArguments {
    pub(super) namespace: String,
    pub(super) function: String,
    /// `None` for an empty object.
    pub(super) kwargs: Option<Json>,
    /// The size limit that the caller gives, in characters.
    pub(super) size_limit: Option<usize>,
    pub(super) pick: Option<Pick>,
}

/// The arguments of a call, split into the function's `kwargs` and gatelet's own.
#[derive(Debug)]
pub(super) struct SplitArguments {
    pub(super) kwargs: Json,
    pub(super) size_limit: Option<usize>,
    pub(super) pick: Option<Pick>,
    /// What is wrong with gatelet's own arguments.
    pub(super) problems: Vec<Problem>,
}

/// Why the arguments of `call` cannot be used.
#[derive(Debug)]
pub(super) enum BadCall {
    NotAnObject,
    /// It has more members than [`MAX_MEMBERS`].
    TooManyMembers,
    MalformedCall(Box<MalformedCall>),
}

/// The most members of the arguments of `call`, which has five: each of them is looked at,
/// and what is wrong with it is told.
pub(super) const MAX_MEMBERS: usize = 1_000;

/// The arguments of a call as far as they could be parsed, and what is wrong with them.
#[derive(Debug)]
pub(super) struct MalformedCall {
    pub(super) call: CallArguments,
    /// Members that could not be parsed.
    pub(super) wrong: Vec<BadMember>,
    /// Members that `call` does not have, probably arguments of the function.
    pub(super) unknown: Object,
}

/// A member of `call` that could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadMember {
    Namespace,
    Function,
    /// It is missing, or empty.
    NoFunction,
    Kwargs,
    Size,
    /// With the error of the jq program.
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
    pub(super) fn parse(arguments: Option<&Json>) -> Result<CallArguments, BadCall> {
        let object = arguments.map_or(Ok(Object::new()), Object::parse);
        let object = object.map_err(|_| BadCall::NotAnObject)?;
        if MAX_MEMBERS < object.len() {
            return Err(BadCall::TooManyMembers);
        }
        let (mut namespace, mut function) = (None, None);
        let (mut kwargs, mut size_limit, mut pick) = (None, None, None);
        let (mut wrong, mut unknown) = (Vec::new(), Object::new());
        for (key, value) in object {
            if value.is_null() {
                continue;
            }
            let mistake = match name::canonical(&key).as_str() {
                "namespace" => store(&mut namespace, value.string_value(), BadMember::Namespace),
                "function" => store(&mut function, value.string_value(), BadMember::Function),
                "kwargs" => store(&mut kwargs, parse_object(value), BadMember::Kwargs),
                "sizelimit" => store(&mut size_limit, parse_size(&value), BadMember::Size),
                "pick" => match Pick::parse(&value) {
                    Ok(parsed) => {
                        pick = Some(parsed);
                        None
                    }
                    Err(why) => Some(BadMember::Pick(why)),
                },
                _ => {
                    unknown.push(key, value);
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
        let call = CallArguments { namespace, function, kwargs, size_limit, pick };
        if wrong.is_empty() && unknown.is_empty() {
            return Ok(call);
        }
        Err(BadCall::MalformedCall(Box::new(MalformedCall { call, wrong, unknown })))
    }

    /// Splits the arguments into the function's and gatelet's own.
    ///
    /// A `sizelimit` or `pick` in `kwargs` means gatelet's when the function has
    /// no such argument.
    pub(super) fn split(self, contract: &Contract) -> SplitArguments {
        let kwargs = self.kwargs.unwrap_or_else(Json::empty_object);
        let problems = confirm::find_yes_instead_of_token(&kwargs, contract).into_iter().collect();
        let mut split =
            SplitArguments { kwargs, size_limit: self.size_limit, pick: self.pick, problems };
        if let Some(value) = split.lift("sizelimit", b"limit", contract) {
            let size = parse_size(&value);
            if size.is_none() {
                let why = "must be a positive integer".to_owned();
                split.problems.push(Problem::new("sizelimit", why));
            }
            split.size_limit = split.size_limit.or(size);
        }
        if let Some(value) = split.lift("pick", b"pick", contract) {
            match Pick::parse(&value) {
                Ok(parsed) => split.pick = split.pick.or(Some(parsed)),
                Err(why) => split.problems.push(Problem::new("pick", why)),
            }
        }
        split
    }
}

impl SplitArguments {
    /// Removes gatelet's argument `name` from `kwargs`, unless the function has one of that
    /// name. Every spelling of the name contains `part`.
    fn lift(&mut self, name: &str, part: &[u8], contract: &Contract) -> Option<Json> {
        // Cheap and almost always enough: no key is spelt like it.
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

/// Stores a parsed value, or returns `wrong` if there is none.
fn store<T>(into: &mut Option<T>, value: Option<T>, wrong: BadMember) -> Option<BadMember> {
    match value {
        Some(value) => {
            *into = Some(value);
            None
        }
        None => Some(wrong),
    }
}

/// Returns an object, also one that was written as JSON text.
pub(super) fn parse_object(value: Json) -> Option<Json> {
    if value.is_object() {
        return Some(value);
    }
    let text = value.string_value()?.trim().to_owned();
    if text.is_empty() {
        return Some(Json::empty_object());
    }
    Json::parse(text).ok().filter(Json::is_object)
}

/// Parses a whole number from 1 on, in any form: `100`, `"100"`, `100.0`.
pub(super) fn parse_size(value: &Json) -> Option<usize> {
    let written = value.string_value().unwrap_or_else(|| value.to_string());
    let written = written.trim();
    let whole = |number: f64| number.fract() == 0.0 && number < EXACT;
    let size = written.parse::<usize>().ok().or_else(|| {
        written.parse::<f64>().ok().filter(|number| whole(*number)).map(|number| number as usize)
    });
    size.filter(|size| 0 < *size)
}

/// Whole numbers below this one are exact as floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The arguments of `help` and `skill`, by canonical name: those in `kwargs` and those
/// beside it together. What cannot be parsed counts as absent, so that help always
/// answers.
#[derive(Debug, Default)]
pub(super) struct LenientArguments(Vec<Argument>);

#[derive(Debug)]
struct Argument {
    /// The canonical name of the argument.
    key: String,
    /// The name as the caller spells it.
    spelled: String,
    value: Json,
}

impl LenientArguments {
    pub(super) fn parse(arguments: Option<&Json>) -> LenientArguments {
        let (mut beside, mut inside) = (Vec::new(), Vec::new());
        let members = |json: &Json| Object::parse(json).unwrap_or_default();
        let given = |(spelled, value): (String, Json)| {
            let key = name::canonical(&spelled);
            Argument { key, spelled, value }
        };
        for (key, value) in arguments.map(members).unwrap_or_default() {
            if name::canonical(&key) == "kwargs" {
                let inner = parse_object(value).unwrap_or_else(Json::empty_object);
                inside.extend(members(&inner).into_iter().map(given));
            } else {
                beside.push(given((key, value)));
            }
        }
        // Of two with the same name beside `kwargs`, the later counts.
        LenientArguments(beside.into_iter().rev().chain(inside).collect())
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        let Argument { value, .. } = self.0.iter().find(|g| g.key == key && !g.value.is_null())?;
        value.string_value().or_else(|| Some(value.to_string()))
    }

    pub(super) fn is_true(&self, key: &str) -> bool {
        self.text(key).is_some_and(|text| matches!(text.as_str(), "true" | "1" | "yes"))
    }

    pub(super) fn number(&self, key: &str) -> Option<usize> {
        self.text(key)?.trim().parse().ok()
    }

    /// Returns all arguments under their canonical names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|given| (given.key.as_str(), &given.value))
    }

    /// Returns all arguments under their names as spelled, for forwarding.
    pub(super) fn spelled(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|given| (given.spelled.as_str(), &given.value))
    }
}
