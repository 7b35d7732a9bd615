//! One connection without a pool. A pool that gets no connection tries again until its time is over, and then says only
//! that the time is over. A single connection says what the network or the server answered.

use sea_orm::sqlx::{Connection, Error as SqlxError, PgConnection};
use sea_orm::{DbErr, RuntimeErr};

use crate::error::StoreError;

/// Opens one connection to the PostgreSQL server of a URL and closes it. Does nothing for SQLite, whose file is opened
/// at the first try.
pub async fn try_connection(url: &str) -> Result<(), StoreError> {
    if url.starts_with("sqlite:") {
        return Ok(());
    }
    let connection = PgConnection::connect(url).await.map_err(connection_error)?;
    connection.close().await.map_err(connection_error)
}

fn connection_error(error: SqlxError) -> StoreError {
    DbErr::Conn(RuntimeErr::SqlxError(error.into())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_error_of_a_single_connection_names_the_cause() {
        try_connection("sqlite://nowhere/x.db").await.unwrap();
        let refused = try_connection("postgres://user:s3cret@127.0.0.1:9/einvoice").await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("refused"), "{refused}");
        assert!(!refused.contains("s3cret"), "{refused}");
    }
}
