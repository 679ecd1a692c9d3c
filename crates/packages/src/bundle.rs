//! Unpacks MCPB bundles: archives with a server and a manifest that says how to run it.
//!
//! Nothing is written to disk. A bundle with a path outside of its directory, a link, or
//! too many files or bytes is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use zip::ZipArchive;

use crate::recipe::{Argument, Input, Recipe, Run, Template};
use crate::template::TemplatePart;

/// The largest bundle that is accepted, packed or unpacked.
pub const MAX_BYTES: u64 = 512 << 20;
const MAX_FILES: usize = 50_000;

/// The contents of a bundle.
#[derive(Debug)]
pub struct Bundle {
    manifest: Manifest,
    pub files: Vec<File>,
}

/// One file of a bundle; its path is relative to the bundle's directory.
#[derive(Debug)]
pub struct File {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    pub is_executable: bool,
}

/// Why a bundle is refused.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error("it is no bundle: {0}")]
    Unreadable(String),
    #[error("it is not what was published: its SHA-256 is {is}, and should be {expected}")]
    WrongDigest { is: String, expected: String },
    #[error("`{0}` would be written outside of the bundle's directory")]
    Outside(String),
    #[error("`{0}` is a link")]
    Link(String),
    #[error("`{0}` is in it twice")]
    Duplicate(String),
    #[error("it holds more than {MAX_FILES} files or {} MB", MAX_BYTES >> 20)]
    TooLarge,
    #[error("its `manifest.json` cannot be used: {0}")]
    Manifest(String),
}

#[derive(Debug, Deserialize)]
struct Manifest {
    name: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    description: Option<String>,
    server: Server,
    #[serde(default)]
    user_config: BTreeMap<String, UserConfig>,
}

#[derive(Debug, Deserialize)]
struct Server {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    entry_point: Option<String>,
    #[serde(default)]
    mcp_config: Option<McpConfig>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct McpConfig {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Option<Vec<String>>,
    #[serde(default)]
    env: Option<BTreeMap<String, String>>,
    #[serde(default)]
    platform_overrides: BTreeMap<String, McpConfig>,
}

#[derive(Debug, Deserialize)]
struct UserConfig {
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    sensitive: bool,
    #[serde(default)]
    default: Option<serde_json::Value>,
}

/// Returns the SHA-256 of a bundle, in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    tool::hex::encode(&Sha256::digest(bytes))
}

impl Bundle {
    /// Unpacks a bundle, and checks its SHA-256 if one is expected.
    pub fn unpack(bytes: &[u8], expected_digest: Option<&str>) -> Result<Bundle, BundleError> {
        let is = digest(bytes);
        if let Some(expected) =
            expected_digest.filter(|expected| !expected.eq_ignore_ascii_case(&is))
        {
            return Err(BundleError::WrongDigest { is, expected: expected.to_owned() });
        }
        let unreadable = |error: &dyn std::fmt::Display| BundleError::Unreadable(error.to_string());
        let mut archive =
            ZipArchive::new(Cursor::new(bytes)).map_err(|error| unreadable(&error))?;
        if MAX_FILES < archive.len() {
            return Err(BundleError::TooLarge);
        }
        let (mut files, mut room) = (Vec::new(), MAX_BYTES);
        // A duplicate path could be reviewed as one file and written as another.
        let mut paths = BTreeSet::new();
        for at in 0..archive.len() {
            let mut packed = archive.by_index(at).map_err(|error| unreadable(&error))?;
            let name = packed.name().map_err(|error| unreadable(&error))?.into_owned();
            if packed.is_symlink() {
                return Err(BundleError::Link(name));
            }
            if packed.is_dir() {
                continue;
            }
            let path = safe_path(&name).ok_or_else(|| BundleError::Outside(name.clone()))?;
            if !paths.insert(path.clone()) {
                return Err(BundleError::Duplicate(name));
            }
            let is_executable = packed.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
            let mut bytes = Vec::new();
            // The size in the header cannot be trusted.
            let read = packed.by_ref().take(room + 1).read_to_end(&mut bytes);
            read.map_err(|error| unreadable(&error))?;
            room = room.checked_sub(bytes.len() as u64).ok_or(BundleError::TooLarge)?;
            files.push(File { path, bytes, is_executable });
        }
        let manifest = files.iter().find(|file| file.path == Path::new("manifest.json"));
        let manifest = manifest.ok_or_else(|| BundleError::Manifest("there is none".to_owned()))?;
        let manifest = serde_json::from_slice(&manifest.bytes)
            .map_err(|error| BundleError::Manifest(error.to_string()))?;
        Ok(Bundle { manifest, files })
    }

    /// Builds the recipe that runs the server from `directory`, where its files are.
    /// `home` is the user's home, and `platform` is `linux`, `darwin` or `win32`.
    pub fn recipe(
        &self,
        directory: &Path,
        home: &str,
        platform: &str,
    ) -> Result<Recipe, BundleError> {
        let server = &self.manifest.server;
        let whole = server.mcp_config.clone().unwrap_or_default();
        let own = whole.platform_overrides.get(platform).cloned().unwrap_or_default();
        let entry = server.entry_point.clone().unwrap_or_default();
        let (usual, first) = default_command(&server.kind, &entry, directory)?;
        let command = own.command.or(whole.command).unwrap_or(usual);
        let args = own.args.or(whole.args).unwrap_or(first);
        let mut env = whole.env.unwrap_or_default();
        env.extend(own.env.unwrap_or_default());
        let inputs: Vec<Input> =
            self.manifest.user_config.iter().map(|(name, raw)| raw.input(name)).collect();
        let text = |text: &str| self.template(text, directory, home);
        let command = text(&command);
        if command.inputs().next().is_some() {
            return Err(BundleError::Manifest(
                "its command depends on what the user says".to_owned(),
            ));
        }
        let argument = |word: &String| Argument { flag: None, value: Some(text(word)) };
        Ok(Recipe {
            name: self.manifest.name.clone(),
            description: self.manifest.description.clone(),
            version: self.manifest.version.clone(),
            run: Run::Program {
                command: command.to_string(),
                args: args.iter().map(argument).collect(),
                env: env.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
            },
            inputs,
            notes: Vec::new(),
        })
    }

    /// Returns the name in the manifest.
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    fn template(&self, text: &str, directory: &Path, home: &str) -> Template {
        let below = |name: &str| Some(TemplatePart::Text(format!("{home}/{name}")));
        Template::parse(text, "${", "}", |name| match name {
            "__dirname" => Some(TemplatePart::Text(directory.display().to_string())),
            "HOME" => Some(TemplatePart::Text(home.to_owned())),
            "DESKTOP" => below("Desktop"),
            "DOCUMENTS" => below("Documents"),
            "DOWNLOADS" => below("Downloads"),
            "pathSeparator" | "/" => {
                Some(TemplatePart::Text(std::path::MAIN_SEPARATOR.to_string()))
            }
            other => {
                let key = other.strip_prefix("user_config.")?;
                self.manifest.user_config.get(key)?;
                Some(TemplatePart::Input(key.to_owned()))
            }
        })
    }
}

fn default_command(
    kind: &str,
    entry: &str,
    directory: &Path,
) -> Result<(String, Vec<String>), BundleError> {
    let entry = safe_path(entry).map(|entry| directory.join(entry).display().to_string());
    let entry = entry.unwrap_or_default();
    match kind {
        "node" => Ok(("node".to_owned(), vec![entry])),
        "python" => Ok(("python3".to_owned(), vec![entry])),
        "uv" => {
            let words = ["run", "--directory", &directory.display().to_string(), &entry];
            Ok(("uv".to_owned(), words.map(str::to_owned).to_vec()))
        }
        "binary" => Ok((entry, Vec::new())),
        other => Err(BundleError::Manifest(format!("servers of type `{other}` are not known"))),
    }
}

impl UserConfig {
    fn input(&self, name: &str) -> Input {
        let about = if self.description.is_empty() { &self.title } else { &self.description };
        let default = self.default.as_ref().and_then(|default| match default {
            serde_json::Value::Null => None,
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Array(items) => items.first()?.as_str().map(str::to_owned),
            other @ (serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::Object(_)) => Some(other.to_string()),
        });
        Input {
            name: name.to_owned(),
            about: about.clone(),
            is_secret: self.sensitive,
            is_required: self.required,
            default,
            choices: Vec::new(),
        }
    }
}

/// Returns a path that stays below the bundle's directory; `None` for any other.
fn safe_path(name: &str) -> Option<PathBuf> {
    if name.is_empty() || name.contains(['\\', '\0', ':']) || name.len() > 1024 {
        return None;
    }
    let path = Path::new(name);
    let plain =
        path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    plain.then(|| path.components().filter(|part| matches!(part, Component::Normal(_))).collect())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;
    use serde_json::json;
    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::recipe::{Filled, Value};

    fn archive(files: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in files {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(text.as_bytes()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn manifest() -> String {
        json!({
            "manifest_version": "0.3", "name": "files", "version": "1.2.0", "description": "Files",
            "server": {"type": "node", "entry_point": "server/index.js", "mcp_config": {
                "command": "node",
                "args": ["${__dirname}/server/index.js", "${user_config.root}", "${env:SECRET}"],
                "env": {"KEY": "${user_config.key}", "AT": "${HOME}${/}x"},
                "platform_overrides": {"win32": {"command": "node.exe"}},
            }},
            "user_config": {
                "root": {"type": "directory", "title": "Root", "required": true},
                "key": {"type": "string", "title": "Key", "sensitive": true},
            },
        })
        .to_string()
    }

    #[test]
    fn a_bundle_runs_from_its_directory_with_what_the_operator_says() {
        let bytes = archive(&[("manifest.json", &manifest()), ("server/index.js", "//")]);
        let bundle = Bundle::unpack(&bytes, Some(&digest(&bytes).to_uppercase())).unwrap();
        let recipe = bundle.recipe(Path::new("/b"), "/home/ann", "linux").unwrap();
        let values = BTreeMap::from([("root".to_owned(), Value::Plain("/data".to_owned()))]);
        let Filled::Program { command, args, env } = recipe.fill(&values).unwrap() else {
            panic!()
        };
        assert_eq!(command, "node");
        assert_eq!(args, ["/b/server/index.js", "/data", "$${env:SECRET}"]);
        assert_eq!(env, BTreeMap::from([("AT".to_owned(), "/home/ann/x".to_owned())]));
        let windows = bundle.recipe(Path::new("/b"), "/home/ann", "win32").unwrap();
        assert!(matches!(windows.run, Run::Program { command, .. } if command == "node.exe"));
    }

    #[test]
    fn another_digest_a_link_and_a_way_out_are_refused() {
        let bytes = archive(&[("manifest.json", &manifest())]);
        assert!(matches!(Bundle::unpack(&bytes, Some("00")), Err(BundleError::WrongDigest { .. })));
        for name in ["../x", "/etc/x", "a/../../x", "a\\..\\x", "C:x", "x\0"] {
            let bytes = archive(&[("manifest.json", &manifest()), (name, "x")]);
            assert!(
                matches!(Bundle::unpack(&bytes, None), Err(BundleError::Outside(_))),
                "{name:?}"
            );
        }
        // The library writes no name twice, but `./x` is `x`.
        let bytes =
            archive(&[("manifest.json", &manifest()), ("x", "looked at"), ("./x", "written")]);
        assert!(matches!(Bundle::unpack(&bytes, None), Err(BundleError::Duplicate(_))));
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        writer.add_symlink("x", "/etc/passwd", SimpleFileOptions::default()).unwrap();
        let bytes = writer.finish().unwrap().into_inner();
        assert!(matches!(Bundle::unpack(&bytes, None), Err(BundleError::Link(_))));
        assert!(matches!(Bundle::unpack(b"PK", None), Err(BundleError::Unreadable(_))));
        let none = archive(&[("x", "x")]);
        assert!(matches!(Bundle::unpack(&none, None), Err(BundleError::Manifest(_))));
    }

    proptest! {
        #[test]
        fn no_name_leads_outside(name in "[a./\\\\:\u{0}~ ]{0,24}") {
            if let Some(path) = safe_path(&name) {
                let landed = Path::new("/b").join(&path);
                prop_assert!(landed.starts_with("/b"));
                prop_assert!(path.components().all(|part| matches!(part, Component::Normal(_))));
            }
        }

        #[test]
        fn damaged_archives_are_refused_and_never_panic(at in 0usize..400, byte in any::<u8>()) {
            let mut bytes = archive(&[("manifest.json", &manifest()), ("a/b", "text text text")]);
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = Bundle::unpack(&bytes, None);
        }
    }
}
