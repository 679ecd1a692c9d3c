//! Putting the fuel checks into a filter.
//!
//! Before every term that can do work stands [`BURN`]; behind every term that
//! can make something big, [`WEIGH`]. Nothing is put behind a call to a
//! definition, so tail calls stay tail calls.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::ops::Math;
use jaq_core::path::{Part, Path};

use crate::view::jq::fuel::{BURN, HAND_ON, TIMES, WEIGH};

/// What the factor of `*=` is called.
const FACTOR: &str = "$gatelet_factor";

/// Where a term stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// In a definition that every filter can use.
    Prelude,
    /// In the filter itself.
    Main,
    /// In a definition of the filter's own, which may call itself with what it
    /// was called with.
    Definition,
}

/// Puts checks into the terms of one scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checks<'n> {
    pub(super) natives: &'n [&'static str],
    pub(super) scope: Scope,
}

impl Checks<'_> {
    /// The definition with checks in its body.
    pub(super) fn definition<'s>(&self, def: Def<&'s str>) -> Def<&'s str> {
        let body = self.term(def.body);
        Def { body, ..def }
    }

    /// The same for one that stands in another, or in the filter.
    fn nested<'s>(&self, def: Def<&'s str>) -> Def<&'s str> {
        let scope = match self.scope {
            Scope::Prelude => Scope::Prelude,
            Scope::Main | Scope::Definition => Scope::Definition,
        };
        Checks { scope, ..*self }.definition(def)
    }

    fn parts<'s>(
        &self,
        parts: Vec<StrPart<&'s str, Term<&'s str>>>,
    ) -> Vec<StrPart<&'s str, Term<&'s str>>> {
        let part = |part| match part {
            StrPart::Term(part) => StrPart::Term(self.term(part)),
            plain @ (StrPart::Str(_) | StrPart::Char(_)) => plain,
        };
        parts.into_iter().map(part).collect()
    }

    /// A key without a value, with checks inside of it only.
    fn key<'s>(&self, key: Term<&'s str>) -> Term<&'s str> {
        if let Term::Str(format, parts) = key {
            return Term::Str(format, self.parts(parts));
        }
        key
    }

    fn pattern<'s>(&self, pattern: Pattern<&'s str>) -> Pattern<&'s str> {
        match pattern {
            Pattern::Var(name) => Pattern::Var(name),
            Pattern::Arr(parts) => {
                Pattern::Arr(parts.into_iter().map(|part| self.pattern(part)).collect())
            }
            Pattern::Obj(members) => {
                let member = |(key, part)| (self.term(key), self.pattern(part));
                Pattern::Obj(members.into_iter().map(member).collect())
            }
        }
    }

    fn term<'s>(&self, whole: Term<&'s str>) -> Term<&'s str> {
        let inner = |part: Box<Term<&'s str>>| Box::new(self.term(*part));
        match whole {
            leaf @ (Term::Id | Term::Num(_) | Term::Var(_) | Term::Break(_)) => leaf,
            Term::Recurse => burn(Term::Recurse),
            Term::Str(format, parts) => {
                let plain = parts.iter().all(|part| !matches!(part, StrPart::Term(_)));
                let made = Term::Str(format, self.parts(parts));
                if plain { made } else { burn(weigh(made)) }
            }
            Term::Arr(None) => Term::Arr(None),
            Term::Arr(Some(part)) => burn(weigh(Term::Arr(Some(inner(part))))),
            Term::Obj(members) => {
                let member = |(key, value): (Term<&'s str>, Option<Term<&'s str>>)| match value {
                    Some(value) => (self.term(key), Some(self.term(value))),
                    // The form of a key alone decides which value is meant.
                    None => (self.key(key), None),
                };
                burn(weigh(Term::Obj(members.into_iter().map(member).collect())))
            }
            Term::Neg(part) => Term::Neg(inner(part)),
            Term::BinOp(left, BinaryOp::Math(Math::Mul), right) => {
                burn(weigh(Term::Call(TIMES, vec![*inner(left), *inner(right)])))
            }
            Term::BinOp(left, BinaryOp::UpdateMath(Math::Mul), right) => {
                // The same in other words, so that it is looked at as well.
                let times = Term::Call(TIMES, vec![Term::Id, Term::Var(FACTOR)]);
                let update = Term::BinOp(inner(left), BinaryOp::Update, Box::new(times));
                let bound = BinaryOp::Pipe(Some(Pattern::Var(FACTOR)));
                burn(weigh(Term::BinOp(inner(right), bound, Box::new(update))))
            }
            Term::BinOp(left, BinaryOp::Pipe(Some(pattern)), right) => {
                let bound = BinaryOp::Pipe(Some(self.pattern(pattern)));
                burn(Term::BinOp(inner(left), bound, inner(right)))
            }
            Term::BinOp(left, op, right) => {
                let makes = match op {
                    BinaryOp::Math(_)
                    | BinaryOp::Assign
                    | BinaryOp::Update
                    | BinaryOp::UpdateMath(_)
                    | BinaryOp::UpdateAlt => true,
                    BinaryOp::Pipe(_)
                    | BinaryOp::Comma
                    | BinaryOp::Alt
                    | BinaryOp::Or
                    | BinaryOp::And
                    | BinaryOp::Cmp(_) => false,
                };
                let made = Term::BinOp(inner(left), op, inner(right));
                burn(if makes { weigh(made) } else { made })
            }
            Term::Label(name, part) => Term::Label(name, inner(part)),
            Term::Fold(kind, source, pattern, parts) => {
                let parts = parts.into_iter().map(|part| self.term(part)).collect();
                burn(Term::Fold(kind, inner(source), self.pattern(pattern), parts))
            }
            Term::TryCatch(part, catch) => Term::TryCatch(inner(part), catch.map(inner)),
            Term::IfThenElse(branches, otherwise) => {
                let branch = |(test, then)| (self.term(test), self.term(then));
                let branches = branches.into_iter().map(branch).collect();
                burn(Term::IfThenElse(branches, otherwise.map(inner)))
            }
            Term::Def(defs, part) => {
                let defs = defs.into_iter().map(|def| self.nested(def)).collect();
                Term::Def(defs, inner(part))
            }
            Term::Call(name, args) => {
                let native = self.natives.contains(&name);
                let hands_on = self.scope == Scope::Definition && !native && !args.is_empty();
                let made = Term::Call(name, args.into_iter().map(|arg| self.term(arg)).collect());
                match (native, hands_on) {
                    (true, _) => burn(weigh(made)),
                    (false, true) => pipe(Term::Call(HAND_ON, Vec::new()), made),
                    (false, false) => burn(made),
                }
            }
            Term::Path(part, Path(parts)) => {
                let step = |(part, optional)| {
                    let part = match part {
                        Part::Index(index) => Part::Index(self.term(index)),
                        Part::Range(from, to) => Part::Range(
                            from.map(|from| self.term(from)),
                            to.map(|to| self.term(to)),
                        ),
                    };
                    (part, optional)
                };
                burn(Term::Path(inner(part), Path(parts.into_iter().map(step).collect())))
            }
        }
    }
}

fn burn(term: Term<&str>) -> Term<&str> {
    pipe(Term::Call(BURN, Vec::new()), term)
}

fn weigh(term: Term<&str>) -> Term<&str> {
    pipe(term, Term::Call(WEIGH, Vec::new()))
}

fn pipe<'s>(left: Term<&'s str>, right: Term<&'s str>) -> Term<&'s str> {
    Term::BinOp(Box::new(left), BinaryOp::Pipe(None), Box::new(right))
}
