//! Parses the function under `#[tool]`: its parameters, return type and description.

use syn::punctuated::Punctuated;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, Ident, ItemFn, Lit, Meta, Pat, Path,
    PathArguments, PathSegment, ReturnType, Token, Type,
};

/// One parameter of the function, by where its value comes from.
pub(crate) enum Parameter {
    /// `context: &Context`, the context of the call.
    Context,
    /// `State<T>`, shared state of the type `T`.
    State(Box<Type>),
    /// `Args<T>`, the whole arguments object as the type `T`.
    AllArguments(Box<Type>),
    /// One member of the arguments object.
    Argument(Box<Argument>),
}

/// One member of the arguments object.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    /// Doc comments, `#[serde]` and `#[schemars]`, for the field that it becomes.
    pub(crate) attributes: Vec<Attribute>,
    /// The expression in `#[default(…)]`.
    pub(crate) default: Option<Expr>,
}

/// The return type of the function, without a `Result` around it.
pub(crate) enum ReturnKind {
    /// `()`, or no return type.
    Unit,
    /// `Text` or `Blocks`: content of a reply, without an output schema.
    Content,
    /// Any other type; the output schema is derived from it.
    Value(Box<Type>),
}

/// What the macro needs to know of the function.
pub(crate) struct Signature {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) returns: ReturnKind,
    /// Whether the function returns a `Result`.
    pub(crate) fallible: bool,
    /// The doc comment.
    pub(crate) description: String,
}

impl Signature {
    /// Parses the function, and removes the attributes on its parameters that only
    /// this macro understands.
    pub(crate) fn parse(function: &mut ItemFn) -> syn::Result<Signature> {
        refuse_generics(function)?;
        let parameters =
            function.sig.inputs.iter_mut().map(parameter).collect::<syn::Result<Vec<_>>>()?;
        refuse_mixed_arguments(&parameters, function)?;
        let (returns, fallible) = return_kind(&function.sig.output);
        Ok(Signature { parameters, returns, fallible, description: doc(&function.attrs) })
    }
}

fn refuse_generics(function: &ItemFn) -> syn::Result<()> {
    let generics = &function.sig.generics;
    if generics.params.is_empty() {
        return Ok(());
    }
    Err(Error::new_spanned(generics, "a tool has one schema, so its function cannot be generic"))
}

fn refuse_mixed_arguments(parameters: &[Parameter], function: &ItemFn) -> syn::Result<()> {
    let whole = parameters.iter().filter(|p| matches!(p, Parameter::AllArguments(_))).count();
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
    if let Some(ty) = generic_argument(&typed.ty, "State") {
        return Ok(Parameter::State(Box::new(ty)));
    }
    if let Some(ty) = generic_argument(&typed.ty, "Args") {
        return Ok(Parameter::AllArguments(Box::new(ty)));
    }
    let Pat::Ident(pattern) = &*typed.pat else {
        let message = "an argument needs a plain name, because the schema shows it";
        return Err(Error::new_spanned(&typed.pat, message));
    };
    let name = pattern.ident.clone();
    let (attributes, default) = take_attributes(&mut typed.attrs)?;
    let argument = Argument { name, ty: (*typed.ty).clone(), attributes, default };
    Ok(Parameter::Argument(Box::new(argument)))
}

/// Takes the attributes that only this macro understands from a parameter: returns
/// those for the field that it becomes, and the expression in `#[default(…)]`.
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

/// Returns the kind of the return type, and whether it stands in a `Result`. Types
/// are recognised by their names, because a macro cannot resolve them.
fn return_kind(output: &ReturnType) -> (ReturnKind, bool) {
    let ReturnType::Type(_, ty) = output else {
        return (ReturnKind::Unit, false);
    };
    match generic_argument(ty, "Result") {
        Some(inner) => (success_kind(&inner), true),
        None => (success_kind(ty), false),
    }
}

fn success_kind(ty: &Type) -> ReturnKind {
    if let Type::Tuple(tuple) = ty
        && tuple.elems.is_empty()
    {
        return ReturnKind::Unit;
    }
    let is_content = last_segment(ty).is_some_and(|s| s.ident == "Text" || s.ident == "Blocks");
    if is_content { ReturnKind::Content } else { ReturnKind::Value(Box::new(ty.clone())) }
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    if let Type::Group(inner) = ty {
        return last_segment(&inner.elem);
    }
    if let Type::Path(path) = ty { path.path.segments.last() } else { None }
}

/// Returns the `T` of `Name<T, …>`, if the type has this name.
fn generic_argument(ty: &Type, name: &str) -> Option<Type> {
    let segment = last_segment(ty).filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(generics) = &segment.arguments else { return None };
    generics.args.iter().find_map(|argument| {
        if let GenericArgument::Type(ty) = argument { Some(ty.clone()) } else { None }
    })
}

/// The doc comment, without the space that follows each `///`.
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

/// Returns whether a `#[serde(default)]` among the attributes already gives a default.
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
