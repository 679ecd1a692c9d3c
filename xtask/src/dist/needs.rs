//! What a program needs of the system it runs on: shared libraries, and how new a
//! glibc. Read with `objdump`, which comes with every linker on Linux.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result};

use crate::run::output;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The newest glibc that a symbol asks for.
    pub(crate) glibc: Option<Glibc>,
    pub(crate) libraries: Vec<String>,
}

/// A version of glibc: 2 and this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Glibc(pub(crate) u32);

impl Needs {
    pub(crate) fn of(program: &Path) -> Result<Needs> {
        if cfg!(not(target_os = "linux")) {
            return Ok(Needs::default());
        }
        Ok(read(&output(Command::new("objdump").args(["-p"]).arg(program))?))
    }
}

/// Reads what `objdump -p` prints: `NEEDED libc.so.6` in the dynamic section, and
/// lines that end in `GLIBC_2.34` under the version references.
fn read(text: &str) -> Needs {
    let words = || text.lines().map(|line| line.split_whitespace().collect::<Vec<&str>>());
    let libraries = words()
        .filter(|words| words.first() == Some(&"NEEDED"))
        .filter_map(|words| Some((*words.get(1)?).to_owned()))
        .collect();
    let glibc =
        words().filter_map(|words| words.last()?.strip_prefix("GLIBC_")?.parse().ok()).max();
    Needs { glibc, libraries }
}

impl FromStr for Glibc {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Glibc> {
        // A version may have a third number, such as 2.2.5: of it the second counts.
        let minor = text.strip_prefix("2.").and_then(|rest| rest.split('.').next()?.parse().ok());
        minor.map(Glibc).with_context(|| format!("`{text}` is no version of glibc, such as 2.31"))
    }
}

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "2.{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts_by_number_not_by_spelling() {
        let text = "\
Dynamic Section:
  NEEDED               libgcc_s.so.1
  NEEDED               libc.so.6
  RUNPATH              GLIBC_9.99x

Version References:
  required from libgcc_s.so.1:
    0x0b792650 0x00 16 GCC_3.0
  required from libc.so.6:
    0x06969194 0x00 13 GLIBC_2.34
    0x09691a75 0x00 12 GLIBC_2.2.5
    0x09691a75 0x00 12 GLIBC_2.9
";
        let found = read(text);
        assert_eq!(found.glibc, Some(Glibc(34)));
        assert_eq!(found.libraries, ["libgcc_s.so.1", "libc.so.6"]);
    }

    #[test]
    fn a_program_without_libraries_needs_nothing() {
        assert_eq!(read("file format elf64-x86-64\n"), Needs::default());
    }
}
