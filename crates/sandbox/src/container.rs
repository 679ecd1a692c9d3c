//! Confines a program with docker or podman instead of the kernel's own sandbox.

use std::path::Path;

use crate::policy::{Network, Policy};

/// Returns an image that contains a package runner.
pub fn image(command: &str) -> Option<&'static str> {
    match Path::new(command).file_name()?.to_str()? {
        "npx" | "node" => Some("node:22-slim"),
        "uvx" | "uv" | "python" | "python3" => {
            Some("ghcr.io/astral-sh/uv:python3.12-bookworm-slim")
        }
        _ => None,
    }
}

/// Returns the arguments for `docker` or `podman` that run a program in an image.
/// Paths are the same inside and outside; `env` has the names of the variables to pass.
pub fn arguments<'a>(
    policy: &Policy,
    image: &str,
    command: &str,
    args: &[String],
    env: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let mut words: Vec<String> =
        ["run", "-i", "--rm", "--init", "--cap-drop=ALL"].map(str::to_owned).to_vec();
    words.push("--security-opt=no-new-privileges".to_owned());
    match policy.network {
        // A container without a network has a loopback of its own.
        Network::None | Network::Loopback => words.push("--network=none".to_owned()),
        Network::All => {}
    }
    words.extend(policy.memory.map(|memory| format!("--memory={memory}")));
    words.extend(policy.files.map(|files| format!("--ulimit=nofile={files}")));
    let mount = |path: &Path, mode: &str| format!("--volume={0}:{0}:{mode}", path.display());
    words.extend(policy.read.iter().map(|path| mount(path, "ro")));
    words.extend(policy.write.iter().map(|path| mount(path, "rw")));
    words.extend(env.map(|name| format!("--env={name}")));
    words.push(image.to_owned());
    let program =
        Path::new(command).file_name().map_or(command.into(), |name| name.to_string_lossy());
    words.push(program.into_owned());
    words.extend(args.iter().cloned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_gets_what_the_policy_allows() {
        let policy = Policy {
            read: vec!["/r".into()],
            write: vec!["/w".into()],
            memory: Some(9),
            ..Policy::default()
        };
        let words =
            arguments(&policy, "img", "/usr/bin/npx", &["-y".to_owned()], ["KEY"].into_iter());
        let line = words.join(" ");
        for part in
            ["--network=none", "--volume=/r:/r:ro", "--volume=/w:/w:rw", "--memory=9", "--env=KEY"]
        {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(line.ends_with("img npx -y"), "{line}");
        assert_eq!(image("/x/uvx"), Some("ghcr.io/astral-sh/uv:python3.12-bookworm-slim"));
        assert_eq!(image("run.sh"), None);
    }
}
