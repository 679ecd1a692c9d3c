//! The fuel of a jq filter, which bounds its work, and the functions that a filter
//! may call.

use std::cell::Cell;

use jaq_core::box_iter::box_once;
use jaq_core::load::parse;
use jaq_core::load::parse::Def;
use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{DataT, Error, Lut, Native, ValX};
use jaq_json::{Num, Rc, Val};
use offload::Stop;

use crate::view::jq::input::{self, DEPTH};

/// The stack of a filter, of which only what is used takes memory.
pub(super) const STACK: usize = 128 << 20;

/// How much of it a filter may use before it is stopped. The rest is for what
/// happens between two looks at the tank: a function over one value of at most
/// [`DEPTH`] levels, and taking apart what the filter left behind.
const USABLE: usize = 8 << 20;

/// No string, array or object that a filter makes may be longer.
const LONGEST: usize = 8 << 20;

/// Called before work: see [`burn`].
pub(super) const BURN: &str = "gatelet_burn";
/// Called on what was made: see [`weigh`].
pub(super) const WEIGH: &str = "gatelet_weigh";
/// Called before a closure is handed on: see [`CLOSURE`].
pub(super) const HAND_ON: &str = "gatelet_hand_on";
/// Called before a pattern is matched: see [`prepay`].
const PREPAY: &str = "gatelet_prepay";
/// Called before two values are searched for one another: see [`searched`].
const SEARCH: &str = "gatelet_search";
/// Called before a text is parsed: see [`input::check`].
const PARSE: &str = "gatelet_parse";
/// Multiplication that looks first.
pub(super) const TIMES: &str = "gatelet_times";

/// How many bytes of a text are made in one step.
const BYTES: usize = 32;

/// How many steps a closure counts for that one definition hands to another:
/// each may hold the one before, and all of them are dropped one in another.
const CLOSURE: usize = 200;

/// The engine for patterns refuses more than about so many states.
const STATES: usize = 1 << 19;

/// No whole number that a filter makes may have more bits.
const BITS: u64 = 1 << 16;

/// How many comparisons are made in one step.
const COMPARED: usize = 32;

/// How many steps a match of a pattern counts for: it is an object with texts
/// in it, and another for each group.
const MATCH: usize = 16;

/// What is looked at or paid for before it is called, by the names that it is
/// found and called by.
const GUARDED: [(&str, &str); 6] = [
    ("matches", "gatelet_matches"),
    ("split_matches", "gatelet_split_matches"),
    ("split_", "gatelet_split"),
    ("fromjson", "gatelet_fromjson"),
    ("contains", "gatelet_contains"),
    ("indices", "gatelet_indices"),
];

/// What remains for one run.
pub(super) struct FuelTank<'s> {
    left: Cell<u64>,
    base: usize,
    stop: &'s Stop,
}

impl<'s> FuelTank<'s> {
    pub(super) fn new(steps: u64, stop: &'s Stop) -> FuelTank<'s> {
        FuelTank { left: Cell::new(steps), base: stack_position(), stop }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.get() == 0
    }

    /// Takes `cost` steps; false from the moment there are not enough.
    fn burn(&self, cost: usize) -> bool {
        let deep = USABLE < self.base.abs_diff(stack_position());
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        let left =
            if deep || self.stop.is_set() { 0 } else { self.left.get().saturating_sub(cost) };
        self.left.set(left);
        left != 0
    }

    fn empty(&self) {
        self.left.set(0);
    }
}

/// Returns where the stack is, about: the address of something on it.
#[inline(never)]
fn stack_position() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

/// The kind of data that filters run over: JSON values, and a tank.
pub(super) struct Fueled;

#[derive(Clone)]
pub(super) struct Fuel<'a> {
    pub(super) lut: &'a Lut<Fueled>,
    pub(super) tank: &'a FuelTank<'a>,
}

impl DataT for Fueled {
    type V<'a> = Val;
    type Data<'a> = Fuel<'a>;
}

impl<'a> jaq_core::data::HasLut<'a, Fueled> for Fuel<'a> {
    fn lut(&self) -> &'a Lut<Fueled> {
        self.lut
    }
}

/// Every function that a filter may call.
pub(super) fn funs() -> impl Iterator<Item = Fun<Fueled>> {
    // These reach outside (`env`, the outputs), end the process, or loop
    // without looking at the tank.
    const OURS: [&str; 5] = ["halt", "env", "stderr_empty", "debug_empty", "range"];
    let all = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let renamed = |(name, arity, native): Fun<Fueled>| {
        let other = GUARDED.iter().find(|(own, _)| *own == name);
        (other.map_or(name, |(_, other)| *other), arity, native)
    };
    all.filter(|(name, _, _)| !OURS.contains(name)).map(renamed).chain(ours())
}

/// Matching a pattern makes much from little, and all of it at once; searching
/// compares everything with everything; parsing calls itself for every level.
/// All of it is looked at or paid for before. These definitions stand before
/// whatever uses them.
pub(super) fn defs() -> impl Iterator<Item = Def<&'static str>> {
    const TEXT: &str = "
        def matches(re; flags): re as $re | flags as $flags
          | gatelet_prepay($re; $flags) | gatelet_matches($re; $flags);
        def split_matches(re; flags): re as $re | flags as $flags
          | gatelet_prepay($re; $flags) | gatelet_split_matches($re; $flags);
        def split_(re; flags): re as $re | flags as $flags
          | gatelet_prepay($re; $flags) | gatelet_split($re; $flags);
        def fromjson: gatelet_parse | gatelet_fromjson;
        def contains(x): x as $x | gatelet_search($x) | gatelet_contains($x);
        def indices(x): x as $x | gatelet_search($x) | gatelet_indices($x);
    ";
    parse(TEXT, |parser| parser.defs()).expect("our own definitions are jq").into_iter()
}

fn ours() -> [Fun<Fueled>; 12] {
    [
        run(("halt", v(1), |_| bome(Err(Error::str("halt is not available here"))))),
        run(("env", v(0), |_| box_once(Ok(Val::Obj(Default::default()))))),
        run(("stderr_empty", v(0), |_| Box::new(std::iter::empty()))),
        run(("debug_empty", v(0), |_| Box::new(std::iter::empty()))),
        run(("range", v(3), |mut cv| {
            let (by, to, from) = (cv.0.pop_var(), cv.0.pop_var(), cv.0.pop_var());
            let tank = cv.0.data().tank;
            Box::new(range(from, to, by, tank))
        })),
        run((TIMES, v(2), |mut cv| {
            let (right, left) = (cv.0.pop_var(), cv.0.pop_var());
            match product(&left, &right) <= LONGEST {
                true => bome(left * right),
                false => {
                    cv.0.data().tank.empty();
                    Box::new(std::iter::empty())
                }
            }
        })),
        run((PREPAY, v(2), |mut cv| {
            let (flags, pattern) = (cv.0.pop_var(), cv.0.pop_var());
            match cv.0.data().tank.burn(prepay(&cv.1, &pattern, &flags)) {
                true => box_once(Ok(cv.1)),
                false => Box::new(std::iter::empty()),
            }
        })),
        run((SEARCH, v(1), |mut cv| {
            let wanted = cv.0.pop_var();
            match cv.0.data().tank.burn(searched(&cv.1, &wanted)) {
                true => box_once(Ok(cv.1)),
                false => Box::new(std::iter::empty()),
            }
        })),
        run((PARSE, v(0), |cv| {
            let checked = match &cv.1 {
                Val::TStr(text) | Val::BStr(text) => input::check(text),
                Val::Null | Val::Bool(_) | Val::Num(_) | Val::Arr(_) | Val::Obj(_) => Ok(()),
            };
            bome(match checked {
                Ok(()) => Ok(cv.1),
                Err(excess) => Err(Error::str(format_args!("cannot parse the text: {excess}"))),
            })
        })),
        (BURN, v(0), burn()),
        (HAND_ON, v(0), hand_on()),
        (WEIGH, v(0), weigh()),
    ]
}

/// Passes its input on while there is fuel, and ends the stream after that.
/// A stream that ends, unlike an error, cannot be caught and tried again.
fn burn() -> Native<Fueled> {
    Native::<Fueled>::new(|cv| match cv.0.data().tank.burn(1 + length(&cv.1)) {
        true => box_once(Ok(cv.1)),
        false => Box::new(std::iter::empty()),
    })
    .with_paths(|cv| {
        let tank = cv.0.data().tank;
        // A path is a list that is dropped one element in another.
        if cv.1.1.get(DEPTH).is_some() {
            tank.empty();
        }
        match tank.burn(1 + length(&cv.1.0)) {
            true => box_once(Ok(cv.1)),
            false => Box::new(std::iter::empty()),
        }
    })
    .with_update(|cv, update| match cv.0.data().tank.burn(1) {
        true => update(cv.1),
        false => box_once(Ok(cv.1)),
    })
}

/// The same, for the price of a closure.
fn hand_on() -> Native<Fueled> {
    Native::<Fueled>::new(|cv| match cv.0.data().tank.burn(CLOSURE) {
        true => box_once(Ok(cv.1)),
        false => Box::new(std::iter::empty()),
    })
    .with_paths(|cv| match cv.0.data().tank.burn(CLOSURE) {
        true => box_once(Ok(cv.1)),
        false => Box::new(std::iter::empty()),
    })
    .with_update(|cv, update| match cv.0.data().tank.burn(CLOSURE) {
        true => update(cv.1),
        false => box_once(Ok(cv.1)),
    })
}

/// Passes a value on that was just made, if it is neither too big nor too deep.
/// Parts that are shared count as often as they are reached, as they would when
/// written.
fn weigh() -> Native<Fueled> {
    Native::<Fueled>::new(|cv| match affordable(&cv.1, cv.0.data().tank) {
        true => box_once(Ok(cv.1)),
        false => {
            drop_iteratively(cv.1);
            Box::new(std::iter::empty())
        }
    })
    .with_paths(|cv| box_once(Ok(cv.1)))
    .with_update(|cv, update| update(cv.1))
}

fn affordable(value: &Val, tank: &FuelTank<'_>) -> bool {
    if LONGEST < length(value) {
        tank.empty();
    }
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        let size = match value {
            Val::Arr(array) => {
                open.extend(array.iter().map(|item| (item, depth + 1)));
                0
            }
            Val::Obj(object) => {
                let parts = object.iter().flat_map(|(key, value)| [key, value]);
                open.extend(parts.map(|part| (part, depth + 1)));
                object.len()
            }
            Val::BStr(text) | Val::TStr(text) => text.len() / BYTES,
            Val::Num(_) => length(value),
            Val::Null | Val::Bool(_) => 0,
        };
        if DEPTH < depth {
            tank.empty();
        }
        if !tank.burn(1 + size) {
            return false;
        }
    }
    !tank.is_empty()
}

/// Drops a value of any depth without a call for every level.
fn drop_iteratively(value: Val) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Val::Arr(array) => open.extend(Rc::try_unwrap(array).unwrap_or_default()),
            Val::Obj(object) => {
                let members = Rc::try_unwrap(object).unwrap_or_default();
                open.extend(members.into_iter().flat_map(|(key, value)| [key, value]));
            }
            Val::Null | Val::Bool(_) | Val::Num(_) | Val::BStr(_) | Val::TStr(_) => {}
        }
    }
}

/// Returns what searching one value for another may take: every part of the one is
/// compared with every part of the other.
fn searched(value: &Val, wanted: &Val) -> usize {
    let is_text = |value: &Val| matches!(value, Val::BStr(_) | Val::TStr(_));
    let size = if is_text(value) && is_text(wanted) { length } else { n_parts };
    1 + size(value).saturating_mul(size(wanted)) / COMPARED
}

fn n_parts(value: &Val) -> usize {
    let (mut open, mut count) = (vec![value], 0);
    while let Some(value) = open.pop() {
        count += 1;
        match value {
            Val::Arr(array) => open.extend(array.iter()),
            Val::Obj(object) => open.extend(object.iter().flat_map(|(key, part)| [key, part])),
            Val::Null | Val::Bool(_) | Val::Num(_) | Val::BStr(_) | Val::TStr(_) => {}
        }
    }
    count
}

/// Returns what matching a pattern may take and make: every state of it at every
/// byte of the text; a match at every byte if all are looked for, and each with
/// every group.
fn prepay(text: &Val, pattern: &Val, flags: &Val) -> usize {
    fn bytes(value: &Val) -> &[u8] {
        match value {
            Val::BStr(bytes) | Val::TStr(bytes) => bytes,
            Val::Null | Val::Bool(_) | Val::Num(_) | Val::Arr(_) | Val::Obj(_) => &[],
        }
    }
    let has = |value: &Val, byte: u8| bytes(value).iter().filter(|own| **own == byte).count();
    let matches = if has(flags, b'g') == 0 { 1 } else { 1 + length(text) };
    let made = matches.saturating_mul(1 + has(pattern, b'(')).saturating_mul(MATCH);
    let walked = states(bytes(pattern)).saturating_mul(1 + length(text)) / COMPARED;
    made.saturating_add(walked)
}

/// The most states that a pattern can have: repetitions with a count multiply
/// what they repeat, and may stand in one another.
fn states(pattern: &[u8]) -> usize {
    let mut states = pattern.len();
    for counts in pattern.split(|byte| *byte == b'{').skip(1) {
        let counts = counts.split(|byte| *byte == b'}').next().unwrap_or_default();
        let numbers = counts.split(|byte| !byte.is_ascii_digit());
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<usize>().ok();
        let most = numbers.filter_map(number).max().unwrap_or(1);
        states = states.saturating_mul(most.max(1));
    }
    states.min(STATES)
}

/// Returns how much a value counts against what may be made: its length.
fn length(value: &Val) -> usize {
    match value {
        Val::Num(Num::BigInt(number)) => 1 + usize::try_from(number.bits() / 64).unwrap_or(0),
        Val::Null | Val::Bool(_) | Val::Num(_) => 1,
        Val::BStr(bytes) | Val::TStr(bytes) => bytes.len(),
        Val::Arr(array) => array.len(),
        Val::Obj(object) => object.len(),
    }
}

/// The length of what multiplying makes: text is repeated, and the digits of
/// whole numbers add up.
fn product(left: &Val, right: &Val) -> usize {
    let bits = |value: &Val| match value {
        Val::Num(Num::BigInt(number)) => number.bits(),
        Val::Num(Num::Int(_) | Num::Float(_) | Num::Dec(_))
        | Val::Null
        | Val::Bool(_)
        | Val::BStr(_)
        | Val::TStr(_)
        | Val::Arr(_)
        | Val::Obj(_) => 0,
    };
    if BITS < bits(left).saturating_add(bits(right)) {
        return usize::MAX;
    }
    let times = |value: &Val| match value {
        Val::Num(_) => value.to_string().parse::<f64>().unwrap_or(f64::INFINITY),
        Val::Null | Val::Bool(_) | Val::BStr(_) | Val::TStr(_) | Val::Arr(_) | Val::Obj(_) => 0.0,
    };
    let text = |value: &Val| matches!(value, Val::BStr(_) | Val::TStr(_));
    let made = match (text(left), text(right)) {
        (true, false) => times(right) * length(left) as f64,
        (false, true) => times(left) * length(right) as f64,
        (true, true) | (false, false) => 0.0,
    };
    if made.is_finite() && made < LONGEST as f64 { made as usize } else { usize::MAX }
}

fn range<'a>(
    from: Val,
    to: Val,
    by: Val,
    tank: &'a FuelTank<'a>,
) -> impl Iterator<Item = ValX<'a, Val>> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let direction = by.partial_cmp(&Val::from(0_isize)).unwrap_or(Equal);
    let mut at = Some(from);
    std::iter::from_fn(move || {
        let here = at.take()?;
        let inside = match direction {
            Greater => here < to,
            Less => here > to,
            Equal => here != to,
        };
        if !inside || !tank.burn(1) {
            return None;
        }
        match here.clone() + by.clone() {
            Ok(next) => at = Some(next),
            Err(error) => return Some(Err(error.into())),
        }
        Some(Ok(here))
    })
}
