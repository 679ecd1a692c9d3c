//! Looks up the newest version of a package, in the index (npm or PyPI) that its runner uses.

use std::collections::BTreeMap;
use std::path::PathBuf;

use packages::run_package::{Index, NPM, PYPI, RunPackage};
use reqwest::Url;

use crate::fetch;
use config::{Environment, ProcessEnvironment, RawUpstream};

/// The longest answer of an index.
const MAX_BYTES: usize = 16 << 20;

/// The newest version of the package that an entry runs.
pub(super) async fn version(raw: &RawUpstream, package: &RunPackage) -> anyhow::Result<String> {
    let index = index(&raw.env, package)?;
    let (url, accept) = package.index_request(&index);
    let fetched = fetch::get(&url, accept, MAX_BYTES, None).await?;
    anyhow::ensure!(fetched.status == 200, "{url} answers with status {}", fetched.status);
    let newest = package.newest(&fetched.body);
    newest.ok_or_else(|| anyhow::anyhow!("{url} names no version"))
}

/// The index that the runner uses: from its command line, the variables of the entry, our
/// own variables, or npm's configuration file.
fn index(env: &BTreeMap<String, String>, package: &RunPackage) -> anyhow::Result<Url> {
    let (names, usual): (&[&str], &str) = match package.index() {
        Index::Npm => (&["npm_config_registry", "NPM_CONFIG_REGISTRY"], NPM),
        Index::Pypi => (&["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"], PYPI),
    };
    let variable = |name: &&str| env.get(*name).cloned().or_else(|| ProcessEnvironment.get(name));
    let npmrc = || (package.index() == Index::Npm).then(npm_file).flatten();
    let named = package.custom_index().map(str::to_owned);
    let named = named.or_else(|| names.iter().find_map(variable)).or_else(npmrc);
    let text = named.filter(|text| !text.is_empty()).unwrap_or_else(|| usual.to_owned());
    let url: Url =
        text.parse().map_err(|_| anyhow::anyhow!("`{text}` is no address of an index"))?;
    anyhow::ensure!(matches!(url.scheme(), "https" | "http"), "`{text}` is no address of an index");
    Ok(url)
}

/// The registry in the user's `.npmrc`.
fn npm_file() -> Option<String> {
    let file = PathBuf::from(ProcessEnvironment.get("HOME")?).join(".npmrc");
    registry_line(&std::fs::read_to_string(file).ok()?)
}

fn registry_line(text: &str) -> Option<String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let mut named = pairs.filter(|(key, _)| key.trim() == "registry");
    named.next_back().map(|(_, value)| value.trim().trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_the_one_that_the_runner_would_ask() {
        let args = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let find = |line: &str| RunPackage::find("uvx", &args(line)).unwrap();
        let env =
            BTreeMap::from([("UV_INDEX_URL".to_owned(), "https://a.example/simple".to_owned())]);
        assert_eq!(index(&env, &find("x")).unwrap().as_str(), "https://a.example/simple");
        let own = find("--index-url https://b.example/simple x");
        assert_eq!(index(&env, &own).unwrap().as_str(), "https://b.example/simple");
        assert!(index(&BTreeMap::new(), &find("--index-url file:///etc x")).is_err());
        let text = "fund=false\nregistry = \"https://c.example/\"\n@s:registry=https://d.example\n";
        assert_eq!(registry_line(text).as_deref(), Some("https://c.example/"));
    }
}
