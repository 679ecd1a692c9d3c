//! A recipe: how a server is started or reached, with placeholders for inputs that the
//! operator has to provide.

use std::collections::BTreeMap;

pub use crate::template::Template;
use crate::template::TemplatePart;

/// A server that can be added to the configuration once its inputs are known.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// Its name where it was published.
    pub name: String,
    pub description: Option<String>,
    pub version: Option<String>,
    pub run: Run,
    pub inputs: Vec<Input>,
    /// Warnings for the operator.
    pub notes: Vec<String>,
}

/// How a server is started or reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Run {
    Program {
        command: String,
        args: Vec<Argument>,
        env: BTreeMap<String, Template>,
    },
    Address {
        url: Template,
        headers: BTreeMap<String, Template>,
        /// The older HTTP with server-sent events.
        is_sse: bool,
    },
}

/// One argument of a program; it is left out when an input in it has no value.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The option before the value, such as `--port`.
    pub flag: Option<String>,
    /// `None` for a flag that stands alone.
    pub value: Option<Template>,
}

/// A value that the operator provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub name: String,
    pub about: String,
    pub is_secret: bool,
    pub is_required: bool,
    pub default: Option<String>,
    /// The allowed values; empty when any value is allowed.
    pub choices: Vec<String>,
}

/// The value of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Literal text.
    Plain(String),
    /// A reference that the configuration resolves, such as `${env:TOKEN}`.
    Reference(String),
}

/// A recipe with all inputs filled in, as texts for the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filled {
    Program { command: String, args: Vec<String>, env: BTreeMap<String, String> },
    Address { url: String, headers: BTreeMap<String, String>, is_sse: bool },
}

/// Why a recipe cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    #[error("`{0}` is needed")]
    Missing(String),
    #[error("`{value}` is not among the choices of `{input}`: {choices}")]
    NoChoice { input: String, value: String, choices: String },
    #[error("it has no input called `{0}`")]
    Unknown(String),
}

/// Escapes `${` in a text, so that the configuration does not take it for a placeholder.
pub fn escape_placeholders(text: &str) -> String {
    text.replace("${", "$${")
}

impl Argument {
    /// Creates a fixed argument.
    pub fn word(word: &str) -> Argument {
        Argument { flag: None, value: Some(Template::text(word)) }
    }
}

impl Recipe {
    /// Returns the required inputs that have neither a value nor a default.
    pub fn missing(&self, values: &BTreeMap<String, Value>) -> Vec<&Input> {
        let needs = |input: &&Input| {
            input.is_required && input.default.is_none() && !values.contains_key(&input.name)
        };
        self.inputs.iter().filter(needs).collect()
    }

    /// Fills in the inputs.
    pub fn fill(&self, values: &BTreeMap<String, Value>) -> Result<Filled, FillError> {
        self.check(values)?;
        let value = |name: &str| -> Option<Value> {
            let default = || {
                let input = self.inputs.iter().find(|input| input.name == name)?;
                input.default.clone().map(Value::Plain)
            };
            values.get(name).cloned().or_else(default)
        };
        let text = |template: &Template| template.fill(&value);
        let pairs = |pairs: &BTreeMap<String, Template>| {
            let filled =
                pairs.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?)));
            filled.collect::<BTreeMap<String, String>>()
        };
        Ok(match &self.run {
            Run::Program { command, args, env } => {
                let words = args.iter().filter_map(|argument| argument.fill(&text)).flatten();
                Filled::Program {
                    command: escape_placeholders(command),
                    args: words.collect(),
                    env: pairs(env),
                }
            }
            Run::Address { url, headers, is_sse } => {
                let missing =
                    || FillError::Missing(url.inputs().next().unwrap_or("url").to_owned());
                let url = text(url).ok_or_else(missing)?;
                Filled::Address { url, headers: pairs(headers), is_sse: *is_sse }
            }
        })
    }

    fn check(&self, values: &BTreeMap<String, Value>) -> Result<(), FillError> {
        for (name, value) in values {
            let known = self.inputs.iter().find(|input| input.name == *name);
            let input = known.ok_or_else(|| FillError::Unknown(name.clone()))?;
            if let Value::Plain(text) = value
                && !input.choices.is_empty()
                && !input.choices.contains(text)
            {
                let (input, value) = (name.clone(), text.clone());
                return Err(FillError::NoChoice {
                    input,
                    value,
                    choices: known_choices(self, name),
                });
            }
        }
        match self.missing(values).first() {
            Some(input) => Err(FillError::Missing(input.name.clone())),
            None => Ok(()),
        }
    }

    /// Adds an input under a unique name, and returns that name; an equal input is reused.
    pub(crate) fn add_input(inputs: &mut Vec<Input>, mut input: Input) -> String {
        let known = inputs.iter().position(|other| *other == input);
        if let Some(at) = known {
            return inputs[at].name.clone();
        }
        let wanted = if input.name.is_empty() { "value".to_owned() } else { input.name.clone() };
        let free = |name: &String| inputs.iter().all(|other| other.name != *name);
        let mut names =
            std::iter::once(wanted.clone()).chain((2..).map(|n| format!("{wanted}-{n}")));
        input.name = names.find(free).expect("there is always a free number");
        let name = input.name.clone();
        inputs.push(input);
        name
    }
}

fn known_choices(recipe: &Recipe, name: &str) -> String {
    let input = recipe.inputs.iter().find(|input| input.name == name);
    input.map(|input| input.choices.join(", ")).unwrap_or_default()
}

impl Argument {
    fn fill(&self, text: &impl Fn(&Template) -> Option<String>) -> Option<Vec<String>> {
        let value = match &self.value {
            Some(value) => Some(text(value)?),
            None => None,
        };
        Some(self.flag.as_deref().map(escape_placeholders).into_iter().chain(value).collect())
    }
}

impl Template {
    /// Returns the text; `None` when an input in it has no value.
    ///
    /// What is literal is put together before it is escaped: `$` in one piece and `{` in the
    /// next are a placeholder, too.
    fn fill(&self, value: &impl Fn(&str) -> Option<Value>) -> Option<String> {
        let (mut filled, mut literal) = (String::new(), String::new());
        for piece in &self.0 {
            let piece = match piece {
                TemplatePart::Text(text) => Value::Plain(text.clone()),
                TemplatePart::Input(name) => value(name)?,
            };
            match piece {
                Value::Plain(text) => literal.push_str(&text),
                Value::Reference(reference) => {
                    filled.push_str(&escape_placeholders(&std::mem::take(&mut literal)));
                    filled.push_str(&reference);
                }
            }
        }
        filled.push_str(&escape_placeholders(&literal));
        Some(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Recipe {
        let input = |name: &str, is_required| Input {
            name: name.to_owned(),
            about: String::new(),
            is_secret: false,
            is_required,
            default: None,
            choices: Vec::new(),
        };
        let value = |name: &str| Some(Template::input(name));
        Recipe {
            name: "x".to_owned(),
            description: None,
            version: None,
            run: Run::Program {
                command: "npx".to_owned(),
                args: vec![
                    Argument::word("x@1"),
                    Argument { flag: Some("--root".to_owned()), value: value("root") },
                    Argument { flag: Some("--mode".to_owned()), value: value("mode") },
                ],
                env: BTreeMap::from([("KEY".to_owned(), Template::input("mode"))]),
            },
            inputs: vec![input("root", true), input("mode", false)],
            notes: Vec::new(),
        }
    }

    fn plain(pairs: &[(&str, &str)]) -> BTreeMap<String, Value> {
        let pair =
            |(name, text): &(&str, &str)| ((*name).to_owned(), Value::Plain((*text).to_owned()));
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn what_has_no_value_is_left_out_and_what_is_needed_is_named() {
        assert_eq!(recipe().fill(&plain(&[])), Err(FillError::Missing("root".to_owned())));
        let filled = recipe().fill(&plain(&[("root", "/a ${env:HOME}")])).unwrap();
        let args = ["x@1", "--root", "/a $${env:HOME}"].map(str::to_owned).to_vec();
        let (command, env) = ("npx".to_owned(), BTreeMap::new());
        assert_eq!(filled, Filled::Program { command, args, env });
    }

    #[test]
    fn no_pieces_of_a_strangers_text_become_a_placeholder_together() {
        let pieces = ["", "$", "{", "{cmd:id}", "$$", "${", "}", "a$", "{env:HOME}"];
        for (first, second) in pieces.iter().flat_map(|one| pieces.map(|other| (*one, other))) {
            let mut recipe = recipe();
            let part = |name: &str| TemplatePart::Input(name.to_owned());
            let texts = vec![part("root"), part("mode"), TemplatePart::Text(second.to_owned())];
            recipe.run =
                Run::Address { url: Template(texts), headers: BTreeMap::new(), is_sse: false };
            recipe.inputs[1].default = Some(second.to_owned());
            let filled = recipe.fill(&plain(&[("root", first)])).unwrap();
            let Filled::Address { url, .. } = filled else { panic!("{filled:?}") };
            assert_eq!(url, escape_placeholders(&format!("{first}{second}{second}")));
        }
    }

    #[test]
    fn a_reference_stays_one_and_unknown_inputs_are_refused() {
        let mut values = plain(&[("root", "/a")]);
        values.insert("mode".to_owned(), Value::Reference("${keyring:x}".to_owned()));
        let Filled::Program { env, .. } = recipe().fill(&values).unwrap() else { panic!() };
        assert_eq!(env["KEY"], "${keyring:x}");
        let wrong = recipe().fill(&plain(&[("root", "/a"), ("rooot", "/b")]));
        assert_eq!(wrong, Err(FillError::Unknown("rooot".to_owned())));
    }

    #[test]
    fn only_a_choice_is_taken_where_there_are_choices() {
        let mut recipe = recipe();
        recipe.inputs[1].choices = vec!["read".to_owned(), "write".to_owned()];
        let wrong = recipe.fill(&plain(&[("root", "/a"), ("mode", "all")])).unwrap_err();
        assert!(wrong.to_string().contains("read, write"), "{wrong}");
    }
}
