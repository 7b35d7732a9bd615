//! The checks of the disks and of the files of checkpoints. No file is opened for writing.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statvfs};
use secrecy::ExposeSecret;
use tokio::task::spawn_blocking;

use crate::app::checkpoint::read_signing_key;
use crate::app::doctor::report::CheckResult;
use crate::app::doctor::waits::{LOCAL_WAIT, run_within};
use crate::config::Settings;

const DATA_DISK: &str = "disk-data";
const DATABASE_DISK: &str = "disk-database";
const CHECKPOINT_KEY: &str = "checkpoint-key";
const CHECKPOINT_FILE: &str = "checkpoint-file";
const MIB: u64 = 1 << 20;
/// With fewer free bytes than this, the disk may be full within a day.
const FREE_BYTES_WARN: u64 = 1_024 * MIB;
/// With fewer free bytes than this, the database may refuse writes at any moment.
const FREE_BYTES_FAIL: u64 = 64 * MIB;

/// A disk, as seen at a path on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DiskSpace {
    /// Bytes that this process may still write.
    free: u64,
    size: u64,
    is_writable: bool,
}

/// Runs checks in a separate thread, because a failing disk may never answer. After the time limit, the thread is
/// left behind.
async fn run_in_thread(
    name: &'static str,
    checks: impl FnOnce() -> Vec<CheckResult> + Send + 'static,
) -> Vec<CheckResult> {
    let results = async {
        let results = spawn_blocking(checks).await;
        results.unwrap_or_else(|error| vec![CheckResult::fail(name, error.to_string())])
    };
    run_within(LOCAL_WAIT, name, results).await
}

/// Checks the disk of `data_dir`, and that of an SQLite database elsewhere.
pub(super) async fn check_disks(settings: &Settings) -> Vec<CheckResult> {
    let mut checks = check_disk(DATA_DISK, settings.data_dir.clone()).await;
    let url = settings.database_url();
    let is_elsewhere = !settings.database.url.expose_secret().is_empty();
    if is_elsewhere && url.expose_secret().starts_with("sqlite:") {
        checks.extend(check_disk(DATABASE_DISK, settings.database_location().into()).await);
    }
    checks
}

async fn check_disk(check: &'static str, path: PathBuf) -> Vec<CheckResult> {
    run_in_thread(check, move || {
        vec![judge_disk(check, &path, measure_disk(&path))]
    })
    .await
}

/// Returns the path if it exists, else the nearest directory above it that does.
fn nearest_existing_path(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let existing_path = path.ancestors().find(|path| path.exists());
    Ok(existing_path.unwrap_or(&path).to_owned())
}

/// Measures the disk of the path or, if the path does not exist, of the nearest directory above it that does: the
/// service creates the rest at its start.
fn measure_disk(path: &Path) -> io::Result<DiskSpace> {
    let existing_path = &nearest_existing_path(path)?;
    let disk = statvfs(existing_path)?;
    Ok(DiskSpace {
        free: disk.f_bavail.saturating_mul(disk.f_frsize),
        size: disk.f_blocks.saturating_mul(disk.f_frsize),
        is_writable: access(existing_path, Access::WRITE_OK).is_ok(),
    })
}

fn judge_disk(check: &'static str, path: &Path, disk: io::Result<DiskSpace>) -> CheckResult {
    let path = path.display();
    let disk = match disk {
        Ok(disk) => disk,
        Err(error) => {
            return CheckResult::fail(check, format!("{path} cannot be looked at: {error}"))
                .advise("check the path and its rights");
        }
    };
    let found = format!(
        "{path}: {} of {} MiB free",
        disk.free / MIB,
        disk.size / MIB
    );
    if !disk.is_writable {
        return CheckResult::fail(check, format!("{found}, and this user may not write")).advise(
            "give the user of the service the right to write, and mount the disk writable",
        );
    }
    let advice = "make room, or use a larger disk";
    match disk.free {
        0..FREE_BYTES_FAIL => CheckResult::fail(check, found).advise(advice),
        FREE_BYTES_FAIL..FREE_BYTES_WARN => CheckResult::warn(check, found).advise(advice),
        _ => CheckResult::ok(check, found),
    }
}

/// Checks that the signing key can be read and that the file of checkpoints can be appended to.
pub(super) async fn check_checkpoints(settings: &Settings) -> Vec<CheckResult> {
    let checkpoints = &settings.checkpoints;
    let (Some(file), Some(key)) = (&checkpoints.file, &checkpoints.key_file) else {
        return vec![CheckResult::ok(
            CHECKPOINT_FILE,
            "none: checkpoints.file and checkpoints.key_file are not both set",
        )];
    };
    let (file, key, data_dir) = (file.clone(), key.clone(), settings.data_dir.clone());
    let is_created_later = settings.creates_checkpoint_key();
    run_in_thread(CHECKPOINT_FILE, move || {
        let key = if is_created_later {
            CheckResult::ok(CHECKPOINT_KEY, "not there yet: the first start creates it")
        } else {
            check_signing_key(&key)
        };
        vec![key, check_file(&file, &data_dir)]
    })
    .await
}

fn check_signing_key(path: &Path) -> CheckResult {
    match read_signing_key(path) {
        Ok(_) => CheckResult::ok(CHECKPOINT_KEY, format!("{} holds a key", path.display())),
        Err(error) => CheckResult::fail(CHECKPOINT_KEY, error.to_string())
            .advise("set checkpoints.key_file to a file with 32 bytes in base64"),
    }
}

/// Checks that the file can be read and written or, if it does not exist, created. A start creates the file, and of the
/// directories only `data_dir`.
fn check_file(path: &Path, data_dir: &Path) -> CheckResult {
    let name = path.display();
    if !path.exists() {
        let directory = match path.parent() {
            Some(directory) if directory == data_dir => nearest_existing_path(directory),
            _ => std::path::absolute(path).map(|path| path.with_file_name("")),
        };
        let write_access =
            directory.and_then(|directory| Ok(access(&directory, Access::WRITE_OK)?));
        return match write_access {
            Ok(()) => CheckResult::ok(
                CHECKPOINT_FILE,
                format!("{name} does not exist yet and can be created"),
            ),
            Err(_) => unusable_file(format!("{name} does not exist and cannot be created")),
        };
    }
    match File::open(path).and(access(path, Access::WRITE_OK).map_err(io::Error::from)) {
        Ok(()) => CheckResult::ok(CHECKPOINT_FILE, format!("{name} can be read and written")),
        Err(error) => unusable_file(format!("{name} cannot be read and written: {error}")),
    }
}

fn unusable_file(found: String) -> CheckResult {
    CheckResult::fail(CHECKPOINT_FILE, found)
        .advise("give the user of the service the right to read and write it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::doctor::report::Verdict;

    #[test]
    fn a_disk_is_judged_by_its_room_and_its_rights() {
        for (free, is_writable, expected) in [
            (FREE_BYTES_WARN, true, Verdict::Ok),
            (FREE_BYTES_WARN - 1, true, Verdict::Warn),
            (FREE_BYTES_FAIL, true, Verdict::Warn),
            (FREE_BYTES_FAIL - 1, true, Verdict::Fail),
            (FREE_BYTES_WARN, false, Verdict::Fail),
        ] {
            let disk = DiskSpace {
                free,
                size: 2 * FREE_BYTES_WARN,
                is_writable,
            };
            let judged = judge_disk(DATA_DISK, Path::new("/data"), Ok(disk));
            assert_eq!(judged.result, expected, "{judged}");
        }
        let missing = Err(io::Error::from(io::ErrorKind::NotFound));
        let judged = judge_disk(DATA_DISK, Path::new("/data"), missing);
        assert_eq!(judged.result, Verdict::Fail);
    }

    #[test]
    fn a_missing_data_dir_is_judged_by_the_nearest_existing_directory() {
        let directory = tempfile::tempdir().unwrap();
        let disk = measure_disk(&directory.path().join("new").join("newer")).unwrap();
        assert!(disk.is_writable && disk.size > disk.free, "{disk:?}");
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn the_file_of_checkpoints_may_be_missing_but_its_directory_may_not() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("checkpoints.log");
        let elsewhere = Path::new("data");
        assert_eq!(check_file(&file, elsewhere).result, Verdict::Ok);
        assert!(!file.exists(), "nothing is created");
        std::fs::write(&file, "").unwrap();
        assert_eq!(check_file(&file, elsewhere).result, Verdict::Ok);
        let nowhere = directory.path().join("nowhere");
        let missing = nowhere.join("checkpoints.log");
        assert_eq!(check_file(&missing, elsewhere).result, Verdict::Fail);
        assert_eq!(check_file(&missing, &nowhere).result, Verdict::Ok);
        assert_eq!(
            check_signing_key(&file).result,
            Verdict::Fail,
            "it holds no key"
        );
    }
}
