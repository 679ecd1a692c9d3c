//! How an artifact is written: one JSON object, the same in a file and in a store
//! that replicas share.

use std::io::Write;

use artifacts::envelope::PartRef;
use artifacts::{Artifact, Owner, Parts};
use serde::{Deserialize, Serialize};
use tool::{Json, Object};

/// What is written of an artifact beside its results.
#[derive(Serialize, Deserialize)]
struct Head {
    handle: String,
    owner: String,
    made: u64,
    upstream: String,
    tool: String,
    #[serde(default)]
    id: String,
    key: String,
    chars: usize,
    #[serde(default)]
    parts: Option<Vec<PartRef>>,
}

impl Head {
    fn of(artifact: &Artifact) -> Head {
        Head {
            handle: artifact.handle.clone(),
            owner: artifact.owner.as_str().to_owned(),
            made: artifact.made,
            upstream: artifact.upstream.clone(),
            tool: artifact.tool.clone(),
            id: artifact.id.clone(),
            key: artifact.key.clone(),
            chars: artifact.chars,
            parts: Some(artifact.parts().to_vec()),
        }
    }

    fn with(self, result: Json, raw: Option<Json>) -> Artifact {
        Artifact {
            handle: self.handle,
            owner: Owner::read(&self.owner),
            made: self.made,
            upstream: self.upstream,
            tool: self.tool,
            id: self.id,
            key: self.key,
            result,
            raw,
            chars: self.chars,
            parts: self.parts.map(Parts::known).unwrap_or_default(),
        }
    }
}

/// Writes an artifact as one JSON object. Its results may be long: they are
/// written from where they are.
pub(crate) fn write(artifact: &Artifact, file: &mut impl Write) -> std::io::Result<()> {
    let mut head = serde_json::to_vec(&Head::of(artifact))?;
    head.pop();
    file.write_all(&head)?;
    file.write_all(b",\"result\":")?;
    file.write_all(artifact.result.as_bytes())?;
    if let Some(raw) = &artifact.raw {
        file.write_all(b",\"raw\":")?;
        file.write_all(raw.as_bytes())?;
    }
    file.write_all(b"}")
}

/// Reads an artifact; its results share the memory of the file.
pub(crate) fn parse(bytes: Vec<u8>) -> Option<Artifact> {
    let mut members = Object::parse(&Json::parse(bytes).ok()?).ok()?;
    let (result, raw) = (members.remove("result")?, members.remove("raw"));
    let head: Head = members.to_json().parse_as().ok()?;
    Some(head.with(result, raw.filter(|raw| !raw.is_null())))
}
