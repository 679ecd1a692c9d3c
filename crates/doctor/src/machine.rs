//! Judges the program, its configuration and state directory, and the machine.

use crate::code;
use crate::finding::Finding;

/// What was measured. What could not be measured is `None`.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Other programs called `gatelet` that stand before ours in the PATH.
    pub other_programs: Vec<String>,
    pub config: Option<Config>,
    pub state: State,
    pub service: Service,
    /// Why servers cannot be confined as the configuration asks.
    pub unenforceable: Option<String>,
    /// Free bytes where the state is.
    pub free: Option<u64>,
    /// How many files may be open.
    pub files: Option<u64>,
    /// Seconds since 1970 by the clock, and a moment before which this program was not made.
    pub clock: Option<(u64, u64)>,
}

/// The configuration file.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub file: String,
    /// Why it cannot be used.
    pub error: Option<String>,
    /// The warnings about it, a line each.
    pub warnings: Vec<String>,
    /// Why gatelet must not listen where it is told to.
    pub exposed: Option<String>,
    /// The permission bits of the file.
    pub mode: Option<u32>,
    pub n_plain_secrets: usize,
}

/// The state directory.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub directory: String,
    /// Why nothing can be written there.
    pub unwritable: Option<String>,
    pub mode: Option<u32>,
    /// The names of key files, with their permission bits.
    pub keys: Vec<(String, u32)>,
    /// Why the trust ledger is not believed.
    pub tampered: Option<String>,
    /// Sockets on which nobody listens.
    pub stale_sockets: Vec<String>,
}

/// The gatelet that runs, or would run.
#[derive(Clone, Debug, Default)]
pub struct Service {
    pub is_running: bool,
    /// Whether this system has a service manager that could run one.
    pub has_manager: bool,
    /// The address at which another program listens.
    pub address_taken: Option<String>,
}

const FULL: u64 = 50 << 20;
const LOW: u64 = 500 << 20;
const FEW_FILES: u64 = 1024;
const DAY: u64 = 86_400;
/// The permission bits of group and others.
const OTHERS: u32 = 0o077;

/// Returns all problems of the installation.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    let other = facts.other_programs.iter();
    found.extend(
        other.map(|path| Finding::new(&code::PROGRAM_TWICE, path, "it stands before this one")),
    );
    match &facts.config {
        Some(config) => config.judge(&mut found),
        None => found.push(Finding::new(&code::CONFIG_MISSING, "configuration", "none was found")),
    }
    facts.state.judge(&mut found);
    if let Some(address) = &facts.service.address_taken {
        found.push(Finding::new(&code::PORT_TAKEN, address, "it is in use"));
    }
    if !facts.service.is_running {
        let absent = Finding::new(&code::SERVICE_ABSENT, "gatelet", "none answers on the socket");
        // A fix that cannot work is none.
        let fix = absent.fix.clone().filter(|_| facts.service.has_manager);
        found.push(Finding { fix, ..absent });
    }
    machine(facts, &mut found);
    found
}

fn machine(facts: &Facts, found: &mut Vec<Finding>) {
    let directory = &facts.state.directory;
    match facts.free {
        Some(free) if free < FULL => {
            found.push(Finding::new(
                &code::DISK_FULL,
                directory,
                format!("{} MB are left", free >> 20),
            ));
        }
        Some(free) if free < LOW => {
            found.push(Finding::new(
                &code::DISK_LOW,
                directory,
                format!("{} MB are left", free >> 20),
            ));
        }
        Some(_) | None => {}
    }
    if let Some(why) = &facts.unenforceable {
        found.push(Finding::new(&code::SANDBOX_WEAK, "kernel", why.as_str()));
    }
    if let Some(files) = facts.files.filter(|files| *files < FEW_FILES) {
        found.push(Finding::new(&code::FILES_FEW, "limits", format!("{files} files at once")));
    }
    if let Some((now, built)) = facts.clock
        && now + DAY < built
    {
        let days = (built - now) / DAY;
        found.push(Finding::new(
            &code::CLOCK_WRONG,
            "clock",
            format!("at least {days} days behind"),
        ));
    }
}

impl Config {
    fn judge(&self, found: &mut Vec<Finding>) {
        let new = |code, detail: &str| Finding::new(code, &self.file, detail);
        found.extend(self.error.as_deref().map(|why| new(&code::CONFIG_WRONG, why)));
        found.extend(self.warnings.iter().map(|line| new(&code::CONFIG_ODD, line)));
        found.extend(self.exposed.as_deref().map(|why| new(&code::CONFIG_EXPOSED, why)));
        if self.n_plain_secrets == 0 {
            return;
        }
        let detail = format!("{} of them", self.n_plain_secrets);
        found.push(new(&code::CONFIG_PLAIN_SECRETS, &detail));
        if let Some(mode) = self.mode.filter(|mode| mode & OTHERS != 0) {
            found.push(new(&code::CONFIG_READABLE, &format!("its rights are {:o}", mode & 0o777)));
        }
    }
}

impl State {
    fn judge(&self, found: &mut Vec<Finding>) {
        let directory = &self.directory;
        if let Some(why) = &self.unwritable {
            found.push(Finding::new(&code::STATE_UNWRITABLE, directory, why.as_str()));
        }
        if let Some(mode) = self.mode.filter(|mode| mode & OTHERS != 0) {
            let detail = format!("its rights are {:o}", mode & 0o777);
            found.push(Finding::new(&code::STATE_OPEN, directory, detail));
        }
        for (file, mode) in self.keys.iter().filter(|(_, mode)| mode & OTHERS != 0) {
            let detail = format!("its rights are {:o}", mode & 0o777);
            found.push(Finding::new(&code::KEY_OPEN, file, detail));
        }
        if let Some(why) = &self.tampered {
            found.push(Finding::new(&code::LEDGER_TAMPERED, "trust.json", why.as_str()));
        }
        let stale = self.stale_sockets.iter();
        found.extend(
            stale.map(|file| Finding::new(&code::SOCKET_STALE, file, "nobody listens there")),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Facts {
        Facts {
            config: Some(Config {
                file: "g.toml".to_owned(),
                mode: Some(0o100_644),
                ..Config::default()
            }),
            service: Service { is_running: true, has_manager: true, address_taken: None },
            free: Some(10 << 30),
            files: Some(4096),
            clock: Some((2_000_000_000, 1_900_000_000)),
            state: State { mode: Some(0o40_700), ..State::default() },
            ..Facts::default()
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Facts), expected: &[&str]) {
        let mut facts = sound();
        change(&mut facts);
        let codes: Vec<&str> = judge(&facts).iter().map(|finding| finding.code.code).collect();
        assert_eq!(codes, expected);
    }

    #[test]
    fn each_fact_is_judged_by_itself() {
        check(|_| {}, &[]);
        check(|facts| facts.config = None, &["config-missing"]);
        check(|facts| facts.free = Some(1 << 20), &["disk-full"]);
        check(|facts| facts.free = Some(100 << 20), &["disk-low"]);
        check(|facts| facts.files = Some(256), &["files-few"]);
        check(|facts| facts.clock = Some((1, 1_900_000_000)), &["clock-wrong"]);
        check(|facts| facts.unenforceable = Some("x".to_owned()), &["sandbox-weak"]);
        check(|facts| facts.service.is_running = false, &["not-running"]);
        check(
            |facts| facts.service.address_taken = Some("127.0.0.1:1".to_owned()),
            &["port-taken"],
        );
        check(|facts| facts.state.mode = Some(0o755), &["state-open"]);
        check(
            |facts| facts.state.keys = vec![("k".to_owned(), 0o640), ("l".to_owned(), 0o600)],
            &["key-open"],
        );
        check(|facts| facts.state.tampered = Some("x".to_owned()), &["ledger-tampered"]);
        check(|facts| facts.state.stale_sockets = vec!["s".to_owned()], &["socket-stale"]);
        check(|facts| facts.state.unwritable = Some("x".to_owned()), &["state-unwritable"]);
        check(|facts| facts.other_programs = vec!["/x".to_owned()], &["program-twice"]);
        let plain = |facts: &mut Facts| facts.config.as_mut().unwrap().n_plain_secrets = 1;
        check(plain, &["config-plain-secrets", "config-readable"]);
        check(
            |facts| facts.config.as_mut().unwrap().error = Some("x".to_owned()),
            &["config-wrong"],
        );
        check(
            |facts| facts.config.as_mut().unwrap().exposed = Some("x".to_owned()),
            &["config-exposed"],
        );
    }
}
