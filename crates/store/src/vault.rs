//! Small secrets on disk, encrypted.
//!
//! One file for each, sealed with ChaCha20-Poly1305 under a key that lies in a
//! file of its own. The name of a secret is sealed with it, so a file that was
//! renamed does not open. Who can read the key can read the rest: what this
//! protects is backups, synchronised directories and files shown by mistake.
//! A vault knows nothing of what it keeps.

use std::path::{Path, PathBuf};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use tool::hex;

use crate::file::{self, Safety};

/// What every sealed file begins with.
const MARK: &[u8; 8] = b"gatelet1";
const KEY: usize = 32;
/// Larger files are none of ours.
const LARGEST: u64 = 1 << 20;

/// Why a secret is not at hand. One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("cannot use `{path}`: {source}")]
    Disk { path: String, source: std::io::Error },
    /// Another key, or a damaged file.
    #[error("`{path}` cannot be decrypted: the key is another, or the file is damaged")]
    Sealed { path: String },
    #[error("`{path}` can be read by others: make it yours alone with `chmod 600 {path}`")]
    Open { path: String },
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
    /// The key is made when the first secret is kept.
    pub fn new(directory: &Path, key: &Path) -> Vault {
        Vault { directory: directory.to_owned(), key: key.to_owned() }
    }

    /// The secret of that name, if there is one.
    pub fn load(&self, name: &str) -> Result<Option<Vec<u8>>, VaultError> {
        let path = self.path(name);
        let mut sealed = match read(&path) {
            Ok(sealed) => sealed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(disk(&path, source)),
        };
        let broken = || VaultError::Sealed { path: path.display().to_string() };
        let body = sealed.get_mut(MARK.len() + NONCE_LEN..).ok_or_else(broken)?;
        let opened = {
            let mut body = body.to_vec();
            let head = &sealed[..MARK.len() + NONCE_LEN];
            let nonce = head.strip_prefix(MARK).ok_or_else(broken)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| broken())?;
            let aad = Aad::from(name.as_bytes());
            let length = match self.open_key()? {
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

    /// Whether there is a secret of that name.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub fn save(&self, name: &str, secret: &[u8]) -> Result<(), VaultError> {
        let path = self.path(name);
        let key = match self.open_key()? {
            Some(key) => key,
            None => self.make_key()?,
        };
        let broken = || VaultError::Sealed { path: path.display().to_string() };
        let nonce: [u8; NONCE_LEN] = random(&path)?;
        let mut body = secret.to_vec();
        let aad = Aad::from(name.as_bytes());
        let unique = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(unique, aad, &mut body).map_err(|_| broken())?;
        let sealed = [MARK.as_slice(), &nonce, &body].concat();
        file::replace(&path, &sealed, Safety::Synced).map_err(|source| disk(&path, source))
    }

    /// Forgets a secret. Whether there was one.
    pub fn remove(&self, name: &str) -> Result<bool, VaultError> {
        let path = self.path(name);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(disk(&path, source)),
        }
    }

    /// A name may hold anything; a file name may not.
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

    fn open_key(&self) -> Result<Option<LessSafeKey>, VaultError> {
        use std::os::unix::fs::PermissionsExt;
        let path = || self.key.display().to_string();
        let about = match std::fs::metadata(&self.key) {
            Ok(about) => about,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(disk(&self.key, source)),
        };
        if about.permissions().mode() & 0o077 != 0 {
            return Err(VaultError::Open { path: path() });
        }
        let bytes = read(&self.key).map_err(|source| disk(&self.key, source))?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes);
        key.map(|key| Some(LessSafeKey::new(key))).map_err(|_| VaultError::BadKey { path: path() })
    }

    fn make_key(&self) -> Result<LessSafeKey, VaultError> {
        let bytes: [u8; KEY] = random(&self.key)?;
        // Another process may be faster. Its key may have sealed something by
        // now, so it stays, and both use it.
        file::create(&self.key, &bytes).map_err(|source| disk(&self.key, source))?;
        let bad = || VaultError::BadKey { path: self.key.display().to_string() };
        self.open_key()?.ok_or_else(bad)
    }
}

fn disk(path: &Path, source: std::io::Error) -> VaultError {
    VaultError::Disk { path: path.display().to_string(), source }
}

fn random<const N: usize>(path: &Path) -> Result<[u8; N], VaultError> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| disk(path, std::io::Error::other("the system gives no random bytes")))?;
    Ok(bytes)
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if LARGEST < std::fs::metadata(path)?.len() {
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
        assert!(matches!(vault.load("a"), Err(VaultError::Sealed { .. })));
        std::fs::write(&file, b"short").unwrap();
        assert!(matches!(vault.load("a"), Err(VaultError::Sealed { .. })));
        vault.save("a", b"x").unwrap();
        std::fs::rename(&file, vault.path("b")).unwrap();
        assert!(matches!(vault.load("b"), Err(VaultError::Sealed { .. })));
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
        assert!(second.open_key().unwrap().is_none());
        first.save("a", b"x").unwrap();
        second.make_key().unwrap();
        second.save("b", b"y").unwrap();
        assert_eq!(second.load("a").unwrap().unwrap(), b"x");
        assert_eq!(first.load("b").unwrap().unwrap(), b"y");
    }

    #[test]
    fn another_key_opens_nothing() {
        let place = tempfile::tempdir().unwrap();
        vault(place.path()).save("a", b"x").unwrap();
        std::fs::remove_file(place.path().join("key")).unwrap();
        assert!(matches!(vault(place.path()).load("a"), Err(VaultError::Sealed { .. })));
    }
}
