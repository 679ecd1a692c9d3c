//! What a filter burns, and the functions it may call.

use std::cell::Cell;

use jaq_core::box_iter::box_once;
use jaq_core::load::parse;
use jaq_core::load::parse::Def;
use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{DataT, Error, Lut, Native, ValX};
use jaq_json::Val;

/// The stack of a filter, and how much of it may be used.
pub(super) const STACK: usize = 64 << 20;
const USABLE: usize = 40 << 20;

/// No string, array or object that a filter makes may be longer.
const LONGEST: usize = 8 << 20;

/// Called before work: see [`burn`].
pub(super) const BURN: &str = "gatelet_burn";
/// Called on what was made: see [`weigh`].
pub(super) const WEIGH: &str = "gatelet_weigh";
/// Called before a pattern is matched: see [`prepay`].
const PREPAY: &str = "gatelet_prepay";
/// Multiplication that looks first.
pub(super) const TIMES: &str = "gatelet_times";

/// How many bytes of a text are made in one step.
const BYTES: usize = 32;

/// How many steps a member of an object counts for, beside its value.
const MEMBER: usize = 2;

/// How many steps a match of a pattern counts for: it is an object with texts
/// in it, and another for each group.
const MATCH: usize = 16;

/// What matches patterns, by the names that it is found and called by.
const PATTERNS: [(&str, &str); 3] = [
    ("matches", "gatelet_matches"),
    ("split_matches", "gatelet_split_matches"),
    ("split_", "gatelet_split"),
];

/// What remains for one run.
pub(super) struct Tank {
    left: Cell<u64>,
    base: usize,
}

impl Tank {
    pub(super) fn new(steps: u64) -> Tank {
        Tank { left: Cell::new(steps), base: stack_position() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.get() == 0
    }

    /// Takes `cost` steps; false from the moment there are not enough.
    fn burn(&self, cost: usize) -> bool {
        let deep = USABLE < self.base.abs_diff(stack_position());
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        let left = if deep { 0 } else { self.left.get().saturating_sub(cost) };
        self.left.set(left);
        left != 0
    }

    fn empty(&self) {
        self.left.set(0);
    }
}

/// Where the stack is, about: the address of something on it.
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
    pub(super) tank: &'a Tank,
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
        let other = PATTERNS.iter().find(|(own, _)| *own == name);
        (other.map_or(name, |(_, other)| *other), arity, native)
    };
    all.filter(|(name, _, _)| !OURS.contains(name)).map(renamed).chain(ours())
}

/// Matching a pattern makes much from little, and all of it at once, so it is
/// paid for before. These stand before whatever uses them.
pub(super) fn defs() -> impl Iterator<Item = Def<&'static str>> {
    const TEXT: &str = "
        def matches(re; flags): re as $re | flags as $flags
          | gatelet_prepay($re; $flags) | gatelet_matches($re; $flags);
        def split_matches(re; flags): re as $re | flags as $flags
          | gatelet_prepay($re; $flags) | gatelet_split_matches($re; $flags);
        def split_(re; flags): re as $re | flags as $flags
          | gatelet_prepay($re; $flags) | gatelet_split($re; $flags);
    ";
    parse(TEXT, |parser| parser.defs()).expect("our own definitions are jq").into_iter()
}

fn ours() -> [Fun<Fueled>; 9] {
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
        (BURN, v(0), burn()),
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
    .with_paths(|cv| match cv.0.data().tank.burn(1 + length(&cv.1.0)) {
        true => box_once(Ok(cv.1)),
        false => Box::new(std::iter::empty()),
    })
    .with_update(|cv, update| match cv.0.data().tank.burn(1) {
        true => update(cv.1),
        false => box_once(Ok(cv.1)),
    })
}

/// Passes a value on that was just made, if it is not too big. Parts that are
/// shared count as often as they are reached, as they would when written.
fn weigh() -> Native<Fueled> {
    Native::<Fueled>::new(|cv| match affordable(&cv.1, cv.0.data().tank) {
        true => box_once(Ok(cv.1)),
        false => Box::new(std::iter::empty()),
    })
    .with_paths(|cv| box_once(Ok(cv.1)))
    .with_update(|cv, update| update(cv.1))
}

fn affordable(value: &Val, tank: &Tank) -> bool {
    if LONGEST < length(value) {
        tank.empty();
    }
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        let size = match value {
            Val::Arr(array) => {
                open.extend(array.iter());
                0
            }
            Val::Obj(object) => {
                open.extend(object.values());
                MEMBER * (1 + object.len())
            }
            Val::BStr(text) | Val::TStr(text) => text.len() / BYTES,
            Val::Null | Val::Bool(_) | Val::Num(_) => 0,
        };
        if !tank.burn(1 + size) {
            return false;
        }
    }
    !tank.is_empty()
}

/// What matching a pattern may make: a match at every byte of the text if all
/// are looked for, and each with every group.
fn prepay(text: &Val, pattern: &Val, flags: &Val) -> usize {
    let has = |value: &Val, byte: u8| match value {
        Val::BStr(bytes) | Val::TStr(bytes) => bytes.iter().filter(|own| **own == byte).count(),
        Val::Null | Val::Bool(_) | Val::Num(_) | Val::Arr(_) | Val::Obj(_) => 0,
    };
    let matches = if has(flags, b'g') == 0 { 1 } else { 1 + length(text) };
    matches.saturating_mul(1 + has(pattern, b'(')).saturating_mul(MATCH)
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

/// The length of what multiplying makes: text is repeated.
fn product(left: &Val, right: &Val) -> usize {
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

fn range<'a>(from: Val, to: Val, by: Val, tank: &'a Tank) -> impl Iterator<Item = ValX<'a, Val>> {
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
