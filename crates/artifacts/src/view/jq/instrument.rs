//! Putting the fuel checks into a filter.
//!
//! Before every term that can do work stands [`BURN`]; behind every term that
//! can make something big, [`WEIGH`]. Nothing is put behind a call to a
//! definition, so tail calls stay tail calls.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Term};
use jaq_core::ops::Math;
use jaq_core::path::{Part, Path};

use crate::view::jq::fuel::{BURN, TIMES, WEIGH};

/// The definition with checks in its body.
pub(super) fn definition<'s>(def: Def<&'s str>, natives: &[&str]) -> Def<&'s str> {
    let body = term(def.body, natives);
    Def { body, ..def }
}

fn term<'s>(whole: Term<&'s str>, natives: &[&str]) -> Term<&'s str> {
    let inner = |part: Box<Term<&'s str>>| Box::new(term(*part, natives));
    match whole {
        leaf @ (Term::Id | Term::Num(_) | Term::Var(_) | Term::Break(_)) => leaf,
        Term::Recurse => burn(Term::Recurse),
        Term::Str(format, parts) => {
            let part = |part| match part {
                StrPart::Term(part) => StrPart::Term(term(part, natives)),
                plain @ (StrPart::Str(_) | StrPart::Char(_)) => plain,
            };
            let plain = parts.iter().all(|part| !matches!(part, StrPart::Term(_)));
            let made = Term::Str(format, parts.into_iter().map(part).collect());
            if plain { made } else { burn(weigh(made)) }
        }
        Term::Arr(None) => Term::Arr(None),
        Term::Arr(Some(part)) => burn(weigh(Term::Arr(Some(inner(part))))),
        Term::Obj(members) => {
            // A key is left alone: its form decides what a missing value means.
            let member = |(key, value): (Term<&'s str>, Option<Term<&'s str>>)| {
                (key, value.map(|value| term(value, natives)))
            };
            burn(weigh(Term::Obj(members.into_iter().map(member).collect())))
        }
        Term::Neg(part) => Term::Neg(inner(part)),
        Term::BinOp(left, BinaryOp::Math(Math::Mul), right) => {
            burn(weigh(Term::Call(TIMES, vec![*inner(left), *inner(right)])))
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
            let parts = parts.into_iter().map(|part| term(part, natives)).collect();
            burn(Term::Fold(kind, inner(source), pattern, parts))
        }
        Term::TryCatch(part, catch) => Term::TryCatch(inner(part), catch.map(inner)),
        Term::IfThenElse(branches, otherwise) => {
            let branch = |(test, then)| (term(test, natives), term(then, natives));
            let branches = branches.into_iter().map(branch).collect();
            burn(Term::IfThenElse(branches, otherwise.map(inner)))
        }
        Term::Def(defs, part) => {
            let defs = defs.into_iter().map(|def| definition(def, natives)).collect();
            Term::Def(defs, inner(part))
        }
        Term::Call(name, args) => {
            let native = natives.contains(&name);
            let made = Term::Call(name, args.into_iter().map(|arg| term(arg, natives)).collect());
            burn(if native { weigh(made) } else { made })
        }
        Term::Path(part, Path(parts)) => {
            let step = |(part, optional)| {
                let part = match part {
                    Part::Index(index) => Part::Index(term(index, natives)),
                    Part::Range(from, to) => Part::Range(
                        from.map(|from| term(from, natives)),
                        to.map(|to| term(to, natives)),
                    ),
                };
                (part, optional)
            };
            burn(Term::Path(inner(part), Path(parts.into_iter().map(step).collect())))
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
