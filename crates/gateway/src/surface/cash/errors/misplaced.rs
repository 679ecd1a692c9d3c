//! Arguments that were written beside `kwargs` instead of in it.

use std::collections::HashSet;

use catalog::summary::echo as short;
use catalog::{Contract, Slot, nearest};
use tool::{Json, Object};

use super::super::arguments::{BadMember, CallArguments, ForFunction, object_of};
use super::super::request::CashRequest;
use policy::confirm;
use policy::validate;

/// How many misplaced arguments are named.
const NAMED: usize = 8;
/// How long the arguments of a suggested call may be.
const SUGGESTED: usize = 400;

impl CashRequest<'_> {
    /// The messages about a call so far, what was written beside `kwargs`, and
    /// what is wrong with the kwargs once it is all in there; where nothing is,
    /// the call as it should be written.
    pub(super) fn corrected(
        &self,
        slot: Slot,
        mut said: Vec<String>,
        flat: &Object,
        call: CallArguments,
    ) -> String {
        let catalog = &self.snapshot.catalog;
        let contract = catalog.contract(slot);
        let has_kwargs = !said.contains(&BadMember::Kwargs.to_string());
        let sorted = MisplacedArguments::sort(flat, call.kwargs.as_ref(), contract);
        if !flat.is_empty() {
            said.push(sorted.said());
        }
        let mut kwargs = sorted.kwargs.to_json();
        confirm::lift_from(&mut kwargs, contract, &mut Object::new());
        let size = call.wanted.map(|wanted| format!(", sizelimit={wanted}")).unwrap_or_default();
        let ForFunction { kwargs, problems, .. } =
            CallArguments { kwargs: Some(kwargs), ..call }.for_function(contract);
        let problems = match has_kwargs {
            true => validate::problems(contract, problems, &kwargs),
            false => Vec::new(),
        };
        let next = if !problems.is_empty() {
            let lines: Vec<String> =
                problems.iter().map(|problem| format!("- {problem}")).collect();
            format!(".\nThe kwargs do not fit:\n{}", lines.join("\n"))
        } else if flat.is_empty() || !has_kwargs {
            ".".to_owned()
        } else {
            let kwargs = suggested(&sorted.kwargs);
            format!(". Write: `{}kwargs={kwargs}{size})`.", self.address(slot))
        };
        let signature = catalog.shaped_signature(slot, 600);
        format!("**Error:** {}{next}\nSignature: {signature}", said.join("; "))
    }
}

/// What was written beside `kwargs`, by where it belongs.
struct MisplacedArguments {
    /// Everything that belongs into `kwargs`, and what is in it already.
    kwargs: Object,
    /// The keys of `kwargs`.
    known: HashSet<String>,
    /// Arguments of the function.
    inside: Vec<String>,
    /// What other programs call `kwargs`.
    wrappers: Vec<String>,
    /// What the function does not take, with a suggestion.
    unknown: Vec<String>,
    /// A `confirm` that is not a token.
    unconfirmed: bool,
}

impl MisplacedArguments {
    fn sort(flat: &Object, kwargs: Option<&Json>, contract: &Contract) -> MisplacedArguments {
        let kwargs = kwargs.and_then(|kwargs| Object::parse(kwargs).ok()).unwrap_or_default();
        let known = kwargs.keys().map(str::to_owned).collect();
        let (inside, wrappers, unknown) = (Vec::new(), Vec::new(), Vec::new());
        let mut sorted =
            MisplacedArguments { kwargs, known, inside, wrappers, unknown, unconfirmed: false };
        for (key, value) in flat.iter() {
            let name = format!("`{}`", short(key));
            // A function that names no arguments may take any.
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

    /// What is in `kwargs` already stays.
    fn add(&mut self, key: &str, value: &Json) {
        if self.known.insert(key.to_owned()) {
            self.kwargs.push(key, value.clone());
        }
    }

    fn said(&self) -> String {
        let mut said = Vec::new();
        if !self.wrappers.is_empty() {
            said.push(format!("{} is called `kwargs` here", named(&self.wrappers)));
        }
        if !self.inside.is_empty() {
            said.push(format!("{} must be inside `kwargs`", named(&self.inside)));
        }
        if self.unconfirmed {
            said.push(format!("`{}` {}", confirm::ARGUMENT, confirm::NO_TOKEN));
        }
        if !self.unknown.is_empty() {
            said.push(format!("no such argument: {}", named(&self.unknown)));
        }
        said.join("; ")
    }
}

/// The members of an object that was written in place of `kwargs`.
fn wrapped(key: &str, value: &Json) -> Option<Object> {
    let folded = catalog::name::canonical(key);
    let known = ["args", "arguments", "params", "parameters", "input", "inputs"];
    let object = known.contains(&folded.as_str()).then(|| object_of(value.clone()))?;
    Object::parse(&object?).ok()
}

fn named(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let more = if 0 < more { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names[..names.len().min(NAMED)].join(", "))
}

/// Arguments as they should be written: whole, or by name where that is long.
fn suggested(kwargs: &Object) -> String {
    let whole = kwargs.to_json();
    if whole.as_str().chars().count() <= SUGGESTED {
        return whole.to_string();
    }
    let mut members: Vec<String> =
        kwargs.keys().take(NAMED).map(|key| format!("\"{}\": …", short(key))).collect();
    if NAMED < kwargs.len() {
        members.push("…".to_owned());
    }
    format!("{{{}}}", members.join(", "))
}
