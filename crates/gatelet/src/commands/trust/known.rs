//! The upstreams that trust can be about: those of the configuration and the mounted ones,
//! by label in any spelling, with what they list now.

use std::path::Path;

use catalog::name;
use config::{Config, Reach, Upstream};
use mcp::connect::Certificates;
use serde_json::Value;
use tool::{Json, Listing, Tool};

use super::super::asking::{self, Wait};
use super::super::running;
use super::super::spec::live_upstream;
use crate::exit::CliError;
use crate::local_socket::LocalRequest;
use crate::mounts::{Mounts, reserved_labels};
use crate::paths::Paths;
use crate::wire::StartPolicy;

/// Every upstream of a configuration, the mounted ones included.
pub(super) fn upstreams(state: &Path, config: Config) -> Vec<Upstream> {
    let mounted = Mounts::open(state, &config.mounts).with_labels(reserved_labels(&config));
    let mounted = mounted.iter().filter_map(|server| {
        let (_, endpoint) = server.manifest.as_ref()?;
        let reach = Reach::Address {
            url: endpoint.to_string(),
            headers: server.mount.headers.clone(),
            wire: None,
            certificates: Certificates::default(),
        };
        Some(Upstream::mounted(&server.label, None, reach))
    });
    let mounted: Vec<Upstream> = mounted.collect();
    config.upstreams.into_iter().chain(mounted).collect()
}

/// The label that is meant, as it is configured, and the tools that it lists now.
///
/// The running gate is asked first: it judges calls by what it has, it can log in where a
/// second connection could not, and no program is started twice.
pub(super) fn listing(
    written: &str,
    known: &[Upstream],
    paths: &Paths,
) -> anyhow::Result<(String, Listing)> {
    let Some(upstream) = known.iter().find(|known| name::means(&known.label, written)) else {
        return Err(CliError::Usage(format!("no upstream is called `{written}`")).into());
    };
    let label = upstream.label.clone();
    if let Some(listing) = running_listing(&label, paths) {
        return Ok((label, listing));
    }
    let listing = match live_upstream(&label, paths) {
        Ok(Some(listing)) => listing,
        // It is mounted, or wants a credential that only a gate has.
        Ok(None) => listing_of_own_gate(&label, paths)?,
        Err(error) => match listing_of_own_gate(&label, paths) {
            Ok(listing) if !listing.tools.is_empty() => listing,
            Ok(_) | Err(_) => return Err(error),
        },
    };
    Ok((label, listing))
}

/// What the running gate has; `None` without one, or where it has nothing yet.
fn running_listing(label: &str, paths: &Paths) -> Option<Listing> {
    let definitions = running::ask(paths, &LocalRequest::Definitions).ok().flatten()?;
    let raw = definitions[label].as_array()?.iter().filter_map(Value::as_str);
    let tool = |raw: &str| Tool::parse(Json::parse(raw.to_owned()).ok()?).ok();
    let tools: Vec<Tool> = raw.filter_map(tool).collect();
    (!tools.is_empty()).then(|| Listing { tools, ..Listing::default() })
}

fn listing_of_own_gate(label: &str, paths: &Paths) -> anyhow::Result<Listing> {
    asking::with_gateway(paths, StartPolicy::OnDemand, async |gateway| {
        asking::wait_until_known(gateway, Wait::For(label)).await;
        let snapshot = gateway.roster().default_pool().snapshot();
        let mut upstreams = snapshot.upstreams().iter();
        let listing = upstreams
            .find(|upstream| upstream.label() == label)
            .map(|upstream| (*upstream.listing()).clone());
        Ok(listing.unwrap_or_default())
    })
}
