//! Faults of the machine that a process runs on. Some need the rights of root; without them a drill is skipped, and says
//! so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Runs a command with a control group of its own, as far as the command can see: $0 is the most memory.
pub(crate) const WITH_MEMORY_MAX: &str = "mount -t tmpfs tmpfs /sys/fs/cgroup \
     && echo \"$0\" > /sys/fs/cgroup/memory.max && exec \"$@\"";

/// True if this user may mount file systems.
pub(crate) fn may_mount() -> bool {
    let shell = ["--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"];
    let tried = Command::new("unshare").args(shell).status();
    tried.is_ok_and(|status| status.success())
}

/// Changes the most memory that a process started with `MEMORY_BYTES` believes it may have.
pub(crate) fn set_memory_max(process: u32, bytes: u64) {
    let file = format!("/proc/{process}/root/sys/fs/cgroup/memory.max");
    fs::write(file, bytes.to_string()).unwrap();
}

/// Changes the number of files that a process may open. It keeps those that it has open.
pub(crate) fn set_open_files_max(process: u32, files: u64) {
    let status = Command::new("prlimit")
        .args(["--pid", &process.to_string(), &format!("--nofile={files}:")])
        .status()
        .unwrap();
    assert!(status.success(), "prlimit: {status}");
}

/// A small disk, which is unmounted with its value.
pub(crate) struct SmallDisk(TempDir);

impl SmallDisk {
    pub(crate) fn mount(mebibytes: u32) -> Self {
        let directory = TempDir::new().unwrap();
        let size = format!("size={mebibytes}m");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(directory.path())
            .status()
            .unwrap();
        assert!(status.success(), "mount: {status}");
        Self(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills the disk to its last byte. Returns the file that does so.
    pub(crate) fn fill(&self) -> PathBuf {
        let file = self.path().join("filler");
        let status = Command::new("dd")
            .args(["if=/dev/zero", "bs=4096", &format!("of={}", file.display())])
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success(), "the disk has room");
        file
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The process that has files open on it ends later.
        let unmounted = Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .status();
        if !unmounted.is_ok_and(|status| status.success()) {
            println!("{} could not be unmounted", self.path().display());
        }
    }
}
