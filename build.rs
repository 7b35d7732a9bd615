//! Sets `EINVOICE_COMMIT` for the sources: the commit that is built. The variable of this name in the environment decides;
//! without it, a release build reads the commit from `.git`. Debug builds do not, so that a commit does not make
//! everything be compiled again.

use std::path::{Path, PathBuf};
use std::{env, fs};

const UNKNOWN: &str = "unknown";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=EINVOICE_COMMIT");
    let given = env::var("EINVOICE_COMMIT").unwrap_or_default();
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = match given.trim() {
        "" if is_release => commit_of_checkout(),
        "" => None,
        given => Some(given.to_owned()),
    };
    let commit = commit.unwrap_or_else(|| UNKNOWN.to_owned());
    println!("cargo::rustc-env=EINVOICE_COMMIT={commit}");
}

/// Returns the commit that is checked out; `None` without `.git`, as in an archive of the sources.
fn commit_of_checkout() -> Option<String> {
    let directory = git_directory()?;
    let head = read_tracked(&directory.join("HEAD"))?;
    // The log of HEAD grows with each commit, also where the branch has no file of its own yet.
    track(&directory.join("logs/HEAD"));
    let Some(branch) = head.strip_prefix("ref: ") else {
        return Some(head);
    };
    let common = common_directory(&directory);
    read_tracked(&common.join(branch)).or_else(|| {
        let packed = read_tracked(&common.join("packed-refs"))?;
        let line = packed
            .lines()
            .find_map(|line| line.split_once(' ').filter(|(_, name)| *name == branch));
        line.map(|(commit, _)| commit.to_owned())
    })
}

/// Returns the directory of git for this checkout. In a worktree `.git` is a file that names it.
fn git_directory() -> Option<PathBuf> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let named = fs::read_to_string(&git).ok()?;
    Some(root.join(named.trim().strip_prefix("gitdir: ")?))
}

/// Returns the directory with the branches, which all worktrees share.
fn common_directory(directory: &Path) -> PathBuf {
    fs::read_to_string(directory.join("commondir")).map_or_else(
        |_| directory.to_owned(),
        |named| directory.join(named.trim()),
    )
}

fn read_tracked(file: &Path) -> Option<String> {
    track(file);
    Some(fs::read_to_string(file).ok()?.trim().to_owned())
}

/// Makes cargo run this script again when the file changes. A file that is missing would make it run at each build.
fn track(file: &Path) {
    if file.exists() {
        println!("cargo::rerun-if-changed={}", file.display());
    }
}
