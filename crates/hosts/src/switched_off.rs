//! Tells whether a host has switched a server off, in its entry or in a file beside it.

use document::Format;
use serde_json::Value;

use crate::environment::Environment;
use crate::host::Host;
use crate::machine::Machine;

/// Returns whether an entry says that its host leaves the server out.
pub fn is_switched_off(entry: &Value) -> bool {
    entry["disabled"] == true || entry["enabled"] == false
}

/// Returns the names that the host has switched off outside of its configuration, in
/// lower case. A file that cannot be read switches nothing off, as for the host.
pub fn names(host: &Host, environment: &Environment, machine: &dyn Machine) -> Vec<String> {
    let file = host.switches.map(|template| environment.expand(template));
    let bytes = file.and_then(|file| machine.read(&file).ok().flatten()).unwrap_or_default();
    let text = String::from_utf8(bytes).unwrap_or_default();
    let Ok(root) = document::parse(&text, Format::Json) else { return Vec::new() };
    let off = root.members().iter().filter(|member| is_switched_off(&member.node.to_json()));
    off.map(|member| member.key.trim().to_lowercase()).collect()
}
