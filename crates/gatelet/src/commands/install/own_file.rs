//! The file that hosts start gatelet with, as a change.

use std::path::Path;

use hosts::change::FileChange;

/// Our own file, with a text that it does not have yet.
pub(super) fn own_file(file: &Path, text: String) -> FileChange {
    FileChange {
        host: None,
        path: file.to_owned(),
        format: document::Format::Toml,
        before: None,
        after: Some(text.into_bytes()),
        steps: Vec::new(),
        private: true,
        notes: vec!["the configuration that hosts start gatelet with".to_owned()],
    }
}
