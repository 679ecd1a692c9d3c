//! The step limit of a jq filter ("fuel"), and the functions that a filter may call.
//!
//! A run starts with a [`FuelTank`] of steps. The calls that `instrument` inserts
//! take steps out of it; when it is empty, the output of the filter ends.

use std::cell::Cell;

use jaq_core::box_iter::box_once;
use jaq_core::load::parse;
use jaq_core::load::parse::Def;
use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{DataT, Error, Lut, Native, ValX};
use jaq_json::{Num, Rc, Val};
use offload::StopFlag;

use crate::view::jq::input::{self, MAX_DEPTH};

/// The stack size of a filter. Only the part that is used takes memory.
pub(super) const STACK_BYTES: usize = 128 << 20;

/// How much of the stack a filter may use before it is stopped. The rest is for
/// work between two checks: a function over one value of at most [`MAX_DEPTH`]
/// levels, and dropping the values of the filter.
const USABLE_STACK_BYTES: usize = 8 << 20;

/// The longest string, array or object that a filter may create.
const MAX_LENGTH: usize = 8 << 20;

/// The jq name of [`burn`], called before work.
pub(super) const BURN: &str = "gatelet_burn";
/// The jq name of [`weigh`], called on a value that was created.
pub(super) const WEIGH: &str = "gatelet_weigh";
/// The jq name of [`burn_closure`], called before a closure is passed to a
/// definition.
pub(super) const BURN_CLOSURE: &str = "gatelet_hand_on";
/// Called before a pattern is matched; takes [`match_cost`].
const PREPAY: &str = "gatelet_prepay";
/// Called before one value is searched for another; takes [`search_cost`].
const SEARCH: &str = "gatelet_search";
/// Called before a text is parsed; does [`input::check`].
const PARSE: &str = "gatelet_parse";
/// Multiplication that checks the length of the product first.
pub(super) const TIMES: &str = "gatelet_times";

/// How many bytes of text may be created in one step.
const BYTES_PER_STEP: usize = 32;

/// The steps for a closure that one definition passes to another: each may hold
/// the one before, and dropping them is recursive.
const CLOSURE_STEPS: usize = 200;

/// About the largest number of states that the regex engine accepts.
const MAX_STATES: usize = 1 << 19;

/// The largest integer that a filter may create, in bits.
const MAX_BITS: u64 = 1 << 16;

/// How many comparisons may be made in one step.
const COMPARISONS_PER_STEP: usize = 32;

/// The steps for a match of a pattern, which is an object with texts, and as many
/// again for each group.
const MATCH_STEPS: usize = 16;

/// Functions that are checked or paid for before they run. Their usual name is that
/// of a definition in [`defs`], which calls them by the second name.
const GUARDED_FUNS: [(&str, &str); 6] = [
    ("matches", "gatelet_matches"),
    ("split_matches", "gatelet_split_matches"),
    ("split_", "gatelet_split"),
    ("fromjson", "gatelet_fromjson"),
    ("contains", "gatelet_contains"),
    ("indices", "gatelet_indices"),
];

/// The steps that remain for one run.
pub(super) struct FuelTank<'s> {
    left: Cell<u64>,
    stack_base: usize,
    stop: &'s StopFlag,
}

impl<'s> FuelTank<'s> {
    pub(super) fn new(steps: u64, stop: &'s StopFlag) -> FuelTank<'s> {
        FuelTank { left: Cell::new(steps), stack_base: stack_address(), stop }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.get() == 0
    }

    /// Takes `cost` steps; false once there are not enough, once the stack is too
    /// deep, and once `stop` is set.
    fn burn(&self, cost: usize) -> bool {
        let deep = USABLE_STACK_BYTES < self.stack_base.abs_diff(stack_address());
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

/// Returns the address of a local variable, which says how deep the stack is.
#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

/// Tells jaq the types of a filter's values and of its context: JSON values, and
/// [`Fuel`].
pub(super) struct Fueled;

/// The context of a run: the compiled filters, and the tank.
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
    // These reach the environment or the output streams, end the process, or loop
    // without taking steps.
    const REPLACED: [&str; 5] = ["halt", "env", "stderr_empty", "debug_empty", "range"];
    let all = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let renamed = |(name, arity, native): Fun<Fueled>| {
        let other = GUARDED_FUNS.iter().find(|(own, _)| *own == name);
        (other.map_or(name, |(_, other)| *other), arity, native)
    };
    all.filter(|(name, _, _)| !REPLACED.contains(name)).map(renamed).chain(own_funs())
}

/// Definitions that check or pay before they call a [guarded](GUARDED_FUNS)
/// function: matching may create many values at once, searching compares every
/// part with every part, and parsing is recursive. They must come before the
/// definitions that use them.
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

fn own_funs() -> [Fun<Fueled>; 12] {
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
            match product_length(&left, &right) <= MAX_LENGTH {
                true => bome(left * right),
                false => {
                    cv.0.data().tank.empty();
                    Box::new(std::iter::empty())
                }
            }
        })),
        run((PREPAY, v(2), |mut cv| {
            let (flags, pattern) = (cv.0.pop_var(), cv.0.pop_var());
            match cv.0.data().tank.burn(match_cost(&cv.1, &pattern, &flags)) {
                true => box_once(Ok(cv.1)),
                false => Box::new(std::iter::empty()),
            }
        })),
        run((SEARCH, v(1), |mut cv| {
            let wanted = cv.0.pop_var();
            match cv.0.data().tank.burn(search_cost(&cv.1, &wanted)) {
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
        (BURN_CLOSURE, v(0), burn_closure()),
        (WEIGH, v(0), weigh()),
    ]
}

/// A function that returns its input while there is fuel, and ends the stream after
/// that. Unlike an error, the end of a stream cannot be caught and tried again.
fn burn() -> Native<Fueled> {
    Native::<Fueled>::new(|cv| match cv.0.data().tank.burn(1 + length(&cv.1)) {
        true => box_once(Ok(cv.1)),
        false => Box::new(std::iter::empty()),
    })
    .with_paths(|cv| {
        let tank = cv.0.data().tank;
        // A path is a list whose dropping is recursive.
        if cv.1.1.get(MAX_DEPTH).is_some() {
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

/// Does what [`burn`] does, for the cost of a closure.
fn burn_closure() -> Native<Fueled> {
    Native::<Fueled>::new(|cv| match cv.0.data().tank.burn(CLOSURE_STEPS) {
        true => box_once(Ok(cv.1)),
        false => Box::new(std::iter::empty()),
    })
    .with_paths(|cv| match cv.0.data().tank.burn(CLOSURE_STEPS) {
        true => box_once(Ok(cv.1)),
        false => Box::new(std::iter::empty()),
    })
    .with_update(|cv, update| match cv.0.data().tank.burn(CLOSURE_STEPS) {
        true => update(cv.1),
        false => box_once(Ok(cv.1)),
    })
}

/// A function that returns a value that was just created, if it is neither too large
/// nor too deep. A part that is shared counts as often as it occurs, as it would
/// when written.
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

/// Takes steps for every part of a value; false if they do not suffice.
fn affordable(value: &Val, tank: &FuelTank<'_>) -> bool {
    if MAX_LENGTH < length(value) {
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
            Val::BStr(text) | Val::TStr(text) => text.len() / BYTES_PER_STEP,
            Val::Num(_) => length(value),
            Val::Null | Val::Bool(_) => 0,
        };
        if MAX_DEPTH < depth {
            tank.empty();
        }
        if !tank.burn(1 + size) {
            return false;
        }
    }
    !tank.is_empty()
}

/// Drops a value of any depth without recursion.
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

/// Returns the steps for searching one value for another: every part of the one may
/// be compared with every part of the other.
fn search_cost(value: &Val, wanted: &Val) -> usize {
    let is_text = |value: &Val| matches!(value, Val::BStr(_) | Val::TStr(_));
    let size = if is_text(value) && is_text(wanted) { length } else { n_parts };
    1 + size(value).saturating_mul(size(wanted)) / COMPARISONS_PER_STEP
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

/// Returns the steps for matching a pattern: every state at every byte of the text;
/// with the flag `g` a match at every byte, and each with every group.
fn match_cost(text: &Val, pattern: &Val, flags: &Val) -> usize {
    fn bytes(value: &Val) -> &[u8] {
        match value {
            Val::BStr(bytes) | Val::TStr(bytes) => bytes,
            Val::Null | Val::Bool(_) | Val::Num(_) | Val::Arr(_) | Val::Obj(_) => &[],
        }
    }
    let has = |value: &Val, byte: u8| bytes(value).iter().filter(|own| **own == byte).count();
    let matches = if has(flags, b'g') == 0 { 1 } else { 1 + length(text) };
    let made = matches.saturating_mul(1 + has(pattern, b'(')).saturating_mul(MATCH_STEPS);
    let walked = max_states(bytes(pattern)).saturating_mul(1 + length(text)) / COMPARISONS_PER_STEP;
    made.saturating_add(walked)
}

/// Returns the most states that a pattern can have: repetitions with a count
/// multiply what they repeat, and may be nested.
fn max_states(pattern: &[u8]) -> usize {
    let mut states = pattern.len();
    for counts in pattern.split(|byte| *byte == b'{').skip(1) {
        let counts = counts.split(|byte| *byte == b'}').next().unwrap_or_default();
        let numbers = counts.split(|byte| !byte.is_ascii_digit());
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<usize>().ok();
        let most = numbers.filter_map(number).max().unwrap_or(1);
        states = states.saturating_mul(most.max(1));
    }
    states.min(MAX_STATES)
}

/// Returns the length of a value: bytes, elements, members, or words of a large
/// integer.
fn length(value: &Val) -> usize {
    match value {
        Val::Num(Num::BigInt(number)) => 1 + usize::try_from(number.bits() / 64).unwrap_or(0),
        Val::Null | Val::Bool(_) | Val::Num(_) => 1,
        Val::BStr(bytes) | Val::TStr(bytes) => bytes.len(),
        Val::Arr(array) => array.len(),
        Val::Obj(object) => object.len(),
    }
}

/// Returns the length of a product: text is repeated, and the digits of integers
/// add up.
fn product_length(left: &Val, right: &Val) -> usize {
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
    if MAX_BITS < bits(left).saturating_add(bits(right)) {
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
    if made.is_finite() && made < MAX_LENGTH as f64 { made as usize } else { usize::MAX }
}

/// The function `range`, taking a step for every value.
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
