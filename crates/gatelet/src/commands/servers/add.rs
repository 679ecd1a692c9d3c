//! `gatelet add`: probes a server, shows its tools, and adds it to the configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use packages::bundle::{Bundle, MAX_BYTES};
use packages::recipe::{FillError, Filled, Input, Recipe, Value};
use packages::server_json::{self, Offer};
use packages::source::{self, Source};
use serde_json::json;

use super::config_file::ConfigFile;
use super::new_secrets::NewSecrets;
use super::registry::{Registry, RegistryArgs};
use super::{known_server, review, unpack};
use crate::commands::output::Output;
use crate::commands::{person, plain_secrets};
use crate::exit::{CliError, Done};
use crate::fetch;
use crate::paths::Paths;
use crate::secrets;
use crate::terminal::{DIM, GOOD, HEADING, WARNING, foreign, out, paint, say};
use crate::wire::Probed;
use config::edit::Edit;
use config::{HttpTransport, RawUpstream, Upstream, upstreams_to_toml};

/// Add a server to the configuration: a command, a URL, a package, a bundle or a name in the registry
///
/// The server is started and its tools are shown; when you agree, models may use
/// them. Until then it is in quarantine: written down, not started, not shown.
/// Without a configuration one is made in your configuration directory.
///
///   gatelet add files -- npx -y @modelcontextprotocol/server-filesystem .
///   gatelet add docs https://docs.example.org/mcp
///   gatelet add git pypi:mcp-server-git@1.2.0 -- --repository .
///   gatelet add mail io.github.someone/mail
///   gatelet add notes ./server.json        (or ./notes.mcpb)
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The namespace under which its tools are found
    name: String,
    /// A URL, `npm:NAME`, `pypi:NAME`, `docker:IMAGE`, a name in the registry, a `server.json` or `.mcpb` file
    source: Option<String>,
    /// The command to run, or arguments for the package
    #[arg(last = true, value_name = "WORDS")]
    words: Vec<String>,
    /// A variable of the program's environment; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// A header for a URL; may be given several times
    #[arg(long, value_name = "NAME:VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// What the package or bundle asks for; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Which offer of a `server.json` to take: `npm`, `pypi`, `oci`, `mcpb` or `remote`
    #[arg(long, value_name = "KIND")]
    offer: Option<String>,
    /// One line that says what the server is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Write secrets of --env and --header into the file as they are
    #[arg(long)]
    plain: bool,
    /// Let it do whatever you may do, also where gatelet knows what it needs
    #[arg(long)]
    no_sandbox: bool,
    /// Put it in the place of the upstream that has this name
    #[arg(long)]
    replace: bool,
    /// Do not start it; it stays in quarantine until `gatelet enable`
    #[arg(long)]
    no_start: bool,
    /// Only print the entry that would be written
    #[arg(long)]
    dry_run: bool,
    /// Agree to what would be asked: start it, and let models use its tools
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    output: Output,
}

/// Parses `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses `NAME:VALUE`.
fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write NAME:VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Who wrote the command that is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Author {
    /// The person who typed it.
    Operator,
    /// The author of a package, bundle or `server.json`.
    Publisher,
}

/// A server to be added.
struct Candidate {
    /// Its entry in the configuration.
    raw: RawUpstream,
    author: Author,
    /// What the person should know about it.
    notes: Vec<String>,
    /// The bundle to unpack, and the directory for it.
    bundle: Option<(Bundle, PathBuf)>,
    /// What its sandbox lets it do, in words.
    sandbox: Option<String>,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let file = ConfigFile::open(paths)?;
    let state = paths.state_directory()?;
    let secrets = NewSecrets::at(&state);
    let added = add(args, paths, &file, &state, &secrets);
    if added.is_err()
        && let Err(error) = secrets.roll_back()
    {
        say(&format!("{} its secrets stay in the secret store: {error}", paint(WARNING, "note:")));
    }
    added
}

fn add(
    args: &Args,
    paths: &Paths,
    file: &ConfigFile,
    state: &Path,
    secrets: &NewSecrets,
) -> anyhow::Result<Done> {
    let mut candidate = candidate(args, state, file.path(), secrets)?;
    let label = &args.name;
    // All errors in the entry are found before anything is started.
    let mut upstream = file.parse(&candidate.raw, paths)?;
    let agreed = RawUpstream { quarantine: false, ..candidate.raw.clone() };
    let edits = |raw| {
        let gone =
            args.replace.then_some(Edit::Remove(label)).filter(|_| file.upstream(label).is_ok());
        gone.into_iter().chain([Edit::Add(raw)]).collect::<Vec<_>>()
    };
    file.edited(&edits(&agreed))?;
    if args.dry_run {
        out(&upstreams_to_toml(vec![agreed]));
        return Ok(Done::Fine);
    }
    introduce(&candidate);
    if candidate.author == Author::Publisher
        && !args.no_start
        && !args.yes
        && !person::agrees("Start it?")
    {
        let why = "nobody agreed to start it: nothing was done; --yes agrees beforehand, --no-start adds it \
                   to the quarantine";
        return Err(CliError::Refused(why.to_owned()).into());
    }
    if let Some((bundle, directory)) = &candidate.bundle {
        unpack::write(bundle, directory)?;
    }
    let mut listed = None;
    if !args.no_start {
        let probed = probe(args, paths, file, &mut candidate, &mut upstream)?;
        review::show(label, &probed);
        let n_tools = probed.listing.tools.len();
        let is_agreed =
            args.yes || person::agrees(&format!("Let models use these {n_tools} tools?"));
        listed = Some((probed, is_agreed));
    }
    let is_agreed = listed.as_ref().is_some_and(|(_, is_agreed)| *is_agreed);
    let raw = RawUpstream { quarantine: !is_agreed, ..candidate.raw };
    let text = file.edited(&edits(&raw))?;
    if let Some((probed, true)) = &listed {
        review::pin_tools(&upstream, &probed.listing, paths)?;
    }
    file.write(&text)?;
    if args.output.is_json() {
        let listed = listed.map(|(probed, _)| review::as_json(&probed));
        let file = file.path().display().to_string();
        let told =
            json!({"label": label, "file": file, "quarantine": raw.quarantine, "listed": listed});
        out(&crate::terminal::json_text(&told)?);
    }
    let file = file.path().display();
    say(&format!("{} `{label}` to {file}", paint(GOOD, "added")));
    let next = match raw.quarantine {
        true => format!(
            "it is in quarantine; look at its tools and let them in with `gatelet enable {label}`"
        ),
        false => format!(
            "see it with `gatelet help {label}`; `gatelet remove {label}` takes it out again"
        ),
    };
    say(&paint(DIM, next));
    Ok(Done::Fine)
}

/// Probes the server in the sandbox that gatelet knows for it. If that fails, the person may
/// let it be tried without.
fn probe(
    args: &Args,
    paths: &Paths,
    file: &ConfigFile,
    candidate: &mut Candidate,
    upstream: &mut Upstream,
) -> anyhow::Result<Probed> {
    let label = &args.name;
    let mut probed = review::probe(upstream, paths)?;
    // Only a sandbox that gatelet chose is lifted, not one that the person asked for.
    let is_confined = candidate.sandbox.is_some() && candidate.raw.sandbox.is_some();
    if let Err(failure) = &probed
        && is_confined
    {
        if args.yes || !known_server::ask_to_release(failure) {
            return Err(known_server::sandbox_error(label, failure).into());
        }
        candidate.raw.sandbox = None;
        *upstream = file.parse(&candidate.raw, paths)?;
        probed = review::probe(upstream, paths)?;
    }
    probed.map_err(|failure| review::probe_error(label, &failure).into())
}

/// Prints what would be started or connected to, with notes.
fn introduce(candidate: &Candidate) {
    let raw = &candidate.raw;
    match (&raw.command, &raw.url) {
        (Some(command), _) => {
            let words = std::iter::once(command).chain(&raw.args).map(|word| shell_word(word));
            say(&format!("{} {}", paint(HEADING, "runs"), words.collect::<Vec<_>>().join(" ")));
            if !raw.env.is_empty() {
                let names: Vec<&str> = raw.env.keys().map(String::as_str).collect();
                say(&format!("{} {}", paint(HEADING, "with"), foreign(&names.join(", "))));
            }
        }
        (None, url) => {
            let url = foreign(url.as_deref().unwrap_or_default()).into_owned();
            say(&format!("{} {url}", paint(HEADING, "reaches")));
        }
    }
    if let Some(sandbox) = &candidate.sandbox {
        say(&format!("{} {}", paint(HEADING, "sandbox"), foreign(sandbox)));
    }
    for note in &candidate.notes {
        say(&format!("{} {}", paint(WARNING, "note:"), foreign(note)));
    }
}

/// A word of a command line as it is typed in a shell.
fn shell_word(word: &str) -> String {
    let word = tool::shell::word(word).map_or_else(|| format!("{word:?}"), |word| word.to_string());
    foreign(&word).into_owned()
}

/// The server that the command line asks for, with its entry as it will be written.
fn candidate(
    args: &Args,
    state: &Path,
    file: &Path,
    secrets: &NewSecrets,
) -> anyhow::Result<Candidate> {
    let mut candidate = match args.source.as_deref() {
        None => from_command(&args.words)?,
        Some(text) => {
            let source =
                source::parse(text).map_err(|unclear| CliError::Usage(unclear.to_string()))?;
            from_source(args, source, state, secrets)?
        }
    };
    let raw = &mut candidate.raw;
    raw.label = Some(args.name.clone());
    raw.description = args.description.clone().or(raw.description.take());
    raw.env.extend(args.env.iter().cloned());
    raw.headers.extend(args.header.iter().cloned());
    if !args.dry_run && !args.plain {
        for (name, secret) in plain_secrets::replace_by_references(raw) {
            secrets.set(&name, &secret)?;
            say(&format!(
                "{} `{name}` in the secret store (`gatelet secret list`)",
                paint(GOOD, "kept")
            ));
        }
    }
    if raw.command.is_some() && args.words.iter().any(|word| is_local_path(word)) {
        // Relative paths must mean the same wherever gatelet is started.
        let here = std::env::current_dir()?;
        let beside = file.parent().is_some_and(|parent| parent == here);
        raw.cwd = Some(if beside { PathBuf::from(".") } else { here });
    }
    if !args.no_sandbox {
        candidate.sandbox = known_server::confine(&mut candidate.raw);
    }
    Ok(candidate)
}

/// Whether a word is a path relative to the working directory.
fn is_local_path(word: &str) -> bool {
    let path = Path::new(word);
    path.is_relative() && (word.starts_with('.') || !word.starts_with('-') && path.exists())
}

fn from_command(words: &[String]) -> Result<Candidate, CliError> {
    let Some((command, args)) = words.split_first() else {
        let why = "name what to add: a command after `--`, a URL, a package or a file; see `gatelet add --help`";
        return Err(CliError::Usage(why.to_owned()));
    };
    let raw = RawUpstream {
        command: Some(command.clone()),
        args: args.to_vec(),
        ..RawUpstream::default()
    };
    Ok(Candidate { raw, author: Author::Operator, notes: Vec::new(), bundle: None, sandbox: None })
}

fn from_source(
    args: &Args,
    source: Source,
    state: &Path,
    store: &NewSecrets,
) -> anyhow::Result<Candidate> {
    let bundle = |bytes: &[u8], expected: Option<&str>| -> anyhow::Result<Candidate> {
        let directory = unpack::directory(state, &args.name, bytes);
        let (bundle, recipe) = unpack::recipe(bytes, expected, &directory)?;
        let candidate = from_recipe(args, &recipe, Author::Publisher, store)?;
        Ok(Candidate { bundle: Some((bundle, directory)), ..candidate })
    };
    match source {
        Source::Address(url) => {
            if !args.words.is_empty() {
                return Err(CliError::Usage("a URL takes no words after `--`".to_owned()).into());
            }
            let transport = url.ends_with("/sse").then_some(HttpTransport::Sse);
            let raw = RawUpstream { url: Some(url), transport, ..RawUpstream::default() };
            Ok(Candidate {
                raw,
                author: Author::Operator,
                notes: Vec::new(),
                bundle: None,
                sandbox: None,
            })
        }
        Source::Package(package) => {
            let recipe = package.recipe().map_err(|bad| CliError::Usage(bad.to_string()))?;
            from_recipe(args, &recipe, Author::Operator, store)
        }
        Source::Document(path) => {
            let text = std::fs::read_to_string(&path).map_err(|error| {
                CliError::Usage(format!("cannot read `{}`: {error}", path.display()))
            })?;
            from_server_json(args, &text, store, bundle)
        }
        Source::Bundle(path) => bundle(&read_bundle(&path)?, None),
        Source::RemoteBundle(url) => bundle(&fetch_bundle(&url)?, None),
        Source::Registry { name, version } => {
            let registry = Registry::new(&args.registry, state);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let entry = runtime.block_on(registry.server(&name, version.as_deref()))?;
            let mut candidate = from_server_json(args, &entry.document.to_string(), store, bundle)?;
            if entry.status != "active" {
                candidate.notes.push(format!("its publisher calls it {}", entry.status));
            }
            Ok(candidate)
        }
    }
}

fn read_bundle(path: &Path) -> anyhow::Result<Vec<u8>> {
    let unread = |error| CliError::Usage(format!("cannot read `{}`: {error}", path.display()));
    let length = std::fs::metadata(path).map_err(unread)?.len();
    if MAX_BYTES < length {
        return Err(CliError::Usage(format!(
            "`{}` is larger than a bundle may be",
            path.display()
        ))
        .into());
    }
    Ok(std::fs::read(path).map_err(unread)?)
}

fn fetch_bundle(url: &str) -> anyhow::Result<Vec<u8>> {
    let wrong = |_| CliError::Usage(format!("`{url}` is no address"));
    let parsed = reqwest::Url::parse(url).map_err(wrong)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let limit = usize::try_from(MAX_BYTES).unwrap_or(usize::MAX);
    runtime.block_on(fetch::download(&parsed, limit))
}

/// The server of a `server.json`: the offer of `--offer`, or the first that can be run here.
fn from_server_json(
    args: &Args,
    text: &str,
    store: &NewSecrets,
    bundle: impl Fn(&[u8], Option<&str>) -> anyhow::Result<Candidate>,
) -> anyhow::Result<Candidate> {
    let offers =
        server_json::offers(text).map_err(|unusable| CliError::Usage(unusable.to_string()))?;
    let kinds: Vec<&str> = offers.iter().map(kind).collect();
    let wanted = args.offer.as_deref();
    let at = match wanted {
        Some(wanted) => kinds.iter().position(|kind| *kind == wanted),
        // What can be run here comes before what cannot.
        None => kinds.iter().position(|kind| is_runnable(kind)).or(Some(0)),
    };
    let Some(offer) = at.map(|at| &offers[at]) else {
        let known = kinds.join(", ");
        let why = format!("it offers no `{}`, but {known}", wanted.unwrap_or_default());
        return Err(CliError::Usage(why).into());
    };
    let mut candidate = match offer {
        Offer::Recipe(recipe) => from_recipe(args, recipe, Author::Publisher, store)?,
        Offer::Bundle { url, sha256 } => bundle(&fetch_bundle(url)?, Some(sha256))?,
    };
    if 1 < kinds.len() && wanted.is_none() {
        candidate.notes.push(format!("it offers {}; --offer takes another", kinds.join(", ")));
    }
    Ok(candidate)
}

fn kind(offer: &Offer) -> &'static str {
    use packages::recipe::Run;
    match offer {
        Offer::Bundle { .. } => "mcpb",
        Offer::Recipe(recipe) => match &recipe.run {
            Run::Address { .. } => "remote",
            Run::Program { command, .. } => match command.as_str() {
                "npx" => "npm",
                "uvx" => "pypi",
                "dnx" => "nuget",
                _ => "oci",
            },
        },
    }
}

fn is_runnable(kind: &str) -> bool {
    let runner = match kind {
        "npm" => "npx",
        "pypi" => "uvx",
        "nuget" => "dnx",
        "oci" => "docker",
        _ => return true,
    };
    crate::paths::program(runner).is_some()
}

/// The server of a recipe, with its inputs filled in.
fn from_recipe(
    args: &Args,
    recipe: &Recipe,
    author: Author,
    store: &NewSecrets,
) -> anyhow::Result<Candidate> {
    let values = input_values(args, recipe, store)?;
    let filled = recipe
        .fill(&values)
        .map_err(|unfilled| CliError::Usage(unfilled_text(recipe, &unfilled)))?;
    let description = recipe.description.as_deref().map(one_line);
    let mut raw = RawUpstream { description, ..RawUpstream::default() };
    match filled {
        Filled::Program { command, args: words, env } => {
            if crate::paths::program(&command).is_none() {
                return Err(CliError::Usage(no_runner(&command)).into());
            }
            raw.command = Some(command);
            raw.args = words;
            raw.args.extend(args.words.iter().cloned());
            raw.env = env;
        }
        Filled::Address { url, headers, is_sse } => {
            if author == Author::Publisher {
                let how = "if you know it to be right, add it by its address";
                server_json::check_remote_url(&url)
                    .map_err(|why| CliError::Usage(format!("{why}; {how}")))?;
            }
            raw.url = Some(url);
            raw.headers = headers;
            raw.transport = is_sse.then_some(HttpTransport::Sse);
        }
    }
    Ok(Candidate { raw, author, notes: recipe.notes.clone(), bundle: None, sandbox: None })
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    foreign(&line.chars().take(200).collect::<String>()).into_owned()
}

fn no_runner(command: &str) -> String {
    let how = match command {
        "npx" => "install Node.js: https://nodejs.org",
        "uvx" | "uv" => "install uv: https://docs.astral.sh/uv",
        "docker" => "install Docker or Podman",
        "dnx" => "install .NET 10",
        "node" => "install Node.js: https://nodejs.org",
        _ => "install it, or add the server by its command",
    };
    format!("`{command}` is not in the PATH: {how}")
}

/// The values of the inputs, from the command line or the person.
fn input_values(
    args: &Args,
    recipe: &Recipe,
    store: &NewSecrets,
) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut values = BTreeMap::new();
    for (name, text) in &args.set {
        let input = recipe.inputs.iter().find(|input| input.name == *name);
        let value = match input {
            Some(input) if input.is_secret => secret(args, input, text, store)?,
            Some(_) | None => Value::Plain(text.clone()),
        };
        values.insert(name.clone(), value);
    }
    let missing: Vec<Input> = recipe.missing(&values).into_iter().cloned().collect();
    for input in missing {
        let Some(text) = person::ask_for(&input) else { continue };
        let value = match input.is_secret {
            true => secret(args, &input, &text, store)?,
            false => Value::Plain(text),
        };
        values.insert(input.name.clone(), value);
    }
    Ok(values)
}

/// Stores a secret, and returns the reference that is written into the file instead.
fn secret(args: &Args, input: &Input, text: &str, store: &NewSecrets) -> anyhow::Result<Value> {
    let name = secrets::legal_name(&format!("{}/{}", args.name, input.name));
    if !args.dry_run {
        store.set(&name, text)?;
    }
    Ok(Value::Reference(format!("${{keyring:{name}}}")))
}

/// The error about inputs that are missing or unknown, and how to give them.
fn unfilled_text(recipe: &Recipe, unfilled: &FillError) -> String {
    let FillError::Missing(_) = unfilled else {
        let names: Vec<&str> = recipe.inputs.iter().map(|input| input.name.as_str()).collect();
        return format!("{unfilled} (its inputs: {})", foreign(&names.join(", ")));
    };
    let missing = recipe.missing(&BTreeMap::new()).into_iter().map(|input| {
        let about =
            if input.about.is_empty() { String::new() } else { format!(" ({})", input.about) };
        format!("--set {}=…{about}", input.name)
    });
    let missing: Vec<String> = missing.collect();
    format!("it needs {}", foreign(&missing.join(", ")))
}
