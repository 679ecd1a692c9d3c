//! The model in the loop: an endpoint, a program on the other end of a pipe, or somebody
//! who exchanges files in a folder.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::endpoint::Endpoint;

/// What a model does next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Call { id: String, name: String, arguments: Value },
    Answer(String),
}

/// What came of a call.
pub(crate) struct CallResult {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// Whoever does the tasks.
pub(crate) enum Model {
    Endpoint(Endpoint),
    /// Standard input and output, a JSON object per line.
    Pipe,
    Folder(Folder),
}

impl Model {
    /// Begins a task. Whatever was said before is forgotten.
    pub(crate) fn begin(&mut self, task: &str, tools: &[Value]) -> Result<()> {
        match self {
            Model::Endpoint(endpoint) => {
                endpoint.begin(task, tools);
                Ok(())
            }
            Model::Pipe => tell(&json!({"task": task, "tools": tools})),
            Model::Folder(folder) => folder.put(&json!({"task": task, "tools": tools})),
        }
    }

    pub(crate) fn next(&mut self) -> Result<Vec<Action>> {
        match self {
            Model::Endpoint(endpoint) => endpoint.next(),
            Model::Pipe => {
                let mut line = String::new();
                if std::io::stdin().lock().read_line(&mut line)? == 0 {
                    bail!("the pipe was closed in the middle of a task");
                }
                parse(&line)
            }
            Model::Folder(folder) => parse(&folder.take()?),
        }
    }

    pub(crate) fn give(&mut self, results: &[CallResult]) -> Result<()> {
        let told =
            |result: &CallResult| json!({"result": result.text, "is_error": result.is_error});
        match self {
            Model::Endpoint(endpoint) => {
                endpoint.give(results);
                Ok(())
            }
            Model::Pipe => results.iter().try_for_each(|result| tell(&told(result))),
            Model::Folder(folder) => {
                results.iter().try_for_each(|result| folder.put(&told(result)))
            }
        }
    }
}

impl Model {
    /// Says that no task is left, so that whoever plays the model does not wait for one.
    pub(crate) fn end(&mut self, n_tasks: usize, n_right: usize) -> Result<()> {
        let done = json!({"done": {"tasks": n_tasks, "right": n_right}});
        match self {
            Model::Endpoint(_) => Ok(()),
            Model::Pipe => tell(&done),
            Model::Folder(folder) => folder.put(&done),
        }
    }
}

/// Reads `{"call": {"name": …, "arguments": …}}` or `{"answer": …}`.
fn parse(line: &str) -> Result<Vec<Action>> {
    let said: Value = serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))?;
    if let Some(answer) = said.get("answer") {
        let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        return Ok(vec![Action::Answer(text)]);
    }
    let name = said["call"]["name"].as_str().context("neither a call with a name nor an answer")?;
    let arguments = said["call"].get("arguments").cloned().unwrap_or_else(|| json!({}));
    Ok(vec![Action::Call { id: String::new(), name: name.to_owned(), arguments }])
}

fn tell(message: &Value) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{message}")?;
    Ok(output.flush()?)
}

/// Files `out-N.json` for whoever plays the model, and `in-N.json` of theirs.
pub(crate) struct Folder {
    directory: PathBuf,
    at: usize,
}

/// How long a folder is looked at between two looks.
const LOOK: Duration = Duration::from_millis(100);

impl Folder {
    pub(crate) fn create(directory: &Path) -> Result<Folder> {
        std::fs::create_dir_all(directory)?;
        Ok(Folder { directory: directory.to_owned(), at: 0 })
    }

    fn put(&mut self, message: &Value) -> Result<()> {
        self.at += 1;
        write(&self.directory.join(format!("out-{}.json", self.at)), &message.to_string())
    }

    fn take(&self) -> Result<String> {
        wait_for(&self.directory.join(format!("in-{}.json", self.at)))
    }
}

/// Answers what stands in a folder, waits for what comes next, and prints it. Without
/// an answer it prints what is there.
pub(crate) fn say(directory: &Path, words: Option<&str>) -> Result<String> {
    let out = |n: usize| directory.join(format!("out-{n}.json"));
    let last = (1..).take_while(|n| out(*n).exists()).last().unwrap_or(0);
    let Some(words) = words else { return wait_for(&out(last.max(1))) };
    parse(words)?;
    if last == 0 {
        bail!("nothing was asked yet; look first, without words");
    }
    let answer = directory.join(format!("in-{last}.json"));
    if answer.exists() {
        bail!("this was answered; look again without words");
    }
    write(&answer, words)?;
    wait_for(&out(last + 1))
}

fn write(path: &Path, text: &str) -> Result<()> {
    let unfinished = path.with_extension("part");
    std::fs::write(&unfinished, text)?;
    Ok(std::fs::rename(unfinished, path)?)
}

fn wait_for(path: &Path) -> Result<String> {
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) => return Ok(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => std::thread::sleep(LOOK),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_answers_are_read_and_everything_else_is_refused() {
        assert_eq!(parse(r#"{"answer": 7}"#).unwrap(), [Action::Answer("7".to_owned())]);
        let call = parse(r#"{"call": {"name": "help"}}"#).unwrap();
        let expected =
            Action::Call { id: String::new(), name: "help".to_owned(), arguments: json!({}) };
        assert_eq!(call, [expected]);
        assert!(parse("{}").is_err() && parse("help").is_err());
    }

    #[test]
    fn the_last_answer_of_a_run_is_told_that_nothing_follows() {
        let directory = tempfile::tempdir().unwrap();
        let mut model = Model::Folder(Folder::create(directory.path()).unwrap());
        model.begin("t", &[]).unwrap();
        let path = directory.path().to_owned();
        let player = std::thread::spawn(move || say(&path, Some(r#"{"answer": "x"}"#)).unwrap());
        assert_eq!(model.next().unwrap(), [Action::Answer("x".to_owned())]);
        model.end(1, 0).unwrap();
        assert_eq!(player.join().unwrap(), r#"{"done":{"tasks":1,"right":0}}"#);
    }

    #[test]
    fn nobody_answers_before_anything_was_asked() {
        let directory = tempfile::tempdir().unwrap();
        assert!(say(directory.path(), Some(r#"{"answer": 1}"#)).is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_carries_both_directions_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut folder = Folder::create(directory.path()).unwrap();
        folder.put(&json!({"task": "t"})).unwrap();
        let path = directory.path().to_owned();
        let player = std::thread::spawn(move || say(&path, Some(r#"{"answer": "x"}"#)).unwrap());
        assert_eq!(folder.take().unwrap(), r#"{"answer": "x"}"#);
        folder.put(&json!({"task": "next"})).unwrap();
        assert!(player.join().unwrap().contains("next"));
    }
}
