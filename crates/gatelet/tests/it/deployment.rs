//! The Kubernetes manifests and the Helm chart of `examples/cluster`: what is named is
//! there, and gatelet serves with the configuration that they give it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use document::Format;
use serde_json::{Value, json};
use testkit::valkey::Server;

use crate::kit::{Home, Served, tool};

fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster").join(name)
}

/// The objects of a file of manifests, by kind and name.
struct Objects(BTreeMap<(String, String), Value>);

impl Objects {
    fn parse(text: &str) -> Objects {
        let documents = text.split("\n---").map(|text| {
            let parsed = document::parse(text, Format::Yaml);
            parsed.unwrap_or_else(|error| panic!("{error} in {text}")).to_json()
        });
        let documents = documents.filter(|object| object["kind"].is_string());
        let word = |value: &Value| value.as_str().expect("a word").to_owned();
        let key = |object: &Value| (word(&object["kind"]), word(&object["metadata"]["name"]));
        Objects(documents.map(|object| (key(&object), object)).collect())
    }

    fn rendered(values: &[&str]) -> Result<Objects, String> {
        let home = Home::new();
        let mut helm = Command::new(tool("helm/bin/helm"));
        home.settle(&mut helm);
        helm.args(["template", "gate"]).arg(example("helm"));
        helm.args(values.iter().flat_map(|value| ["--set", value]));
        let ended = helm.output().unwrap();
        match ended.status.success() {
            true => Ok(Objects::parse(&String::from_utf8_lossy(&ended.stdout))),
            false => Err(String::from_utf8_lossy(&ended.stderr).into_owned()),
        }
    }

    fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = self.0.keys().map(|(kind, _)| kind.as_str()).collect();
        kinds.dedup();
        kinds
    }

    fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |((own, _), _)| own == kind).map(|(_, object)| object)
    }

    #[track_caller]
    fn one(&self, kind: &str) -> &Value {
        self.of_kind(kind).next().unwrap_or_else(|| panic!("no {kind}"))
    }

    /// What a name in one object says is there in another.
    fn check_names(&self) {
        let deployment = self.one("Deployment");
        let template = &deployment["spec"]["template"];
        let (labels, pod) = (&template["metadata"]["labels"], &template["spec"]);
        let container = &pod["containers"][0];
        let selects = |selector: &Value| {
            let wanted = selector.as_object().expect("a selector");
            !wanted.is_empty() && wanted.iter().all(|(key, value)| labels[key] == *value)
        };
        assert!(selects(&deployment["spec"]["selector"]["matchLabels"]));
        assert!(selects(&self.one("Service")["spec"]["selector"]));
        assert!(selects(&self.one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"]));
        let target = &self.one("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"];
        assert_eq!(
            (&target["kind"], &target["name"]),
            (&json!("Deployment"), &deployment["metadata"]["name"])
        );
        let from_gatelet = self.of_kind("NetworkPolicy").any(|policy| {
            let peer = &policy["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"];
            peer.is_object() && selects(peer)
        });
        assert!(from_gatelet, "the store is for gatelet alone");
        let ports: Vec<&Value> =
            container["ports"].as_array().unwrap().iter().map(|port| &port["name"]).collect();
        for port in [
            &container["livenessProbe"]["httpGet"]["port"],
            &container["readinessProbe"]["httpGet"]["port"],
            &self.one("Service")["spec"]["ports"][0]["targetPort"],
        ] {
            assert!(ports.contains(&port), "{port} is no port of the container: {ports:?}");
        }
        let volumes = pod["volumes"].as_array().unwrap();
        for mount in container["volumeMounts"].as_array().unwrap() {
            assert!(volumes.iter().any(|volume| volume["name"] == mount["name"]), "{mount}");
        }
    }

    /// The environment of the container; what a secret holds is made up.
    fn environment(&self) -> Vec<(String, String)> {
        let container = &self.one("Deployment")["spec"]["template"]["spec"]["containers"][0];
        let variables = container["env"].as_array().unwrap().iter().map(|variable| {
            let reference = &variable["valueFrom"]["secretKeyRef"];
            if let (Some(key), Some(secret)) =
                (reference["key"].as_str(), self.of_kind("Secret").next())
            {
                assert!(secret["stringData"][key].is_string(), "no {key} in the secret");
            }
            let value = variable["value"].as_str().unwrap_or(SECRET);
            (variable["name"].as_str().unwrap().to_owned(), value.to_owned())
        });
        variables.collect()
    }

    /// Starts gatelet as the container does, and asks it what the probes ask.
    fn check_serves(&self, config: &str) {
        let store = Server::start(&[&format!("--requirepass {SECRET}")]);
        let container = &self.one("Deployment")["spec"]["template"]["spec"]["containers"][0];
        assert!(config.contains("listen = \"0.0.0.0:4747\""), "{config}");
        assert_eq!(container["ports"][0]["containerPort"], 4747);
        assert_eq!(container["args"], json!(["serve"]));
        let home = Home::with(&config.replace("valkey://valkey:6379", &store.url()));
        let mut command = home.gatelet();
        for (name, value) in self.environment() {
            if !["GATELET_CONFIG", "GATELET_STATE"].contains(&name.as_str()) {
                command.env(name, value);
            }
        }
        let served = Served::start_by(command, "127.0.0.1:0", &[]);
        for probe in ["livenessProbe", "readinessProbe"] {
            let path = container[probe]["httpGet"]["path"].as_str().unwrap();
            assert_eq!(served.path(path).send("GET", &[], "").status, 200, "{probe} at {path}");
        }
        assert_ne!(served.path("/no-such-path").send("GET", &[], "").status, 200);
    }
}

const SECRET: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn the_manifests_name_what_is_there_and_gatelet_serves_with_them() {
    testkit::needs!(Valkey);
    let objects = Objects::parse(&std::fs::read_to_string(example("kubernetes.yaml")).unwrap());
    objects.check_names();
    objects.check_serves(&std::fs::read_to_string(example("gatelet.toml")).unwrap());
}

#[test]
fn the_chart_names_what_is_there_and_gatelet_serves_with_it() {
    testkit::needs!(Helm);
    testkit::needs!(Valkey);
    let made = ["secret.valkeyPassword=abc", &format!("secret.stateKey={SECRET}")];
    let objects = Objects::rendered(&made).unwrap();
    let kinds = [
        "ConfigMap",
        "Deployment",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Secret",
        "Service",
    ];
    assert_eq!(objects.kinds(), kinds);
    objects.check_names();
    let config = objects.one("ConfigMap")["data"]["gatelet.toml"].as_str().unwrap().to_owned();
    objects.check_serves(&config);
}

#[test]
fn the_chart_refuses_values_that_cannot_work() {
    testkit::needs!(Helm);
    let existing = Objects::rendered(&["secret.existing=mine"]).unwrap();
    assert!(!existing.kinds().contains(&"Secret"));
    let named = existing.one("Deployment").to_string();
    assert!(named.contains("\"name\":\"mine\""), "{named}");
    for (values, told) in [
        (vec![], "secret.valkeyPassword"),
        (vec!["secret.existing=x", "replicas.mni=3"], "mni"),
        (vec!["secret.existing=x", "valkey.url=http://cache"], "valkey.url"),
        (vec!["secret.valkeyPassword=p", "secret.stateKey=short"], "secret.stateKey"),
    ] {
        let refused = Objects::rendered(&values).err().unwrap_or_default();
        assert!(refused.contains(told), "{values:?}: {refused}");
    }
}
