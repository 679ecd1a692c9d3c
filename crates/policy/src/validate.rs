//! Validates the arguments of a call against the tool's schema.
//!
//! Only this makes a [`ValidCall`], which every later stage takes, so nothing
//! reaches an upstream unchecked.

use std::sync::Arc;

use catalog::{Catalog, Contract, NormalizedArguments, Problem, Slot};
use tool::scan::duplicate_key;
use tool::{Annotations, Ask, Call, GetPrompt, Json, Object, ReadResource};

use crate::approval::request::ApprovalRequest;
use crate::call::{CallMode, Callee, CompletionSubject, HELP, Request, SKILL, Target, TargetKind};
use crate::confirm;
use crate::uri;

const COMPLETE: &str = "completion/complete";

/// Members of params that continue an earlier call, or turn a call into a task.
const CONTINUING: [&str; 3] = ["inputResponses", "requestState", "task"];

/// A request with valid arguments: a tool call, or the reading of a resource, the
/// getting of a prompt, ….
#[derive(Clone, Debug)]
pub struct ValidCall {
    pub callee: Arc<Callee>,
    pub kind: TargetKind,
    /// The position of the upstream in the catalog.
    pub source: usize,
    pub annotations: Annotations,
    arguments: Option<Json>,
    rest: Object,
    token: Option<String>,
}

impl ValidCall {
    /// The request to the upstream; made anew for every attempt.
    pub fn ask(&self) -> Ask {
        let (arguments, rest) = (self.arguments.clone(), self.rest.clone());
        let name = || self.callee.tool.clone();
        match &self.kind {
            TargetKind::Tool(_) => Ask::Call(Call { name: name(), arguments, other_params: rest }),
            TargetKind::Resource { .. } => {
                Ask::ReadResource(ReadResource { uri: name(), other_params: rest })
            }
            TargetKind::Prompt { .. } => {
                Ask::Prompt(GetPrompt { name: name(), arguments, other_params: rest })
            }
            TargetKind::Skill { .. } => Ask::Other { method: SKILL.to_owned(), params: rest },
            TargetKind::Help { .. } => Ask::Other { method: HELP.to_owned(), params: rest },
            TargetKind::Task { method, .. } => Ask::Other { method: method.clone(), params: rest },
            TargetKind::Completion { .. } => Ask::Complete(rest),
            TargetKind::Subscription { change, .. } => {
                Ask::Other { method: change.method().to_owned(), params: rest }
            }
        }
    }

    /// The function that is called; `None` where no tool is called.
    pub fn slot(&self) -> Option<Slot> {
        match self.kind {
            TargetKind::Tool(slot) => Some(slot),
            TargetKind::Resource { .. }
            | TargetKind::Prompt { .. }
            | TargetKind::Skill { .. }
            | TargetKind::Task { .. }
            | TargetKind::Help { .. }
            | TargetKind::Completion { .. }
            | TargetKind::Subscription { .. } => None,
        }
    }

    pub fn arguments(&self) -> Option<&Json> {
        self.arguments.as_ref()
    }

    /// A member of params other than the arguments, such as `requestState`.
    pub fn other_param(&self, name: &str) -> Option<&Json> {
        self.rest.get(name)
    }

    /// The name that rules, quotas and records use for this kind of request.
    pub fn meta_tool(&self) -> &'static str {
        self.kind.meta_tool()
    }

    /// The request for approval of this call. `digest` identifies the tool's present
    /// definition, and `call_text` is the call as its surface writes it.
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

    /// Identifies what an approval is for: the call, and every other param that may
    /// change what the upstream does.
    fn approval_key(&self) -> String {
        let other_params = CONTINUING.iter().filter_map(|name| {
            let value = self.rest.get(name)?;
            Some(format!("\u{1f}{name}={}", canonical(value)))
        });
        let other_params: String = other_params.collect();
        format!("{}\u{1f}{}{other_params}", self.meta_tool(), self.key())
    }

    /// The approval token that came with the call. It is not sent to the upstream.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Whether this call continues or accompanies another one, so that no cached or
    /// stored answer can answer it.
    pub fn continues(&self) -> bool {
        self.kind.belongs_to_other_call()
            || CONTINUING.iter().any(|key| self.rest.get(key).is_some())
    }

    /// Identifies the call by upstream, tool and arguments, whatever the order of the
    /// arguments.
    pub fn key(&self) -> String {
        let upstream = &self.callee.upstream;
        let method = match &self.kind {
            TargetKind::Tool(_) | TargetKind::Resource { .. } | TargetKind::Prompt { .. } => {
                let arguments = self.arguments().map_or_else(String::new, canonical);
                return format!("{upstream}\u{1f}{}\u{1f}{arguments}", self.callee.tool);
            }
            TargetKind::Skill { .. } => SKILL,
            TargetKind::Help { .. } => HELP,
            TargetKind::Task { method, .. } => method,
            TargetKind::Completion { .. } => COMPLETE,
            TargetKind::Subscription { change, .. } => change.method(),
        };
        format!("{upstream}\u{1f}{method}\u{1f}{}", canonical(&self.rest.to_json()))
    }
}

/// Normalizes and checks the arguments, as far as the request's mode demands. The
/// error is the list of all problems.
pub fn check(catalog: &Catalog, request: Request) -> Result<ValidCall, Vec<Problem>> {
    let Request { target: Target { callee, kind }, arguments, mut rest, mode, .. } = request;
    if let Some(name) = arguments.as_ref().and_then(|given| duplicate_key(given.as_str())) {
        // We could judge one of the two values and the upstream use the other.
        return Err(vec![given_twice(&name)]);
    }
    if let Some(problem) = ambiguous_member(&kind, &rest).or_else(|| ambiguous_uri(&kind)) {
        return Err(vec![problem]);
    }
    let token = confirm::take_token(&mut rest);
    let reads = Annotations { read_only: Some(true), ..Annotations::default() };
    let (source, annotations, arguments) = match &kind {
        TargetKind::Tool(slot) => {
            let arguments = match mode {
                CallMode::PassThrough => arguments,
                CallMode::Run | CallMode::FromScript | CallMode::Strict | CallMode::DryRun => {
                    let given = arguments.unwrap_or_else(Json::empty_object);
                    Some(check_tool_arguments(catalog.contract(*slot), given, mode)?)
                }
            };
            (catalog.function(*slot).source, catalog.tool(*slot).annotations, arguments)
        }
        TargetKind::Prompt { source, name } => {
            let arguments = match mode {
                CallMode::PassThrough => arguments,
                CallMode::Run | CallMode::FromScript | CallMode::Strict | CallMode::DryRun => {
                    let given = arguments.unwrap_or_else(Json::empty_object);
                    Some(check_prompt_arguments(catalog, *source, name, given)?)
                }
            };
            (*source, reads, arguments)
        }
        TargetKind::Resource { source, .. }
        | TargetKind::Skill { source, .. }
        | TargetKind::Completion { source, .. }
        | TargetKind::Subscription { source, .. } => (*source, reads, None),
        TargetKind::Help { slot } => (catalog.function(*slot).source, reads, None),
        TargetKind::Task { slot, method } => {
            let only_reads = ["tasks/get", "tasks/result"].contains(&method.as_str());
            let hints = if only_reads { reads } else { Annotations::default() };
            (catalog.function(*slot).source, hints, None)
        }
    };
    Ok(ValidCall { callee, kind, source, annotations, arguments, rest, token })
}

fn given_twice(name: &str) -> Problem {
    Problem::new("", format!("`{name}` is given twice: give it once"))
}

/// Members of params that have a meaning to servers.
const MEANINGFUL: [&str; 11] = [
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

/// A member of params that a server may read in another way than we do: servers in
/// Go read `Name` as `name`, and of two members of the same name some servers take
/// the first and some the last.
fn ambiguous_member(kind: &TargetKind, rest: &Object) -> Option<Problem> {
    let mistakable = |key: &&str| {
        !MEANINGFUL.contains(key) && MEANINGFUL.iter().any(|member| is_spelling_of(key, member))
    };
    if let Some(key) = rest.keys().find(mistakable) {
        let message = format!("`{key}` could be taken for another member: leave it out");
        return Some(Problem::new("", message));
    }
    // For these kinds, `rest` also says what is asked for.
    let is_in_rest = match kind {
        TargetKind::Tool(_) | TargetKind::Resource { .. } | TargetKind::Prompt { .. } => false,
        TargetKind::Skill { .. }
        | TargetKind::Task { .. }
        | TargetKind::Help { .. }
        | TargetKind::Completion { .. }
        | TargetKind::Subscription { .. } => true,
    };
    let twice = is_in_rest.then(|| duplicate_key(rest.to_json().as_str())).flatten();
    twice.map(|name| given_twice(&name))
}

/// The problem with a URI that its server may read in another way than we do.
fn ambiguous_uri(kind: &TargetKind) -> Option<Problem> {
    let (TargetKind::Resource { uri, .. }
    | TargetKind::Subscription { uri, .. }
    | TargetKind::Completion { subject: CompletionSubject::Resource(uri), .. }) = kind
    else {
        return None;
    };
    uri::defect(uri).map(|why| Problem::new("uri", why))
}

/// Whether a parser that ignores case takes `key` for `member`. Two letters outside
/// of ASCII fold to ASCII letters.
fn is_spelling_of(key: &str, member: &str) -> bool {
    let folded = key.chars().map(|c| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    });
    folded.eq(member.chars().map(|c| c.to_ascii_lowercase()))
}

/// Checks the arguments of a prompt: an object of strings with all that is required.
fn check_prompt_arguments(
    catalog: &Catalog,
    source: usize,
    name: &str,
    given: Json,
) -> Result<Json, Vec<Problem>> {
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

/// Normalizes the arguments of a tool where the mode says so, and checks them.
fn check_tool_arguments(
    contract: &Contract,
    given: Json,
    mode: CallMode,
) -> Result<Json, Vec<Problem>> {
    let object = Object::parse(&given)
        .map_err(|_| vec![Problem::new("", "the arguments must be an object".to_owned())])?;
    let normalized = if mode == CallMode::Run {
        contract.normalize(&object)
    } else {
        NormalizedArguments::default()
    };
    let arguments = normalized.rewritten.map_or(given, |arguments| arguments.to_json());
    let problems = check_against_schema(contract, normalized.problems, &arguments);
    if problems.is_empty() { Ok(arguments) } else { Err(problems) }
}

/// All problems with arguments that are not normalized yet. `found` are problems that
/// the caller found already; they come first.
pub fn problems(contract: &Contract, mut found: Vec<Problem>, given: &Json) -> Vec<Problem> {
    let Ok(object) = Object::parse(given) else { return found };
    let NormalizedArguments { rewritten, problems } = contract.normalize(&object);
    found.extend(problems);
    check_against_schema(
        contract,
        found,
        &rewritten.map_or_else(|| given.clone(), |arguments| arguments.to_json()),
    )
}

/// Adds the problems that the schema finds. Arguments that cannot be parsed into a
/// value are left to the upstream.
fn check_against_schema(
    contract: &Contract,
    found: Vec<Problem>,
    arguments: &Json,
) -> Vec<Problem> {
    match arguments.to_value() {
        Ok(value) => contract.check_after(found, &value),
        Err(_) => found,
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
        let target = Target::function(Slot(0), Arc::new(callee));
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
