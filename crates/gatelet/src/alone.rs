//! Changing a file that others may change at the same time.
//!
//! Whoever reads a file, changes what it says and writes it again holds this
//! meanwhile; otherwise what somebody else wrote in between is lost.

use std::path::Path;

use anyhow::Context;

/// Held while nobody else may change the file; the system lets go of it when
/// the process ends, however it ends.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_between_reading_and_writing() {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("below/count.json");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let _alone = Alone::with(&file).unwrap();
                        let known = std::fs::read_to_string(&file).unwrap_or("0".to_owned());
                        let next = known.parse::<u32>().unwrap() + 1;
                        std::fs::write(&file, next.to_string()).unwrap();
                    }
                });
            }
        });
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "160");
    }
}
