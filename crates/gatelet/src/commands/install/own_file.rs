//! The planned change that creates gatelet's own configuration during an installation.

use std::path::Path;

use hosts::change::FileChange;

/// Creates the configuration `file` with this text.
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
