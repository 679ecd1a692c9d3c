//! What became of the calls.

/// Counts over one cell, or over all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    calls: usize,
    /// Answered with what was asked for.
    right: usize,
    /// Answered with an error.
    errors: usize,
    /// Errors of calls that ran, where the error does not say so in words and to
    /// programs. Right where the upstream itself answered with the error.
    silent: usize,
    /// Answered with something else, which is worse than an error.
    wrong: usize,
    /// Never answered.
    lost: usize,
    /// Ran more than once.
    pub(crate) twice: usize,
    /// Calls to a healthy upstream that went wrong meanwhile.
    beside: usize,
    /// Processes that outlived gatelet.
    pub(crate) left: usize,
}

impl Tally {
    pub(crate) const HEAD: &'static str =
        "cell                    calls  right errors silent  wrong   lost  twice beside";

    /// Counts one call by its answer (none when it never came) and how often it ran.
    pub(crate) fn count(&mut self, answer: Option<&str>, key: &str, runs: usize) {
        self.calls += 1;
        match judge(answer, key) {
            Outcome::Lost => self.lost += 1,
            Outcome::Right => self.right += 1,
            Outcome::Wrong => self.wrong += 1,
            Outcome::Error { says_so } => {
                self.errors += 1;
                self.silent += usize::from(0 < runs && !says_so);
            }
        }
        self.twice += usize::from(1 < runs);
    }

    pub(crate) fn count_beside(&mut self, answer: Option<&str>, key: &str) {
        self.beside += usize::from(judge(answer, key) != Outcome::Right);
    }

    pub(crate) fn add(&mut self, other: &Tally) {
        self.calls += other.calls;
        self.right += other.right;
        self.errors += other.errors;
        self.silent += other.silent;
        self.wrong += other.wrong;
        self.lost += other.lost;
        self.twice += other.twice;
        self.beside += other.beside;
        self.left += other.left;
    }

    pub(crate) fn is_as_promised(&self) -> bool {
        self.lost + self.twice + self.wrong + self.beside + self.left == 0
    }

    pub(crate) fn row(&self, name: &str) -> String {
        format!(
            "{name:<22} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}",
            self.calls,
            self.right,
            self.errors,
            self.silent,
            self.wrong,
            self.lost,
            self.twice,
            self.beside
        )
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Right,
    /// An error, and whether it says that the call may have run.
    Error {
        says_so: bool,
    },
    Wrong,
    Lost,
}

/// The handle under which an answer is kept, if it is.
pub(crate) fn kept_as(answer: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(answer).ok()?;
    value["result"]["_meta"]["cash/gated"]["handle"].as_str().map(str::to_owned)
}

/// What an answer, as it stands on the wire, says about a call with this key.
fn judge(answer: Option<&str>, key: &str) -> Outcome {
    let Some(answer) = answer else { return Outcome::Lost };
    let value: serde_json::Value = serde_json::from_str(answer).unwrap_or_default();
    let is_error = value.get("error").is_some() || value["result"]["isError"] == true;
    let told = &value["result"]["_meta"]["cash/error"]["mayHaveRun"];
    let says_so = answer.contains("may have run") && told == true;
    let text = value["result"]["content"][0]["text"].as_str().unwrap_or_default();
    match is_error {
        true => Outcome::Error { says_so },
        false if text.contains(&format!("done:{key}")) => Outcome::Right,
        false => Outcome::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str, is_error: bool) -> String {
        let told = serde_json::json!({"mayHaveRun": text.contains("may have run")});
        let result = serde_json::json!({
            "content": [{"type": "text", "text": text}],
            "isError": is_error,
            "_meta": {"cash/error": told},
        });
        serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string()
    }

    #[test]
    fn an_answer_to_another_call_is_wrong_and_none_is_lost() {
        assert_eq!(judge(Some(&result("done:a-1", false)), "a-1"), Outcome::Right);
        assert_eq!(judge(Some(&result("done:a-2", false)), "a-1"), Outcome::Wrong);
        assert_eq!(judge(Some("not even JSON"), "a-1"), Outcome::Wrong);
        assert_eq!(judge(None, "a-1"), Outcome::Lost);
    }

    #[test]
    fn an_error_of_a_call_that_ran_should_say_so() {
        let mut tally = Tally::default();
        tally.count(Some(&result("it was cut off, and may have run", true)), "a", 1);
        tally.count(Some(&result("it was cut off", true)), "b", 1);
        tally.count(Some(&result("nobody there", true)), "c", 0);
        assert_eq!((tally.errors, tally.silent), (3, 1));
        assert!(tally.is_as_promised());
    }

    #[test]
    fn what_is_lost_runs_twice_or_stays_breaks_the_promise() {
        let mut lost = Tally::default();
        lost.count(None, "a", 1);
        let mut twice = Tally::default();
        twice.count(Some(&result("done:a", false)), "a", 2);
        let mut beside = Tally::default();
        beside.count_beside(Some(&result("no", true)), "a");
        let left = Tally { left: 1, ..Tally::default() };
        for tally in [lost, twice, beside, left] {
            assert!(!tally.is_as_promised(), "{tally:?}");
        }
    }
}
