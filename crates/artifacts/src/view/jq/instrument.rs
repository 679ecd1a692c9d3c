//! Inserts the fuel checks into a jq filter.
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

    /// The term with checks, one line for each kind.
    fn term<'s>(&self, whole: Term<&'s str>) -> Term<&'s str> {
        match whole {
            leaf @ (Term::Id | Term::Num(_) | Term::Var(_) | Term::Break(_)) => leaf,
            Term::Recurse => burn(Term::Recurse),
            Term::Str(format, parts) => self.string(format, parts),
            Term::Arr(None) => Term::Arr(None),
            Term::Arr(Some(part)) => burn(weigh(Term::Arr(Some(self.boxed(part))))),
            Term::Obj(members) => self.object(members),
            Term::Neg(part) => Term::Neg(self.boxed(part)),
            Term::BinOp(left, op, right) => self.operation(left, op, right),
            Term::Label(name, part) => Term::Label(name, self.boxed(part)),
            Term::Fold(kind, source, pattern, parts) => {
                let parts = parts.into_iter().map(|part| self.term(part)).collect();
                burn(Term::Fold(kind, self.boxed(source), self.pattern(pattern), parts))
            }
            Term::TryCatch(part, catch) => {
                Term::TryCatch(self.boxed(part), catch.map(|catch| self.boxed(catch)))
            }
            Term::IfThenElse(branches, otherwise) => {
                let branch = |(test, then)| (self.term(test), self.term(then));
                let branches = branches.into_iter().map(branch).collect();
                burn(Term::IfThenElse(branches, otherwise.map(|part| self.boxed(part))))
            }
            Term::Def(defs, part) => {
                let defs = defs.into_iter().map(|def| self.nested(def)).collect();
                Term::Def(defs, self.boxed(part))
            }
            Term::Call(name, args) => self.call(name, args),
            Term::Path(part, path) => burn(Term::Path(self.boxed(part), self.path(path))),
        }
    }

    #[expect(clippy::boxed_local, reason = "jaq's terms hold their parts boxed")]
    fn boxed<'s>(&self, part: Box<Term<&'s str>>) -> Box<Term<&'s str>> {
        Box::new(self.term(*part))
    }

    fn string<'s>(
        &self,
        format: Option<&'s str>,
        parts: Vec<StrPart<&'s str, Term<&'s str>>>,
    ) -> Term<&'s str> {
        let plain = parts.iter().all(|part| !matches!(part, StrPart::Term(_)));
        let made = Term::Str(format, self.parts(parts));
        if plain { made } else { burn(weigh(made)) }
    }

    fn object<'s>(&self, members: Vec<(Term<&'s str>, Option<Term<&'s str>>)>) -> Term<&'s str> {
        let member = |(key, value): (Term<&'s str>, Option<Term<&'s str>>)| match value {
            Some(value) => (self.term(key), Some(self.term(value))),
            // The form of a key alone decides which value is meant.
            None => (self.key(key), None),
        };
        burn(weigh(Term::Obj(members.into_iter().map(member).collect())))
    }

    fn operation<'s>(
        &self,
        left: Box<Term<&'s str>>,
        op: BinaryOp<&'s str>,
        right: Box<Term<&'s str>>,
    ) -> Term<&'s str> {
        let (left, right) = (self.boxed(left), self.boxed(right));
        match op {
            BinaryOp::Math(Math::Mul) => burn(weigh(Term::Call(TIMES, vec![*left, *right]))),
            BinaryOp::UpdateMath(Math::Mul) => {
                // The same in other words, so that it is checked as well.
                let times = Term::Call(TIMES, vec![Term::Id, Term::Var(FACTOR)]);
                let update = Term::BinOp(left, BinaryOp::Update, Box::new(times));
                let bound = BinaryOp::Pipe(Some(Pattern::Var(FACTOR)));
                burn(weigh(Term::BinOp(right, bound, Box::new(update))))
            }
            BinaryOp::Pipe(Some(pattern)) => {
                let bound = BinaryOp::Pipe(Some(self.pattern(pattern)));
                burn(Term::BinOp(left, bound, right))
            }
            op @ (BinaryOp::Math(_)
            | BinaryOp::Assign
            | BinaryOp::Update
            | BinaryOp::UpdateMath(_)
            | BinaryOp::UpdateAlt) => burn(weigh(Term::BinOp(left, op, right))),
            op @ (BinaryOp::Pipe(None)
            | BinaryOp::Comma
            | BinaryOp::Alt
            | BinaryOp::Or
            | BinaryOp::And
            | BinaryOp::Cmp(_)) => burn(Term::BinOp(left, op, right)),
        }
    }

    fn call<'s>(&self, name: &'s str, args: Vec<Term<&'s str>>) -> Term<&'s str> {
        let native = self.natives.contains(&name);
        let hands_on = self.scope == Scope::Definition && !native && !args.is_empty();
        let made = Term::Call(name, args.into_iter().map(|arg| self.term(arg)).collect());
        match (native, hands_on) {
            (true, _) => burn(weigh(made)),
            (false, true) => pipe(Term::Call(HAND_ON, Vec::new()), made),
            (false, false) => burn(made),
        }
    }

    fn path<'s>(&self, Path(parts): Path<Term<&'s str>>) -> Path<Term<&'s str>> {
        let step = |(part, optional)| {
            let part = match part {
                Part::Index(index) => Part::Index(self.term(index)),
                Part::Range(from, to) => {
                    Part::Range(from.map(|from| self.term(from)), to.map(|to| self.term(to)))
                }
            };
            (part, optional)
        };
        Path(parts.into_iter().map(step).collect())
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
