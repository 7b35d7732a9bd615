//! A migrated database with an integrator. To migrate is much of a first start, so it is done once for each kind of
//! database, and each deployment begins with a copy. `first_start` tests what happens without one.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::Backend;
use tokio::sync::OnceCell;

use crate::support::database::PostgresDatabase;
use crate::support::service::{DATABASE_URL, Service, Settings};

static ON_SQLITE: OnceCell<Template> = OnceCell::const_new();
static ON_POSTGRESQL: OnceCell<Template> = OnceCell::const_new();

/// It stays until the server of the tests ends, or the next run begins.
pub(crate) struct Template {
    /// The directory of the process: the database of SQLite is in it.
    home: PathBuf,
    postgres: Option<PostgresDatabase>,
    pub(crate) integrator_key: String,
}

impl Template {
    /// Returns the template for this kind of database. Which deployment makes it, with these settings, does not matter.
    pub(crate) async fn for_backend(backend: Backend, settings: &Settings) -> &'static Self {
        let made = match backend {
            Backend::Sqlite => &ON_SQLITE,
            Backend::Postgres => &ON_POSTGRESQL,
        };
        made.get_or_init(|| Self::make(backend, settings)).await
    }

    async fn make(backend: Backend, settings: &Settings) -> Self {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("scenarios")
            .join(format!("{backend:?}"));
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).unwrap();
        let postgres = match backend {
            Backend::Sqlite => None,
            Backend::Postgres => Some(PostgresDatabase::create().await),
        };
        let mut program = Service::new(home.clone(), "template", settings.clone());
        program.change_setting("EINVOICE__DATA_DIR", &home.display().to_string());
        if let Some(database) = &postgres {
            program.change_setting(DATABASE_URL, &database.url());
        }
        Self {
            integrator_key: program.new_integrator(),
            home,
            postgres,
        }
    }

    /// Copies the files into the directory of a process, and the database of PostgreSQL.
    pub(crate) async fn copy_to(&self, directory: &Path) -> Option<PostgresDatabase> {
        for file in fs::read_dir(&self.home).unwrap().map(Result::unwrap) {
            fs::copy(file.path(), directory.join(file.file_name())).unwrap();
        }
        match &self.postgres {
            Some(database) => Some(database.copy().await),
            None => None,
        }
    }
}
