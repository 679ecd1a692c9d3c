//! The log levels of MCP (`logging/setLevel`).

use tool::{Json, Object};

/// A log level, from `debug` up to `emergency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Level(u8);

const NAMES: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

impl Level {
    pub(crate) fn parse(name: &str) -> Option<Level> {
        let rank = NAMES.iter().position(|known| *known == name)?;
        Some(Level(u8::try_from(rank).expect("there are eight levels")))
    }

    /// Returns the level that the member `key` of `params` names.
    pub(crate) fn from_params(params: &Object, key: &str) -> Option<Level> {
        Level::parse(&params.get(key)?.string_value()?)
    }

    pub(crate) fn as_str(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }

    pub(crate) fn to_json(self) -> Json {
        Json::encode(self.as_str())
    }

    /// Encodes a level for storage in an atomic; 0 means no level.
    pub(crate) fn pack(level: Option<Level>) -> u8 {
        level.map_or(0, |level| level.0 + 1)
    }

    pub(crate) fn unpack(packed: u8) -> Option<Level> {
        packed.checked_sub(1).map(Level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_read_back_from_their_names() {
        let levels: Vec<_> = NAMES.iter().map(|name| Level::parse(name).unwrap()).collect();
        assert!(levels.is_sorted());
        for level in levels {
            assert_eq!(Level::parse(level.as_str()), Some(level));
            assert_eq!(Level::unpack(Level::pack(Some(level))), Some(level));
        }
        assert_eq!((Level::parse("loud"), Level::unpack(0)), (None, None));
    }
}
