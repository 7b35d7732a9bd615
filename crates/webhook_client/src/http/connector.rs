//! Makes the connections of the client: checks the address, limits what is read, then adds TLS.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use crate::http::connect_policy::{AddressesRefused, ConnectPolicy, ConnectScope};
use crate::http::read_budget::{BudgetedStream, ReadBudget};
use crate::http::request_context::RequestContext;
use crate::http::resolver::{GuardedResolver, Lookup};

/// The limits of one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// The timeout for making the connection, with TLS.
    pub(crate) timeout: Duration,
    /// The maximum number of bytes that are read until the head of the first response has arrived, and then from each
    /// head, body included, to the next one.
    pub(crate) read_bytes_max: usize,
}

/// A connector that checks each connection against a policy. The check needs the `RequestContext`, so without a context
/// the connector refuses to connect.
#[derive(Debug, Clone)]
pub(crate) struct GuardedConnector {
    policy: ConnectPolicy,
    connector: HttpsConnector<BudgetedConnector>,
    timeout: Duration,
}

/// A connector without TLS. The budget counts the bytes below TLS, so that it includes what a handshake and the TLS
/// messages take.
#[derive(Debug, Clone)]
struct BudgetedConnector {
    connector: HttpConnector<GuardedResolver>,
    read_bytes_max: usize,
}

type BudgetedConnection = TokioIo<BudgetedStream<TcpStream>>;

/// Builds the TLS settings: the certificates that the system trusts, and no HTTP/2.
pub(crate) fn tls_config() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier::new(Arc::clone(&provider))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

impl GuardedConnector {
    pub(crate) fn new(
        policy: ConnectPolicy,
        lookup: Arc<dyn Lookup>,
        tls: Arc<ClientConfig>,
        limits: ConnectionLimits,
    ) -> Self {
        let resolver = GuardedResolver {
            policy: policy.clone(),
            lookup,
        };
        let mut tcp = HttpConnector::new_with_resolver(resolver);
        tcp.set_nodelay(true);
        // This connector also gets https URLs: TLS is added on top of its connections.
        tcp.enforce_http(false);
        let budgeted = BudgetedConnector {
            connector: tcp,
            read_bytes_max: limits.read_bytes_max,
        };
        let mut connector = HttpsConnector::from((budgeted, tls));
        if policy.scope == ConnectScope::Public {
            connector.enforce_https();
        }
        Self {
            policy,
            connector,
            timeout: limits.timeout,
        }
    }
}

impl Service<Uri> for GuardedConnector {
    type Response = MaybeHttpsStream<BudgetedConnection>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context)
    }

    /// Reads the request context here and not in the returned future, because the future may run in another task.
    fn call(&mut self, destination: Uri) -> Self::Future {
        let permitted =
            RequestContext::current().filter(|request| request.may_try_url(&self.policy));
        let Some(request) = permitted else {
            return Box::pin(async { Err(AddressesRefused.into()) });
        };
        request.clock().record_connect_start();
        let connecting = self.connector.call(destination);
        let timeout = self.timeout;
        Box::pin(async move {
            let connecting = tokio::time::timeout(timeout, request.scope(connecting));
            let connection = connecting.await.map_err(io::Error::from)??;
            request.clock().record_connection();
            Ok(connection)
        })
    }
}

impl Service<Uri> for BudgetedConnector {
    type Response = BudgetedConnection;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, destination: Uri) -> Self::Future {
        let connecting = self.connector.call(destination);
        let budget = ReadBudget::new(self.read_bytes_max);
        Box::pin(async move {
            let stream = connecting.await?.into_inner();
            Ok(TokioIo::new(BudgetedStream { stream, budget }))
        })
    }
}
