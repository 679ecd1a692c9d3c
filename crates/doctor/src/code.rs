//! The table of all codes: everything that `gatelet doctor` can find.

/// One kind of problem.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// Its name in output, `explain` and the documentation.
    pub code: &'static str,
    pub area: Area,
    pub severity: Severity,
    /// The problem in a few words.
    pub title: &'static str,
    /// What the problem means for the user of gatelet.
    pub meaning: &'static str,
    pub who: Who,
    /// The command that fixes it; `{}` stands for the subject of the finding.
    pub fix: Option<&'static str>,
    /// Whether `--fix` fixes it.
    pub is_fixable: bool,
}

/// How bad a problem is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something does not work.
    Error,
    /// Something works worse than it could, or not for long.
    Warning,
    /// Worth knowing.
    Note,
}

/// The part of the installation that a problem is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    Program,
    Config,
    State,
    Service,
    Machine,
    Host,
    Upstream,
}

/// Who can fix a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Whoever configures this gatelet.
    Operator,
    /// Whoever administers this machine.
    Administrator,
    /// Whoever makes the server.
    ServerAuthor,
}

impl Severity {
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

impl Area {
    pub fn word(self) -> &'static str {
        match self {
            Area::Program => "program",
            Area::Config => "configuration",
            Area::State => "state",
            Area::Service => "service",
            Area::Machine => "machine",
            Area::Host => "host",
            Area::Upstream => "upstream",
        }
    }
}

impl Who {
    pub fn word(self) -> &'static str {
        match self {
            Who::Operator => "you",
            Who::Administrator => "whoever administers this machine",
            Who::ServerAuthor => "the server's author",
        }
    }
}

/// Declares codes and lists them, so that none is forgotten.
macro_rules! codes {
    ($($name:ident = $code:literal, $area:ident, $severity:ident, $who:ident, $fix:expr, $fixable:literal,
       $title:literal, $meaning:literal;)*) => {
        $(pub static $name: Code = Code {
            code: $code,
            area: Area::$area,
            severity: Severity::$severity,
            title: $title,
            meaning: $meaning,
            who: Who::$who,
            fix: $fix,
            is_fixable: $fixable,
        };)*

        /// Every code, in the order in which they are documented.
        pub static ALL: &[&Code] = &[$(&$name),*];
    };
}

codes! {
    PROGRAM_TWICE = "program-twice", Program, Warning, Operator, None, false,
        "another gatelet comes first in the PATH",
        "Hosts and shells may start another version than the one that you run now.";
    CONFIG_MISSING = "config-missing", Config, Note, Operator, Some("gatelet add NAME -- COMMAND"), false,
        "there is no configuration",
        "gatelet offers its built-in tools and nothing else.";
    CONFIG_WRONG = "config-wrong", Config, Error, Operator, Some("gatelet config check"), false,
        "the configuration cannot be used",
        "gatelet does not start; one that runs keeps the configuration that it has.";
    CONFIG_ODD = "config-odd", Config, Warning, Operator, Some("gatelet config check"), false,
        "something in the configuration is not as it seems to be meant",
        "The rest is used. What is odd is shown with its place.";
    CONFIG_EXPOSED = "config-exposed", Config, Error, Operator, None, false,
        "strangers would reach gatelet, and nobody is asked who they are",
        "`serve` refuses to start like that.";
    CONFIG_READABLE = "config-readable", Config, Warning, Operator, Some("chmod 600 {}"), true,
        "others on this machine can read secrets in the configuration",
        "The file holds secrets as plain text, and its rights let other users read it.";
    CONFIG_PLAIN_SECRETS = "config-plain-secrets", Config, Warning, Operator, Some("gatelet secret set NAME"), false,
        "secrets stand in the configuration as plain text",
        "They are in every backup of the file. Keep each with `gatelet secret set NAME` and write ${keyring:NAME} instead.";
    STATE_UNWRITABLE = "state-unwritable", State, Error, Operator, None, false,
        "the state directory cannot be written",
        "Listings, trust and tokens are forgotten; logins and `add` fail.";
    STATE_OPEN = "state-open", State, Warning, Operator, Some("chmod 700 {}"), true,
        "others on this machine can look into the state directory",
        "It holds what gatelet knows of your servers.";
    KEY_OPEN = "key-open", State, Error, Operator, Some("chmod 600 {}"), true,
        "a key can be read by others",
        "Tokens and trust are as safe as this file. gatelet refuses to use it like that.";
    LEDGER_TAMPERED = "ledger-tampered", State, Error, Operator, Some("gatelet trust reset"), false,
        "the trust ledger is not believed",
        "It was changed by something that does not have its key, or it is damaged. Calls may be refused until it is made anew.";
    SOCKET_STALE = "socket-stale", State, Note, Operator, Some("rm {}"), true,
        "a gatelet that was killed left its socket behind",
        "It is in nobody's way, and is taken over by the next one.";
    SERVICE_ABSENT = "not-running", Service, Note, Operator, Some("gatelet up"), false,
        "no gatelet runs for this configuration",
        "Every command starts the servers that it needs and ends them again; every host that starts gatelet by itself does so, too.";
    PORT_TAKEN = "port-taken", Service, Error, Operator, None, false,
        "another program listens where gatelet should",
        "`gatelet serve` cannot start at this address. Choose another with `[serve] listen`, or end the other program.";
    DISK_FULL = "disk-full", Machine, Error, Administrator, None, false,
        "the disk of the state directory is full",
        "Nothing can be remembered: long results, trust, tokens and records are lost.";
    DISK_LOW = "disk-low", Machine, Warning, Administrator, None, false,
        "the disk of the state directory is nearly full",
        "Less than 500 MB are left.";
    FILES_FEW = "files-few", Machine, Warning, Administrator, Some("ulimit -n 4096"), false,
        "few files may be open at once",
        "Every session and every server needs some. Under load new callers are turned away.";
    CLOCK_WRONG = "clock-wrong", Machine, Error, Administrator, None, false,
        "the clock is wrong",
        "It shows a time before this program was made. Certificates and tokens are refused.";
    SANDBOX_WEAK = "sandbox-weak", Machine, Warning, Administrator, None, false,
        "this kernel cannot confine servers as the configuration asks",
        "A server with a `sandbox` that cannot be enforced is not started.";
    HOST_ABSENT = "host-absent", Host, Note, Operator, Some("gatelet install {}"), false,
        "a host on this machine does not use gatelet",
        "It is installed, and has no entry that leads here.";
    HOST_OTHER_PROGRAM = "host-other-program", Host, Warning, Operator, Some("gatelet install {}"), false,
        "a host starts another gatelet than this one",
        "Its entry names a program that is another version, or somebody else's.";
    HOST_ELSEWHERE = "host-elsewhere", Host, Warning, Operator, Some("gatelet install {}"), false,
        "a host's entry for gatelet leads elsewhere",
        "It has our name, and leads to another address, configuration or state directory than this one.";
    HOST_DEAD_ADDRESS = "host-dead-address", Host, Error, Operator, Some("gatelet up"), false,
        "a host reaches for a gatelet that does not run",
        "Its entry has the right address, and nobody answers there. Let one run (`gatelet up`, `gatelet serve`), or let the host start it: `gatelet install --stdio`.";
    HOST_NO_KEY = "host-no-key", Host, Error, Operator, Some("gatelet install --http {}"), false,
        "a host has no key for gatelet",
        "`auth.required` is set, and its entry sends none, so it is turned away. `gatelet key create NAME` makes one.";
    HOST_PROGRAM_MISSING = "host-program-missing", Host, Error, Operator, Some("gatelet install {}"), false,
        "a host cannot start gatelet",
        "Its entry names a program that is not there. The host shows no server, often without a word.";
    HOST_SWITCHED_OFF = "host-switched-off", Host, Warning, Operator, None, false,
        "a host has gatelet switched off",
        "Its entry is there, and the host leaves it out. Switch it on in the host, or take `disabled` out of the entry.";
    HOST_UNREADABLE = "host-unreadable", Host, Warning, Operator, None, false,
        "the file of a host cannot be read",
        "Hosts ignore a damaged file without a word, with every server in it.";
    UPSTREAM_QUARANTINED = "upstream-quarantined", Upstream, Warning, Operator, Some("gatelet enable {}"), false,
        "nobody has looked at its tools yet",
        "It is not started, and models see nothing of it.";
    UPSTREAM_UNSET = "upstream-unset", Upstream, Error, Operator, None, false,
        "something that its entry refers to is missing",
        "A variable, a file or a secret is not there, so the server is not started.";
    UPSTREAM_NO_PROGRAM = "upstream-no-program", Upstream, Error, Operator, None, false,
        "its program is not there",
        "Nothing of that name is in the PATH of this shell. Hosts often have a shorter PATH: name the program with its directory.";
    UPSTREAM_NO_PROGRAM_FOR_HOST = "upstream-no-program-for-host", Upstream, Warning, Operator, None, false,
        "a host does not find its program",
        "It is in the PATH of this shell, and not in the one with which a host or the service starts gatelet. Name the program with its directory, or give the host a longer PATH; `gatelet up` gives the service that of the shell.";
    UPSTREAM_FAILED = "upstream-failed", Upstream, Error, ServerAuthor, None, false,
        "it does not start, or does not speak MCP",
        "The program ended, said nothing in time, or answered with something else. Its last words are shown.";
    UPSTREAM_UNREACHABLE = "upstream-unreachable", Upstream, Error, Operator, None, false,
        "its address does not answer",
        "Nobody listens there, or what listens is no MCP server.";
    UPSTREAM_LOGIN = "upstream-login", Upstream, Error, Operator, Some("gatelet login {}"), false,
        "it wants a login",
        "There is no token, or the one that is kept is not taken any more.";
    UPSTREAM_FORBIDDEN = "upstream-forbidden", Upstream, Error, Operator, None, false,
        "it knows who asks, and refuses",
        "The credentials are good, and not for this. Others are needed.";
    UPSTREAM_SANDBOXED = "upstream-sandboxed", Upstream, Error, Operator, None, false,
        "its sandbox keeps it from starting",
        "It was refused a file, the network or memory that it needs. Widen `sandbox` in its entry.";
    UPSTREAM_SLOW_START = "upstream-slow-start", Upstream, Warning, ServerAuthor, None, false,
        "it takes long to start",
        "A host composes its first turn without a server that is still starting. gatelet answers from the listing that it remembers; a first start has none. A gatelet that stays (`gatelet up`) starts it once.";
    UPSTREAM_SLOW = "upstream-slow", Upstream, Warning, ServerAuthor, None, false,
        "it answers slowly",
        "The smallest question takes more than a second.";
    UPSTREAM_EMPTY = "upstream-empty", Upstream, Warning, ServerAuthor, None, false,
        "it offers nothing",
        "It lists no tools, no resources and no prompts. Some servers do so until they are configured or logged in.";
    UPSTREAM_FINDINGS = "upstream-findings", Upstream, Warning, ServerAuthor, Some("gatelet upstreams --report"), false,
        "something in its listing was skipped, renamed or damaged",
        "The rest can be used.";
    UPSTREAM_DRIFT = "upstream-drift", Upstream, Warning, Operator, Some("gatelet update {}"), false,
        "its tools changed since somebody vouched for them",
        "Depending on `[trust]`, calls warn, ask or are refused until you have looked.";
    UPSTREAM_LONG_DEFINITION = "upstream-long-definition", Upstream, Warning, ServerAuthor, None, false,
        "descriptions are longer than hosts show",
        "Claude Code cuts at 2,048 characters. On `cash` this costs nothing; on `direct` and `proxy` models see the beginning only.";
    UPSTREAM_LONG_NAME = "upstream-long-name", Upstream, Warning, Operator, None, false,
        "names of tools are longer than hosts allow",
        "With the label before them they pass 64 characters. On `direct` gatelet shortens them; a shorter label keeps them whole.";
    UPSTREAM_UNPINNED = "upstream-unpinned", Upstream, Note, Operator, Some("gatelet update {}"), false,
        "its package has no version",
        "The runner may start another program tomorrow than the one that you looked at.";
    UPSTREAM_OLD_PROTOCOL = "upstream-old-protocol", Upstream, Note, ServerAuthor, None, false,
        "it speaks an old revision of MCP",
        "Everything works that the revision has.";
}

/// The code of that name.
pub fn find(name: &str) -> Option<&'static Code> {
    ALL.iter().copied().find(|code| code.code.eq_ignore_ascii_case(name))
}

/// The codes as a table of the documentation.
pub fn markdown() -> String {
    let mut text =
        "| code | what it means | who can mend it | how |\n|---|---|---|---|\n".to_owned();
    for code in ALL {
        let fix = match (code.fix, code.is_fixable) {
            (Some(fix), true) => format!("`{}`, or `--fix`", fix.replace("{}", "FILE")),
            (Some(fix), false) => format!("`{}`", fix.replace("{}", "NAME")),
            (None, _) => String::new(),
        };
        text += &format!(
            "| `{}` | **{}** ({}). {} | {} | {fix} |\n",
            code.code,
            code.title,
            code.severity.word(),
            code.meaning,
            code.who.word()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_name_and_has_it_alone() {
        for code in ALL {
            assert_eq!(find(&code.code.to_uppercase()), Some(*code));
            let legal = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(code.code.chars().all(legal), "{}", code.code);
            assert!(code.meaning.ends_with('.') && !code.title.ends_with('.'), "{}", code.code);
            let same = ALL.iter().filter(|other| other.code == code.code).count();
            assert_eq!(same, 1, "{}", code.code);
            assert!(!code.is_fixable || code.fix.is_some(), "{}", code.code);
        }
        assert_eq!(find("nonsense"), None);
    }
}
