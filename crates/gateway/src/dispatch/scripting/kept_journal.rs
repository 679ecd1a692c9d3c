//! The journal of a script, as an artifact of its caller.

use script::Journal;
use serde_json::json;
use tool::{Json, Reply};

use crate::builtin::LABEL;
use crate::dispatch::pipeline::Dispatcher;
use artifacts::{Artifact, Owner, Parts, StoredIn, TooLarge};

/// The function that runs scripts.
const RUN: &str = "run";

/// What identifies a script that was begun.
pub(super) fn key(code: &str, inputs: &Json) -> String {
    Artifact::fingerprint(&format!("{LABEL}/{RUN}\u{1f}{code}\u{1f}{inputs}"))
}

impl Dispatcher {
    /// Keeps a journal under its handle, in place of an earlier one, and says where.
    pub(super) async fn keep_journal(
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
            parts: Parts::default(),
        };
        self.artifacts.put(artifact).await
    }

    /// The journal under a handle, if it is the owner's.
    pub(super) async fn kept_journal(
        &self,
        handle: &str,
        owner: &Owner,
    ) -> Result<Journal, String> {
        let shown = catalog::summary::echo(handle);
        let missing =
            || format!("no script is kept as `{shown}`: it ended, expired, or is another caller's");
        let found = self.artifacts.get(owner, handle).await.map_err(|away| away.to_string())?;
        let artifact = found.ok_or_else(missing)?;
        let is_script = artifact.upstream == LABEL && artifact.tool == RUN;
        let result = Reply::Result(artifact.result.clone()).tool_result();
        let data = result.filter(|_| is_script).and_then(|result| result.structured);
        let journal: Journal = data.and_then(|data| data.parse_as().ok()).ok_or_else(missing)?;
        match journal.finished {
            true => Err(format!("the script `{shown}` has ended; run it again by its code")),
            false => Ok(journal.indexed()),
        }
    }
}
