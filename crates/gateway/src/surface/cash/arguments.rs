//! What a model wrote as the arguments of `call`, `help` and `skill`.

use catalog::{Contract, Problem, name};
use tool::{Json, Object};

use crate::trust::confirm;

/// The arguments of `call`, as far as they are the same for every function.
#[derive(Debug)]
pub(super) struct CallArguments {
    pub(super) namespace: String,
    pub(super) function: String,
    /// `None` for an empty object.
    pub(super) kwargs: Option<Json>,
    pub(super) wanted: Option<usize>,
}

/// What is wrong with them.
#[derive(Debug)]
pub(super) enum BadCall {
    NoObject,
    /// With the namespace, which may be the whole address.
    NoFunction(String),
    /// `kwargs` of the wrong kind, of this namespace and function.
    Kwargs(String, String),
    /// A member of the wrong type: which, and what it must be.
    Wrong(&'static str, &'static str),
    /// Members beside those that there are, and the call without them.
    Flat {
        flat: Object,
        call: CallArguments,
    },
}

impl CallArguments {
    pub(super) fn read(arguments: Option<&Json>) -> Result<CallArguments, BadCall> {
        let object = arguments.map_or(Ok(Object::new()), Object::parse);
        let object = object.map_err(|_| BadCall::NoObject)?;
        let (mut namespace, mut function) = (None, None);
        let (mut kwargs, mut wanted) = (None, None);
        let mut flat = Object::new();
        for (key, value) in object {
            if value.is_null() {
                continue;
            }
            match name::canonical(&key).as_str() {
                "namespace" => namespace = Some(text("namespace", &value)?),
                "function" => function = Some(text("function", &value)?),
                "kwargs" => kwargs = Some(object_of("kwargs", value)),
                "sizelimit" => wanted = Some(size(&value)?),
                _ => flat.push(key, value),
            }
        }
        let namespace = namespace.unwrap_or_default();
        let Some(function) = function.filter(|name| !name.is_empty()) else {
            return Err(BadCall::NoFunction(namespace));
        };
        let Ok(kwargs) = kwargs.transpose() else {
            return Err(BadCall::Kwargs(namespace, function));
        };
        let call = CallArguments { namespace, function, kwargs, wanted };
        if flat.is_empty() { Ok(call) } else { Err(BadCall::Flat { flat, call }) }
    }

    /// The function's own arguments, and the size asked for.
    ///
    /// `sizelimit` among the arguments means ours when the function has none of
    /// that name.
    pub(super) fn settle(self, contract: &Contract) -> Result<(Json, Option<usize>), Problem> {
        let kwargs = self.kwargs.unwrap_or_else(Json::empty_object);
        if let Some(problem) = confirm::misread(&kwargs, contract) {
            return Err(problem);
        }
        // Cheap and almost always true: no key spells anything like it.
        let mentions =
            kwargs.as_str().as_bytes().windows(5).any(|w| w.eq_ignore_ascii_case(b"limit"));
        if !mentions || contract.parameter("sizelimit").is_some() {
            return Ok((kwargs, self.wanted));
        }
        let Ok(mut object) = Object::parse(&kwargs) else { return Ok((kwargs, self.wanted)) };
        let key = object.keys().find(|key| name::same(key, "sizelimit")).map(str::to_owned);
        let Some(value) = key.and_then(|key| object.remove(&key)) else {
            return Ok((kwargs, self.wanted));
        };
        let inner = size(&value)
            .map_err(|_| Problem::new("sizelimit", "must be a positive integer".to_owned()))?;
        Ok((object.to_json(), self.wanted.or(Some(inner))))
    }
}

fn text(what: &'static str, value: &Json) -> Result<String, BadCall> {
    value.text().ok_or(BadCall::Wrong(what, "a string"))
}

/// An object, also when it was written as text.
pub(super) fn object_of(what: &'static str, value: Json) -> Result<Json, BadCall> {
    if value.is_object() {
        return Ok(value);
    }
    let wrong = BadCall::Wrong(what, "an object");
    let Some(text) = value.text() else { return Err(wrong) };
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Ok(Json::empty_object());
    }
    Json::parse(text).ok().filter(Json::is_object).ok_or(wrong)
}

fn size(value: &Json) -> Result<usize, BadCall> {
    let written = value.text().unwrap_or_else(|| value.to_string());
    let size = written.trim().parse::<usize>().ok().filter(|size| 0 < *size);
    size.ok_or(BadCall::Wrong("sizelimit", "a positive integer"))
}

/// The arguments of `help` and `skill`: strings by canonical name, with what
/// is in `kwargs` and what was written beside it in one place. Whatever is
/// odd is read as absent, because help is never withheld.
#[derive(Debug, Default)]
pub(super) struct Loose(Vec<Given>);

#[derive(Debug)]
struct Given {
    /// The canonical name.
    key: String,
    /// As the caller spells it.
    spelled: String,
    value: Json,
}

impl Loose {
    pub(super) fn read(arguments: Option<&Json>) -> Loose {
        let (mut beside, mut inside) = (Vec::new(), Vec::new());
        let members = |json: &Json| Object::parse(json).unwrap_or_default();
        let given = |(spelled, value): (String, Json)| {
            let key = name::canonical(&spelled);
            Given { key, spelled, value }
        };
        for (key, value) in arguments.map(members).unwrap_or_default() {
            if name::canonical(&key) == "kwargs" {
                let inner = object_of("kwargs", value).unwrap_or_else(|_| Json::empty_object());
                inside.extend(members(&inner).into_iter().map(given));
            } else {
                beside.push(given((key, value)));
            }
        }
        // Of two that mean the same, the later counts.
        Loose(beside.into_iter().rev().chain(inside).collect())
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        let Given { value, .. } = self.0.iter().find(|g| g.key == key && !g.value.is_null())?;
        value.text().or_else(|| Some(value.to_string()))
    }

    pub(super) fn is_true(&self, key: &str) -> bool {
        self.text(key).is_some_and(|text| matches!(text.as_str(), "true" | "1" | "yes"))
    }

    pub(super) fn number(&self, key: &str) -> Option<usize> {
        self.text(key)?.trim().parse().ok()
    }

    /// Everything, for filling in.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|given| (given.key.as_str(), &given.value))
    }

    /// Everything as it was spelled, for somebody who reads it on their own.
    pub(super) fn spelled(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|given| (given.spelled.as_str(), &given.value))
    }
}
