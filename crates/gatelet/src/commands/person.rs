//! The person at the terminal, where there is one.

use std::io::{BufRead, IsTerminal};

use packages::recipe::Input;

use crate::terminal::{DIM, WARNING, foreign, foreign_line, paint, say};

/// Whether somebody can be asked.
pub(crate) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether they say yes. Nobody there says no.
pub(crate) fn agrees(question: &str) -> bool {
    if !is_there() {
        return false;
    }
    say(&format!("{} [y/N]", paint(WARNING, question)));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// What they say about an input; what is secret is not shown while it is typed.
pub(crate) fn answer(input: &Input) -> Option<String> {
    if !is_there() {
        return None;
    }
    let about = foreign(&input.about);
    let choices = match input.choices.as_slice() {
        [] => String::new(),
        choices => format!(" (one of {})", foreign(&choices.join(", "))),
    };
    say(&format!("{}{choices}: {}", paint(WARNING, foreign_line(&input.name)), paint(DIM, about)));
    let mut line = String::new();
    let _hidden = input.is_secret.then(Hidden::begin).flatten();
    std::io::stdin().lock().read_line(&mut line).ok()?;
    let line = line.trim_end_matches(['\r', '\n']);
    (!line.is_empty()).then(|| line.to_owned())
}

/// While this is there, the terminal does not show what is typed.
pub(crate) struct Hidden(rustix::termios::Termios);

impl Hidden {
    pub(crate) fn begin() -> Option<Hidden> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(std::io::stdin()).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Now, &silent).ok()?;
        Some(Hidden(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}
