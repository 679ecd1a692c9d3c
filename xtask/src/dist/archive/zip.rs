//! `zip`, as wheels are: deflated, with the bits of `chmod`, under 4 GiB.

use anyhow::{Context, Result};

use super::{Entry, Level, deflate};

/// The first of January 1980, the earliest day that the format can tell.
const DAY: u16 = 1 << 5 | 1;
const DEFLATED: u16 = 8;
/// Version 2.0 of the format, written on Unix.
const NEEDED: u16 = 20;
const MADE_BY: u16 = 3 << 8 | NEEDED;
/// A regular file, in the upper half of Unix's mode.
const REGULAR: u32 = 0o100_000;

pub(crate) fn archive(entries: &[Entry], level: Level) -> Result<Vec<u8>> {
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    for entry in entries {
        let at = small(archive.len())?;
        let packed = deflate(&entry.bytes, level)?;
        let common = common(entry, &packed)?;
        archive.extend(b"PK\x03\x04");
        archive.extend(&common);
        archive.extend(entry.path.as_bytes());
        archive.extend(packed);

        directory.extend(b"PK\x01\x02");
        directory.extend(MADE_BY.to_le_bytes());
        directory.extend(&common);
        // No comment, the first disk, no attributes of DOS.
        directory.extend([0; 6]);
        directory.extend(((REGULAR | entry.kind.mode()) << 16).to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(entry.path.as_bytes());
    }
    let at = small(archive.len())?;
    let count = u16::try_from(entries.len()).context("too many files for this archive")?;
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend(count.to_le_bytes());
    archive.extend(count.to_le_bytes());
    archive.extend(small(directory.len())?.to_le_bytes());
    archive.extend(at.to_le_bytes());
    archive.extend([0; 2]);
    Ok(archive)
}

/// What the head of a file and its line in the directory share.
fn common(entry: &Entry, packed: &[u8]) -> Result<Vec<u8>> {
    let mut crc = flate2::Crc::new();
    crc.update(&entry.bytes);
    let mut common = Vec::new();
    for number in [NEEDED, 0, DEFLATED, 0, DAY] {
        common.extend(number.to_le_bytes());
    }
    for number in [crc.sum(), small(packed.len())?, small(entry.bytes.len())?] {
        common.extend(number.to_le_bytes());
    }
    common.extend(u16::try_from(entry.path.len())?.to_le_bytes());
    common.extend([0; 2]);
    Ok(common)
}

fn small(size: usize) -> Result<u32> {
    u32::try_from(size).context("the archive has more than 4 GiB")
}
