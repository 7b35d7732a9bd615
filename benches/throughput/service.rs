//! Runs the service in a separate process, so that its CPU time and memory can be measured apart from those of the
//! load.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::client::Client;
use testkit::documents;
use testkit::roles::{Integrator, Taxpayer};
use tokio::time::sleep;

/// The executable of a release build, with the allocator that users get.
const PROGRAM: &str = env!("CARGO_BIN_EXE_einvoice");
const START_MAX: Duration = Duration::from_secs(30);
/// Linux counts CPU time in hundredths of a second.
const TICKS_PER_S: f64 = 100.0;

pub(crate) struct Service {
    pub(crate) process: Process,
    pub(crate) sandbox: SocketAddr,
    pub(crate) client: Client,
    /// The integrator that is measured, and another that shares the service with it.
    pub(crate) integrators: [Integrator; 2],
    _data: Arc<TempDir>,
}

/// A running process of the service. The process is killed when this value is dropped.
pub(crate) struct Process {
    pub(crate) address: SocketAddr,
    child: Child,
}

/// The executable with the settings of one service, for the service itself and for calls of the program.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) address: SocketAddr,
    pub(crate) sandbox: SocketAddr,
    settings: Vec<(String, String)>,
    data: Arc<TempDir>,
}

impl Program {
    /// Returns the program with settings for an empty database. Settings in the environment apply to it as well.
    pub(crate) fn new(database_url: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let address = free_address();
        let sandbox = free_address();
        let settings = [
            ("DATA_DIR", data.path().to_str().unwrap().to_owned()),
            ("DATABASE__URL", database_url.to_owned()),
            ("RATE_LIMIT__REQUESTS_PER_S", "0".to_owned()),
            ("RATE_LIMIT__INTEGRATOR_REQUESTS_PER_S", "0".to_owned()),
            ("RATE_LIMIT__ONBOARDINGS_PER_MIN", "0".to_owned()),
            ("ACCOUNTS__TAXPAYERS_PER_INTEGRATOR_MAX", "0".to_owned()),
            ("LOG__LEVEL", "error".to_owned()),
        ];
        let settings = settings
            .into_iter()
            .map(|(name, value)| (format!("EINVOICE__{name}"), value))
            .filter(|(name, _)| std::env::var_os(name).is_none())
            .collect();
        Self {
            address,
            sandbox,
            settings,
            data: Arc::new(data),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command.envs(self.settings.iter().cloned());
        command.env("EINVOICE__HTTP__BIND", self.address.to_string());
        command.env("EINVOICE__SANDBOX__BIND", self.sandbox.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Runs the program with these arguments. Returns the JSON that it prints.
    pub(crate) fn call(&self, arguments: &[&str]) -> Value {
        let done = self
            .command()
            .args(arguments)
            .stdout(Stdio::piped())
            .output()
            .unwrap();
        strict_json::from_trusted(std::str::from_utf8(&done.stdout).unwrap()).unwrap()
    }
}

impl Service {
    /// Creates two integrators with the program, then starts the service.
    pub(crate) async fn start(program: &Program) -> Self {
        let client = Client::new(format!("http://{}", program.address));
        let integrators = ["bench", "neighbour"].map(|name| {
            let email = format!("{name}@bench.example");
            let made = program.call(&["integrator", "create", "--name", name, "--email", &email]);
            Integrator::new(&client, made["api_key"].as_str().unwrap())
        });
        Self {
            process: Process::start(program).await,
            sandbox: program.sandbox,
            client,
            integrators,
            _data: Arc::clone(&program.data),
        }
    }

    /// Returns the CPU time that the process has used, in seconds; `None` where the system does not tell.
    pub(crate) fn cpu_s(&self) -> Option<f64> {
        self.process.cpu_s()
    }

    /// Returns the memory that the process occupies, in megabytes; `None` where the system does not tell.
    pub(crate) fn resident_mb(&self) -> Option<f64> {
        self.process.resident_mb()
    }
}

impl Process {
    pub(crate) async fn start(program: &Program) -> Self {
        let process = Self {
            address: program.address,
            child: program.command().spawn().unwrap(),
        };
        process.wait_until_ready().await;
        process
    }

    async fn wait_until_ready(&self) {
        let begun = Instant::now();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = format!("http://{}/health/ready", self.address);
        while !client
            .get(&url)
            .send()
            .await
            .is_ok_and(|answer| answer.status().is_success())
        {
            assert!(begun.elapsed() < START_MAX, "the service did not start");
            sleep(Duration::from_millis(20)).await;
        }
    }

    fn cpu_s(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The name of the process, in parentheses, may contain spaces; user and system time are fields 14 and 15.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<f64>().ok();
        Some((ticks()? + ticks()?) / TICKS_PER_S)
    }

    fn resident_mb(&self) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may be killed, because nothing that it wrote is needed any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Onboards a taxpayer through the API, completes its profile for invoices, and creates a key for it.
pub(crate) async fn onboard(client: &Client, integrator: &Integrator) -> Taxpayer {
    let body = documents::taxpayer();
    let made = integrator.create_taxpayer(&body).await.expect_status(201);
    let id = made.data()["id"].as_i64().unwrap();
    let profile = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
    integrator
        .change_profile(id, &profile)
        .await
        .expect_status(200);
    let rotated = integrator.rotate_api_key(id).await.expect_status(200);
    Taxpayer::new(
        client,
        rotated.data()["api_key"].as_str().unwrap(),
        id,
        &body,
    )
}

/// Returns an address that no other process listens on now.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}
