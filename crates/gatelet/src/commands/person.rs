//! Asks the person at the terminal, if there is one.

use std::io::{BufRead, IsTerminal};

use packages::recipe::Input;

use crate::terminal::{DIM, WARNING, foreign, foreign_line, paint, say};

/// Whether a person can be asked: stdin and stderr are a terminal.
pub(crate) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks a yes-or-no question. Without a person the answer is no.
pub(crate) fn agrees(question: &str) -> bool {
    if !is_there() {
        return false;
    }
    say(&format!("{} [y/N]", paint(WARNING, question)));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// Asks for the value of an input; a secret is not shown while it is typed.
pub(crate) fn ask_for(input: &Input) -> Option<String> {
    if !is_there() {
        return None;
    }
    let about = foreign(&input.about);
    let choices = match input.choices.as_slice() {
        [] => String::new(),
        choices => format!(" (one of {})", foreign(&choices.join(", "))),
    };
    // Before the question: whoever types at once shows nothing either.
    let _hidden = input.is_secret.then(HiddenInput::begin).flatten();
    say(&format!("{}{choices}: {}", paint(WARNING, foreign_line(&input.name)), paint(DIM, about)));
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).ok()?;
    let line = line.trim_end_matches(['\r', '\n']);
    (!line.is_empty()).then(|| line.to_owned())
}

/// While this lives, the terminal does not show what is typed. Holds the settings to
/// restore.
pub(crate) struct HiddenInput(rustix::termios::Termios);

impl HiddenInput {
    pub(crate) fn begin() -> Option<HiddenInput> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(std::io::stdin()).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Now, &silent).ok()?;
        Some(HiddenInput(before))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}
