//! What a check works on: a file's path, text and syntax tree; and what it answers: faults.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// The folders that hold sources of ours.
const ROOTS: &[&str] = &["src", "migration/src", "sandbox/src", "strict_json/src"];

/// A file: its path from the repository's root, with slashes, and its text.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }
}

/// Something that breaks a rule, and where.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    path: String,
    line: usize,
    pub(crate) what: String,
}

impl Fault {
    pub(crate) fn at(path: &str, line: usize, what: String) -> Self {
        Self { path: path.to_owned(), line, what }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// A source and its syntax tree.
pub(crate) struct Parsed<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
    pub(crate) tree: syn::File,
    /// Whether all of the file is test code, because its parent declares it under `#[cfg(test)]`.
    pub(crate) is_test: bool,
}

/// Parses files that belong together; one that does not parse is a fault.
pub(crate) fn parse_all(sources: &[Source]) -> (Vec<Parsed<'_>>, Vec<Fault>) {
    let mut files = Vec::new();
    let mut faults = Vec::new();
    for source in sources {
        match Parsed::of(source) {
            Ok(file) => files.push(file),
            Err(error) => faults.push(Fault::at(&source.path, 1, format!("does not parse: {error}"))),
        }
    }
    let test_places: Vec<String> = files.iter().flat_map(Parsed::test_places).collect();
    for file in &mut files {
        file.is_test = test_places.iter().any(|place| file.is_in(place));
    }
    (files, faults)
}

impl<'a> Parsed<'a> {
    pub(crate) fn of(source: &'a Source) -> syn::Result<Self> {
        let tree = syn::parse_file(&source.text)?;
        Ok(Self { path: &source.path, text: &source.text, tree, is_test: false })
    }

    pub(crate) fn fault(&self, line: usize, what: String) -> Fault {
        Fault::at(self.path, line, what)
    }

    /// Whether this file is `place` or stands below it: `src/app` is `src/app.rs` and all of `src/app/`.
    pub(crate) fn is_in(&self, place: &str) -> bool {
        let rest = self.path.strip_prefix(place);
        rest.is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
    }

    pub(crate) fn is_in_any(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.is_in(place))
    }

    /// Whether the file belongs to the package `einvoice`, the only one that has floors.
    pub(crate) fn is_in_root_package(&self) -> bool {
        self.path.starts_with("src/")
    }

    pub(crate) fn is_mod_rs(&self) -> bool {
        self.path.ends_with("/mod.rs")
    }

    /// Where the modules are that this file declares under `#[cfg(test)]` and keeps in files of their own.
    fn test_places(&self) -> Vec<String> {
        let bare = self.path.strip_suffix(".rs").unwrap_or(self.path);
        let folder =
            ["/mod", "/lib", "/main"].iter().find_map(|root| bare.strip_suffix(root)).unwrap_or(bare);
        let modules = self.tree.items.iter().filter_map(|item| match item {
            syn::Item::Mod(module) if module.content.is_none() && marks_test(&module.attrs) => {
                Some(&module.ident)
            }
            _ => None,
        });
        modules.map(|name| format!("{folder}/{name}")).collect()
    }

    /// The names from the package's root to this file: `actors`, `taxpayer`, `batch`; `lib` for the root itself.
    pub(crate) fn steps(&self) -> Vec<&str> {
        let inside = self.path.split_once("src/").map_or(self.path, |(_, inside)| inside);
        let bare = inside.strip_suffix(".rs").unwrap_or(inside);
        bare.strip_suffix("/mod").unwrap_or(bare).split('/').collect()
    }

    /// The path of the file's module below `crate`: as `steps`, but nothing for the roots.
    pub(crate) fn module(&self) -> Vec<String> {
        match self.steps().as_slice() {
            ["lib" | "main"] => Vec::new(),
            steps => steps.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Whether attributes make an item test code: `#[test]` or `#[cfg(test)]`.
pub(crate) fn marks_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let is_cfg = path.is_ident("cfg");
        let last = path.segments.last();
        let is_test = last.is_some_and(|segment| segment.ident == "test");
        is_test || is_cfg && attribute.parse_args::<syn::Ident>().is_ok_and(|only| only == "test")
    })
}

/// All sources of ours below the repository's root.
pub(crate) fn read_tree(repository: &Path) -> io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for root in ROOTS {
        read_folder(repository, root, &mut sources)?;
    }
    Ok(sources)
}

fn read_folder(repository: &Path, folder: &str, sources: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(repository.join(folder))? {
        let entry = entry?;
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            read_folder(repository, &path, sources)?;
        } else if Path::new(&path).extension().is_some_and(|extension| extension == "rs") {
            sources.push(Source { text: fs::read_to_string(entry.path())?, path });
        }
    }
    Ok(())
}
