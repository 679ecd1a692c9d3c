//! `gatelet manifest`: checks, prints, signs and verifies manifests, in which servers
//! describe themselves.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use web::manifest::sign::{PublicKey, SecretKey, verify};
use web::manifest::{self, Manifest, Problem};

use crate::exit::{CliError, Done};
use crate::secret;
use crate::terminal::{BAD, GOOD, WARNING, out, paint, say};

/// Check, sign and verify server manifests (`/.well-known/cash-mcp.yaml`)
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Make a signing key: the secret goes to a file, the public key to stdout
    Keygen {
        /// Where the secret key is written; never overwritten
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Say everything that is wrong with a manifest
    Lint {
        /// A manifest in YAML or JSON, or `-`
        file: PathBuf,
    },
    /// Print a manifest as it is understood
    Show {
        file: PathBuf,
        /// As JSON instead of YAML
        #[arg(long)]
        json: bool,
    },
    /// Print a manifest with its signature
    Sign {
        file: PathBuf,
        /// The secret key, as made by `keygen`
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
    /// Check that a manifest was signed by one of the pinned keys
    Verify {
        file: PathBuf,
        /// A public key, as printed by `keygen`; may be given several times
        #[arg(long, required = true, value_name = "KEY")]
        pin: Vec<String>,
    },
}

pub(crate) fn run(action: &Action) -> anyhow::Result<Done> {
    match action {
        Action::Keygen { file } => keygen(file),
        Action::Lint { file } => lint(file),
        Action::Show { file, json } => {
            let manifest = load(file)?;
            out(&if *json { manifest.to_json() } else { manifest.to_yaml() });
            Ok(Done::Fine)
        }
        Action::Sign { file, key } => {
            let text = std::fs::read_to_string(key)
                .with_context(|| format!("cannot read `{}`", key.display()))?;
            let key =
                SecretKey::parse(&text).map_err(|error| CliError::Usage(error.to_string()))?;
            // The whole document, because the signature covers unknown members too.
            out(&manifest::yaml(&key.sign(&load(file)?).document()));
            Ok(Done::Fine)
        }
        Action::Verify { file, pin } => {
            let pins: Result<Vec<PublicKey>, _> =
                pin.iter().map(|pin| PublicKey::parse(pin)).collect();
            let pins = pins.map_err(|error| CliError::Usage(error.to_string()))?;
            match verify(&load(file)?, &pins) {
                Ok(()) => {
                    say(&format!("{}: signed by a pinned key", paint(GOOD, "good")));
                    Ok(Done::Fine)
                }
                Err(distrust) => {
                    say(&format!("{}: {distrust}", paint(BAD, "bad")));
                    Ok(Done::AnswerIsError)
                }
            }
        }
    }
}

fn keygen(file: &Path) -> anyhow::Result<Done> {
    if file.exists() {
        return Err(CliError::Usage(format!("`{}` is there already", file.display())).into());
    }
    let key = SecretKey::from_seed(secret::random());
    secret::write(file, &(key.to_text() + "\n"))?;
    out(&key.public().to_text());
    say(&format!("{} key `{}` in {}", paint(GOOD, "made"), key.public().id(), file.display()));
    Ok(Done::Fine)
}

fn lint(file: &Path) -> anyhow::Result<Done> {
    let (problems, done) = match manifest::parse(&text(file)?) {
        Ok((_, warnings)) => (warnings, Done::Fine),
        Err(problems) => (problems, Done::AnswerIsError),
    };
    for problem in &problems {
        say(&line(problem));
    }
    if done == Done::Fine {
        say(&format!("{}: {} warnings", paint(GOOD, "a manifest"), problems.len()));
    }
    Ok(done)
}

fn line(problem: &Problem) -> String {
    match problem.severity {
        tool::Severity::Error => format!("{}: {problem}", paint(BAD, "error")),
        tool::Severity::Warning => format!("{}: {problem}", paint(WARNING, "warning")),
        tool::Severity::Info => format!("note: {problem}"),
    }
}

fn load(file: &Path) -> anyhow::Result<Manifest> {
    manifest::parse(&text(file)?).map(|(manifest, _)| manifest).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        CliError::Usage(format!("`{}` is no manifest: {}", file.display(), lines.join("; "))).into()
    })
}

fn text(file: &Path) -> anyhow::Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().take(1 << 20).read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(file).map_err(|error| {
        CliError::Usage(format!("cannot read `{}`: {error}", file.display())).into()
    })
}
