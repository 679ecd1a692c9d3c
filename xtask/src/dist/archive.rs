//! Archives, byte for byte the same for the same files: no clock, no owner, no
//! order of a directory goes into them.

pub(crate) mod ar;
pub(crate) mod tar;
pub(crate) mod zip;

use std::io::Write;

use anyhow::Result;
use flate2::write::{DeflateEncoder, GzEncoder};

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where it goes, with slashes, relative to the archive's root.
    pub(crate) path: String,
    pub(crate) kind: Kind,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Program,
    Text,
}

/// How hard to compress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Level {
    #[default]
    Best,
    Fast,
}

impl Entry {
    pub(crate) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Entry {
        Entry { path: path.into(), kind: Kind::Program, bytes: bytes.into() }
    }

    pub(crate) fn text(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Entry {
        Entry { path: path.into(), kind: Kind::Text, bytes: bytes.into() }
    }
}

impl Kind {
    /// The bits of `chmod`.
    pub(crate) fn mode(self) -> u32 {
        match self {
            Kind::Program => 0o755,
            Kind::Text => 0o644,
        }
    }
}

impl Level {
    fn zlib(self) -> flate2::Compression {
        match self {
            Level::Best => flate2::Compression::best(),
            Level::Fast => flate2::Compression::fast(),
        }
    }
}

/// `gzip -n`.
pub(crate) fn gzip(bytes: &[u8], level: Level) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), level.zlib());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn deflate(bytes: &[u8], level: Level) -> Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), level.zlib());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
