//! The modules of one crate: its files, and which file uses which.
//!
//! Every `.rs` file is a node. A path that starts with `crate::`, `super::`,
//! `self::`, a child's name, or a name that such a `use` brought in, is an edge to
//! the file of the deepest module that the path names. Declaring a child or
//! re-exporting what it has is not an edge: a contents page uses nothing. Code that
//! only tests compile is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::cycles::Graph;

/// One crate, read.
#[derive(Debug)]
pub(super) struct Modules {
    /// Files, by their path; the first is the root.
    pub(super) files: Vec<String>,
    /// Which module each file is; empty for the root.
    pub(super) names: Vec<Vec<String>>,
    /// Lines of each file that ship.
    pub(super) lines: Vec<usize>,
    /// Which file uses which.
    pub(super) uses: Graph,
}

impl Modules {
    /// Reads a crate from its root file, with `load` as the way to a file's text.
    pub(super) fn read(root: &Path, load: &impl Fn(&Path) -> Option<String>) -> Result<Modules> {
        let mut tree = Tree { load, files: Vec::new(), owners: BTreeMap::new() };
        let text = load(root).with_context(|| format!("cannot read {}", root.display()))?;
        tree.add(root, &[], &text)?;
        let Tree { files, owners, .. } = tree;
        let uses = files.iter().enumerate().map(|(at, file)| {
            let targets = paths(&file.syntax, &file.module).into_iter();
            targets.map(|path| deepest(&path, &owners)).filter(|&to| to != at).collect()
        });
        Ok(Modules {
            uses: uses.collect(),
            files: files.iter().map(|file| file.path.display().to_string()).collect(),
            lines: files.iter().map(|file| file.lines).collect(),
            names: files.into_iter().map(|file| file.module).collect(),
        })
    }

    /// The same crate seen from afar: its top-level modules, and which of them
    /// uses which. The root itself is not among them.
    pub(super) fn top_level(&self) -> (Vec<String>, Graph) {
        let tops: BTreeSet<&String> = self.names.iter().filter_map(|name| name.first()).collect();
        let tops: Vec<String> = tops.into_iter().cloned().collect();
        let top_of = |file: usize| {
            let name = self.names[file].first()?;
            tops.binary_search(name).ok()
        };
        let mut graph: Graph = vec![BTreeSet::new(); tops.len()];
        for (from, targets) in self.uses.iter().enumerate() {
            for &to in targets {
                if let (Some(from), Some(to)) = (top_of(from), top_of(to)) {
                    graph[from].insert(to);
                }
            }
        }
        (tops, graph)
    }
}

/// One parsed file.
struct File {
    path: PathBuf,
    module: Vec<String>,
    syntax: syn::File,
    lines: usize,
}

/// The files found so far. A module that stands inside a file belongs to it.
struct Tree<'a, Load> {
    load: &'a Load,
    files: Vec<File>,
    /// Which file holds each module.
    owners: BTreeMap<Vec<String>, usize>,
}

impl<Load: Fn(&Path) -> Option<String>> Tree<'_, Load> {
    fn add(&mut self, path: &Path, module: &[String], text: &str) -> Result<()> {
        let syntax =
            syn::parse_file(text).with_context(|| format!("cannot parse {}", path.display()))?;
        let lines = text.lines().count() - test_lines(&syntax);
        let at = self.files.len();
        self.owners.insert(module.to_owned(), at);
        let declared = declared(&syntax.items);
        let is_root = module.is_empty() || path.file_stem().is_some_and(|stem| stem == "mod");
        let inside = match is_root {
            true => path.parent().unwrap_or(path).to_owned(),
            false => path.with_extension(""),
        };
        self.files.push(File { path: path.to_owned(), module: module.to_owned(), syntax, lines });
        for child in declared {
            let child_module = [module, child.names.as_slice()].concat();
            if child.is_inline {
                self.owners.insert(child_module, at);
                continue;
            }
            let place = inside.join(child.names.iter().collect::<PathBuf>());
            let candidates = [place.with_extension("rs"), place.join("mod.rs")];
            let found = candidates.into_iter().find_map(|file| Some(((self.load)(&file)?, file)));
            // A file that another attribute places is not followed.
            if let Some((text, file)) = found {
                self.add(&file, &child_module, &text)?;
            }
        }
        Ok(())
    }
}

/// A `mod` of a file: its names from the file's module on.
struct Declared {
    names: Vec<String>,
    is_inline: bool,
}

fn declared(items: &[syn::Item]) -> Vec<Declared> {
    let mut found = Vec::new();
    for item in items {
        let syn::Item::Mod(module) = item else { continue };
        if is_test(&module.attrs) {
            continue;
        }
        let name = module.ident.to_string();
        let is_inline = module.content.is_some();
        found.push(Declared { names: vec![name.clone()], is_inline });
        for mut inner in module.content.iter().flat_map(|(_, items)| declared(items)) {
            inner.names.insert(0, name.clone());
            found.push(inner);
        }
    }
    found
}

/// The file of the deepest module that a path from the root names.
fn deepest(path: &[String], owners: &BTreeMap<Vec<String>, usize>) -> usize {
    let known = (0..=path.len()).rev().find_map(|length| owners.get(&path[..length]));
    *known.expect("the root is a module")
}

/// Every path of a file that leads through its crate, from the root.
fn paths(file: &syn::File, module: &[String]) -> Vec<Vec<String>> {
    let children = declared(&file.items).into_iter().filter(|child| child.names.len() == 1);
    let mut paths = Paths {
        module: module.to_owned(),
        children: children.flat_map(|child| child.names).collect(),
        imported: BTreeMap::new(),
        found: Vec::new(),
    };
    // Once for the names that are brought in, once for the paths that use them.
    paths.visit_file(file);
    paths.visit_file(file);
    paths.found
}

struct Paths {
    /// The module that is being read.
    module: Vec<String>,
    /// The modules that the file declares.
    children: BTreeSet<String>,
    /// What the names stand for that a `use` brought in.
    imported: BTreeMap<String, Vec<String>>,
    found: Vec<Vec<String>>,
}

/// What a `use` is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Import,
    ReExport,
}

impl Paths {
    /// Notes a path as written, if it leads through the crate.
    fn note(&mut self, written: &[String]) {
        self.found.extend(self.resolved(written));
    }

    /// A path as written, from the root of the crate.
    fn resolved(&self, written: &[String]) -> Option<Vec<String>> {
        let first = written.first()?;
        let above = written.iter().take_while(|word| *word == "super").count();
        let (base, rest) = match first.as_str() {
            "crate" => (&[][..], &written[1..]),
            "super" => (&self.module[..self.module.len().checked_sub(above)?], &written[above..]),
            "self" => (self.module.as_slice(), &written[1..]),
            // A name alone is a variable, whatever a child is called.
            name if 1 < written.len() && self.children.contains(name) => {
                (self.module.as_slice(), written)
            }
            name => (self.imported.get(name)?.as_slice(), &written[1..]),
        };
        Some([base, rest].concat())
    }

    /// Notes every leaf of a `use`.
    fn note_use(&mut self, tree: &syn::UseTree, before: &mut Vec<String>, kind: Use) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.note_use(&path.tree, before, kind);
                before.pop();
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.note_use(tree, before, kind);
                }
            }
            syn::UseTree::Name(name) => self.import(&name.ident, &name.ident, before, kind),
            syn::UseTree::Rename(rename) => {
                self.import(&rename.ident, &rename.rename, before, kind);
            }
            syn::UseTree::Glob(_) => {
                let is_contents = kind == Use::ReExport && self.is_below(before);
                if !is_contents {
                    self.note(before);
                }
            }
        }
    }

    /// Whether a path as written leads into a child of the module.
    fn is_below(&self, written: &[String]) -> bool {
        self.resolved(written).is_some_and(|path| path.starts_with(&self.module))
    }

    /// Notes what one leaf of a `use` names, and the name that stands for it.
    fn import(&mut self, leaf: &syn::Ident, name: &syn::Ident, before: &[String], kind: Use) {
        let mut written = before.to_owned();
        // `use crate::a::{self}` names what stands before.
        let is_self = leaf == "self";
        if !is_self {
            written.push(leaf.to_string());
        }
        let Some(path) = self.resolved(&written) else { return };
        let plain = written.last().filter(|_| is_self && name == leaf).cloned();
        let is_contents = kind == Use::ReExport && path.starts_with(&self.module);
        self.imported.insert(plain.unwrap_or_else(|| name.to_string()), path.clone());
        if !is_contents {
            self.found.push(path);
        }
    }

    /// Notes paths in the arguments of a macro, which are not parsed.
    fn note_tokens(&mut self, tokens: TokenStream) {
        // A path being read, and how many colons followed its last word.
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(word) if colons == 2 => path.push(word.to_string()),
                TokenTree::Ident(word) => {
                    self.note_words(&path);
                    path = vec![word.to_string()];
                }
                TokenTree::Group(group) => {
                    self.note_words(&std::mem::take(&mut path));
                    self.note_tokens(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.note_words(&std::mem::take(&mut path));
                }
            }
            colons = 0;
        }
        self.note_words(&path);
    }

    /// Notes a path among tokens. `crate` alone is a key of somebody's attribute.
    fn note_words(&mut self, path: &[String]) {
        if path != ["crate"] {
            self.note(path);
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.module.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let kind = match &item.vis {
            syn::Visibility::Inherited => Use::Import,
            syn::Visibility::Public(_) | syn::Visibility::Restricted(_) => Use::ReExport,
        };
        self.note_use(&item.tree, &mut Vec::new(), kind);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.note(&words);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        self.note_tokens(call.tokens.clone());
    }

    /// `pub(in crate::x)` says who may look, not what is used.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

/// How many lines of a file only tests compile.
fn test_lines(file: &syn::File) -> usize {
    struct Lines(usize);
    impl<'ast> Visit<'ast> for Lines {
        fn visit_item(&mut self, item: &'ast syn::Item) {
            match is_test(attributes(item)) {
                true => {
                    let span = item.span();
                    self.0 += span.end().line + 1 - span.start().line;
                }
                false => visit::visit_item(self, item),
            }
        }
    }
    let mut lines = Lines(0);
    lines.visit_file(file);
    lines.0
}

/// Whether attributes say that only tests compile what they stand on.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = || attribute.parse_args::<syn::Meta>().is_ok_and(|meta| needs_test(&meta));
        attribute.path().is_ident("test") || (attribute.path().is_ident("cfg") && condition())
    })
}

/// Whether a condition can only hold in tests.
fn needs_test(condition: &syn::Meta) -> bool {
    type List = syn::punctuated::Punctuated<syn::Meta, syn::Token![,]>;
    match condition {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::NameValue(_) => false,
        syn::Meta::List(list) => {
            let parts = list.parse_args_with(List::parse_terminated).unwrap_or_default();
            match list.path.get_ident().map(ToString::to_string).as_deref() {
                Some("all") => parts.iter().any(needs_test),
                Some("any") => !parts.is_empty() && parts.iter().all(needs_test),
                _ => false,
            }
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "syn's, which may grow")]
fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a crate of these files and says which uses which.
    fn read(files: &[(&str, &str)]) -> Modules {
        let load = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        };
        Modules::read(Path::new("lib.rs"), &load).unwrap()
    }

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let modules = read(files);
        let edge =
            |from: usize, to: &usize| format!("{} -> {}", modules.files[from], modules.files[*to]);
        let edges = modules.uses.iter().enumerate();
        let found: Vec<String> =
            edges.flat_map(|(from, to)| to.iter().map(move |to| edge(from, to))).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_path_leads_to_the_deepest_module_it_names() {
        let root = ("lib.rs", "mod a; mod b;");
        let a = ("a.rs", "use crate::b::c::Thing; use crate::b::Other;");
        check(&[root, a, ("b.rs", "mod c;"), ("b/c.rs", "")], &["a.rs -> b.rs", "a.rs -> b/c.rs"]);
        check(&[root, ("a.rs", "use crate::Root;"), ("b.rs", "")], &["a.rs -> lib.rs"]);
    }

    #[test]
    fn super_counts_from_the_module_it_stands_in() {
        let root = ("lib.rs", "mod a; mod b;");
        let files = [
            root,
            ("a.rs", "mod c; mod d;"),
            ("a/c.rs", "use super::d::X; use super::super::b::Y; mod e { use super::Z; }"),
            ("a/d.rs", "use super::W;"),
            ("b.rs", ""),
        ];
        check(&files, &["a/c.rs -> a/d.rs", "a/c.rs -> b.rs", "a/d.rs -> a.rs"]);
    }

    #[test]
    fn groups_renames_globs_and_self_are_read() {
        let a = "use crate::{b::{self, X as Y}, c::*, d::{e as f}};";
        let root = ("lib.rs", "mod a; mod b; mod c; mod d;");
        let files =
            [root, ("a.rs", a), ("b.rs", ""), ("c.rs", ""), ("d.rs", "mod e;"), ("d/e.rs", "")];
        check(&files, &["a.rs -> b.rs", "a.rs -> c.rs", "a.rs -> d/e.rs"]);
    }

    #[test]
    fn paths_inside_code_types_and_macros_count() {
        let a = "fn a(x: crate::b::X) { crate::c::go(); log!(\"{}\", super::d::E { f: 1 }); }";
        let root = ("lib.rs", "mod a; mod b; mod c; mod d;");
        let files = [root, ("a.rs", a), ("b.rs", ""), ("c.rs", ""), ("d.rs", "")];
        check(&files, &["a.rs -> b.rs", "a.rs -> c.rs", "a.rs -> d.rs"]);
        let quoted = ("a.rs", "fn a() { quote!(#[serde(crate = \"x\")] struct X;) }");
        check(&[root, quoted, ("b.rs", ""), ("c.rs", ""), ("d.rs", "")], &[]);
    }

    #[test]
    fn a_path_goes_on_from_a_name_that_was_brought_in() {
        let a = "fn a() { b::c::go(); e::go(); d::go(); } use crate::b; use crate::b::{d as e};";
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", a),
            ("b.rs", "mod c; mod d;"),
            ("b/c.rs", ""),
            ("b/d.rs", ""),
        ];
        check(&files, &["a.rs -> b.rs", "a.rs -> b/c.rs", "a.rs -> b/d.rs"]);
    }

    #[test]
    fn a_contents_page_and_visibility_use_nothing() {
        let files = [
            ("lib.rs", "mod a; mod c; pub use crate::a::b::X; pub use a::Z;"),
            ("a.rs", "mod b; pub(crate) use b::{X, self}; pub use self::b::*;"),
            ("a/b.rs", "pub(in crate::c) struct X; pub(crate) struct Y;"),
            ("c.rs", ""),
        ];
        check(&files, &[]);
    }

    #[test]
    fn a_parent_uses_the_children_that_it_names() {
        let root = ("lib.rs", "mod a;");
        let child = ("a/b.rs", "use super::X;");
        let both = ["a.rs -> a/b.rs", "a/b.rs -> a.rs"];
        for parent in [
            "mod b; fn x() { b::go() }",
            "mod b; fn x() { self::b::go() }",
            "mod b; use b::Y;",
            "mod b; use crate::a::b::Y;",
            "mod b; pub use b::Y; fn x(y: Y) {}",
            "mod b; pub use b::Y; fn x() { Y::new() }",
        ] {
            check(&[root, ("a.rs", parent), child], &both);
        }
        check(&[root, ("a.rs", "mod b; pub use b::Y; struct X;"), child], &both[1..]);
        check(&[root, ("a.rs", "mod b; fn x(b: u8) { go(b) }"), child], &both[1..]);
    }

    #[test]
    fn what_only_tests_compile_does_not_count() {
        let a = "#[cfg(test)] mod tests; #[cfg(test)] use crate::b::X;\n\
            #[cfg(all(test, unix))] fn a() { crate::b::go() }\n\
            #[cfg(not(test))] fn b() { crate::c::go() }\n\
            impl A { #[cfg(test)] fn c() { crate::b::go() } }";
        let root = ("lib.rs", "mod a; mod b; mod c;");
        let tests = ("a/tests.rs", "use crate::b::X;");
        check(&[root, ("a.rs", a), tests, ("b.rs", ""), ("c.rs", "")], &["a.rs -> c.rs"]);
    }

    #[test]
    fn lines_of_tests_are_not_shipped() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        assert_eq!(read(&[("lib.rs", text)]).lines, [2]);
    }

    #[test]
    fn from_afar_only_the_top_level_remains() {
        let modules = read(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod c; use crate::Root;"),
            ("a/c.rs", "use crate::b::X;"),
            ("b.rs", "mod d;"),
            ("b/d.rs", "use crate::a::Y;"),
        ]);
        let (names, graph) = modules.top_level();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(graph, [BTreeSet::from([1]), BTreeSet::from([0])]);
    }
}
