//! One writer at a time, where several gates share a state directory.

use std::path::Path;

use anyhow::Context;

/// Held while nobody else may change a file; the system lets go of it when the
/// process ends, however it ends.
pub(crate) struct Alone(#[expect(dead_code, reason = "held, never looked at")] std::fs::File);

impl Alone {
    /// The file is replaced when it is written, so another one is locked.
    pub(crate) fn with(path: &Path) -> anyhow::Result<Alone> {
        let file = path.with_extension("lock");
        let shown = file.display();
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("cannot create `{}`", directory.display()))?;
        }
        let options = std::fs::OpenOptions::new().create(true).append(true).open(&file);
        let handle = options.with_context(|| format!("cannot open `{shown}`"))?;
        handle.lock().with_context(|| format!("cannot lock `{shown}`"))?;
        Ok(Alone(handle))
    }
}
