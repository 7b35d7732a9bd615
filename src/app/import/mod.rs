//! The command `import`: sends a file of invoices to a running service. Shows the preview, asks, imports, shows the
//! progress, and writes the file of errors beside the file. It may be stopped at any time: the same call later
//! continues with the same import, because the service imports a file only once.
//!
//! | Concept | File |
//! |---|---|
//! | the requests to the service | `service` |
//! | the texts of a preview, of the progress and of the end | `report` |

mod report;
mod service;

use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write as _, stderr, stdin};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::app::import::report::Progress;
use crate::app::import::service::ServiceClient;
use crate::cli::ImportArguments;

/// The interval at which the progress is read.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The largest number in the name of a file of errors.
const ERRORS_FILES_MAX: u32 = 1_000;

/// The reason why a file, or a part of it, was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("cannot read or write {}: {error}", .path.display())]
    File {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("the name of {} must end in .xml, .csv, .xlsx, .ndjson, .jsonl or .json", .0.display())]
    UnknownEnding(PathBuf),
    #[error("give the key of the taxpayer as EINVOICE_IMPORT_KEY or with --key-file")]
    NoKey,
    #[error("{url} does not answer: {problem}")]
    NoAnswer { url: String, problem: String },
    #[error("the service refused it with {status}: {message}")]
    Refused { status: u16, message: String },
    #[error("{0} answers, but not as this service does: look at the URL")]
    WrongService(String),
    #[error("stopped: {0} Send the file again.")]
    Stopped(String),
    #[error("nothing was imported; add --yes to import without a question")]
    NotConfirmed,
    #[error("{0} invoices exist with other contents than the file has, and stay as they are")]
    DifferentContents(u64),
    #[error("{} invoices were not created; {} says why", .count, .path.display())]
    Incomplete { count: u64, path: PathBuf },
}

/// Imports a file. Returns the sentence that says what was created.
pub async fn import(arguments: ImportArguments) -> Result<String, ImportError> {
    let file = &arguments.file;
    let bytes = std::fs::read(file).map_err(|error| file_error(file, error))?;
    let service = ServiceClient::new(&arguments)?;
    let preview = service.send_file(&bytes, true).await?.import;
    eprint!("{}", report::preview_text(&preview));
    if !arguments.yes && !confirm_import(&preview)? {
        return Ok("Nothing was imported.".to_owned());
    }
    let upload = service.send_file(&bytes, false).await?;
    if upload.was_imported_before {
        eprintln!(
            "This file was imported before, and nothing is created again. The record of that import:"
        );
    }
    let mut import = upload.import;
    let mut progress = Progress::new(stderr().is_terminal());
    while report::is_running(&import) {
        eprint!("{}", progress.next_progress_text(&import));
        sleep(POLL_INTERVAL).await;
        import = service.read_import(&import).await?;
    }
    eprint!("{}", progress.next_progress_text(&import));
    let refused = report::refused_count(&import);
    if refused > 0 {
        let errors = service.download_errors(&import).await?;
        let path = write_errors(file, &errors)?;
        eprintln!("{}", report::end_summary(&import));
        if let Some(reason) = report::stop_reason(&import) {
            eprintln!("{} says which invoices were refused", path.display());
            return Err(ImportError::Stopped(reason.to_owned()));
        }
        return Err(ImportError::Incomplete {
            count: refused,
            path,
        });
    }
    match report::stop_reason(&import) {
        Some(reason) => Err(ImportError::Stopped(reason.to_owned())),
        None => end_without_refusals(&import),
    }
}

/// Returns the sentence about an import in which no invoice was refused. Fails if invoices of the file are already
/// stored with other contents: a person who sends a corrected file must not believe that the corrections were stored.
fn end_without_refusals(import: &Value) -> Result<String, ImportError> {
    let end = report::end_summary(import);
    match report::changed_duplicate_count(import) {
        0 => Ok(end),
        count => {
            eprintln!("{end}");
            Err(ImportError::DifferentContents(count))
        }
    }
}

/// Asks whether to import. Fails if nobody can be asked, because standard input is no terminal.
fn confirm_import(preview: &Value) -> Result<bool, ImportError> {
    if !stdin().is_terminal() {
        return Err(ImportError::NotConfirmed);
    }
    eprint!("{} [y/N] ", report::confirmation_question(preview));
    let mut answer = String::new();
    let read_result = stderr()
        .flush()
        .and_then(|()| stdin().read_line(&mut answer));
    read_result.map_err(|_| ImportError::NotConfirmed)?;
    let answer = answer.trim().to_lowercase();
    Ok(answer == "y" || answer == "yes")
}

/// Writes the file of errors: `july.csv` gets `july.errors.csv` beside it, or `july.errors.2.csv` if that exists
/// already, because somebody may be correcting the invoices in it. Returns the path of the new file.
fn write_errors(file: &Path, errors: &[u8]) -> Result<PathBuf, ImportError> {
    let mut number = 1;
    loop {
        let path = errors_path(file, number);
        match File::create_new(&path).and_then(|mut created| created.write_all(errors)) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < ERRORS_FILES_MAX => {
                number += 1;
            }
            Err(error) => return Err(file_error(&path, error)),
        }
    }
}

fn errors_path(file: &Path, number: u32) -> PathBuf {
    if number == 1 {
        file.with_extension("errors.csv")
    } else {
        file.with_extension(format!("errors.{number}.csv"))
    }
}

fn file_error(path: &Path, error: std::io::Error) -> ImportError {
    ImportError::File {
        path: path.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_errors_never_replaces_another() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("july.csv");
        for (errors, name) in [("a", "july.errors.csv"), ("b", "july.errors.2.csv")] {
            let path = write_errors(&file, errors.as_bytes()).unwrap();
            assert_eq!(path, folder.path().join(name));
            assert_eq!(std::fs::read_to_string(path).unwrap(), errors);
        }
    }
}
