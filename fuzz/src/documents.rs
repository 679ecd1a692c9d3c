//! Documents that describe tools, and manifests of servers.

use testkit::fuzz::Dictionary;
use toolspec::LintContext;

use crate::{Target, text};

static SPECIFICATIONS: Dictionary = Dictionary {
    seeds: &[
        "# Tools\n\n## `read_file`\n\nReads a file.\n\n### Input\n\n| name | type | required | description |\n|---|---|---|---|\n| `path` | string | yes | Where. Default: `0.5` |\n\n### Example\n\n```json\n{\"path\": \"/a\"}\n```\n",
        "## Tool 2: name (deprecated)\n\n- **x** (string): What.\n- `y` (array of (string or int), optional)\n",
    ],
    words: &[
        "#",
        "##",
        "###",
        "```",
        "`",
        "**",
        "|",
        "---",
        "- ",
        "> ",
        "\n",
        "\n\n",
        "(",
        ")",
        "<",
        ">",
        "[",
        "](",
        "array of ",
        "map<",
        "a.b.",
        "    ",
        "| `a` |",
        "{\"a\":",
        "<!--",
        "-->",
    ],
};

static MANIFESTS: Dictionary = Dictionary {
    seeds: &[
        "cash: 1\nname: wiki\nlabel: wiki\nurl: https://wiki.example/mcp\nttl: 60\nnamespaces:\n  - name: a\n    description: b\n",
        "{\"name\":\"a\",\"url\":\"https://a.example\",\"signature\":{\"key\":\"x\",\"value\":\"y\"}}",
    ],
    words: &[
        "- ",
        ": ",
        "\n",
        "  ",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "<<: *a\n",
        "!!binary ",
        "|\n",
        ">\n",
        "? ",
        "%YAML 1.1\n",
        "---\n",
        "...\n",
        "\"",
        "'",
        "#",
        "2026-02-30",
        "010",
        "no",
        "? [",
    ],
};

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "tool_document", dictionary: &SPECIFICATIONS, check: document },
    Target { name: "manifest", dictionary: &MANIFESTS, check: manifest },
];

fn document(bytes: &[u8]) {
    let text = text(bytes);
    let (document, _) = toolspec::lint(&text, &LintContext::default());
    let definitions = document.definitions();
    let _ = toolspec::diff(&definitions, &definitions);
    let (fixed, _) = toolspec::fix(&text);
    let _ = toolspec::parse(&fixed);
    let _ = toolspec::mock::Mock::from_document(&document);
}

fn manifest(bytes: &[u8]) {
    let Ok((manifest, _)) = web::manifest::parse(&text(bytes)) else { return };
    let again = web::manifest::parse(&manifest.to_json());
    assert!(again.is_ok(), "what was read can be written and read");
    let _ = (manifest.canonical(), web::manifest::sign::verify(&manifest, &[]));
}
