//! Validates the arguments of a call.
//!
//! Makes the [`ValidCall`] that every later stage takes, so nothing can reach
//! an upstream unchecked.

use std::sync::Arc;

use catalog::{Catalog, Contract, NormalizedArguments, Problem, Slot};
use tool::scan::duplicate_key;
use tool::{Annotations, Ask, Call, GetPrompt, Json, Object, ReadResource};

use crate::approval::request::ApprovalRequest;
use crate::call::{Callee, Completed, HELP, Mode, Request, SKILL, Target, What};
use crate::confirm;
use crate::uri;

const COMPLETE: &str = "completion/complete";

/// Members of params that continue an earlier call, or make a task of it.
const CONTINUING: [&str; 3] = ["inputResponses", "requestState", "task"];

/// A question that may be asked, as far as its arguments are concerned.
///
/// Most are calls; reading a resource and getting a prompt go the same way.
#[derive(Clone, Debug)]
pub struct ValidCall {
    pub callee: Arc<Callee>,
    pub what: What,
    /// The position of the upstream in the catalog.
    pub source: usize,
    pub annotations: Annotations,
    arguments: Option<Json>,
    rest: Object,
    token: Option<String>,
}

impl ValidCall {
    /// What goes to the upstream, written anew for every attempt.
    pub fn ask(&self) -> Ask {
        let (arguments, rest) = (self.arguments.clone(), self.rest.clone());
        let name = || self.callee.tool.clone();
        match &self.what {
            What::Tool(_) => Ask::Call(Call { name: name(), arguments, other_params: rest }),
            What::Resource { .. } => {
                Ask::ReadResource(ReadResource { uri: name(), other_params: rest })
            }
            What::Prompt { .. } => {
                Ask::Prompt(GetPrompt { name: name(), arguments, other_params: rest })
            }
            What::Skill { .. } => Ask::Other { method: SKILL.to_owned(), params: rest },
            What::Help { .. } => Ask::Other { method: HELP.to_owned(), params: rest },
            What::Task { method, .. } => Ask::Other { method: method.clone(), params: rest },
            What::Completion { .. } => Ask::Complete(rest),
            What::Subscription { change, .. } => {
                Ask::Other { method: change.method().to_owned(), params: rest }
            }
        }
    }

    /// The function that is called, if it is one.
    pub fn slot(&self) -> Option<Slot> {
        match self.what {
            What::Tool(slot) => Some(slot),
            What::Resource { .. }
            | What::Prompt { .. }
            | What::Skill { .. }
            | What::Task { .. }
            | What::Help { .. }
            | What::Completion { .. }
            | What::Subscription { .. } => None,
        }
    }

    pub fn arguments(&self) -> Option<&Json> {
        self.arguments.as_ref()
    }

    /// What came with the call beside its arguments, such as `requestState`.
    pub fn beside(&self, name: &str) -> Option<&Json> {
        self.rest.get(name)
    }

    /// The gateway surface's word for what is done.
    pub fn meta_tool(&self) -> &'static str {
        self.what.meta_tool()
    }

    /// The call as something to agree to. `digest` says how the tool looks, and
    /// `call_text` how the call is written on its surface.
    pub fn approval_request(
        &self,
        digest: Option<String>,
        call_text: String,
    ) -> ApprovalRequest<'_> {
        ApprovalRequest {
            key: self.approval_key(),
            callee: &self.callee,
            digest,
            arguments: self.arguments().map_or("{}", Json::as_str),
            token: self.token(),
            call_text,
        }
    }

    /// What identifies what is agreed to: the call, and whatever came with it
    /// that may change what the upstream does.
    fn approval_key(&self) -> String {
        let beside = CONTINUING.iter().filter_map(|name| {
            let value = self.rest.get(name)?;
            Some(format!("\u{1f}{name}={}", canonical(value)))
        });
        let beside: String = beside.collect();
        format!("{}\u{1f}{}{beside}", self.meta_tool(), self.key())
    }

    /// The token by which somebody agrees. It is ours and goes no further.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Whether this call continues an earlier one with the client's input, so
    /// that nothing kept can answer it.
    pub fn continues(&self) -> bool {
        self.what.is_aside() || CONTINUING.iter().any(|key| self.rest.get(key).is_some())
    }

    /// What identifies the call: upstream, tool and arguments, whatever the
    /// order in which the arguments were given.
    pub fn key(&self) -> String {
        let upstream = &self.callee.upstream;
        let method = match &self.what {
            What::Tool(_) | What::Resource { .. } | What::Prompt { .. } => {
                let arguments = self.arguments().map_or_else(String::new, canonical);
                return format!("{upstream}\u{1f}{}\u{1f}{arguments}", self.callee.tool);
            }
            What::Skill { .. } => SKILL,
            What::Help { .. } => HELP,
            What::Task { method, .. } => method,
            What::Completion { .. } => COMPLETE,
            What::Subscription { change, .. } => change.method(),
        };
        format!("{upstream}\u{1f}{method}\u{1f}{}", canonical(&self.rest.to_json()))
    }
}

/// Brings the arguments to the schema's spelling and types and checks them,
/// as far as the request's mode asks for it.
pub fn check(catalog: &Catalog, request: Request) -> Result<ValidCall, Vec<Problem>> {
    let Request { target: Target { callee, what }, arguments, mut rest, mode, .. } = request;
    if let Some(name) = arguments.as_ref().and_then(|given| duplicate_key(given.as_str())) {
        // Whoever judges it and whoever runs it could take another of the two.
        return Err(vec![given_twice(&name)]);
    }
    if let Some(problem) = ambiguous(&what, &rest).or_else(|| misread(&what)) {
        return Err(vec![problem]);
    }
    let token = confirm::take(&mut rest);
    let reads = Annotations { read_only: Some(true), ..Annotations::default() };
    let (source, annotations, arguments) = match &what {
        What::Tool(slot) => {
            let arguments = match mode {
                Mode::Pass => arguments,
                Mode::Run | Mode::Inner | Mode::Strict | Mode::Plan => {
                    let given = arguments.unwrap_or_else(Json::empty_object);
                    Some(checked(catalog.contract(*slot), given, mode)?)
                }
            };
            (catalog.function(*slot).source, catalog.tool(*slot).annotations, arguments)
        }
        What::Prompt { source, name } => {
            let arguments = match mode {
                Mode::Pass => arguments,
                Mode::Run | Mode::Inner | Mode::Strict | Mode::Plan => {
                    let given = arguments.unwrap_or_else(Json::empty_object);
                    Some(filled(catalog, *source, name, given)?)
                }
            };
            (*source, reads, arguments)
        }
        What::Resource { source, .. }
        | What::Skill { source, .. }
        | What::Completion { source, .. }
        | What::Subscription { source, .. } => (*source, reads, None),
        What::Help { slot } => (catalog.function(*slot).source, reads, None),
        What::Task { slot, method } => {
            let looks = ["tasks/get", "tasks/result"].contains(&method.as_str());
            let hints = if looks { reads } else { Annotations::default() };
            (catalog.function(*slot).source, hints, None)
        }
    };
    Ok(ValidCall { callee, what, source, annotations, arguments, rest, token })
}

fn given_twice(name: &str) -> Problem {
    Problem::new("", format!("`{name}` is given twice: give it once"))
}

/// Members of params that decide what is asked for, or how it goes on.
const DECIDING: [&str; 11] = [
    "name",
    "arguments",
    "uri",
    "_meta",
    "task",
    "taskId",
    "ref",
    "argument",
    "context",
    "inputResponses",
    "requestState",
];

/// Params that a server may take for another question than the one that is
/// judged here: servers in Go read `Name` as `name`, and of two members of one
/// name each takes the one it likes.
fn ambiguous(what: &What, rest: &Object) -> Option<Problem> {
    let mistakable = |key: &&str| {
        !DECIDING.contains(key) && DECIDING.iter().any(|known| is_spelling_of(key, known))
    };
    if let Some(key) = rest.keys().find(mistakable) {
        let message = format!("`{key}` could be taken for another member: leave it out");
        return Some(Problem::new("", message));
    }
    // Of all others, what is asked for stands beside the rest.
    let is_in_rest = match what {
        What::Tool(_) | What::Resource { .. } | What::Prompt { .. } => false,
        What::Skill { .. }
        | What::Task { .. }
        | What::Help { .. }
        | What::Completion { .. }
        | What::Subscription { .. } => true,
    };
    let twice = is_in_rest.then(|| duplicate_key(rest.to_json().as_str())).flatten();
    twice.map(|name| given_twice(&name))
}

/// A URI that its server may read as another than the one that is judged here.
fn misread(what: &What) -> Option<Problem> {
    let (What::Resource { uri, .. }
    | What::Subscription { uri, .. }
    | What::Completion { of: Completed::Resource(uri), .. }) = what
    else {
        return None;
    };
    uri::defect(uri).map(|why| Problem::new("uri", why))
}

/// Whether a reader that ignores case takes `key` for `known`. Two letters
/// outside of ASCII fold to one inside.
fn is_spelling_of(key: &str, known: &str) -> bool {
    let folded = key.chars().map(|c| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    });
    folded.eq(known.chars().map(|c| c.to_ascii_lowercase()))
}

/// Arguments of a prompt: an object of text with everything that is required.
fn filled(catalog: &Catalog, source: usize, name: &str, given: Json) -> Result<Json, Vec<Problem>> {
    let object = Object::parse(&given)
        .map_err(|_| vec![Problem::new("", "the arguments must be an object".to_owned())])?;
    let prompts = &catalog.sources()[source].listing.prompts;
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else { return Ok(given) };
    let mut problems = Vec::new();
    for argument in &prompt.arguments {
        match object.get(&argument.name) {
            None if argument.required => {
                problems.push(Problem::new(&argument.name, "is required".to_owned()));
            }
            Some(value) if value.string_value().is_none() => {
                problems.push(Problem::new(&argument.name, "must be a string".to_owned()));
            }
            None | Some(_) => {}
        }
    }
    if problems.is_empty() { Ok(given) } else { Err(problems) }
}

fn checked(contract: &Contract, given: Json, mode: Mode) -> Result<Json, Vec<Problem>> {
    let object = Object::parse(&given)
        .map_err(|_| vec![Problem::new("", "the arguments must be an object".to_owned())])?;
    let normalized = if mode == Mode::Run {
        contract.normalize(&object)
    } else {
        NormalizedArguments::default()
    };
    let arguments = normalized.rewritten.map_or(given, |arguments| arguments.to_json());
    let problems = judged(contract, normalized.problems, &arguments);
    if problems.is_empty() { Ok(arguments) } else { Err(problems) }
}

/// Everything that is wrong with arguments in any spelling, after what is known
/// to be.
pub fn problems(contract: &Contract, mut known: Vec<Problem>, given: &Json) -> Vec<Problem> {
    let Ok(object) = Object::parse(given) else { return known };
    let NormalizedArguments { rewritten, problems } = contract.normalize(&object);
    known.extend(problems);
    judged(
        contract,
        known,
        &rewritten.map_or_else(|| given.clone(), |arguments| arguments.to_json()),
    )
}

/// What can be forwarded but not understood is the upstream's to judge.
fn judged(contract: &Contract, known: Vec<Problem>, arguments: &Json) -> Vec<Problem> {
    match arguments.to_value() {
        Ok(value) => contract.check_after(known, &value),
        Err(_) => known,
    }
}

/// JSON text with the keys of every object in order.
fn canonical(json: &Json) -> String {
    let Ok(mut value) = json.to_value() else { return json.to_string() };
    value.sort_all_objects();
    value.to_string()
}

#[cfg(test)]
mod tests {
    use catalog::Source;
    use serde_json::json;
    use testkit::{listing, tool};

    use super::*;

    fn call(arguments: &str) -> Result<ValidCall, Vec<Problem>> {
        let schema =
            json!({"properties": {"a_b": {"type": "integer"}, "c": {}}, "required": ["a_b"]});
        let listed = Arc::new(listing(vec![tool("do-it", "", &schema)]));
        let (catalog, _) = Catalog::build(vec![Source::new("up", listed)]);
        let callee = Callee::new("up:do-it#12345678", "up", "do-it");
        let target = Target::of(Slot(0), Arc::new(callee));
        check(&catalog, Request::new(target, Json::parse(arguments.to_owned()).unwrap()))
    }

    #[test]
    fn a_call_carries_the_upstreams_own_names() {
        let call = call(r#"{"aB":"7"}"#).unwrap();
        let ask = Ask::Call(Call::new("do-it", Json::parse(r#"{"a_b":7}"#).unwrap()));
        assert_eq!((call.callee.upstream.as_str(), call.ask()), ("up", ask));
    }

    #[test]
    fn arguments_that_fit_stay_byte_for_byte() {
        let call = call(r#"{"c" : 1e400, "a_b":1 }"#).unwrap();
        assert_eq!(call.arguments().unwrap().as_str(), r#"{"c" : 1e400, "a_b":1 }"#);
    }

    #[test]
    fn the_key_does_not_depend_on_the_order_of_arguments() {
        let one = call(r#"{"a_b":1,"c":{"x":1,"y":2}}"#).unwrap();
        let two = call(r#"{"c":{"y":2,"x":1},"a_b":1}"#).unwrap();
        assert_eq!(one.key(), two.key());
        assert_ne!(one.key(), call(r#"{"a_b":2}"#).unwrap().key());
    }

    #[test]
    fn what_does_not_fit_does_not_go_on() {
        assert_eq!(call("{}").unwrap_err()[0].to_string(), "`a_b` is required");
        assert!(call("[]").is_err());
    }

    #[test]
    fn what_says_two_things_under_one_name_does_not_go_on() {
        for given in [r#"{"a_b":1,"c":0,"a_b":2}"#, r#"{"a_b":1,"c":{"x":1,"\u0078":2}}"#] {
            let problems = call(given).unwrap_err();
            assert!(problems[0].to_string().contains("is given twice"), "{given}: {problems:?}");
        }
    }
}
