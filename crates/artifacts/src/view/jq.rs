//! Runs jq filters over a stored JSON value, within a budget.
//!
//! A filter comes from a model, so it may loop, recurse or multiply without
//! end. Its syntax tree is instrumented before it is compiled: every operation
//! first calls [`fuel::burn`], which ends the stream when the step limit, the
//! stack limit or the size limit of a value is reached; a filter cannot catch
//! that. Creating a value costs steps in proportion to its size, so the step
//! limit also bounds memory. A filter cannot reach the environment, the process
//! or its output streams.

mod fuel;
mod input;
mod instrument;

use std::fmt::{self, Write};

use jaq_core::load::lex::Token;
use jaq_core::load::parse::{Def, Term};
use jaq_core::load::{Arena, File, Lexer, Loader, Parser};
use jaq_core::{Compiler, Ctx, Vars};
use offload::StopFlag;

use crate::result_text;
use crate::view::error::ViewError;
use crate::view::piece::{Budget, View, clip};
use fuel::{Fuel, FuelTank, Fueled};
use instrument::{Instrumenter, Scope};

/// The output of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// The results as JSON, one per line, cut at the limit of characters.
    pub text: String,
    /// How many results the text contains; the last one may be cut.
    pub results_shown: usize,
    /// If the text was cut, a lower bound of its full length in characters.
    pub at_least: Option<usize>,
}

/// Runs `filter` and makes a view of its results.
pub(super) fn view(
    bytes: &[u8],
    media_type: &str,
    filter: &str,
    budget: &Budget,
    stop: &StopFlag,
) -> Result<View, ViewError> {
    let Outputs { text, results_shown, at_least } = jq(bytes, media_type, filter, budget, stop)?;
    Ok(match at_least {
        None => View::text(text, format!("{results_shown} results"), None),
        Some(total) => {
            let note = format!(
                "cut after {} of at least {total} chars, in result {results_shown}; narrow the \
                 filter, or slice with .[a:b]",
                budget.chars
            );
            View::text(text + "…", note, None)
        }
    })
}

/// Runs `filter` on `bytes`, within the budget. Ends early when `stop` is set.
///
/// Blocking: do not call on an async worker thread.
pub fn jq(
    bytes: &[u8],
    media_type: &str,
    filter: &str,
    budget: &Budget,
    stop: &StopFlag,
) -> Result<Outputs, ViewError> {
    on_own_stack(|| run(bytes, media_type, filter, budget, stop))
}

/// Does `work` on a thread with a known, large stack, because parsing and running
/// a filter are recursive.
fn on_own_stack<T: Send>(
    work: impl FnOnce() -> Result<T, ViewError> + Send,
) -> Result<T, ViewError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(fuel::STACK_BYTES);
        let handle = thread.spawn_scoped(scope, work);
        let failed = |what: &str| ViewError::Jq(what.to_owned());
        let handle = handle.map_err(|_| failed("no thread could be started for it"))?;
        handle.join().map_err(|_| failed("the interpreter panicked"))?
    })
}

fn run(
    bytes: &[u8],
    media_type: &str,
    text: &str,
    budget: &Budget,
    stop: &StopFlag,
) -> Result<Outputs, ViewError> {
    input::check(bytes).map_err(|excess| ViewError::InputTooComplex(excess.to_string()))?;
    let input = parse_input(bytes, media_type)?;
    let program = compile(text)?;
    let tank = FuelTank::new(budget.jq_steps, stop);
    let fuel = Fuel { lut: &program.lut, tank: &tank };
    let context = Ctx::<Fueled>::new(fuel, Vars::new([]));
    let mut out = BoundedText { text: String::new(), n_free: budget.chars, n_dropped: 0 };
    let mut results_shown = 0_usize;
    for result in program.id.run((context, input)) {
        let value = match result {
            Ok(value) => value,
            Err(exception) => {
                let error = exception.get_err();
                let message = error.map_or_else(|_| "it stopped".to_owned(), |e| e.to_string());
                return Err(ViewError::Jq(shorten_middle(message.trim_matches('"'))));
            }
        };
        let separator = if results_shown == 0 { "" } else { "\n" };
        results_shown += 1;
        // Text over the limit is only counted, and the count is bounded too.
        let _ = write!(out, "{separator}{value}");
        if out.n_dropped != 0 {
            let at_least = Some(budget.chars + out.n_dropped);
            return Ok(Outputs { text: out.text, results_shown, at_least });
        }
    }
    match tank.is_empty() {
        true if stop.is_set() => Err(ViewError::Stopped),
        true => Err(ViewError::StepLimit),
        false => Ok(Outputs { text: out.text, results_shown, at_least: None }),
    }
}

/// Parses the input of a filter: JSON, also after a few words, or else a text as
/// one string.
fn parse_input(bytes: &[u8], media_type: &str) -> Result<jaq_json::Val, ViewError> {
    let parse = |json: &[u8]| {
        let not_json = |_| ViewError::NotJson { media_type: media_type.to_owned() };
        jaq_json::read::parse_single(json).map_err(not_json)
    };
    let not_json = match parse(bytes) {
        Ok(input) => return Ok(input),
        Err(error) => error,
    };
    match std::str::from_utf8(bytes) {
        Ok(text) if media_type.starts_with("text/") => match result_text::embedded_json(text) {
            Some(json) => parse(json.as_bytes()),
            None => parse(tool::Json::encode(text).as_str().as_bytes()),
        },
        Ok(text) => parse(result_text::embedded_json(text).ok_or(not_json)?.as_bytes()),
        Err(_) => Err(not_json),
    }
}

/// The number of characters that a shortened message has at each end.
const END_CHARS: usize = 140;

/// Removes the middle of a long message. jq's messages begin with the value,
/// which may be the whole artifact, and end with the operation that failed.
fn shorten_middle(message: &str) -> String {
    let all = message.chars().count();
    if all <= 2 * END_CHARS {
        return message.to_owned();
    }
    let head: String = message.chars().take(END_CHARS).collect();
    let tail: String = message.chars().skip(all - END_CHARS).collect();
    format!("{head} … {tail}")
}

/// The name of the definition that holds the model's filter.
const MAIN: &str = "gatelet_main";

/// Fails if a filter cannot be compiled, so that its errors are reported before
/// the call runs whose result it is for.
pub fn check_filter(text: &str) -> Result<(), ViewError> {
    on_own_stack(|| compile(text).map(|_| ()))
}

fn parse_filter(text: &str) -> Result<Term<&str>, ViewError> {
    let invalid = |why: &str| ViewError::InvalidFilter(why.to_owned());
    if 4_000 < text.len() {
        return Err(invalid("it is longer than 4000 bytes"));
    }
    parse_term(text).map_err(|why| invalid(&why))
}

fn compile<'t>(text: &'t str) -> Result<jaq_core::Filter<Fueled>, ViewError> {
    let invalid = |why: &str| ViewError::InvalidFilter(why.to_owned());
    let term = parse_filter(text)?;
    let funs: Vec<_> = fuel::funs().collect();
    let natives: Vec<&str> = funs.iter().map(|(name, _, _)| *name).collect();
    let shorten = |def: Def<&'static str>| -> Def<&'t str> { def };
    let prelude = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let instrumenter = |scope| Instrumenter { natives: &natives, scope };
    let prelude = fuel::defs().chain(prelude).map(shorten);
    let prelude = prelude.map(|def| instrumenter(Scope::Prelude).definition(def));
    let main = Def { name: MAIN, args: Vec::new(), body: term };
    let defs = prelude.chain([instrumenter(Scope::Main).definition(main)]);
    let arena = Arena::default();
    let loaded = Loader::new(defs).load(&arena, File { code: MAIN, path: () });
    let modules = loaded.map_err(|_| invalid("it cannot be loaded"))?;
    let compiled = Compiler::default().with_funs(funs).compile(modules);
    compiled.map_err(|errors| {
        let names = errors.iter().flat_map(|(_, errors)| errors.iter().map(|(name, _)| *name));
        let names: Vec<&str> = names.collect();
        ViewError::InvalidFilter(format!("there is no {}", names.join(", ")))
    })
}

/// Parses the text of a filter. The error says what was expected where.
fn parse_term(text: &str) -> Result<Term<&str>, String> {
    let expected = |what: &str, at: &str| match at.trim() {
        "" => format!("expected {what} at its end"),
        at => format!("expected {what} at `{}`", clip(at, 40).0),
    };
    let tokens = Lexer::new(text).lex().map_err(|errors| {
        let errors = errors.iter().map(|(what, rest)| expected(what.as_str(), rest));
        errors.collect::<Vec<_>>().join("; ")
    })?;
    Parser::new(&tokens).parse(|parser| parser.term()).map_err(|errors| {
        let at = |found| Token::opt_as_str(found, text);
        let errors = errors.iter().map(|(what, found)| expected(what.as_str(), at(*found)));
        errors.collect::<Vec<_>>().join("; ")
    })
}

/// At most about this many characters over the limit are counted.
const MAX_COUNTED_CHARS: usize = 1 << 20;

/// A text with a length limit. Characters over the limit are counted and dropped.
struct BoundedText {
    text: String,
    n_free: usize,
    n_dropped: usize,
}

impl Write for BoundedText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let (fits, _) = clip(piece, self.n_free);
        self.text.push_str(&fits);
        self.n_free -= fits.chars().count();
        self.n_dropped += piece[fits.len()..].chars().count();
        if self.n_dropped < MAX_COUNTED_CHARS { Ok(()) } else { Err(fmt::Error) }
    }
}
