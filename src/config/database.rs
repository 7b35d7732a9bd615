//! The settings of the section `database`, and the location of the database: `database.url`, or a SQLite file in
//! `data_dir`.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use url::Url;

use super::{Settings, form};

/// The file name of the SQLite database in `data_dir`.
const DATABASE_FILE: &str = "einvoice.db";
const POSTGRES_PORT: u16 = 5_432;

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// May contain a password. Empty means the SQLite file in `data_dir`: use [`Settings::database_url`].
    #[serde(
        deserialize_with = "form::read_secret",
        serialize_with = "form::mask_url"
    )]
    pub url: SecretString,
    pub writer_connections_max: u32,
    pub reader_connections_max: u32,
    pub page_connections_max: u32,
    pub lock_timeout_s: u64,
    pub statement_timeout_s: u64,
    pub idle_in_transaction_timeout_s: u64,
}

impl Settings {
    /// Returns `database.url`, or the URL of the SQLite file in `data_dir` if it is empty.
    pub fn database_url(&self) -> SecretString {
        if !self.database.url.expose_secret().is_empty() {
            return self.database.url.clone();
        }
        let path = self
            .data_dir
            .join(DATABASE_FILE)
            .to_string_lossy()
            .into_owned();
        // In the path of a URL these three characters have a special meaning.
        let escaped = path
            .replace('%', "%25")
            .replace('?', "%3F")
            .replace('#', "%23");
        format!("sqlite://{escaped}").into()
    }

    /// Returns the path of the database file, or host, port and database name. The text contains no user, password or
    /// parameters.
    pub fn database_location(&self) -> String {
        let text = self.database.url.expose_secret();
        if text.is_empty() {
            return self.data_dir.join(DATABASE_FILE).display().to_string();
        }
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return path.split('?').next().unwrap_or(path).to_owned();
        }
        let Ok(url) = Url::parse(text) else {
            return "of database.url".to_owned();
        };
        let socket = url
            .query_pairs()
            .find(|(name, _)| name == "host")
            .map(|(_, host)| host.into_owned());
        let host = socket
            .or_else(|| url.host_str().map(str::to_owned))
            .unwrap_or_default();
        format!(
            "{host}:{}{}",
            url.port().unwrap_or(POSTGRES_PORT),
            url.path()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::from_environment;

    #[test]
    fn the_database_is_a_file_in_data_dir_unless_a_url_is_given() {
        let url = |pairs: &[(&str, &str)]| {
            from_environment(pairs)
                .database_url()
                .expose_secret()
                .to_owned()
        };
        assert_eq!(
            url(&[("EINVOICE__DATA_DIR", "/var/lib/e")]),
            "sqlite:///var/lib/e/einvoice.db"
        );
        assert_eq!(
            url(&[("EINVOICE__DATA_DIR", "a ?#%")]),
            "sqlite://a %3F%23%25/einvoice.db"
        );
        let postgres = "postgres://u:p@host:5432/e?sslmode=require";
        assert_eq!(url(&[("EINVOICE__DATABASE__URL", postgres)]), postgres);
    }

    #[test]
    fn the_location_of_the_database_has_no_credentials() {
        let location =
            |url| from_environment(&[("EINVOICE__DATABASE__URL", url)]).database_location();
        assert_eq!(location(""), "data/einvoice.db");
        let odd = from_environment(&[("EINVOICE__DATA_DIR", "a ?#%")]);
        assert_eq!(odd.database_location(), "a ?#%/einvoice.db");
        assert_eq!(
            location("sqlite:///var/lib/einvoice.db?mode=rw"),
            "/var/lib/einvoice.db"
        );
        assert_eq!(
            location("postgres://user:s3cret@db.example/einvoice?sslmode=verify-full"),
            "db.example:5432/einvoice"
        );
        assert_eq!(
            location("postgres://user:s3cret@db.example:6432/einvoice"),
            "db.example:6432/einvoice"
        );
        assert_eq!(
            location("postgres://u@localhost/einvoice?host=/run/postgresql"),
            "/run/postgresql:5432/einvoice"
        );
    }
}
