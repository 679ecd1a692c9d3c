//! Inserts the fuel checks into a jq filter.
//!
//! A call of [`BURN`] is put before every term that can do work, and a call of
//! [`WEIGH`] after every term that can create a large value. Nothing is put after a
//! call of a definition, so tail calls stay tail calls.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::ops::Math;
use jaq_core::path::{Part, Path};

use crate::view::jq::fuel::{BURN, BURN_CLOSURE, TIMES, WEIGH};

/// The variable that holds the factor of `*=`.
const FACTOR: &str = "$gatelet_factor";

/// Which kind of definition a term is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// A definition that every filter can use.
    Prelude,
    /// The filter itself.
    Main,
    /// A definition in the filter. It may call itself with the closures that it
    /// was called with.
    Definition,
}

/// Inserts checks into the terms of one scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instrumenter<'n> {
    /// The names of the functions that are written in Rust.
    pub(super) natives: &'n [&'static str],
    pub(super) scope: Scope,
}

impl Instrumenter<'_> {
    /// Inserts checks into the body of a definition.
    pub(super) fn definition<'s>(&self, def: Def<&'s str>) -> Def<&'s str> {
        let body = self.term(def.body);
        Def { body, ..def }
    }

    /// Inserts checks into a definition inside of another, or inside of the filter.
    fn nested_definition<'s>(&self, def: Def<&'s str>) -> Def<&'s str> {
        let scope = match self.scope {
            Scope::Prelude => Scope::Prelude,
            Scope::Main | Scope::Definition => Scope::Definition,
        };
        Instrumenter { scope, ..*self }.definition(def)
    }

    fn string_parts<'s>(
        &self,
        parts: Vec<StrPart<&'s str, Term<&'s str>>>,
    ) -> Vec<StrPart<&'s str, Term<&'s str>>> {
        let part = |part| match part {
            StrPart::Term(part) => StrPart::Term(self.term(part)),
            plain @ (StrPart::Str(_) | StrPart::Char(_)) => plain,
        };
        parts.into_iter().map(part).collect()
    }

    /// Inserts checks into a key without a value. The key itself keeps its form.
    fn key<'s>(&self, key: Term<&'s str>) -> Term<&'s str> {
        if let Term::Str(format, parts) = key {
            return Term::Str(format, self.string_parts(parts));
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

    /// Inserts checks into a term.
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
                let defs = defs.into_iter().map(|def| self.nested_definition(def)).collect();
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
        let made = Term::Str(format, self.string_parts(parts));
        if plain { made } else { burn(weigh(made)) }
    }

    fn object<'s>(&self, members: Vec<(Term<&'s str>, Option<Term<&'s str>>)>) -> Term<&'s str> {
        let member = |(key, value): (Term<&'s str>, Option<Term<&'s str>>)| match value {
            Some(value) => (self.term(key), Some(self.term(value))),
            // For a key alone, its form decides which value the member gets.
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
                // `a *= b` becomes `b as $factor | a |= times(.; $factor)`, which
                // is checked.
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
        let passes_closure = self.scope == Scope::Definition && !native && !args.is_empty();
        let made = Term::Call(name, args.into_iter().map(|arg| self.term(arg)).collect());
        match (native, passes_closure) {
            (true, _) => burn(weigh(made)),
            (false, true) => pipe(Term::Call(BURN_CLOSURE, Vec::new()), made),
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
