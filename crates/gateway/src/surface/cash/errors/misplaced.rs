//! Errors about arguments that were written beside `kwargs` instead of in it.

use std::collections::HashSet;

use catalog::summary::echo as short;
use catalog::{Contract, Slot, nearest};
use tool::{Json, Object};

use super::super::arguments::{BadMember, CallArguments, SplitArguments, parse_object};
use super::super::request::CashRequest;
use policy::confirm;
use policy::validate;

/// The most misplaced arguments that are named.
const MAX_NAMED: usize = 8;
/// The most characters of the arguments of a suggested call.
const MAX_SUGGESTED_CHARS: usize = 400;

impl CashRequest<'_> {
    /// Renders the error for a malformed call: the messages so far, the arguments beside
    /// `kwargs`, and what is wrong with the kwargs once those are added; if nothing is,
    /// the call as it should be written.
    pub(super) fn corrected(
        &self,
        slot: Slot,
        mut messages: Vec<String>,
        misplaced: &Object,
        call: CallArguments,
    ) -> String {
        let catalog = &self.snapshot.catalog;
        let contract = catalog.contract(slot);
        let has_kwargs = !messages.contains(&BadMember::Kwargs.to_string());
        let sorted = MisplacedArguments::sort(misplaced, call.kwargs.as_ref(), contract);
        if !misplaced.is_empty() {
            messages.push(sorted.message());
        }
        let mut kwargs = sorted.kwargs.to_json();
        confirm::move_to_meta_unless_declared(&mut kwargs, contract, &mut Object::new());
        let size = call.size_limit.map(|size| format!(", sizelimit={size}")).unwrap_or_default();
        let SplitArguments { kwargs, problems, .. } =
            CallArguments { kwargs: Some(kwargs), ..call }.split(contract);
        let problems = match has_kwargs {
            true => validate::problems(contract, problems, &kwargs),
            false => Vec::new(),
        };
        let next = if !problems.is_empty() {
            let lines: Vec<String> =
                problems.iter().map(|problem| format!("- {problem}")).collect();
            format!(".\nThe kwargs do not fit:\n{}", lines.join("\n"))
        } else if misplaced.is_empty() || !has_kwargs {
            ".".to_owned()
        } else {
            let kwargs = suggested_kwargs(&sorted.kwargs);
            format!(". Write: `{}kwargs={kwargs}{size})`.", self.address(slot))
        };
        let signature = catalog.shaped_signature(slot, 600);
        format!("**Error:** {}{next}\nSignature: {signature}", messages.join("; "))
    }
}

/// The arguments that were written beside `kwargs`, by where they belong.
struct MisplacedArguments {
    /// The `kwargs` with everything that belongs into them.
    kwargs: Object,
    /// The keys of `kwargs`.
    known: HashSet<String>,
    /// The names of arguments of the function.
    inside: Vec<String>,
    /// Objects under a name that other programs use for `kwargs`.
    wrappers: Vec<String>,
    /// Arguments that the function does not have, with a suggestion.
    unknown: Vec<String>,
    /// A `confirm` that is not a token.
    unconfirmed: bool,
}

impl MisplacedArguments {
    fn sort(misplaced: &Object, kwargs: Option<&Json>, contract: &Contract) -> MisplacedArguments {
        let kwargs = kwargs.and_then(|kwargs| Object::parse(kwargs).ok()).unwrap_or_default();
        let known = kwargs.keys().map(str::to_owned).collect();
        let (inside, wrappers, unknown) = (Vec::new(), Vec::new(), Vec::new());
        let mut sorted =
            MisplacedArguments { kwargs, known, inside, wrappers, unknown, unconfirmed: false };
        for (key, value) in misplaced.iter() {
            let name = format!("`{}`", short(key));
            // A function that declares no arguments may take any.
            if contract.parameter(key).is_some() {
                sorted.inside.push(name);
                sorted.add(key, value);
            } else if catalog::name::same(key, confirm::ARGUMENT) {
                sorted.unconfirmed = true;
            } else if let Some(members) = wrapped(key, value) {
                sorted.wrappers.push(name);
                members.iter().for_each(|(key, value)| sorted.add(key, value));
            } else if contract.parameters.is_empty() {
                sorted.inside.push(name);
                sorted.add(key, value);
            } else {
                let names = contract.parameters.iter().map(|parameter| parameter.name.as_str());
                let meant = nearest::nearest(key, names, 1).first().map(|near| short(near));
                let meant = meant.map(|near| format!(" (did you mean `{near}`?)"));
                sorted.unknown.push(format!("{name}{}", meant.unwrap_or_default()));
            }
        }
        sorted
    }

    /// Adds to `kwargs`, unless the key is there already.
    fn add(&mut self, key: &str, value: &Json) {
        if self.known.insert(key.to_owned()) {
            self.kwargs.push(key, value.clone());
        }
    }

    fn message(&self) -> String {
        let mut parts = Vec::new();
        if !self.wrappers.is_empty() {
            parts.push(format!("{} is called `kwargs` here", join_names(&self.wrappers)));
        }
        if !self.inside.is_empty() {
            parts.push(format!("{} must be inside `kwargs`", join_names(&self.inside)));
        }
        if self.unconfirmed {
            parts.push(format!("`{}` {}", confirm::ARGUMENT, confirm::NOT_A_TOKEN));
        }
        if !self.unknown.is_empty() {
            parts.push(format!("no such argument: {}", join_names(&self.unknown)));
        }
        parts.join("; ")
    }
}

/// Returns the members of an object that was written in place of `kwargs`.
fn wrapped(key: &str, value: &Json) -> Option<Object> {
    let folded = catalog::name::canonical(key);
    let known = ["args", "arguments", "params", "parameters", "input", "inputs"];
    let object = known.contains(&folded.as_str()).then(|| parse_object(value.clone()))?;
    Object::parse(&object?).ok()
}

fn join_names(names: &[String]) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let more = if 0 < more { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names[..names.len().min(MAX_NAMED)].join(", "))
}

/// Renders kwargs for a suggested call: whole, or only the names if that is long.
fn suggested_kwargs(kwargs: &Object) -> String {
    let whole = kwargs.to_json();
    if whole.as_str().chars().count() <= MAX_SUGGESTED_CHARS {
        return whole.to_string();
    }
    let mut members: Vec<String> =
        kwargs.keys().take(MAX_NAMED).map(|key| format!("\"{}\": …", short(key))).collect();
    if MAX_NAMED < kwargs.len() {
        members.push("…".to_owned());
    }
    format!("{{{}}}", members.join(", "))
}
