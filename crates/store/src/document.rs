//! A document that holds one value as readable JSON and that several processes may
//! change.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::state::{self, Change, Documents, StateError};

/// How long a change may take, including the wait for other processes.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What to do with a document that cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfDamaged {
    /// Fail, so that nothing is overwritten before somebody has looked at it.
    Fail,
    /// Treat it as empty.
    StartOver,
}

/// Why a document cannot be read or changed. One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error(transparent)]
    State(#[from] StateError),
    /// Its content is not the JSON of this type.
    #[error("it holds something else: {0}")]
    Damaged(#[source] serde_json::Error),
}

/// A document that holds one value as JSON. A default value is stored as no
/// document at all.
pub struct JsonDocument<T> {
    documents: Arc<dyn Documents>,
    name: String,
    if_damaged: IfDamaged,
    holds: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned + Default + PartialEq> JsonDocument<T> {
    pub fn new(documents: Arc<dyn Documents>, name: &str, if_damaged: IfDamaged) -> Self {
        JsonDocument { documents, name: name.to_owned(), if_damaged, holds: PhantomData }
    }

    pub async fn read(&self) -> Result<T, DocumentError> {
        let found = self.documents.read(&self.name, TIMEOUT).await?;
        self.parse(found.as_ref().map(|found| found.bytes.as_ref()))
    }

    /// Changes the value by a pure function and returns the new value. The function
    /// is called again if somebody else was quicker.
    pub async fn change(&self, mut change: impl FnMut(&mut T) + Send) -> Result<T, DocumentError> {
        let decide = |before: Option<&[u8]>| -> Result<Change, DocumentError> {
            let mut value = self.parse(before)?;
            change(&mut value);
            if value == T::default() {
                return Ok(Change::Remove);
            }
            let text = serde_json::to_vec_pretty(&value).expect("our own types always serialise");
            Ok(match before == Some(&text) {
                true => Change::Keep,
                false => Change::Replace(text.into()),
            })
        };
        let after = state::change(&*self.documents, &self.name, TIMEOUT, decide).await?;
        self.parse(after.as_ref().map(|after| after.bytes.as_ref()))
    }

    /// Removes the document, even if it is damaged.
    pub async fn clear(&self) -> Result<(), StateError> {
        let remove = |_: Option<&[u8]>| -> Result<Change, StateError> { Ok(Change::Remove) };
        state::change(&*self.documents, &self.name, TIMEOUT, remove).await.map(drop)
    }

    fn parse(&self, bytes: Option<&[u8]>) -> Result<T, DocumentError> {
        let Some(bytes) = bytes else { return Ok(T::default()) };
        match (serde_json::from_slice(bytes), self.if_damaged) {
            (Ok(value), _) => Ok(value),
            (Err(error), IfDamaged::Fail) => Err(DocumentError::Damaged(error)),
            (Err(error), IfDamaged::StartOver) => {
                tracing::error!(name = self.name, %error, "a state file is damaged and starts over");
                Ok(T::default())
            }
        }
    }
}
