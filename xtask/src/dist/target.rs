//! The platforms that packages are made for, and what each kind of package calls
//! them. To add one, add a row.

use std::process::Command;

use anyhow::{Context, Result};

use crate::run::output;

/// A platform.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Rust's name.
    pub(crate) triple: &'static str,
    /// Debian's name of the architecture, where there is a Debian package.
    pub(crate) debian: Option<&'static str>,
    /// Node's `process.platform` and `process.arch`.
    pub(crate) npm: (&'static str, &'static str),
    pub(crate) wheel: Wheel,
}

/// How a wheel names its platform.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wheel {
    /// `manylinux_2_N_ARCH`, where the program says which glibc.
    ManyLinux(&'static str),
    Fixed(&'static str),
}

pub(crate) const ALL: &[Target] = &[
    Target {
        triple: "x86_64-unknown-linux-gnu",
        debian: Some("amd64"),
        npm: ("linux", "x64"),
        wheel: Wheel::ManyLinux("x86_64"),
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        debian: Some("arm64"),
        npm: ("linux", "arm64"),
        wheel: Wheel::ManyLinux("aarch64"),
    },
    Target {
        triple: "aarch64-apple-darwin",
        debian: None,
        npm: ("darwin", "arm64"),
        wheel: Wheel::Fixed("macosx_11_0_arm64"),
    },
    Target {
        triple: "x86_64-apple-darwin",
        debian: None,
        npm: ("darwin", "x64"),
        wheel: Wheel::Fixed("macosx_10_12_x86_64"),
    },
];

impl Target {
    /// The platform that this runs on. The program is run to make its manual, so
    /// packages are made where it runs.
    pub(crate) fn here() -> Result<&'static Target> {
        let told = output(Command::new("rustc").arg("-vV"))?;
        let host = told.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        Target::of(host)
    }

    fn of(triple: &str) -> Result<&'static Target> {
        let known: Vec<&str> = ALL.iter().map(|target| target.triple).collect();
        let found = ALL.iter().find(|target| target.triple == triple);
        found.with_context(|| {
            format!("no packages are made for `{triple}`; there are rows for {}", known.join(", "))
        })
    }

    /// The npm package that carries the program.
    pub(crate) fn npm_name(&self) -> String {
        let (system, processor) = self.npm;
        format!("@gatelet/{system}-{processor}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_without_a_row_is_told_which_have_one() {
        let error = Target::of("riscv64gc-unknown-linux-gnu").unwrap_err().to_string();
        assert!(error.contains("riscv64gc") && error.contains("aarch64-apple-darwin"), "{error}");
    }
}
