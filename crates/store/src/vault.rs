//! A vault: small secrets in encrypted files.
//!
//! Each secret is one file, encrypted with ChaCha20-Poly1305 under a key in a file
//! of its own. The name of the secret is authenticated too, so a file that was
//! renamed cannot be decrypted. Somebody who can read the key can read the secrets:
//! the vault protects backups, synchronised directories and files shown by mistake.
//! It does not know what the secrets are.

use std::path::{Path, PathBuf};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use tool::hex;

use crate::file::{self, Safety};

/// The first bytes of every encrypted file.
const MARK: &[u8; 8] = b"gatelet1";
const KEY_BYTES: usize = 32;
/// Larger files are not read: a vault does not write them.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Why a secret cannot be loaded or saved. One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("cannot use `{path}`: {source}")]
    Io { path: String, source: std::io::Error },
    /// Another key, or a damaged file.
    #[error("`{path}` cannot be decrypted: the key is another, or the file is damaged")]
    CannotDecrypt { path: String },
    #[error("`{path}` can be read by others: make it yours alone with `chmod 600 {path}`")]
    ReadableByOthers { path: String },
    #[error("`{path}` is no key of 32 bytes")]
    BadKey { path: String },
}

/// A directory of secrets and the key to them.
#[derive(Clone, Debug)]
pub struct Vault {
    directory: PathBuf,
    key: PathBuf,
}

impl Vault {
    /// Creates a vault over a directory and the file of its key. The key is created
    /// when the first secret is saved.
    pub fn new(directory: &Path, key: &Path) -> Vault {
        Vault { directory: directory.to_owned(), key: key.to_owned() }
    }

    /// Decrypts the secret of that name, if there is one.
    pub fn load(&self, name: &str) -> Result<Option<Vec<u8>>, VaultError> {
        let path = self.path(name);
        let mut sealed = match read(&path) {
            Ok(sealed) => sealed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(io_error(&path, source)),
        };
        let broken = || VaultError::CannotDecrypt { path: path.display().to_string() };
        let body = sealed.get_mut(MARK.len() + NONCE_LEN..).ok_or_else(broken)?;
        let opened = {
            let mut body = body.to_vec();
            let head = &sealed[..MARK.len() + NONCE_LEN];
            let nonce = head.strip_prefix(MARK).ok_or_else(broken)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| broken())?;
            let aad = Aad::from(name.as_bytes());
            let length = match self.load_key()? {
                Some(key) => {
                    let open = key.open_in_place(nonce, aad, &mut body);
                    open.map_err(|_| broken())?.len()
                }
                None => return Err(broken()),
            };
            body.truncate(length);
            body
        };
        Ok(Some(opened))
    }

    /// Returns whether there is a secret of that name.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub fn save(&self, name: &str, secret: &[u8]) -> Result<(), VaultError> {
        let path = self.path(name);
        let key = match self.load_key()? {
            Some(key) => key,
            None => self.create_key()?,
        };
        let broken = || VaultError::CannotDecrypt { path: path.display().to_string() };
        let nonce: [u8; NONCE_LEN] = random(&path)?;
        let mut body = secret.to_vec();
        let aad = Aad::from(name.as_bytes());
        let unique = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(unique, aad, &mut body).map_err(|_| broken())?;
        let sealed = [MARK.as_slice(), &nonce, &body].concat();
        file::replace(&path, &sealed, Safety::Synced).map_err(|source| io_error(&path, source))
    }

    /// Removes a secret; returns whether there was one.
    pub fn remove(&self, name: &str) -> Result<bool, VaultError> {
        let path = self.path(name);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(io_error(&path, source)),
        }
    }

    /// Returns the file of a secret, whose name may contain any characters.
    fn path(&self, name: &str) -> PathBuf {
        let plain = |byte: u8| match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
            other => format!("_{other:02x}"),
        };
        let file: String = name.bytes().take(80).map(plain).collect();
        let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
        let tag = hex::encode(&digest.as_ref()[..6]);
        self.directory.join(format!("{file}.{tag}.sealed"))
    }

    fn load_key(&self) -> Result<Option<LessSafeKey>, VaultError> {
        use std::os::unix::fs::PermissionsExt;
        let path = || self.key.display().to_string();
        let metadata = match std::fs::metadata(&self.key) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(io_error(&self.key, source)),
        };
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(VaultError::ReadableByOthers { path: path() });
        }
        let bytes = read(&self.key).map_err(|source| io_error(&self.key, source))?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes);
        key.map(|key| Some(LessSafeKey::new(key))).map_err(|_| VaultError::BadKey { path: path() })
    }

    fn create_key(&self) -> Result<LessSafeKey, VaultError> {
        let bytes: [u8; KEY_BYTES] = random(&self.key)?;
        // Another process may be faster. Its key may have encrypted something by now,
        // so it stays, and both use it.
        file::create(&self.key, &bytes).map_err(|source| io_error(&self.key, source))?;
        let bad = || VaultError::BadKey { path: self.key.display().to_string() };
        self.load_key()?.ok_or_else(bad)
    }
}

fn io_error(path: &Path, source: std::io::Error) -> VaultError {
    VaultError::Io { path: path.display().to_string(), source }
}

fn random<const N: usize>(path: &Path) -> Result<[u8; N], VaultError> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled
        .map_err(|_| io_error(path, std::io::Error::other("the system gives no random bytes")))?;
    Ok(bytes)
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if MAX_FILE_BYTES < std::fs::metadata(path)?.len() {
        return Err(std::io::Error::other("it is too large"));
    }
    std::fs::read(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn vault(place: &Path) -> Vault {
        Vault::new(&place.join("tokens"), &place.join("key"))
    }

    fn only_file(place: &Path) -> PathBuf {
        std::fs::read_dir(place.join("tokens")).unwrap().next().unwrap().unwrap().path()
    }

    #[test]
    fn a_secret_comes_back_and_cannot_be_read_on_disk() {
        let place = tempfile::tempdir().unwrap();
        let vault = vault(place.path());
        assert_eq!(vault.load("wiki").unwrap(), None);
        vault.save("wiki", b"the secret words").unwrap();
        assert_eq!(vault.load("wiki").unwrap().unwrap(), b"the secret words");
        assert_eq!(vault.load("Wiki").unwrap(), None);
        let file = only_file(place.path());
        let sealed = std::fs::read(&file).unwrap();
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        for path in [file, place.path().join("key")] {
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(vault.remove("wiki").unwrap() && !vault.remove("wiki").unwrap());
    }

    #[test]
    fn what_was_touched_does_not_open() {
        let place = tempfile::tempdir().unwrap();
        let vault = vault(place.path());
        vault.save("a", b"x").unwrap();
        let file = only_file(place.path());
        let mut sealed = std::fs::read(&file).unwrap();
        *sealed.last_mut().unwrap() ^= 1;
        std::fs::write(&file, &sealed).unwrap();
        assert!(matches!(vault.load("a"), Err(VaultError::CannotDecrypt { .. })));
        std::fs::write(&file, b"short").unwrap();
        assert!(matches!(vault.load("a"), Err(VaultError::CannotDecrypt { .. })));
        vault.save("a", b"x").unwrap();
        std::fs::rename(&file, vault.path("b")).unwrap();
        assert!(matches!(vault.load("b"), Err(VaultError::CannotDecrypt { .. })));
    }

    #[test]
    fn a_key_that_others_can_read_is_refused_with_the_remedy() {
        let place = tempfile::tempdir().unwrap();
        let vault = vault(place.path());
        vault.save("a", b"x").unwrap();
        let key = place.path().join("key");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(vault.load("a").unwrap_err().to_string().contains("chmod 600"));
    }

    #[test]
    fn who_makes_a_key_too_late_uses_the_one_that_is_there() {
        let place = tempfile::tempdir().unwrap();
        let (first, second) = (vault(place.path()), vault(place.path()));
        assert!(second.load_key().unwrap().is_none());
        first.save("a", b"x").unwrap();
        second.create_key().unwrap();
        second.save("b", b"y").unwrap();
        assert_eq!(second.load("a").unwrap().unwrap(), b"x");
        assert_eq!(first.load("b").unwrap().unwrap(), b"y");
    }

    #[test]
    fn another_key_opens_nothing() {
        let place = tempfile::tempdir().unwrap();
        vault(place.path()).save("a", b"x").unwrap();
        std::fs::remove_file(place.path().join("key")).unwrap();
        assert!(matches!(vault(place.path()).load("a"), Err(VaultError::CannotDecrypt { .. })));
    }
}
