//! `tar`, in the format that POSIX calls ustar: short names, files and the
//! directories above them.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::{Entry, Level, gzip};

const BLOCK: usize = 512;

/// A `.tar.gz` of these files, owned by root and last changed at `stamp`.
pub(crate) fn gz(entries: &[Entry], stamp: u64, level: Level) -> Result<Vec<u8>> {
    gzip(&tar(entries, stamp)?, level)
}

fn tar(entries: &[Entry], stamp: u64) -> Result<Vec<u8>> {
    let mut archive = Vec::new();
    let mut known = BTreeSet::new();
    for entry in entries {
        for directory in above(&entry.path) {
            if known.insert(directory) {
                archive.extend(header(&format!("{directory}/"), b'5', 0o755, 0, stamp)?);
            }
        }
        let size = entry.bytes.len();
        archive.extend(header(&entry.path, b'0', entry.kind.mode(), size, stamp)?);
        archive.extend(&entry.bytes);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.extend([0; 2 * BLOCK]);
    Ok(archive)
}

/// The directories above a path, outermost first; `.` is none.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end]).filter(|directory| *directory != ".")
}

fn header(path: &str, kind: u8, mode: u32, size: usize, stamp: u64) -> Result<[u8; BLOCK]> {
    if 100 < path.len() {
        bail!("`{path}` is too long for this archive: at most 100 bytes");
    }
    let mut header = [0; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, path);
    put(100, &format!("{mode:07o}"));
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, &format!("{stamp:011o}"));
    // The checksum is taken over a header whose checksum is blank.
    put(148, "        ");
    put(257, "ustar\0");
    put(263, "00");
    put(265, "root");
    put(297, "root");
    header[156] = kind;
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_before_what_is_in_them_and_only_once() {
        let files = [Entry::text("./usr/bin/a", "1"), Entry::text("./usr/bin/b", "2")];
        let archive = tar(&files, 0).unwrap();
        let names: Vec<String> = archive
            .chunks(BLOCK)
            .filter(|block| &block[257..262] == b"ustar")
            .map(|block| String::from_utf8_lossy(&block[..100]).trim_matches('\0').to_owned())
            .collect();
        assert_eq!(names, ["./usr/", "./usr/bin/", "./usr/bin/a", "./usr/bin/b"]);
        assert_eq!(archive.len() % BLOCK, 0);
    }

    #[test]
    fn a_name_that_does_not_fit_is_refused() {
        assert!(tar(&[Entry::text("x".repeat(101), "")], 0).is_err());
        assert!(tar(&[Entry::text("x".repeat(100), "")], 0).is_ok());
    }
}
