//! Circles of files: files that import each other in turn, so that none can be read or changed without the others. A
//! re-export counts for the file that defines the item. Test code and `mod` lines do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use crate::paths::{absolute, expanded, is_test_file, module_of, sources, split_tests, tokens};

/// The largest circle: a few files that make one concept may know each other.
const FILES_MAX: usize = 3;

/// The most re-exports on the way to an item. A module that exports itself would lead on for ever.
const EXPORTS_MAX: usize = 20;

/// The files of a graph, each with the files that it imports from.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The production code of one file.
struct Source {
    file: String,
    uses: Vec<Use>,
    /// The paths that are named in place, without those of `use`.
    paths: Vec<String>,
}

/// A name that a `use` brings in, and the path that it stands for.
struct Use {
    name: String,
    path: String,
    is_export: bool,
}

impl Source {
    fn new(file: &str, text: &str) -> Self {
        let (production, _) = split_tests(text);
        let mut uses = Vec::new();
        let mut others = Vec::new();
        let mut tokens = tokens(&production).into_iter().peekable();
        while let Some(token) = tokens.next() {
            // `use<'a>` is a bound, no import.
            if token != "use" || tokens.peek().is_some_and(|next| next == "<") {
                others.push(token);
                continue;
            }
            let is_export = matches!(others.last().map(String::as_str), Some("pub" | ")"));
            let tree: Vec<_> = tokens.by_ref().take_while(|token| token != ";").collect();
            let names = read_use(&mut tree.into_iter().peekable(), "");
            uses.extend(names.into_iter().map(|(name, path)| Use {
                name,
                path,
                is_export,
            }));
        }
        Self {
            file: file.to_owned(),
            uses,
            paths: expanded(&others),
        }
    }

    fn module(&self) -> String {
        match module_of(&self.file) {
            root if root == "lib" => String::new(),
            module => module,
        }
    }
}

/// Reads one tree of a `use` up to its comma or brace. Returns each name with its path.
fn read_use(
    tokens: &mut std::iter::Peekable<impl Iterator<Item = String>>,
    prefix: &str,
) -> Vec<(String, String)> {
    let mut names = Vec::new();
    let mut path = prefix.to_owned();
    let mut alias = None;
    while let Some(token) = tokens.next_if(|token| token != "," && token != "}") {
        match token.as_str() {
            "{" => {
                while tokens.next_if_eq("}").is_none() && tokens.peek().is_some() {
                    names.extend(read_use(tokens, &path));
                    tokens.next_if_eq(",");
                }
                return names;
            }
            "as" => alias = tokens.next(),
            _ => path.push_str(&token),
        }
    }
    let path = path.trim_end_matches("::self").to_owned();
    let last = path.rsplit("::").next().unwrap_or_default().to_owned();
    vec![(alias.unwrap_or(last), path)]
}

/// The modules of one crate. The root of the crate is the module without a name.
struct Modules<'s> {
    files: BTreeMap<String, &'s str>,
    /// The names that the modules bring in, as paths of the module and the name, with the paths that they stand for.
    names: BTreeMap<String, String>,
}

impl<'s> Modules<'s> {
    fn new(sources: &'s [Source]) -> Self {
        let files = sources
            .iter()
            .map(|source| (source.module(), &*source.file));
        let mut modules = Self {
            files: files.collect(),
            names: BTreeMap::new(),
        };
        for source in sources {
            for import in &source.uses {
                if let Some(path) = modules.absolute(&source.module(), &import.path) {
                    let name = join(&source.module(), &import.name);
                    modules.names.insert(name, path);
                }
            }
        }
        modules
    }

    /// Returns a path from the root of the crate; `None` if the path leads out of the crate.
    fn absolute(&self, module: &str, path: &str) -> Option<String> {
        if let Some(inner) = absolute(module, path, false).strip_prefix("crate::") {
            return Some(inner.trim_start_matches("::").to_owned());
        }
        let (first, rest) = path.split_once("::").unwrap_or((path, ""));
        let own = join(module, first);
        let home = if self.files.contains_key(&own) {
            &own
        } else {
            self.names.get(&own)?
        };
        Some(join(home, rest))
    }

    /// Returns the file that defines the item at a path from the root. `None` if the item is a folder of modules: the
    /// paths through it count.
    fn defining_file(&self, path: &str) -> Option<&'s str> {
        let mut path = path.to_owned();
        for _ in 0..EXPORTS_MAX {
            let (module, rest) = self.split_module(&path);
            let (first, after) = rest.split_once("::").unwrap_or((rest, ""));
            match self.names.get(&join(module, first)) {
                Some(target) if !first.is_empty() => path = join(target, after),
                _ => {
                    let file = *self.files.get(module)?;
                    let is_folder = first.is_empty() && file.ends_with("/mod.rs");
                    return (!is_folder).then_some(file);
                }
            }
        }
        None
    }

    /// Divides a path behind the last module that it names.
    fn split_module<'p>(&self, path: &'p str) -> (&'p str, &'p str) {
        let ends = path.match_indices("::").map(|(at, _)| at);
        let ends = ends.chain([path.len()]);
        let modules = ends.take_while(|end| self.files.contains_key(&path[..*end]));
        let end = modules.last().unwrap_or(0);
        (&path[..end], path[end..].trim_start_matches("::"))
    }

    fn imports(&self, source: &Source) -> BTreeSet<String> {
        let uses = source.uses.iter().filter(|import| !import.is_export);
        let paths = uses.map(|import| &import.path).chain(&source.paths);
        let paths = paths.filter_map(|path| self.absolute(&source.module(), path));
        let files = paths.filter_map(|path| self.defining_file(&path));
        let others = files.filter(|file| *file != source.file);
        others.map(str::to_owned).collect()
    }
}

fn join(module: &str, name: &str) -> String {
    match (module, name) {
        ("", _) => name.to_owned(),
        (_, "") => module.to_owned(),
        _ => format!("{module}::{name}"),
    }
}

/// Returns the imports between the files of one crate, each given with its text.
fn graph(files: &[(String, String)]) -> Imports {
    let files = files.iter().filter(|(file, _)| {
        // The binary is a crate of its own, which no file imports from.
        !is_test_file(file) && file != "src/main.rs"
    });
    let sources: Vec<_> = files.map(|(file, text)| Source::new(file, text)).collect();
    let modules = Modules::new(&sources);
    sources
        .iter()
        .map(|source| (source.file.clone(), modules.imports(source)))
        .collect()
}

/// Returns the circles of a graph. Two files are in one circle if each leads to the other.
fn circles(mut imports: Imports) -> Vec<BTreeSet<String>> {
    // A file that imports from nothing, or that nothing imports from, is in no circle.
    loop {
        let count = imports.len();
        let imported: BTreeSet<_> = imports.values().flatten().cloned().collect();
        imports.retain(|file, others| !others.is_empty() && imported.contains(file));
        let kept: BTreeSet<_> = imports.keys().cloned().collect();
        for others in imports.values_mut() {
            others.retain(|other| kept.contains(other));
        }
        if imports.len() == count {
            break;
        }
    }
    let reached = imports.keys().map(|file| (file, reachable(&imports, file)));
    let reached: BTreeMap<_, _> = reached.collect();
    let mut circles: Vec<BTreeSet<String>> = Vec::new();
    for (file, others) in &reached {
        let is_known = circles.iter().any(|circle| circle.contains(*file));
        let circle = others.iter().filter(|other| reached[other].contains(*file));
        let circle: BTreeSet<_> = circle.cloned().collect();
        if !is_known && !circle.is_empty() {
            circles.push(circle);
        }
    }
    circles
}

/// Returns the files to which the imports of a file lead.
fn reachable(imports: &Imports, file: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        for other in &imports[file] {
            if reached.insert(other.clone()) {
                open.push(other);
            }
        }
    }
    reached
}

/// Describes the circles that are too large, with the imports inside them.
fn large_circles(folder: &str, imports: &Imports) -> Vec<String> {
    let circles = circles(imports.clone()).into_iter();
    let large = circles.filter(|circle| circle.len() > FILES_MAX);
    let lines = large.map(|circle| {
        let inside = circle.iter().map(|file| {
            let others: Vec<_> = imports[file].intersection(&circle).cloned().collect();
            format!("    {file} imports from {}", others.join(", "))
        });
        let inside: Vec<_> = inside.collect();
        format!("{} files in {folder}:\n{}", circle.len(), inside.join("\n"))
    });
    lines.collect()
}

/// Returns the folders of the crates, from the root of the repository.
fn crate_folders(root: &Path) -> io::Result<Vec<String>> {
    let mut folders = vec![".".to_owned()];
    for entry in fs::read_dir(root.join("crates"))? {
        let folder = format!("crates/{}", entry?.file_name().to_string_lossy());
        folders.extend([format!("{folder}/macros"), folder]);
    }
    folders.retain(|folder| root.join(folder).join("src").is_dir());
    folders.sort();
    Ok(folders)
}

#[test]
fn no_circle_has_more_than_three_files() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in crate_folders(root)? {
        let home = root.join(&folder);
        let mut files = Vec::new();
        for file in sources(&home, "src")? {
            let text = fs::read_to_string(home.join(&file))?;
            files.push((file, text));
        }
        found.extend(large_circles(&folder, &graph(&files)));
    }
    let advice = "move the item that closes the circle to a file of its own";
    assert!(found.is_empty(), "{advice}:\n{}", found.join("\n"));
    Ok(())
}

#[test]
fn a_circle_is_found_through_every_way_to_name_an_item() {
    let files = [
        ("src/lib.rs", "mod a;\nmod leaf;\npub use a::b::B;\n"),
        // By a `use` of the crate, by a path in place, by a name of `use`, and by a re-export.
        (
            "src/a/mod.rs",
            "pub mod b;\nmod c;\nmod d;\npub use d::Deep as Exported;\nuse crate::leaf::Leaf;\n",
        ),
        (
            "src/a/b.rs",
            "use crate::a::{self, other::{X, Y}};\nfn f() {\n    a::c::g();\n}\n",
        ),
        (
            "src/a/c.rs",
            "use super::d;\nfn g(deep: impl Sized + use<'_>) {\n    d::h();\n}\n",
        ),
        (
            "src/a/d.rs",
            "use crate::a::e::{Inner};\npub struct Deep;\n",
        ),
        ("src/a/e.rs", "use crate::B;\npub struct Inner;\n"),
        (
            "src/leaf.rs",
            "//! use crate::a::b::B;\n#[cfg(test)]\nuse crate::a::b::B;\npub struct Leaf;\n\
             #[cfg(test)]\nmod tests {\n    use crate::a::Exported;\n}\n",
        ),
    ];
    let mut files = files.map(|(file, text)| (file.to_owned(), text.to_owned()));
    let found = circles(graph(&files));
    let four = ["src/a/b.rs", "src/a/c.rs", "src/a/d.rs", "src/a/e.rs"];
    assert_eq!(found, [BTreeSet::from(four.map(str::to_owned))]);
    assert_eq!(large_circles("example", &graph(&files)).len(), 1);
    // A cut makes the circle vanish. A re-export leads to the file that defines the item.
    files[5].1 = "use crate::leaf::Leaf;\n".to_owned();
    assert!(circles(graph(&files)).is_empty());
    files[6].1 = "use crate::a::Exported;\n".to_owned();
    let circle = ["src/a/d.rs", "src/a/e.rs", "src/leaf.rs"].map(str::to_owned);
    assert_eq!(circles(graph(&files)), [BTreeSet::from(circle)]);
}
