//! Judges one host (a program that uses MCP servers): whether it is configured to
//! use this gatelet.

use crate::code;
use crate::finding::Finding;

/// What was measured of one host.
#[derive(Clone, Debug)]
pub struct Facts {
    /// What the host is called on the command line.
    pub id: String,
    pub outcome: Outcome,
}

/// What the configuration files of the host say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A file that cannot be read, and why.
    Unreadable(String),
    /// No entry leads to this gatelet.
    Absent,
    /// An entry starts another program.
    OtherProgram(String),
    /// An entry with our name leads to this other place.
    Elsewhere(String),
    /// An entry has our address, at which nobody listens.
    DeadAddress(String),
    /// An entry has our address, and sends no key where one is asked for.
    NoKey,
    /// An entry starts a program that is not there.
    MissingProgram(String),
    /// An entry leads to this gatelet, and the host does not use it.
    SwitchedOff,
    /// An entry leads to this gatelet.
    Here,
}

/// Returns the problem of the host, if it has one.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let new = |code, detail: &str| Some(Finding::new(code, &facts.id, detail));
    match &facts.outcome {
        Outcome::Unreadable(why) => new(&code::HOST_UNREADABLE, why),
        Outcome::Absent => new(&code::HOST_ABSENT, ""),
        Outcome::OtherProgram(program) => {
            new(&code::HOST_OTHER_PROGRAM, &format!("its entry starts `{program}`"))
        }
        Outcome::Elsewhere(place) => {
            new(&code::HOST_ELSEWHERE, &format!("its entry leads to `{place}`"))
        }
        Outcome::DeadAddress(address) => {
            new(&code::HOST_DEAD_ADDRESS, &format!("nobody answers at {address}"))
        }
        Outcome::NoKey => new(&code::HOST_NO_KEY, ""),
        Outcome::MissingProgram(program) => new(
            &code::HOST_PROGRAM_MISSING,
            &format!("its entry starts `{program}`, which is not there"),
        ),
        Outcome::SwitchedOff => new(&code::HOST_SWITCHED_OFF, ""),
        Outcome::Here => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_leads_here_has_nothing_wrong_and_every_other_a_code() {
        let code = |outcome| {
            let facts = Facts { id: "cursor".to_owned(), outcome };
            judge(&facts).map(|finding| (finding.code.code, finding.fix))
        };
        let install = Some("gatelet install cursor".to_owned());
        assert_eq!(code(Outcome::Here), None);
        assert_eq!(code(Outcome::Absent), Some(("host-absent", install.clone())));
        assert_eq!(
            code(Outcome::OtherProgram("x".to_owned())),
            Some(("host-other-program", install.clone()))
        );
        assert_eq!(
            code(Outcome::MissingProgram("x".to_owned())),
            Some(("host-program-missing", install))
        );
        assert_eq!(
            code(Outcome::Elsewhere("x".to_owned())),
            Some(("host-elsewhere", Some("gatelet install cursor".to_owned())))
        );
        assert_eq!(
            code(Outcome::DeadAddress("x".to_owned())),
            Some(("host-dead-address", Some("gatelet up".to_owned())))
        );
        assert_eq!(
            code(Outcome::NoKey),
            Some(("host-no-key", Some("gatelet install --http cursor".to_owned())))
        );
        assert_eq!(code(Outcome::SwitchedOff), Some(("host-switched-off", None)));
        assert_eq!(code(Outcome::Unreadable("x".to_owned())), Some(("host-unreadable", None)));
    }
}
