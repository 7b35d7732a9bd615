//! The connections that a pool uses at one time.

use std::sync::Arc;

use sea_orm::{DatabaseConnection, DbErr};

use crate::deadline::{DroppedInRuntime, Liveness};
use crate::kept_connections::KeptConnections;

/// The connections that a pool uses now. If they count as dead, a new generation replaces all of them. `liveness`
/// records whether they still answer.
#[derive(Clone)]
pub(crate) struct PoolGeneration {
    pub(crate) connections: DatabaseConnection,
    pub(crate) kept: Option<Arc<DroppedInRuntime<KeptConnections>>>,
    pub(crate) liveness: Arc<Liveness>,
}

impl PoolGeneration {
    pub(crate) fn kept_connections(&self) -> Option<&KeptConnections> {
        self.kept.as_ref().and_then(|kept| kept.get())
    }

    pub(crate) async fn close(&self) -> Result<(), DbErr> {
        // The driver's pool is marked as closed first. Then it closes the kept connections when they are returned, and
        // does not test them.
        let kept = async { self.kept_connections().map(KeptConnections::close) };
        tokio::join!(self.connections.clone().close(), kept).0
    }
}
