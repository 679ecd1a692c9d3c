//! `gatelet content check`: verifies the connection to a CMS site, its tables and its tools.

use content::{Config, Content, OpenError, PLATFORM, TOOLSET_VERSION};
use tool::{Ask, Context, Provider, Reply, Severity};

use crate::exit::Done;
use crate::terminal::{BAD, GOOD, WARNING, out, paint};

pub(super) async fn run(config: &Config) -> anyhow::Result<Done> {
    let site = match Content::open(config).await {
        Ok(site) => site,
        Err(error) => {
            let remedy = match error {
                OpenError::Url(_) => "write it as `mysql://user:password@host:3306/database`",
                OpenError::Unreachable(_) => {
                    "is it running, and can it be reached from this machine?"
                }
                OpenError::Refused(_) => {
                    "look at the user and the password in the URL, and at what that user may read"
                }
                OpenError::NoDatabase(_) => {
                    "name the CMS's own: the file after `sqlite:`, or the database at the end of \
                     the URL"
                }
                OpenError::NoSite(_) => {
                    "name the CMS's own database, and its prefix with `--prefix`"
                }
            };
            bad("site", &format!("{error}\n     {remedy}"));
            return Ok(Done::AnswerIsError);
        }
    };
    good("connection", "the database answers, and is opened read-only");
    for finding in site.findings() {
        let style = match finding.severity {
            Severity::Info => GOOD,
            Severity::Warning | Severity::Error => WARNING,
        };
        out(&format!("{} {}: {}", paint(style, "note"), finding.code, finding.message));
    }
    good("schema", "every table and column that the tools need is there");
    let listing = site.listing();
    let platform = listing.server.raw.member_as::<String>("platform");
    if platform.as_deref() != Some(PLATFORM) || listing.tools.len() != 14 {
        bad("tools", "the list of tools is not the contract's");
        return Ok(Done::AnswerIsError);
    }
    good("tools", &format!("{} tools, contract {TOOLSET_VERSION}", listing.tools.len()));
    let n_wrong = call_each(&site).await;
    let missing = site.missing_indexes().await.unwrap_or_default();
    if !missing.is_empty() {
        let note = paint(WARNING, "note");
        let n = missing.len();
        out(&format!("{note} indexes: {n} would help; see them with `gatelet content indexes`"));
    }
    Ok(if n_wrong == 0 { Done::Fine } else { Done::AnswerIsError })
}

/// Calls each tool once. Returns how many calls failed.
async fn call_each(site: &Content) -> usize {
    let mut n_wrong = 0;
    for call in Content::sample_calls() {
        let name = call.name.clone();
        match site.ask(Ask::Call(call), &Context::anonymous()).await {
            Ok(Reply::Result(_)) => good("call", &name),
            Ok(Reply::Error(error)) => {
                n_wrong += 1;
                bad("call", &format!("{name}: {}", error.message));
            }
            Err(failure) => {
                n_wrong += 1;
                bad("call", &format!("{name}: {failure}"));
            }
        }
    }
    n_wrong
}

fn good(what: &str, text: &str) {
    out(&format!("{}   {what}: {text}", paint(GOOD, "ok")));
}

fn bad(what: &str, text: &str) {
    out(&format!("{}  {what}: {text}", paint(BAD, "bad")));
}
