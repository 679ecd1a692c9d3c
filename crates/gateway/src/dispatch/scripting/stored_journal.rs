//! Stores the journal of a script as an artifact of its caller, whole once and then by
//! lines of its log.

use script::Journal;
use serde_json::json;
use tool::{Json, Reply};

use crate::builtin::LABEL;
use crate::dispatch::dispatcher::Dispatcher;
use crate::dispatch::script_runner::ScriptRunner;
use artifacts::{Artifact, Log, LogError, Owner, PartIndex, StoredIn, TooLarge, Unreadable};

/// The function that runs scripts.
const RUN: &str = "run";

/// Returns the key by which a script that was begun is found again.
pub(super) fn key(code: &str, inputs: &Json) -> String {
    Artifact::fingerprint(&format!("{LABEL}/{RUN}\u{1f}{code}\u{1f}{inputs}"))
}

impl Dispatcher {
    /// Stores a journal under its handle, in place of an earlier one. Returns where it
    /// is stored.
    pub(super) async fn store_journal(
        &self,
        journal: &Journal,
        handle: &str,
        owner: &Owner,
    ) -> Result<StoredIn, TooLarge> {
        let data = Json::encode(journal);
        let inputs = Json::from_trusted(journal.inputs.get().to_owned());
        let artifact = Artifact {
            handle: handle.to_owned(),
            owner: owner.clone(),
            made: self.recorder.clock.unix_millis(),
            upstream: LABEL.to_owned(),
            tool: RUN.to_owned(),
            id: String::new(),
            key: key(&journal.code, &inputs),
            chars: data.as_str().chars().count(),
            result: json!({"content": [], "structuredContent": data}).into(),
            raw: None,
            parts: PartIndex::default(),
        };
        self.artifacts.put_with_log(artifact).await
    }

    /// Opens the journal with this handle to go on with its script, if it belongs to the
    /// owner and nobody else goes on with it.
    pub(super) async fn open_journal(
        &self,
        handle: &str,
        owner: &Owner,
    ) -> Result<OpenJournal, String> {
        let shown = catalog::summary::echo(handle);
        let missing =
            || format!("no script is kept as `{shown}`: it ended, expired, or is another caller's");
        let found = self.artifacts.get(owner, handle).await.map_err(|away| away.to_string())?;
        let artifact = found.ok_or_else(missing)?;
        let journal = parse(&artifact).ok_or_else(missing)?;
        let opened = self.artifacts.open_log(owner, handle).await;
        let opened = opened.map_err(|why| not_opened(&shown, &why))?;
        let (log, lines) = opened.map(|opened| (opened.log, opened.bytes)).unzip();
        let journal = journal.with_lines(&lines.unwrap_or_default());
        let mut journal = journal.map_err(|damaged| {
            format!(
                "{damaged}, so what `{shown}` has done is not known; look at it, and start the \
                 script again with `\"fresh\": true`"
            )
        })?;
        if journal.finished {
            return Err(format!("the script `{shown}` has ended; run it again by its code"));
        }
        if let Some(log) = &log {
            // From here on, nobody who wrote before can write.
            journal.start_lines();
            journal.record_resume(log.fence());
            // A line that was cut ends here.
            log.add(b"\n");
            log.add(&journal.take_lines());
            log.flush().await.map_err(|why| not_opened(&shown, &why))?;
        }
        Ok(OpenJournal { journal, log })
    }
}

/// A script that was begun before and did not end.
pub(super) struct Unfinished {
    /// The handle of its journal, which only its owner learns.
    pub(super) handle: Option<String>,
    pub(super) is_recipe: bool,
}

/// How far a script has come whose journal is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Finished,
    Running,
    Stopped,
}

impl Dispatcher {
    /// Finds a script that was begun before with the same code and inputs and did not
    /// end, by this caller or, as far as callers are not known, by anybody.
    ///
    /// A caller's own script that is still running counts too, but not a recipe: it may
    /// be run twice at a time.
    pub(super) async fn find_unfinished(
        &self,
        scripting: &ScriptRunner,
        owner: &Owner,
        key: &str,
        is_recipe: bool,
    ) -> Result<Option<Unfinished>, Unreadable> {
        let Some(artifact) = self.artifacts.find_begun(owner, key).await? else { return Ok(None) };
        let is_own = artifact.owner == *owner;
        let found = match self.stage(scripting, &artifact).await {
            Stage::Stopped => true,
            Stage::Running => is_own && !is_recipe,
            Stage::Finished => {
                self.artifacts.forget_call(&artifact.owner, &artifact.handle).await;
                false
            }
        };
        if found && is_recipe && !is_own {
            // It has no argument to say that it is to run all the same: it is said once.
            self.artifacts.forget_call(&artifact.owner, &artifact.handle).await;
        }
        let handle = is_own.then(|| artifact.handle.clone());
        Ok(found.then_some(Unfinished { handle, is_recipe }))
    }

    async fn stage(&self, scripting: &ScriptRunner, artifact: &Artifact) -> Stage {
        let Some(_reading) = scripting.mark_running(&artifact.handle) else {
            return Stage::Running;
        };
        let lines = match self.artifacts.open_log(&artifact.owner, &artifact.handle).await {
            Ok(opened) => opened.map(|opened| opened.bytes).unwrap_or_default(),
            Err(LogError::Taken) => return Stage::Running,
            // Whether it ended is not known.
            Err(LogError::Void | LogError::TooLarge { .. } | LogError::Unavailable { .. }) => {
                return Stage::Stopped;
            }
        };
        let journal = parse(artifact).and_then(|journal| journal.with_lines(&lines).ok());
        match journal {
            Some(journal) if journal.finished => Stage::Finished,
            Some(_) | None => Stage::Stopped,
        }
    }
}

/// Parses the journal in an artifact, without its lines; `None` if it is none.
fn parse(artifact: &Artifact) -> Option<Journal> {
    let is_script = artifact.upstream == LABEL && artifact.tool == RUN;
    let result = Reply::Result(artifact.result.clone()).tool_result();
    let data = result.filter(|_| is_script)?.structured?;
    data.parse_as().ok().map(Journal::indexed)
}

/// A journal, and its log if it is stored.
pub(super) struct OpenJournal {
    pub(super) journal: Journal,
    pub(super) log: Option<Box<dyn Log>>,
}

fn not_opened(handle: &str, why: &LogError) -> String {
    match why {
        LogError::Taken => under_way(handle),
        LogError::Void => format!(
            "the script `{handle}` cannot go on, because what it did is not known: {why}. Look at \
             what it did, and start it again with `\"fresh\": true`"
        ),
        LogError::TooLarge { .. } | LogError::Unavailable { .. } => format!(
            "the script `{handle}` cannot go on now, because what it does cannot be kept: {why}. Try \
             again later"
        ),
    }
}

/// Says that a script runs already.
pub(super) fn under_way(handle: &str) -> String {
    format!(
        "the script `{handle}` is under way already, here or at another replica; wait until it ended. \
         One whose gatelet died can be resumed after some seconds"
    )
}
