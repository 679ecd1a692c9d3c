//! Parses and writes the name of a surface in the configuration. The list of surfaces is
//! the gateway's.

use std::borrow::Cow;

use gateway::Surface;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

/// What clients see of everything behind gatelet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SurfaceName(pub Surface);

const N_SURFACES: usize = Surface::ALL.len();

const NAMES: [&str; N_SURFACES] = {
    let mut names = [""; N_SURFACES];
    let mut at = 0;
    while at < N_SURFACES {
        names[at] = Surface::ALL[at].name();
        at += 1;
    }
    names
};

impl<'de> Deserialize<'de> for SurfaceName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SurfaceName, D::Error> {
        let name = String::deserialize(deserializer)?;
        let unknown = |_| serde::de::Error::unknown_variant(&name, &NAMES);
        name.parse().map(SurfaceName).map_err(unknown)
    }
}

impl Serialize for SurfaceName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl JsonSchema for SurfaceName {
    fn schema_name() -> Cow<'static, str> {
        "Surface".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = |surface: Surface| {
            json!({
                "description": surface.description(),
                "type": "string",
                "const": surface.name(),
            })
        };
        let all: Vec<_> = Surface::ALL.map(one).into();
        schemars::json_schema!({
            "description": "What clients see of everything behind gatelet.",
            "oneOf": all,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_surface_is_read_under_the_name_it_is_written_with() {
        for surface in Surface::ALL.map(SurfaceName) {
            let text = serde_json::to_string(&surface).unwrap();
            assert_eq!(serde_json::from_str::<SurfaceName>(&text).unwrap(), surface);
        }
        let error = serde_json::from_str::<SurfaceName>("\"cards\"").unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `cards`, expected one of `cash`"), "{error}");
    }
}
