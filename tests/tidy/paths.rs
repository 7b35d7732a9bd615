//! Reads the paths that a source file names, without the compiler.

use std::path::Path;
use std::{fs, io};

/// A path that a source names, absolute: `crate::store::lanes`, `tokio::spawn`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    pub path: String,
    pub in_test: bool,
}

/// The module that a file is, below the crate: `store::lanes::claim` for `src/store/lanes/claim.rs`.
pub fn module_of(file: &str) -> String {
    let path = file
        .trim_start_matches("src/")
        .trim_end_matches(".rs")
        .trim_end_matches("/mod");
    path.replace('/', "::")
}

/// Files that a parent declares under `#[cfg(test)]`.
pub fn is_test_file(file: &str) -> bool {
    let names = file.split(['/', '.']);
    names
        .into_iter()
        .any(|name| name == "tests" || name == "testing" || name.ends_with("_tests"))
}

/// Every path that the code names, by `use` or in place, without comments.
pub fn paths_named(module: &str, text: &str) -> Vec<Named> {
    let (production, tests) = split_tests(text);
    let mut named = Vec::new();
    for (code, in_test) in [(production, false), (tests, true)] {
        for path in expanded(&tokens(&code)) {
            named.push(Named {
                path: absolute(module, &path, in_test),
                in_test,
            });
        }
    }
    named
}

/// Returns the production code and the items under `#[cfg(test)]`, both without comments. An item ends where rustfmt
/// ends it: at the first line of the same indentation that closes it.
pub fn split_tests(text: &str) -> (String, String) {
    let mut production = String::new();
    let mut tests = String::new();
    let mut item_indent = None;
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default().trim_end();
        let indent = code.len() - code.trim_start().len();
        if item_indent.is_none() && code.trim_start().starts_with("#[cfg(test)]") {
            item_indent = Some(indent);
        }
        let part = match item_indent {
            Some(_) => &mut tests,
            None => &mut production,
        };
        part.push_str(code);
        part.push('\n');
        let is_end = code.ends_with([';', ',', '}']);
        if item_indent == Some(indent) && is_end {
            item_indent = None;
        }
    }
    (production, tests)
}

/// Names, `::`, and single marks; blanks are dropped.
pub fn tokens(code: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut is_in_name = false;
    for letter in code.chars() {
        let is_name = letter.is_alphanumeric() || letter == '_';
        match tokens.last_mut() {
            Some(last) if (is_name && is_in_name) || (letter == ':' && last == ":") => {
                last.push(letter);
            }
            _ if letter.is_whitespace() => {}
            _ => tokens.push(letter.to_string()),
        }
        is_in_name = is_name;
    }
    tokens
}

/// The paths among these tokens, groups in braces taken apart.
pub fn expanded(tokens: &[String]) -> Vec<String> {
    let mut paths = Vec::new();
    // The prefixes of the groups that are open, and the path that is being read.
    let (mut prefixes, mut path): (Vec<String>, String) = (Vec::new(), String::new());
    for (at, token) in tokens.iter().enumerate() {
        let is_name = token.starts_with(|first: char| first.is_alphanumeric() || first == '_');
        let continues = path.ends_with("::");
        match token.as_str() {
            "::" if !path.is_empty() => path.push_str("::"),
            "{" if continues => prefixes.push(std::mem::take(&mut path)),
            "}" if !prefixes.is_empty() => {
                paths.push(std::mem::take(&mut path));
                prefixes.pop();
            }
            _ if is_name && continues => path.push_str(token),
            _ => {
                paths.push(std::mem::take(&mut path));
                let is_path = is_name && (tokens.get(at + 1).is_some_and(|next| next == "::"));
                if is_path || (is_name && !prefixes.is_empty()) {
                    path = format!("{}{token}", prefixes.last().map_or("", String::as_str));
                }
            }
        }
    }
    paths.push(path);
    paths.retain(|path| path.contains("::"));
    paths
        .iter()
        .map(|path| path.trim_end_matches("::").to_owned())
        .collect()
}

/// Resolves a leading `self` or `super`, and the crate's own name in its binary.
pub fn absolute(module: &str, path: &str, in_test: bool) -> String {
    let mut home: Vec<&str> = module.split("::").collect();
    // The paths of test code begin in the inner module `tests`.
    if in_test {
        home.push("tests");
    }
    let mut rest = path;
    if let Some(own) = path.strip_prefix("einvoice::") {
        return format!("crate::{own}");
    }
    let is_relative = path.starts_with("super::") || path.starts_with("self::");
    while let Some(inner) = rest.strip_prefix("super::") {
        home.pop();
        rest = inner;
    }
    let rest = rest.strip_prefix("self::").unwrap_or(rest);
    if is_relative {
        format!("crate::{}::{rest}", home.join("::"))
    } else {
        rest.to_owned()
    }
}

/// Returns the source files below a folder, relative to the root.
pub fn sources(root: &Path, folder: &str) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            found.extend(sources(root, &name)?);
        } else if Path::new(&name).extension().is_some_and(|end| end == "rs") {
            found.push(name);
        }
    }
    Ok(found)
}
