//! The environment variables of a started program.
//!
//! Our own environment holds secrets of every upstream and of gatelet itself. A program
//! gets what it needs to find its files, its network and its user, and the variables that
//! the operator configured for it.

use std::ffi::{OsStr, OsString};

/// How much of our environment a program inherits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inherit {
    /// The variables for which [`is_needed`] is true.
    #[default]
    Needed,
    /// Everything, secrets too.
    All,
}

/// The inherited variables: paths, user, language, network.
const NEEDED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "TMPDIR",
    "TMP",
    "TEMP",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "LD_LIBRARY_PATH",
    // Proxies, and certificate authorities.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "FTP_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "NIX_SSL_CERT_FILE",
    // Where package runners and version managers keep what they run. None of
    // these holds a secret; settings such as `npm_config_*` may.
    "NPM_CONFIG_CACHE",
    "NPM_CONFIG_PREFIX",
    "NVM_DIR",
    "NVM_BIN",
    "FNM_DIR",
    "VOLTA_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "UV_CACHE_DIR",
    "UV_TOOL_DIR",
    "UV_TOOL_BIN_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "PIPX_HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "DOCKER_HOST",
    // Without these nothing starts on Windows.
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "USERPROFILE",
    "HOMEDRIVE",
    "HOMEPATH",
    "USERNAME",
];

/// Returns whether every program inherits this variable, also if the configuration does
/// not name it.
pub fn is_needed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let name = name.to_ascii_uppercase();
    name.starts_with("LC_") || name.starts_with("XDG_") || NEEDED.contains(&name.as_str())
}

/// Returns the variables that a program inherits.
pub(super) fn inherited(inherit: Inherit) -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(move |(name, _)| inherit == Inherit::All || is_needed(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_needs_is_passed_on_and_what_may_be_a_secret_is_not() {
        for name in ["PATH", "HOME", "LC_ALL", "XDG_RUNTIME_DIR", "https_proxy", "NO_PROXY", "TZ"] {
            assert!(is_needed(OsStr::new(name)), "{name}");
        }
        for name in [
            "BANK_TOKEN",
            "GATELET_SECRET",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "npm_config__auth",
            "NPM_TOKEN",
            "UV_INDEX_URL",
            "SSH_AUTH_SOCK",
            "LD_PRELOAD",
            "NODE_OPTIONS",
            "PATH_TOKEN",
            "",
        ] {
            assert!(!is_needed(OsStr::new(name)), "{name}");
        }
    }
}
