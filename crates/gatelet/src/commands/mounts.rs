//! `gatelet mount`, `gatelet unmount` and `gatelet mounts`: servers that are mounted by
//! their manifests.

use reqwest::Method;
use serde_json::{Value, json};

use super::output::Output;
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::mounts::{MountError, Mounts, reserved_labels};
use crate::paths::Paths;
use crate::running;
use crate::terminal::{BAD, DIM, GOOD, WARNING, is_read_by_a_person, out, paint, say};
use config::RawMount;

/// Mount a server by its manifest, in the running gatelet or when it next starts
#[derive(Debug, clap::Args)]
pub(crate) struct MountArgs {
    /// Where the manifest is, such as `https://shop.example/.well-known/cash-mcp.yaml`
    manifest: String,
    /// The namespace under which the server is found [default: what the manifest suggests]
    #[arg(long)]
    label: Option<String>,
    /// A host, beside the manifest's own, that its endpoint may be on; may be given several times
    #[arg(long, value_name = "HOST")]
    trust_host: Vec<String>,
    /// A public key that must have signed the manifest; may be given several times
    #[arg(long, value_name = "KEY")]
    pin: Vec<String>,
    /// Let the server be at a private address
    #[arg(long)]
    private: bool,
    /// Let plain http be good enough for a server on this machine
    #[arg(long)]
    insecure_loopback: bool,
}

/// Unmount a server that `gatelet mount` mounted
#[derive(Debug, clap::Args)]
pub(crate) struct UnmountArgs {
    /// Its namespace, or where its manifest is
    which: String,
}

/// List what is mounted and how it fares
#[derive(Debug, clap::Args)]
pub(crate) struct MountsArgs {
    #[command(flatten)]
    output: Output,
}

pub(crate) fn mount(args: &MountArgs, paths: &Paths) -> anyhow::Result<Done> {
    let raw = RawMount {
        manifest: args.manifest.clone(),
        label: args.label.clone(),
        trusted_hosts: args.trust_host.clone(),
        pins: args.pin.clone(),
        private: args.private,
        insecure_loopback: args.insecure_loopback,
        ..RawMount::default()
    };
    let body = serde_json::to_value(&raw)?;
    let (status, body) = ask_or_run_here(paths, Method::POST, &body, async |mounts| {
        mounts.mount(raw.clone()).await
    })?;
    report(status, &body, "mounted")
}

pub(crate) fn unmount(args: &UnmountArgs, paths: &Paths) -> anyhow::Result<Done> {
    let which = json!({"mount": args.which});
    let (status, body) = ask_or_run_here(paths, Method::DELETE, &which, async |mounts| {
        mounts.unmount(&args.which).await
    })?;
    report(status, &body, "unmounted")
}

pub(crate) fn list(args: &MountsArgs, paths: &Paths) -> anyhow::Result<Done> {
    let (_, body) =
        ask_or_run_here(paths, Method::GET, &json!({}), async |mounts| Ok(mounts.to_json()))?;
    if args.output.is_json() {
        out(&crate::terminal::json_text(&body)?);
        return Ok(Done::Fine);
    }
    let mounts = body.as_array().map(Vec::as_slice).unwrap_or_default();
    if mounts.is_empty() {
        say(&paint(
            DIM,
            "nothing is mounted: `gatelet mount URL`, or `[[mount]]` in the configuration",
        ));
    }
    for mount in mounts {
        out(&line(mount));
    }
    Ok(Done::Fine)
}

/// Asks the running gatelet over its admin API, or without one runs `here` on the state
/// directory. Returns an HTTP status and a JSON body.
fn ask_or_run_here(
    paths: &Paths,
    method: Method,
    body: &Value,
    here: impl AsyncFnOnce(&Mounts) -> Result<Value, MountError>,
) -> anyhow::Result<(u16, Value)> {
    let state = paths.state_directory()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if let Some(answer) = running::ask(&state, method, "/mounts", body).await? {
            return Ok((answer.status, answer.body));
        }
        say(&paint(DIM, "no gatelet runs here: this counts when one starts"));
        // Configured servers get their labels first.
        let config = config_loader::load(paths)?.config;
        let mounts = Mounts::open(&state, &config.mounts);
        mounts.with_labels(reserved_labels(&config));
        Ok(match here(&mounts).await {
            Ok(body) => (200, body),
            Err(wrong) => (wrong.status(), json!({"error": wrong.to_string()})),
        })
    })
}

fn report(status: u16, body: &Value, done: &str) -> anyhow::Result<Done> {
    if 400 <= status {
        let why = body["error"].as_str().unwrap_or("the gate refused");
        return Err(CliError::Usage(why.to_owned()).into());
    }
    if is_read_by_a_person() {
        say(&format!("{} {}", paint(GOOD, done), line(body)));
    } else {
        out(&crate::terminal::json_text(body)?);
    }
    Ok(Done::Fine)
}

fn line(place: &Value) -> String {
    let text = |key: &str| place[key].as_str().unwrap_or_default();
    let style = if text("state") == "mounted" { GOOD } else { BAD };
    let problem = match text("problem") {
        "" => String::new(),
        problem => format!("\n  {}", paint(WARNING, problem)),
    };
    format!("{:<20} {} {}{problem}", text("label"), paint(style, text("state")), text("manifest"))
}
