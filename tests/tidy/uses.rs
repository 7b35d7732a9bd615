//! Every path a file names, by `use`, in code, in attributes or inside a macro call, made absolute.
//!
//! Names are resolved without the compiler: `self`, `super`, child modules and imported names are
//! followed, by file and not by scope. A path whose first name stays unknown is returned as written.

use std::collections::HashMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::source::{Parsed, marks_test};

/// A path as `["crate", "store", "lanes"]` or `["tokio", "spawn"]`; a glob ends in `*`.
pub(crate) struct Used {
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
    /// Whether only test code names it.
    pub(crate) in_test: bool,
}

impl Used {
    /// Whether this path is `wanted`, lies below it, or is a glob that brings it in.
    /// `wanted` is a path with `::`; a star at its end takes in every crate that begins so.
    pub(crate) fn names(&self, wanted: &str) -> bool {
        if let Some(family) = wanted.strip_suffix('*') {
            return self.path[0].starts_with(family);
        }
        let wanted: Vec<&str> = wanted.split("::").collect();
        match self.path.split_last() {
            Some((star, prefix)) if star == "*" && prefix.len() < wanted.len() => {
                begins_with(&wanted, prefix)
            }
            _ => begins_with(&self.path, &wanted),
        }
    }
}

fn begins_with<A: AsRef<str>, B: AsRef<str>>(path: &[A], prefix: &[B]) -> bool {
    path.len() >= prefix.len() && path.iter().zip(prefix).all(|(a, b)| a.as_ref() == b.as_ref())
}

pub(crate) fn paths_used(file: &Parsed<'_>) -> Vec<Used> {
    let mut collector = Collector {
        module: file.module(),
        is_in_root_package: file.is_in_root_package(),
        in_test: file.is_test,
        aliases: HashMap::new(),
        found: Vec::new(),
    };
    collector.visit_file(&file.tree);
    collector.resolved()
}

struct Collector {
    /// The module being visited, below `crate`.
    module: Vec<String>,
    is_in_root_package: bool,
    in_test: bool,
    /// What an imported name or a child module stands for.
    aliases: HashMap<String, Vec<String>>,
    found: Vec<Used>,
}

impl Collector {
    fn record(&mut self, path: Vec<String>, line: usize) {
        let path = self.absolute(path);
        self.found.push(Used { path, line, in_test: self.in_test });
    }

    /// Turns a leading `self` or `super`, and the package's own name in its binary, into `crate::…`.
    fn absolute(&self, path: Vec<String>) -> Vec<String> {
        let supers = path.iter().take_while(|name| *name == "super").count();
        let (home, skipped) = match path[0].as_str() {
            "self" => (self.module.len(), 1),
            "super" => (self.module.len().saturating_sub(supers), supers),
            "einvoice" if self.is_in_root_package => (0, 1),
            _ => return path,
        };
        let root = std::iter::once("crate".to_owned());
        root.chain(self.module[..home].iter().cloned()).chain(path.into_iter().skip(skipped)).collect()
    }

    fn resolved(self) -> Vec<Used> {
        let Self { aliases, found, .. } = self;
        found.into_iter().map(|used| Used { path: follow(&aliases, used.path), ..used }).collect()
    }

    fn record_import(&mut self, tree: &syn::UseTree, prefix: &[String]) {
        let with = |name: &syn::Ident| [prefix, &[plain(name)]].concat();
        match tree {
            syn::UseTree::Path(path) => self.record_import(&path.tree, &with(&path.ident)),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|branch| self.record_import(branch, prefix));
            }
            syn::UseTree::Glob(glob) => self.record([prefix, &["*".to_owned()]].concat(), line_of(glob)),
            syn::UseTree::Name(name) => self.import_as(&name.ident, with(&name.ident)),
            syn::UseTree::Rename(rename) => self.import_as(&rename.rename, with(&rename.ident)),
        }
    }

    /// Notes an import and the name it goes by here; `a::{self}` is `a`, by its own name.
    fn import_as(&mut self, alias: &syn::Ident, mut path: Vec<String>) {
        if path.len() > 1 {
            path.pop_if(|last| last == "self");
        }
        let name = if alias == "self" { path[path.len() - 1].clone() } else { plain(alias) };
        self.aliases.insert(name, self.absolute(path.clone()));
        self.record(path, line_of(alias));
    }

    /// Visits an item that may be test code and returns to what was before.
    fn enter(&mut self, attributes: &[syn::Attribute], visit: impl FnOnce(&mut Self)) {
        let before = self.in_test;
        self.in_test |= marks_test(attributes);
        visit(self);
        self.in_test = before;
    }
}

/// Replaces a leading imported name by what it stands for; a name that imports itself stands still.
fn follow(aliases: &HashMap<String, Vec<String>>, mut path: Vec<String>) -> Vec<String> {
    const HOPS_MAX: usize = 8;
    for _ in 0..HOPS_MAX {
        match aliases.get(&path[0]) {
            Some(target) if target[0] != path[0] => path.splice(..1, target.iter().cloned()),
            _ => break,
        };
    }
    path
}

fn plain(name: &syn::Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}

fn line_of(node: &impl Spanned) -> usize {
    node.span().start().line
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.enter(&item.attrs, |this| this.record_import(&item.tree, &[]));
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        self.record(vec![plain(&item.ident)], line_of(item));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let name = plain(&item.ident);
        let path = self.absolute(vec!["self".to_owned(), name.clone()]);
        self.aliases.insert(name.clone(), path);
        self.module.push(name);
        self.enter(&item.attrs, |this| visit::visit_item_mod(this, item));
        self.module.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.enter(&item.attrs, |this| visit::visit_item_fn(this, item));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.enter(&item.attrs, |this| visit::visit_item_impl(this, item));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            let names = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
            self.record(names, line_of(path));
        }
        visit::visit_path(self, path);
    }

    /// `pub(in crate::…)` says who may look in, not what is used.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    /// The arguments of macros and of attributes, which are not parsed.
    fn visit_token_stream(&mut self, tokens: &'ast TokenStream) {
        self.record_tokens(tokens.clone());
    }
}

impl Collector {
    /// Finds `name::name…` among loose tokens.
    fn record_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            let is_joined = colons == 2;
            colons = match &token {
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons + 1,
                _ => 0,
            };
            match token {
                TokenTree::Ident(name) => {
                    if !is_joined {
                        self.end_path(&mut path, line);
                    }
                    line = name.span().start().line;
                    path.push(plain(&name));
                }
                TokenTree::Group(group) => self.record_tokens(group.stream()),
                _ if colons > 0 => {}
                _ => self.end_path(&mut path, line),
            }
        }
        self.end_path(&mut path, line);
    }

    fn end_path(&mut self, path: &mut Vec<String>, line: usize) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.record(path, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn used(path: &str, text: &str) -> Vec<String> {
        let source = Source::new(path, text);
        let file = Parsed::of(&source).unwrap();
        paths_used(&file).into_iter().map(|used| used.path.join("::")).collect()
    }

    #[test]
    fn a_group_of_imports_is_taken_apart() {
        let text = "use crate::{store::{self, lanes::Lane as L}, domain::*};";
        assert_eq!(
            used("src/app.rs", text),
            ["crate::store", "crate::store::lanes::Lane", "crate::domain::*"]
        );
    }

    #[test]
    fn relative_paths_become_absolute() {
        let text = "use super::cache::Cache;\nmod tests { use super::super::batch; }";
        let expected = ["crate::actors::taxpayer::cache::Cache", "crate::actors::taxpayer::batch"];
        assert_eq!(used("src/actors/taxpayer/queue.rs", text), expected);
    }

    #[test]
    fn an_imported_name_is_followed_to_what_it_stands_for() {
        let text = "use crate::http as surface;\nfn f() { surface::views::show() }";
        assert_eq!(used("src/app.rs", text), ["crate::http", "crate::http::views::show"]);
    }

    #[test]
    fn a_child_module_is_told_apart_from_a_crate_of_its_name() {
        let text = "mod sandbox;\nfn f() { sandbox::start() }";
        assert_eq!(used("src/authority/mod.rs", text), ["crate::authority::sandbox::start"]);
    }

    #[test]
    fn paths_inside_macros_and_attributes_are_found() {
        let text =
            "#[derive(sea_orm::Model)]\nstruct A;\nfn f() { run!(a: x, crate::store::get(tokio::spawn)) }";
        assert_eq!(used("src/app.rs", text), ["sea_orm::Model", "tokio::spawn", "crate::store::get"]);
    }

    #[test]
    fn the_binary_names_the_library_by_the_package() {
        assert_eq!(used("src/main.rs", "fn main() { einvoice::cli::run() }"), ["crate::cli::run"]);
    }
}
