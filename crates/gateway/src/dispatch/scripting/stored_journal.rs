//! Stores the journal of a script as an artifact of its caller, whole once and then by
//! lines of its log.

use script::Journal;
use serde_json::json;
use tool::{Json, Reply};

use crate::builtin::LABEL;
use crate::dispatch::dispatcher::Dispatcher;
use artifacts::{Artifact, Log, LogError, Owner, PartIndex, StoredIn, TooLarge};

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
        self.artifacts.put(artifact).await
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
        let is_script = artifact.upstream == LABEL && artifact.tool == RUN;
        let result = Reply::Result(artifact.result.clone()).tool_result();
        let data = result.filter(|_| is_script).and_then(|result| result.structured);
        let journal: Journal = data.and_then(|data| data.parse_as().ok()).ok_or_else(missing)?;
        let opened = self.artifacts.open_log(owner, handle).await;
        let opened = opened.map_err(|why| not_opened(&shown, &why))?;
        let (log, lines) = opened.map(|opened| (opened.log, opened.bytes)).unzip();
        let journal = journal.indexed().with_lines(&lines.unwrap_or_default());
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

/// A journal, and its log if it is stored.
pub(super) struct OpenJournal {
    pub(super) journal: Journal,
    pub(super) log: Option<Box<dyn Log>>,
}

fn not_opened(handle: &str, why: &LogError) -> String {
    match why {
        LogError::Taken => under_way(handle),
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
