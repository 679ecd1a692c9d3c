//! Parses `server.json`, a publisher's description of a server (schema 2025-12-11).
//!
//! A document lists packages and remote URLs; each becomes an [`Offer`]. Unknown members
//! are skipped, and what cannot be converted becomes a note of the recipe.

use std::collections::BTreeMap;

use serde::Deserialize;
use url::{Host, Url};

use crate::package::{InvalidName, PackageKind};
use crate::recipe::{Argument, Input, Recipe, Run, Template};
use crate::template::TemplatePart;

/// One way to run or reach the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Offer {
    Recipe(Box<Recipe>),
    /// A bundle to download, with its expected SHA-256.
    Bundle {
        url: String,
        sha256: String,
    },
}

/// Why a document cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("it is no `server.json`: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("it offers nothing that can be run or reached here: {0}")]
    NoOffer(String),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    packages: Vec<Package>,
    #[serde(default)]
    remotes: Vec<Transport>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Package {
    registry_type: String,
    #[serde(default)]
    registry_base_url: Option<String>,
    identifier: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    file_sha256: Option<String>,
    #[serde(default)]
    transport: Option<Transport>,
    #[serde(default)]
    runtime_arguments: Vec<RawArgument>,
    #[serde(default)]
    package_arguments: Vec<RawArgument>,
    #[serde(default)]
    environment_variables: Vec<RawInput>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Transport {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    headers: Vec<RawInput>,
    #[serde(default)]
    variables: BTreeMap<String, RawInput>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawArgument {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    value_hint: Option<String>,
    #[serde(flatten)]
    input: RawInput,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawInput {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    is_required: bool,
    #[serde(default)]
    is_secret: bool,
    #[serde(default)]
    format: Option<String>,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    default: Option<serde_json::Value>,
    #[serde(default)]
    choices: Vec<String>,
    #[serde(default)]
    variables: BTreeMap<String, RawInput>,
}

/// Returns all offers of a document, packages before remotes.
pub fn offers(text: &str) -> Result<Vec<Offer>, DocumentError> {
    let document: Document = serde_json::from_str(text)?;
    let (mut offers, mut refused) = (Vec::new(), Vec::new());
    for package in &document.packages {
        match package_offer(&document, package) {
            Ok(offer) => offers.push(offer),
            Err(why) => refused.push(why),
        }
    }
    for remote in &document.remotes {
        match remote_recipe(&document, remote) {
            Ok(recipe) => offers.push(Offer::Recipe(Box::new(recipe))),
            Err(why) => refused.push(why),
        }
    }
    if offers.is_empty() {
        let why = if refused.is_empty() {
            "no packages, no remotes".to_owned()
        } else {
            refused.join("; ")
        };
        return Err(DocumentError::NoOffer(why));
    }
    Ok(offers)
}

fn package_offer(document: &Document, package: &Package) -> Result<Offer, String> {
    if package.registry_type == "mcpb" {
        let sha256 = package.file_sha256.clone().filter(|hash| hash.len() == 64);
        let sha256 = sha256.ok_or("a bundle without a `fileSha256` is not trusted")?;
        if !package.identifier.starts_with("https://") {
            return Err(format!("the bundle `{}` is not at an https address", package.identifier));
        }
        return Ok(Offer::Bundle {
            url: package.identifier.clone(),
            sha256: sha256.to_lowercase(),
        });
    }
    let transport = package.transport.as_ref().map_or("stdio", |transport| transport.kind.as_str());
    if transport != "stdio" {
        return Err(format!(
            "`{}` would listen by {transport} and is not started here",
            package.identifier
        ));
    }
    let kind = package_kind(&package.registry_type)?;
    package_recipe(document, package, kind)
        .map(|recipe| Offer::Recipe(Box::new(recipe)))
        .map_err(|bad| bad.to_string())
}

fn package_kind(registry: &str) -> Result<PackageKind, String> {
    match registry {
        "npm" => Ok(PackageKind::Npm),
        "pypi" => Ok(PackageKind::Pypi),
        "nuget" => Ok(PackageKind::Nuget),
        "oci" => Ok(PackageKind::Oci),
        other => Err(format!("packages of `{other}` are not known")),
    }
}

fn package_recipe(
    document: &Document,
    package: &Package,
    kind: PackageKind,
) -> Result<Recipe, InvalidName> {
    let mut inputs = Vec::new();
    let mut notes = Vec::new();
    let usual = ["registry.npmjs.org", "pypi.org", "api.nuget.org", "docker.io", "ghcr.io"];
    if let Some(base) = &package.registry_base_url
        && !usual.iter().any(|host| base.contains(host))
    {
        notes.push(format!(
            "it names the package registry {base}, which is not used: your own settings count"
        ));
    }
    let mut env = BTreeMap::new();
    for variable in &package.environment_variables {
        let Some(name) = variable.name.clone().filter(|name| is_safe_variable(name)) else {
            notes.push("a variable without a proper name was left out".to_owned());
            continue;
        };
        let value = template(variable, &name, &mut inputs);
        env.insert(name, value);
    }
    let runtime = arguments(&package.runtime_arguments, &mut inputs);
    let version = package.version.as_deref().filter(|version| *version != "latest");
    let mut args =
        kind.runner_arguments(&package.identifier, version, runtime, env.keys().cloned())?;
    args.extend(arguments(&package.package_arguments, &mut inputs));
    if !package.runtime_arguments.is_empty() {
        let runner = kind.runner();
        notes.push(format!(
            "its publisher adds arguments for `{runner}`: read the command before you agree"
        ));
    }
    Ok(Recipe {
        name: document.name.clone(),
        description: document.description.clone(),
        version: package.version.clone().or_else(|| document.version.clone()),
        run: Run::Program { command: kind.runner().to_owned(), args, env },
        inputs,
        notes,
    })
}

/// Refuses a URL that a publisher must not use: unencrypted to another machine, or to the
/// link-local addresses at which clouds hand out credentials.
pub fn check_remote_url(address: &str) -> Result<(), String> {
    let url = Url::parse(address).map_err(|error| format!("`{address}` is no address: {error}"))?;
    let (is_loopback, is_link_local) = match url.host() {
        Some(Host::Ipv4(ip)) => (ip.is_loopback(), ip.is_link_local()),
        Some(Host::Ipv6(ip)) => match ip.to_ipv4_mapped() {
            Some(ip) => (ip.is_loopback(), ip.is_link_local()),
            None => (ip.is_loopback(), ip.is_unicast_link_local()),
        },
        Some(Host::Domain(name)) => (name == "localhost", name == "metadata.google.internal"),
        None => (false, false),
    };
    match url.scheme() {
        _ if is_link_local => Err(format!("`{address}` is an address of this network's own")),
        _ if !url.username().is_empty() || url.password().is_some() => {
            Err(format!("`{address}` has a user name before its host"))
        }
        "https" => Ok(()),
        "http" if is_loopback => Ok(()),
        "http" => Err(format!("`{address}` is not an https address")),
        _ => Err(format!("`{address}` is no address")),
    }
}

fn remote_recipe(document: &Document, remote: &Transport) -> Result<Recipe, String> {
    let url = remote.url.as_deref().ok_or("an address without a `url`")?;
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err(format!("`{url}` is no address"));
    }
    let mut inputs = Vec::new();
    let url = template_with_variables(url, &remote.variables, &mut inputs);
    let headers = remote.headers.iter().filter_map(|header| {
        let name = header.name.clone().filter(|name| is_header(name))?;
        let value = template(header, &name, &mut inputs);
        Some((name, value))
    });
    let headers = headers.collect();
    Ok(Recipe {
        name: document.name.clone(),
        description: document.description.clone(),
        version: document.version.clone(),
        run: Run::Address { url, headers, is_sse: remote.kind == "sse" },
        inputs,
        notes: Vec::new(),
    })
}

fn arguments(raw: &[RawArgument], inputs: &mut Vec<Input>) -> Vec<Argument> {
    let read = |argument: &RawArgument| {
        let flag = argument.input.name.clone().filter(|_| argument.kind == "named");
        let is_switch = argument.input.format.as_deref() == Some("boolean")
            && argument.input.value.is_none()
            && flag.is_some();
        if is_switch {
            let on = argument.input.default == Some(serde_json::Value::Bool(true))
                || argument.input.default_text().as_deref() == Some("true");
            return on.then_some(Argument { flag, value: None });
        }
        let hint = argument.value_hint.clone();
        let named = flag.as_deref().map(|flag| flag.trim_start_matches('-').to_owned());
        let name = named.or(hint).unwrap_or_else(|| "argument".to_owned());
        Some(Argument { flag, value: Some(template(&argument.input, &name, inputs)) })
    };
    raw.iter().map(read).collect::<Vec<_>>().into_iter().flatten().collect()
}

/// Returns the fixed value with its variables, or a placeholder for a new input of that
/// name.
fn template(raw: &RawInput, name: &str, inputs: &mut Vec<Input>) -> Template {
    match &raw.value {
        Some(value) => template_with_variables(value, &raw.variables, inputs),
        None => Template::input(&Recipe::add_input(inputs, raw.input(name))),
    }
}

/// Parses a text with `{variable}` placeholders, and adds an input for each.
fn template_with_variables(
    text: &str,
    known: &BTreeMap<String, RawInput>,
    inputs: &mut Vec<Input>,
) -> Template {
    Template::parse(text, "{", "}", |name| {
        let raw = known.get(name)?;
        if let Some(value) = &raw.value {
            return Some(TemplatePart::Text(value.clone()));
        }
        // The text cannot be built without it.
        let input = Input { is_required: raw.default.is_none(), ..raw.input(name) };
        Some(TemplatePart::Input(Recipe::add_input(inputs, input)))
    })
}

impl RawInput {
    fn input(&self, name: &str) -> Input {
        Input {
            name: name.to_owned(),
            about: self.description.clone().unwrap_or_default(),
            is_secret: self.is_secret,
            is_required: self.is_required,
            default: self.default_text(),
            choices: self.choices.clone(),
        }
    }

    fn default_text(&self) -> Option<String> {
        match self.default.as_ref()? {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Null => None,
            other @ (serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::Array(_)
            | serde_json::Value::Object(_)) => Some(other.to_string()),
        }
    }
}

fn is_safe_variable(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(legal)
        // These could run another program than the one that is shown.
        && !["LD_", "DYLD_"].iter().any(|start| name.to_uppercase().starts_with(start))
        && !["PATH", "NODE_OPTIONS", "PYTHONSTARTUP", "BASH_ENV", "ENV"].contains(&name.to_uppercase().as_str())
}

fn is_header(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::recipe::{Filled, Value};

    fn document(more: serde_json::Value) -> String {
        let serde_json::Value::Object(more) = more else { panic!("members") };
        let mut document =
            json!({"name": "io.example/files", "description": "Files", "version": "1.0.0"});
        document.as_object_mut().unwrap().extend(more);
        document.to_string()
    }

    fn recipe(more: serde_json::Value) -> Recipe {
        match offers(&document(more)).unwrap().remove(0) {
            Offer::Recipe(recipe) => *recipe,
            Offer::Bundle { .. } => panic!("a recipe"),
        }
    }

    #[test]
    fn a_publisher_leads_to_secured_addresses_and_to_this_machine() {
        for fine in
            ["https://x.example/mcp", "http://localhost:1/", "http://[::1]/", "http://127.0.0.1"]
        {
            assert_eq!(check_remote_url(fine), Ok(()), "{fine}");
        }
        for bad in [
            "http://x.example/mcp",
            "http://127.0.0.1.example.org/",
            "http://169.254.169.254/latest",
            "https://169.254.169.254/latest",
            "https://0xa9fea9fe/",
            "https://[::ffff:169.254.169.254]/",
            "https://[fe80::1]/",
            "https://accounts.example@evil.example/",
            "file:///etc/passwd",
            "x",
        ] {
            assert!(check_remote_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_package_with_arguments_and_variables_becomes_a_command() {
        let recipe = recipe(json!({"packages": [{
            "registryType": "npm", "identifier": "@x/files", "version": "1.0.2",
            "transport": {"type": "stdio"},
            "packageArguments": [
                {"type": "positional", "valueHint": "root", "isRequired": true, "description": "Where"},
                {"type": "named", "name": "--mode", "default": "ro", "choices": ["ro", "rw"]},
                {"type": "named", "name": "--log", "value": "{level}!",
                 "variables": {"level": {"default": "info"}}},
                {"type": "named", "name": "--color"},
            ],
            "environmentVariables": [{"name": "API_KEY", "isRequired": true, "isSecret": true}],
        }]}));
        let missing: Vec<&str> =
            recipe.missing(&BTreeMap::new()).iter().map(|input| input.name.as_str()).collect();
        assert_eq!(missing, ["API_KEY", "root"]);
        assert!(recipe.inputs[0].is_secret);
        let values = BTreeMap::from([
            ("root".to_owned(), Value::Plain("/data".to_owned())),
            ("API_KEY".to_owned(), Value::Reference("${keyring:k}".to_owned())),
        ]);
        let Filled::Program { command, args, env } = recipe.fill(&values).unwrap() else {
            panic!()
        };
        assert_eq!(command, "npx");
        assert_eq!(args, ["-y", "@x/files@1.0.2", "/data", "--mode", "ro", "--log", "info!"]);
        assert_eq!(env["API_KEY"], "${keyring:k}");
    }

    #[test]
    fn an_address_takes_variables_and_headers() {
        let recipe = recipe(json!({"remotes": [{
            "type": "streamable-http", "url": "https://{tenant}.example.org/mcp",
            "variables": {"tenant": {"description": "Yours"}},
            "headers": [{"name": "Authorization", "value": "Bearer {token}",
                         "variables": {"token": {"isSecret": true}}}],
        }]}));
        let values = BTreeMap::from([
            ("tenant".to_owned(), Value::Plain("acme".to_owned())),
            ("token".to_owned(), Value::Reference("${keyring:t}".to_owned())),
        ]);
        let Filled::Address { url, headers, is_sse } = recipe.fill(&values).unwrap() else {
            panic!()
        };
        assert_eq!((url.as_str(), is_sse), ("https://acme.example.org/mcp", false));
        assert_eq!(headers["Authorization"], "Bearer ${keyring:t}");
    }

    #[test]
    fn a_hostile_document_gets_no_other_program_and_no_secret_of_ours() {
        let bad = |more| offers(&document(more)).unwrap_err().to_string();
        let package = |kind: &str, name: &str| json!({"packages": [{"registryType": kind, "identifier": name}]});
        assert!(
            bad(package("npm", "--registry=http://evil.example"))
                .contains("no name of an npm package")
        );
        assert!(bad(package("npm", "https://evil.example/x.tgz")).contains("no name"));
        assert!(bad(package("shell", "rm")).contains("not known"));
        assert!(bad(package("mcpb", "https://x.example/x.mcpb")).contains("fileSha256"));
        assert!(
            bad(json!({"remotes": [{"type": "sse", "url": "file:///etc/passwd"}]}))
                .contains("no address")
        );
        let recipe = recipe(json!({"packages": [{
            "registryType": "npm", "identifier": "x", "version": "1", "runtimeHint": "sh",
            "packageArguments": [{"type": "positional", "value": "${env:AWS_SECRET}${cmd:id}${file:/etc/passwd}"}],
            "environmentVariables": [
                {"name": "LD_PRELOAD", "value": "/tmp/x.so"}, {"name": "Path", "value": "/tmp"},
                {"name": "node_options", "value": "-r x"}, {"name": "OK", "value": "${keyring:bank}"}],
        }]}));
        let Filled::Program { command, args, env } = recipe.fill(&BTreeMap::new()).unwrap() else {
            panic!()
        };
        assert_eq!(command, "npx", "the hint is not followed");
        assert_eq!(args[2], "$${env:AWS_SECRET}$${cmd:id}$${file:/etc/passwd}");
        assert_eq!(env, BTreeMap::from([("OK".to_owned(), "$${keyring:bank}".to_owned())]));
    }

    #[test]
    fn an_image_gets_its_variables_by_name() {
        let recipe = recipe(json!({"packages": [{
            "registryType": "oci", "identifier": "docker.io/x/y", "version": "2",
            "runtimeArguments": [{"type": "named", "name": "-v", "value": "/a:/a"}],
            "environmentVariables": [{"name": "KEY", "value": "k"}],
        }]}));
        let Filled::Program { args, .. } = recipe.fill(&BTreeMap::new()).unwrap() else { panic!() };
        assert_eq!(args.join(" "), "run -i --rm -e KEY -v /a:/a docker.io/x/y:2");
        assert!(recipe.notes[0].contains("arguments for `docker`"));
    }

    #[test]
    fn what_is_no_document_says_so() {
        assert!(offers("[]").unwrap_err().to_string().contains("no `server.json`"));
        assert!(offers(&document(json!({}))).unwrap_err().to_string().contains("offers nothing"));
    }
}
