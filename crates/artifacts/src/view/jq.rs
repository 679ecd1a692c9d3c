//! The jq language over a kept JSON value, within budget.
//!
//! A filter comes from a model, so it may loop, recurse or multiply without
//! end. It is taken apart before it is compiled, and every part that can do
//! work first passes [`fuel::burn`], which stops yielding when the steps, the
//! stack or the size of a value run out; nothing in the language can catch
//! that. What is made is paid for by its size, so the steps bound the memory
//! as well. The environment, the process and its outputs are out of its reach.

mod fuel;
mod input;
mod instrument;

use std::fmt::{self, Write};

use jaq_core::load::lex::Token;
use jaq_core::load::parse::{Def, Term};
use jaq_core::load::{Arena, File, Lexer, Loader, Parser};
use jaq_core::{Compiler, Ctx, Vars};
use offload::Stop;

use crate::view::error::ViewError;
use crate::view::piece::{Budget, View, clip};
use fuel::{Fuel, FuelTank, Fueled};
use instrument::{Checks, Scope};

/// What a filter makes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// The results as JSON, one per line, as many characters as there may be.
    pub text: String,
    /// How many results are in the text, the last one perhaps in part.
    pub count: usize,
    /// How many characters there are at least, where the text is not all.
    pub cut: Option<usize>,
}

/// The results of `filter`, as a view of what it was run on.
pub(super) fn view(
    bytes: &[u8],
    media_type: &str,
    filter: &str,
    budget: &Budget,
    stop: &Stop,
) -> Result<View, ViewError> {
    let Outputs { text, count, cut } = jq(bytes, media_type, filter, budget, stop)?;
    Ok(match cut {
        None => View::text(text, format!("{count} results"), None),
        Some(total) => {
            let note = format!(
                "cut after {} of at least {total} chars, in result {count}; narrow the filter, or \
                 slice with .[a:b]",
                budget.chars
            );
            View::text(text + "…", note, None)
        }
    })
}

/// Runs `filter` on JSON, within budget. Takes a while: not for a thread that
/// has others to serve.
pub fn jq(
    bytes: &[u8],
    media_type: &str,
    filter: &str,
    budget: &Budget,
    stop: &Stop,
) -> Result<Outputs, ViewError> {
    // Filters recurse on the stack: theirs is our own, with its size known.
    std::thread::scope(|scope| {
        let run = || run(bytes, media_type, filter, budget, stop);
        let thread = std::thread::Builder::new().stack_size(fuel::STACK);
        let handle = thread.spawn_scoped(scope, run);
        let failed = |what: &str| ViewError::Jq(what.to_owned());
        let handle = handle.map_err(|_| failed("no thread for it"))?;
        handle.join().map_err(|_| failed("it broke the interpreter"))?
    })
}

fn run(
    bytes: &[u8],
    media_type: &str,
    text: &str,
    budget: &Budget,
    stop: &Stop,
) -> Result<Outputs, ViewError> {
    input::check(bytes).map_err(|excess| ViewError::Unread(excess.to_string()))?;
    let no_json = |_| ViewError::NoJson { media_type: media_type.to_owned() };
    let input = jaq_json::read::parse_single(bytes).map_err(no_json)?;
    let program = compile(text)?;
    let tank = FuelTank::new(budget.jq_steps, stop);
    let fuel = Fuel { lut: &program.lut, tank: &tank };
    let context = Ctx::<Fueled>::new(fuel, Vars::new([]));
    let mut out = Bounded { text: String::new(), room: budget.chars, over: 0 };
    let mut count = 0_usize;
    for result in program.id.run((context, input)) {
        let value = match result {
            Ok(value) => value,
            Err(exception) => {
                let error = exception.get_err();
                let message = error.map_or_else(|_| "it stopped".to_owned(), |e| e.to_string());
                return Err(ViewError::Jq(shortened(message.trim_matches('"'))));
            }
        };
        let separator = if count == 0 { "" } else { "\n" };
        count += 1;
        // What does not fit is only counted, and nobody counts for ever.
        let _ = write!(out, "{separator}{value}");
        if out.over != 0 {
            let cut = Some(budget.chars + out.over);
            return Ok(Outputs { text: out.text, count, cut });
        }
    }
    match tank.is_empty() {
        true if stop.is_set() => Err(ViewError::Stopped),
        true => Err(ViewError::Steps),
        false => Ok(Outputs { text: out.text, count, cut: None }),
    }
}

/// How much of a message is kept, at both ends of it.
const ENDS: usize = 140;

/// A message without its middle where it is long. It names the value first,
/// which may be everything that is kept, and what was asked of it last.
fn shortened(message: &str) -> String {
    let all = message.chars().count();
    if all <= 2 * ENDS {
        return message.to_owned();
    }
    let head: String = message.chars().take(ENDS).collect();
    let tail: String = message.chars().skip(all - ENDS).collect();
    format!("{head} … {tail}")
}

/// The name of the model's filter among the definitions.
const MAIN: &str = "gatelet_main";

fn compile<'t>(text: &'t str) -> Result<jaq_core::Filter<Fueled>, ViewError> {
    let no_filter = |why: &str| ViewError::Filter(why.to_owned());
    if 4_000 < text.len() {
        return Err(no_filter("it is longer than 4000 bytes"));
    }
    let term = read(text).map_err(|why| no_filter(&why))?;
    let funs: Vec<_> = fuel::funs().collect();
    let natives: Vec<&str> = funs.iter().map(|(name, _, _)| *name).collect();
    let shorten = |def: Def<&'static str>| -> Def<&'t str> { def };
    let prelude = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let checks = |scope| Checks { natives: &natives, scope };
    let prelude = fuel::defs().chain(prelude).map(shorten);
    let prelude = prelude.map(|def| checks(Scope::Prelude).definition(def));
    let main = Def { name: MAIN, args: Vec::new(), body: term };
    let defs = prelude.chain([checks(Scope::Main).definition(main)]);
    let arena = Arena::default();
    let loaded = Loader::new(defs).load(&arena, File { code: MAIN, path: () });
    let modules = loaded.map_err(|_| no_filter("it cannot be loaded"))?;
    let compiled = Compiler::default().with_funs(funs).compile(modules);
    compiled.map_err(|errors| {
        let names = errors.iter().flat_map(|(_, errors)| errors.iter().map(|(name, _)| *name));
        let names: Vec<&str> = names.collect();
        ViewError::Filter(format!("there is no {}", names.join(", ")))
    })
}

/// A filter taken apart; or what was expected where.
fn read(text: &str) -> Result<Term<&str>, String> {
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

/// How many characters over the limit are counted.
const COUNTED: usize = 1 << 20;

/// Text with a limit: what is over it is counted and dropped.
struct Bounded {
    text: String,
    room: usize,
    over: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let (fits, _) = clip(piece, self.room);
        self.text.push_str(&fits);
        self.room -= fits.chars().count();
        self.over += piece[fits.len()..].chars().count();
        if self.over < COUNTED { Ok(()) } else { Err(fmt::Error) }
    }
}
