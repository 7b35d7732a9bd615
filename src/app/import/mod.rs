//! The command `import`: sends a file of invoices to a running service. Shows the preview, asks, imports, shows the
//! progress, and writes the file of errors beside the file. It may be stopped at any time: the same call goes on where
//! the service is, because a file is imported once.
//!
//! | Concept | File |
//! |---|---|
//! | the requests to the service | `service` |
//! | what people read of a preview, the progress and the end | `report` |

mod report;
mod service;

use std::io::{IsTerminal, Write as _, stderr, stdin};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::app::import::report::Progress;
use crate::app::import::service::Service;
use crate::cli::ImportArguments;

/// How often the progress is asked for.
const POLL_EVERY: Duration = Duration::from_millis(500);

/// Why a file was not imported, or not all of it.
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
    Silent { url: String, problem: String },
    #[error("the service refused it with {status}: {message}")]
    Refused { status: u16, message: String },
    #[error("nothing was imported; add --yes to import without a question")]
    Unasked,
    #[error("{} invoices were not created; {} says why", .count, .path.display())]
    Incomplete { count: u64, path: PathBuf },
}

/// Imports a file. Returns the sentence that says what was created.
pub async fn import(arguments: ImportArguments) -> Result<String, ImportError> {
    let file = &arguments.file;
    let bytes = std::fs::read(file).map_err(|error| file_error(file, error))?;
    let service = Service::new(&arguments)?;
    let preview = service.send(&bytes, true).await?;
    eprint!("{}", report::preview(&preview));
    if !arguments.yes && !is_wanted(&preview)? {
        return Ok("Nothing was imported.".to_owned());
    }
    let mut import = service.send(&bytes, false).await?;
    let mut progress = Progress::new(stderr().is_terminal());
    while report::is_running(&import) {
        eprint!("{}", progress.show(&import));
        sleep(POLL_EVERY).await;
        import = service.read(&import).await?;
    }
    eprint!("{}", progress.show(&import));
    let refused = report::refused(&import);
    if refused > 0 {
        let path = errors_path(file);
        let errors = service.errors(&import).await?;
        std::fs::write(&path, errors).map_err(|error| file_error(&path, error))?;
        eprintln!("{}", report::end(&import));
        return Err(ImportError::Incomplete {
            count: refused,
            path,
        });
    }
    Ok(report::end(&import))
}

/// Asks whether to go on. Without somebody to ask the answer would be a guess.
fn is_wanted(preview: &Value) -> Result<bool, ImportError> {
    if !stdin().is_terminal() {
        return Err(ImportError::Unasked);
    }
    eprint!("{} [y/N] ", report::question(preview));
    let mut answer = String::new();
    let read = stderr()
        .flush()
        .and_then(|()| stdin().read_line(&mut answer));
    read.map_err(|_| ImportError::Unasked)?;
    let answer = answer.trim().to_lowercase();
    Ok(answer == "y" || answer == "yes")
}

/// Returns the path of the file of errors: `july.csv` has `july.errors.csv` beside it.
fn errors_path(file: &Path) -> PathBuf {
    file.with_extension("errors.csv")
}

fn file_error(path: &Path, error: std::io::Error) -> ImportError {
    ImportError::File {
        path: path.to_owned(),
        error,
    }
}
