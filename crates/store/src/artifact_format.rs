//! The stored format of an artifact: one JSON object, the same in a file and in a
//! store that replicas share.

use std::io::Write;

use artifacts::envelope::PartRef;
use artifacts::{Artifact, Owner, PartIndex};
use serde::{Deserialize, Serialize};
use tool::{Json, Object};

/// The members of the object except for the results.
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
    fn new(artifact: &Artifact) -> Head {
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

    fn into_artifact(self, result: Json, raw: Option<Json>) -> Artifact {
        Artifact {
            handle: self.handle,
            owner: Owner::from_stored(&self.owner),
            made: self.made,
            upstream: self.upstream,
            tool: self.tool,
            id: self.id,
            key: self.key,
            result,
            raw,
            chars: self.chars,
            parts: self.parts.map(PartIndex::from_references).unwrap_or_default(),
        }
    }
}

/// Writes an artifact as one JSON object. Its results may be long, so they are not
/// copied.
pub(crate) fn write(artifact: &Artifact, file: &mut impl Write) -> std::io::Result<()> {
    let mut head = serde_json::to_vec(&Head::new(artifact))?;
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

/// Parses an artifact; its results share the memory of `bytes`.
pub(crate) fn parse(bytes: Vec<u8>) -> Option<Artifact> {
    let mut members = Object::parse(&Json::parse(bytes).ok()?).ok()?;
    let (result, raw) = (members.remove("result")?, members.remove("raw"));
    let head: Head = members.to_json().parse_as().ok()?;
    Some(head.into_artifact(result, raw.filter(|raw| !raw.is_null())))
}
