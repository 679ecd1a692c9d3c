//! What the function says: its parameters, its result, its description.

use syn::punctuated::Punctuated;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, Ident, ItemFn, Lit, Meta, Pat, Path,
    PathArguments, PathSegment, ReturnType, Token, Type,
};

/// One parameter, by where its value comes from.
pub(crate) enum Parameter {
    /// `context: &Context`
    Context,
    /// `State<T>`, with `T`.
    State(Box<Type>),
    /// `Args<T>`, with `T`: the whole arguments object.
    Whole(Box<Type>),
    /// One member of the arguments object.
    Argument(Box<Argument>),
}

/// One member of the arguments object.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) of: Type,
    /// Doc comments, `#[serde]` and `#[schemars]`, moved to the field.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) default: Option<Expr>,
}

/// How the function answers.
pub(crate) enum Answer {
    /// `()`, or nothing.
    Nothing,
    /// `Text` or `Blocks`: goes out as it is.
    Direct,
    /// A value with a schema.
    Value(Box<Type>),
}

/// The function, taken apart. Attributes that only this macro understands are
/// removed from it on the way.
pub(crate) struct Signature {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) answer: Answer,
    pub(crate) fallible: bool,
    pub(crate) description: String,
}

impl Signature {
    pub(crate) fn read(function: &mut ItemFn) -> syn::Result<Signature> {
        refuse_generics(function)?;
        let parameters =
            function.sig.inputs.iter_mut().map(parameter).collect::<syn::Result<Vec<_>>>()?;
        refuse_mixed(&parameters, function)?;
        let (answer, fallible) = answer(&function.sig.output);
        Ok(Signature { parameters, answer, fallible, description: doc(&function.attrs) })
    }
}

fn refuse_generics(function: &ItemFn) -> syn::Result<()> {
    let generics = &function.sig.generics;
    if generics.params.is_empty() {
        return Ok(());
    }
    Err(Error::new_spanned(generics, "a tool has one schema, so its function cannot be generic"))
}

fn refuse_mixed(parameters: &[Parameter], function: &ItemFn) -> syn::Result<()> {
    let whole = parameters.iter().filter(|p| matches!(p, Parameter::Whole(_))).count();
    let single = parameters.iter().filter(|p| matches!(p, Parameter::Argument(_))).count();
    if whole == 0 || (whole == 1 && single == 0) {
        return Ok(());
    }
    let message = "`Args<T>` takes the whole arguments object, so no other argument can stand \
                   beside it";
    Err(Error::new_spanned(&function.sig.inputs, message))
}

fn parameter(input: &mut FnArg) -> syn::Result<Parameter> {
    let typed = match input {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => {
            let message = "a tool is a free function; keep state in `State<T>`";
            return Err(Error::new_spanned(receiver, message));
        }
    };
    if let Type::Reference(reference) = &*typed.ty {
        if last_segment(&reference.elem).is_some_and(|segment| segment.ident == "Context") {
            return Ok(Parameter::Context);
        }
        let message = "arguments are owned: take `String` for `&str`, `Vec<T>` for `&[T]`";
        return Err(Error::new_spanned(&typed.ty, message));
    }
    if let Some(of) = generic_of(&typed.ty, "State") {
        return Ok(Parameter::State(Box::new(of)));
    }
    if let Some(of) = generic_of(&typed.ty, "Args") {
        return Ok(Parameter::Whole(Box::new(of)));
    }
    let Pat::Ident(pattern) = &*typed.pat else {
        let message = "an argument needs a plain name, because the schema shows it";
        return Err(Error::new_spanned(&typed.pat, message));
    };
    let name = pattern.ident.clone();
    let (attributes, default) = take_attributes(&mut typed.attrs)?;
    let argument = Argument { name, of: (*typed.ty).clone(), attributes, default };
    Ok(Parameter::Argument(Box::new(argument)))
}

/// Splits a parameter's attributes: what the field gets, the default, and what
/// stays on the parameter.
fn take_attributes(attributes: &mut Vec<Attribute>) -> syn::Result<(Vec<Attribute>, Option<Expr>)> {
    let (mut moved, mut kept, mut default) = (Vec::new(), Vec::new(), None);
    for attribute in attributes.drain(..) {
        if attribute.path().is_ident("default") {
            default = Some(attribute.parse_args::<Expr>()?);
        } else if ["doc", "serde", "schemars"].iter().any(|name| attribute.path().is_ident(name)) {
            moved.push(attribute);
        } else {
            kept.push(attribute);
        }
    }
    *attributes = kept;
    Ok((moved, default))
}

/// Reads the return type by how it is written: `Result<T, E>` can fail, `Text`
/// and `Blocks` go out as they are, everything else is a value with a schema.
fn answer(output: &ReturnType) -> (Answer, bool) {
    let ReturnType::Type(_, of) = output else {
        return (Answer::Nothing, false);
    };
    match generic_of(of, "Result") {
        Some(inner) => (plain_answer(&inner), true),
        None => (plain_answer(of), false),
    }
}

fn plain_answer(of: &Type) -> Answer {
    if let Type::Tuple(tuple) = of
        && tuple.elems.is_empty()
    {
        return Answer::Nothing;
    }
    let direct = last_segment(of).is_some_and(|s| s.ident == "Text" || s.ident == "Blocks");
    if direct { Answer::Direct } else { Answer::Value(Box::new(of.clone())) }
}

fn last_segment(of: &Type) -> Option<&PathSegment> {
    if let Type::Group(inner) = of {
        return last_segment(&inner.elem);
    }
    if let Type::Path(path) = of { path.path.segments.last() } else { None }
}

/// `T` of `Name<T, …>`.
fn generic_of(of: &Type, name: &str) -> Option<Type> {
    let segment = last_segment(of).filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(generics) = &segment.arguments else { return None };
    generics.args.iter().find_map(|argument| {
        if let GenericArgument::Type(of) = argument { Some(of.clone()) } else { None }
    })
}

/// The doc comment, unindented by the one blank that `///` leaves.
fn doc(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes.iter().filter_map(doc_line).collect();
    let joined = lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line));
    joined.collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    if !pair.path.is_ident("doc") {
        return None;
    }
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { return None };
    Some(text.value())
}

/// Returns whether an argument's own attributes already say what stands in for it.
pub(crate) fn has_serde_default(attributes: &[Attribute]) -> bool {
    let in_list = |attribute: &Attribute| {
        let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
        let metas = attribute.parse_args_with(parse).ok()?;
        Some(metas.iter().any(|meta| is_default(meta.path())))
    };
    attributes.iter().filter(|a| a.path().is_ident("serde")).any(|a| in_list(a).unwrap_or(false))
}

fn is_default(path: &Path) -> bool {
    path.is_ident("default")
}
