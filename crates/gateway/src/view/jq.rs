//! The jq language over a kept JSON value, within limits.
//!
//! A filter comes from a model, so it may loop, recurse or multiply without
//! end. It is taken apart before it is compiled, and every part that can do
//! work first passes [`fuel::burn`], which stops yielding when the steps, the
//! stack or the size of a value run out; nothing in the language can catch
//! that. The environment, the process and its outputs are out of its reach.

mod fuel;
mod instrument;

use std::fmt::{self, Write};

use jaq_core::load::parse::Def;
use jaq_core::load::{Arena, File, Loader, parse};
use jaq_core::{Compiler, Ctx, Vars};
use jaq_json::Val;

use super::{Limits, View, ViewError, clip};
use fuel::{Fuel, Fueled, Tank};

/// The results of `filter`, one per line.
pub(super) fn jq(
    bytes: &[u8],
    media_type: &str,
    filter: &str,
    limits: &Limits,
) -> Result<View, ViewError> {
    // Filters recurse on the stack: theirs is our own, with its size known.
    std::thread::scope(|scope| {
        let run = || run(bytes, media_type, filter, limits);
        let thread = std::thread::Builder::new().stack_size(fuel::STACK);
        let handle = thread.spawn_scoped(scope, run);
        let failed = |what: &str| ViewError::Jq(what.to_owned());
        let handle = handle.map_err(|_| failed("no thread for it"))?;
        handle.join().map_err(|_| failed("it broke the interpreter"))?
    })
}

fn run(bytes: &[u8], media_type: &str, text: &str, limits: &Limits) -> Result<View, ViewError> {
    let no_json = |_| ViewError::NoJson { media_type: media_type.to_owned() };
    let input = jaq_json::read::parse_single(bytes).map_err(no_json)?;
    let program = compile(text)?;
    let tank = Tank::new(limits.jq_steps);
    let fuel = Fuel { lut: &program.lut, tank: &tank };
    let context = Ctx::<Fueled>::new(fuel, Vars::new([]));
    let mut out = Bounded { text: String::new(), room: limits.chars, over: 0 };
    let mut n_results = 0_usize;
    for result in program.id.run((context, input)) {
        let value = match result {
            Ok(value) => value,
            Err(exception) => {
                let error = exception.get_err();
                let message = error.map_or_else(|_| "it stopped".to_owned(), |e| e.to_string());
                let message = clip(message.trim_matches('"'), 300).0.into_owned();
                return Err(ViewError::Jq(message));
            }
        };
        let separator = if n_results == 0 { "" } else { "\n" };
        n_results += 1;
        // What does not fit is only counted, and nobody counts for ever.
        let _ = write!(out, "{separator}{value}");
        if out.over != 0 {
            let total = limits.chars + out.over;
            let note = format!(
                "cut after {} of at least {total} chars, in result {n_results}; narrow the filter, \
                 or slice with .[a:b]",
                limits.chars
            );
            return Ok(View::text(out.text + "…", note, None));
        }
    }
    match tank.is_empty() {
        true => Err(ViewError::Steps),
        false => Ok(View::text(out.text, format!("{n_results} results"), None)),
    }
}

/// The name of the model's filter among the definitions.
const MAIN: &str = "gatelet_main";

fn compile<'t>(text: &'t str) -> Result<jaq_core::Filter<Fueled>, ViewError> {
    let no_filter = |why: &str| ViewError::Filter(why.to_owned());
    if 4_000 < text.len() {
        return Err(no_filter("it is longer than 4000 bytes"));
    }
    let term = parse(text, |parser| parser.term());
    let term = term.ok_or_else(|| no_filter("a syntax error, such as an open bracket or quote"))?;
    let funs: Vec<_> = fuel::funs().collect();
    let natives: Vec<&str> = funs.iter().map(|(name, _, _)| *name).collect();
    let shorten = |def: Def<&'static str>| -> Def<&'t str> { def };
    let prelude = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).map(shorten);
    let main = Def { name: MAIN, args: Vec::new(), body: term };
    let defs = prelude.chain([main]).map(|def| instrument::definition(def, &natives));
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

/// How much a value counts against what may be made: its length.
fn length(value: &Val) -> usize {
    match value {
        Val::Null | Val::Bool(_) | Val::Num(_) => 1,
        Val::BStr(bytes) | Val::TStr(bytes) => bytes.len(),
        Val::Arr(array) => array.len(),
        Val::Obj(object) => object.len(),
    }
}
