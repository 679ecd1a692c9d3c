//! A fuzzer for the stable compiler: generates inputs from a seed and passes them to a
//! function that must not panic, overflow its stack or take long.
//!
//! In the tests a target runs for a moment; `cargo xtask fuzz SECONDS` runs each for
//! longer, with another seed. Every input follows from the seed and its number, so a run
//! can be repeated. The current input is stored in a file while it is tried, because a
//! stack overflow ends the process without a message.

mod generate;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use generate::Dictionary;

/// How long one input may take. Generous: tests run unoptimised, on busy machines.
const SLOW: Duration = Duration::from_secs(10);

/// The stack size of a runtime's thread.
const STACK: usize = 2 << 20;

/// The settings of a run, from environment variables.
#[derive(Clone, Debug)]
struct RunPlan {
    seed: u64,
    time: Duration,
    /// The most inputs that are tried, so that tests try the same ones on every machine.
    inputs: u64,
    /// A file with the only input to try.
    replay: Option<PathBuf>,
    /// The directory for inputs that fail.
    failures: PathBuf,
}

/// Passes generated inputs to `check`; `target` is its name in messages.
///
/// # Panics
///
/// When the target does, or is slow. The message names the target, the seed, the
/// number of the input and the file that holds it.
#[track_caller]
pub fn run(
    target: &'static str,
    dictionary: &'static Dictionary,
    check: impl Fn(&[u8]) + Send + 'static,
) {
    let plan = RunPlan::from_environment();
    // Use the stack size of the program, not that of the test harness.
    let thread = std::thread::Builder::new().stack_size(STACK).name(target.to_owned());
    let running = thread.spawn(move || plan.run(target, dictionary, check));
    let outcome = running.expect("a thread can be started").join().expect("panics are caught");
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

impl RunPlan {
    #[expect(clippy::disallowed_methods, reason = "`cargo xtask fuzz` sets these")]
    fn from_environment() -> RunPlan {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
        let seconds = number("GATELET_FUZZ_SECONDS");
        let kept = std::env::var_os("GATELET_FUZZ_KEPT").map(PathBuf::from);
        RunPlan {
            seed: number("GATELET_FUZZ_SEED").unwrap_or(20_261_117),
            time: seconds.map_or(Duration::from_secs(2), Duration::from_secs),
            inputs: if seconds.is_some() { u64::MAX } else { 400 },
            replay: std::env::var_os("GATELET_FUZZ_INPUT").map(PathBuf::from),
            failures: kept.unwrap_or_else(|| std::env::temp_dir().join("gatelet-fuzz")),
        }
    }

    fn run(
        &self,
        target: &str,
        dictionary: &Dictionary,
        check: impl Fn(&[u8]),
    ) -> Result<(), String> {
        let _ = std::fs::create_dir_all(&self.failures);
        let file = self.failures.join(format!("{target}-{}.input", std::process::id()));
        if let Some(input) = &self.replay {
            let input = std::fs::read(input).map_err(|error| error.to_string())?;
            return attempt(&input, &check).map_err(|what| format!("{target}: {what}"));
        }
        let end = Instant::now() + self.time;
        let mut tried = 0;
        while tried < self.inputs && Instant::now() < end {
            let input = dictionary.input(self.seed, tried);
            let _ = std::fs::write(&file, &input);
            attempt(&input, &check)
                .map_err(|what| self.failure_message(target, tried, &file, &what))?;
            tried += 1;
        }
        let _ = std::fs::remove_file(&file);
        Ok(())
    }

    /// Renames the file of a failed input, and returns the message for it.
    fn failure_message(&self, target: &str, number: u64, file: &Path, what: &str) -> String {
        let place = file.with_file_name(format!("{target}-{}-{number}.input", self.seed));
        let place = match std::fs::rename(file, &place) {
            Ok(()) => place,
            Err(_) => file.to_owned(),
        };
        let (seed, place) = (self.seed, place.display());
        format!("{target}: seed {seed}, input {number}: {what}\n    GATELET_FUZZ_INPUT={place}")
    }
}

/// Tries one input.
fn attempt(input: &[u8], check: &impl Fn(&[u8])) -> Result<(), String> {
    let began = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| check(input)));
    let took = began.elapsed();
    match outcome {
        Err(panic) => {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("panicked: {}", words.unwrap_or("without words")))
        }
        Ok(()) if SLOW < took => Err(format!("took {} s", took.as_secs())),
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static WORDS: Dictionary = Dictionary { seeds: &["[1, 2]"], words: &["[", "]", "{}"] };

    fn plan(place: &Path) -> RunPlan {
        let time = Duration::from_secs(30);
        RunPlan { seed: 7, time, inputs: 300, replay: None, failures: place.to_owned() }
    }

    #[test]
    fn a_panic_is_told_with_its_seed_and_its_input_kept() {
        let place = std::env::temp_dir().join(format!("gatelet-fuzz-{}", std::process::id()));
        let check = |input: &[u8]| assert!(!input.starts_with(b"[["), "two brackets");
        let failure = plan(&place).run("sample", &WORDS, check).unwrap_err();
        assert!(failure.starts_with("sample: seed 7, input "), "{failure}");
        assert!(failure.contains("two brackets"), "{failure}");
        let file = failure.rsplit_once('=').unwrap().1;
        assert!(std::fs::read(file).unwrap().starts_with(b"[["));
        // The kept input alone fails, too.
        let again = RunPlan { replay: Some(PathBuf::from(file)), ..plan(&place) };
        assert!(again.run("sample", &WORDS, check).unwrap_err().contains("two brackets"));
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn what_holds_passes_and_leaves_no_file() {
        let place = std::env::temp_dir().join(format!("gatelet-fuzz-ok-{}", std::process::id()));
        plan(&place).run("sample", &WORDS, |_| {}).unwrap();
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
        std::fs::remove_dir_all(&place).unwrap();
    }
}
