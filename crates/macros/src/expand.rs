//! Generates the code that `#[tool]` adds to a function.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{Error, Expr, ExprLit, Ident, ItemFn, Lit, Type};

use crate::options::{Options, is_tool_name};
use crate::signature::{Argument, Parameter, ReturnKind, Signature, has_serde_default};

/// Returns the function and the generated code beside it.
pub(crate) fn tool(options: TokenStream, function: TokenStream) -> syn::Result<TokenStream> {
    let options = Options::parse(options)?;
    let mut function: ItemFn = syn::parse2(function)?;
    let signature = Signature::parse(&mut function)?;
    let visibility = &function.vis;
    let name = &function.sig.ident;
    let arguments = arguments(&signature.parameters);
    let definition = definition(&options, &function, &signature)?;
    let discovery_entry = (!options.manual).then(|| discovery_entry(name));
    // Where `#[cfg]` leaves out the function, it leaves out the generated code too.
    let conditions: Vec<_> =
        function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
    let doc = format!("The tool made of [`{name}`](fn@{name}).");
    Ok(quote! {
        // Arguments are parsed from JSON, so the function has to own them.
        #[allow(clippy::needless_pass_by_value)]
        #function

        #(#conditions)*
        #[doc = #doc]
        #[allow(non_camel_case_types, unreachable_pub)]
        #visibility enum #name {}

        #(#conditions)*
        const _: () = {
            #arguments

            impl ::native::Tool for #name {
                fn definition() -> ::native::Definition {
                    #definition
                }
            }

            #discovery_entry
        };
    })
}

/// The entry by which a registry discovers the tool.
fn discovery_entry(name: &Ident) -> TokenStream {
    quote! {
        ::native::__private::inventory::submit! {
            ::native::Entry::new(
                <#name as ::native::Tool>::definition,
                ::core::module_path!(),
                ::core::stringify!(#name),
            )
        }
    }
}

/// The struct that the arguments are parsed into, and that their schema is derived from.
fn arguments(parameters: &[Parameter]) -> TokenStream {
    let list: Vec<&Argument> = parameters
        .iter()
        .filter_map(|parameter| match parameter {
            Parameter::Argument(argument) => Some(&**argument),
            Parameter::Context | Parameter::State(_) | Parameter::AllArguments(_) => None,
        })
        .collect();
    let fields = list.iter().map(|argument| field(argument));
    let defaults = list.iter().filter_map(|argument| default_function(argument));
    quote! {
        #[derive(
            ::native::__private::serde::Deserialize,
            ::native::__private::schemars::JsonSchema,
        )]
        #[serde(crate = "::native::__private::serde", deny_unknown_fields)]
        #[schemars(crate = "::native::__private::schemars")]
        struct __ToolArguments {
            #(#fields,)*
        }

        #(#defaults)*
    }
}

fn field(argument: &Argument) -> TokenStream {
    let Argument { name, ty, attributes, .. } = argument;
    let default = argument.default.is_some() && !has_serde_default(attributes);
    let default = default.then(|| {
        let path = default_name(argument).to_string();
        quote!(#[serde(default = #path)])
    });
    quote!(#(#attributes)* #default #name: #ty)
}

fn default_function(argument: &Argument) -> Option<TokenStream> {
    let value = argument.default.as_ref()?;
    let (name, ty) = (default_name(argument), &argument.ty);
    // `into` lets a string literal stand for a `String`. It would infer `i32` for an
    // integer literal, so such a literal is left to take the type of the argument.
    let value = match is_untyped_integer(value) && is_integer_type(ty) {
        true => quote!(#value),
        false => quote!(::core::convert::Into::into(#value)),
    };
    Some(quote! {
        #[allow(clippy::useless_conversion)]
        fn #name() -> #ty { #value }
    })
}

/// Returns whether an expression is an integer literal without a type suffix.
fn is_untyped_integer(value: &Expr) -> bool {
    if let Expr::Unary(negated) = value {
        return is_untyped_integer(&negated.expr);
    }
    let Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) = value else { return false };
    number.suffix().is_empty()
}

fn is_integer_type(ty: &Type) -> bool {
    let kinds =
        ["i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize"];
    let name = ty.to_token_stream().to_string();
    kinds.contains(&name.as_str())
}

fn default_name(argument: &Argument) -> Ident {
    format_ident!("__default_of_{}", argument.name.unraw())
}

/// The expression that builds the tool's `native::Definition`.
fn definition(
    options: &Options,
    function: &ItemFn,
    signature: &Signature,
) -> syn::Result<TokenStream> {
    let name = tool_name(options, function)?;
    let description = description(options, function, signature)?;
    let arguments_type = arguments_type(&signature.parameters);
    let needs = signature.parameters.iter().filter_map(|parameter| match parameter {
        Parameter::State(ty) => Some(quote!(.needs_state::<#ty>())),
        Parameter::Context | Parameter::AllArguments(_) | Parameter::Argument(_) => None,
    });
    let output = match &signature.returns {
        ReturnKind::Value(ty) => Some(quote!(.returns::<#ty>())),
        ReturnKind::Unit | ReturnKind::Content => None,
    };
    let setters = option_setters(options);
    let run = run_setter(function, signature, &arguments_type);
    Ok(quote! {
        ::native::Definition::new(#name)
            .description(#description)
            .module(::core::module_path!(), ::core::file!(), ::core::line!())
            .takes::<#arguments_type>()
            #output
            #(#needs)*
            #setters
            #run
    })
}

fn tool_name(options: &Options, function: &ItemFn) -> syn::Result<String> {
    if let Some(name) = &options.name {
        return Ok(name.value());
    }
    let name = function.sig.ident.unraw().to_string();
    if is_tool_name(&name) {
        return Ok(name);
    }
    let message = "MCP allows only `A-Z a-z 0-9 _ - . /` in a tool's name; add `name = \"…\"`";
    Err(Error::new_spanned(&function.sig.ident, message))
}

fn description(options: &Options, function: &ItemFn, signature: &Signature) -> syn::Result<String> {
    let given = options.description.as_ref().map(syn::LitStr::value);
    let text = given.unwrap_or_else(|| signature.description.clone());
    if !text.trim().is_empty() {
        return Ok(text);
    }
    let message = "a tool needs a description: write a doc comment that says what it does, when \
                   to use it and what comes back";
    Err(Error::new_spanned(&function.sig.ident, message))
}

fn arguments_type(parameters: &[Parameter]) -> TokenStream {
    let whole = parameters.iter().find_map(|parameter| match parameter {
        Parameter::AllArguments(ty) => Some(ty.to_token_stream()),
        Parameter::Context | Parameter::State(_) | Parameter::Argument(_) => None,
    });
    whole.unwrap_or_else(|| quote!(__ToolArguments))
}

/// One setter of `native::Definition` for each option that was given.
fn option_setters(options: &Options) -> TokenStream {
    let text = |method: &str, value: &Option<syn::LitStr>| {
        let method = format_ident!("{method}");
        value.as_ref().map(|value| quote!(.#method(#value)))
    };
    let flag = |method: &str, value: Option<bool>| {
        let method = format_ident!("{method}");
        value.map(|value| quote!(.#method(#value)))
    };
    let span = |method: &str, value: Option<std::time::Duration>| {
        let method = format_ident!("{method}");
        let millis = value.map(|value| u64::try_from(value.as_millis()).unwrap_or(u64::MAX));
        millis.map(|millis| quote!(.#method(::core::time::Duration::from_millis(#millis))))
    };
    let tags = &options.tags;
    let parts = [
        text("title", &options.title),
        text("category", &options.category),
        text("version", &options.version),
        text("deprecated_in", &options.deprecated_in),
        flag("read_only", options.read_only),
        flag("destructive", options.destructive),
        flag("idempotent", options.idempotent),
        flag("open_world", options.open_world),
        span("cache_ttl", options.cache_ttl),
        span("timeout", options.timeout),
        (!tags.is_empty()).then(|| quote!(.tags(&[#(#tags),*]))),
    ];
    parts.into_iter().flatten().collect()
}

/// The setter that is given a closure, which parses the arguments, calls the function
/// and converts its result. All generated names begin with `__`, so that they cannot
/// collide with names that the user chose.
fn run_setter(
    function: &ItemFn,
    signature: &Signature,
    arguments_type: &TokenStream,
) -> TokenStream {
    let name = &function.sig.ident;
    let values = signature.parameters.iter().map(|parameter| match parameter {
        Parameter::Context => quote!(__call.context()),
        Parameter::State(ty) => quote!(__call.state::<#ty>()?),
        Parameter::AllArguments(_) => quote!(::native::Args(__arguments)),
        Parameter::Argument(argument) => {
            let field = &argument.name;
            quote!(__arguments.#field)
        }
    });
    let is_async = function.sig.asyncness.is_some();
    let wait = is_async.then(|| quote!(.await));
    let fallible = signature.fallible.then(|| quote!(?));
    let called = quote!(#name(#(#values),*) #wait #fallible);
    let answer = match &signature.returns {
        ReturnKind::Unit => quote!({ #called; ::native::Output::done() }),
        ReturnKind::Content => quote!(::native::Output::from(#called)),
        ReturnKind::Value(_) => quote!(::native::Output::value(&#called)?),
    };
    let body = quote! {
        #[allow(unused_variables)]
        let __arguments: #arguments_type = __call.arguments()?;
        let __answer = #answer;
        ::core::result::Result::Ok::<::native::Output, ::native::ToolError>(__answer)
    };
    if is_async {
        quote!(.runs_async(|__call| async move { #body }))
    } else {
        quote!(.runs(|__call| { #body }))
    }
}

#[cfg(test)]
mod tests;
