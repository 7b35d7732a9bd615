//! The binary as a child process. Its directory and its port stay the same across restarts.

use std::collections::HashSet;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::Value;
use testkit::answer::Answer;
use testkit::client::Client;
use testkit::patience::eventually;
use tokio::task::spawn_blocking;

use crate::support::{machine, process_state};

const BINARY: &str = env!("CARGO_BIN_EXE_einvoice");
/// Below the ports the system gives to outgoing connections: one of those must not take a dead process's place.
const PORT_FIRST: u16 = 12_000;
const PORT_COUNT: u16 = 18_000;
static PORT_NEXT: AtomicU16 = AtomicU16::new(0);

pub(crate) type Settings = Vec<(&'static str, String)>;
pub(crate) const DATABASE_URL: &str = "EINVOICE__DATABASE__URL";
/// Stands among the settings for the number of files that the process may open.
pub(crate) const OPEN_FILES: &str = "OPEN_FILES";
/// Stands among the settings for the bytes of memory that the process believes it may have.
pub(crate) const MEMORY_BYTES: &str = "MEMORY_BYTES";

/// Runs a call of the program to its end, while the other tasks of a test go on.
pub(crate) async fn output_of(mut call: Command) -> Output {
    let done = spawn_blocking(move || call.output().unwrap());
    done.await.unwrap()
}

pub(crate) struct Service {
    settings: Settings,
    directory: PathBuf,
    /// Its output of all lives.
    output: PathBuf,
    port: u16,
    child: Option<Child>,
    /// Asks whether it is ready.
    client: Client,
}

impl Service {
    /// Not started yet.
    pub(crate) fn new(directory: PathBuf, name: &str, settings: Settings) -> Self {
        let output = directory.join(format!("{name}.out"));
        let port = free_port();
        let client = Client::new(format!("http://127.0.0.1:{port}"));
        Self {
            settings,
            directory,
            output,
            port,
            child: None,
            client,
        }
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn start(directory: PathBuf, name: &str, settings: Settings) -> Self {
        let mut service = Self::new(directory, name, settings);
        service.restart().await;
        service
    }

    pub(crate) fn url(&self) -> String {
        self.client.root().to_owned()
    }

    pub(crate) async fn restart(&mut self) {
        self.launch();
        self.wait_until_ready().await;
    }

    pub(crate) async fn wait_until_ready(&mut self) {
        eventually("a process that is ready", async || {
            if let Some(status) = self.child.as_mut().unwrap().try_wait().unwrap() {
                panic!(
                    "the process ended by itself with {status}:\n{}",
                    self.output()
                );
            }
            let answer = Answer::try_to(self.client.request("GET", "/health/ready")).await?;
            (answer.status == 200).then_some(())
        })
        .await;
    }

    /// Starts it without waiting for anything.
    pub(crate) fn launch(&mut self) {
        self.launch_with(&[]);
    }

    /// The same with arguments.
    pub(crate) fn launch_with(&mut self, arguments: &[&str]) {
        let output = File::options()
            .create(true)
            .append(true)
            .open(&self.output)
            .unwrap();
        self.launch_onto(output, arguments);
    }

    /// Starts it where nothing that it prints or logs can be written, as on a full disk.
    pub(crate) fn launch_unheard(&mut self) {
        let full = File::options().write(true).open("/dev/full").unwrap();
        self.launch_onto(full, &[]);
    }

    fn launch_onto(&mut self, output: File, arguments: &[&str]) {
        assert!(self.child.is_none(), "it is running");
        let mut command = self.call(arguments);
        command.env("EINVOICE__HTTP__BIND", format!("127.0.0.1:{}", self.port));
        command.stderr(output.try_clone().unwrap()).stdout(output);
        self.child = Some(command.spawn().unwrap());
    }

    /// Changes a setting for the next start.
    pub(crate) fn change_setting(&mut self, setting: &'static str, value: &str) {
        self.settings.retain(|(key, _)| *key != setting);
        self.settings.push((setting, value.to_owned()));
    }

    fn command(&self) -> Command {
        let find = |name| self.settings.iter().find(|(key, _)| *key == name);
        let mut command = match (find(OPEN_FILES), find(MEMORY_BYTES)) {
            (Some((_, files)), _) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", files, BINARY]);
                shell
            }
            (None, Some((_, bytes))) => {
                let mut namespace = Command::new("unshare");
                namespace.args([
                    "--mount",
                    "sh",
                    "-c",
                    machine::WITH_MEMORY_MAX,
                    bytes,
                    BINARY,
                ]);
                namespace
            }
            (None, None) => Command::new(BINARY),
        };
        command.current_dir(&self.directory).stdin(Stdio::null());
        command.envs(self.settings.iter().map(|(key, value)| (key, value)));
        command
    }

    /// SIGKILL: nothing of it runs any more when this returns.
    pub(crate) fn kill_9(&mut self) {
        let mut child = self.child.take().expect("a running process");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Sends a signal; does not wait for what comes of it.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &id])
                .status()
                .unwrap()
                .success()
        );
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().expect("a running process").id()
    }

    /// The memory that the process holds; 0 where the system does not say it.
    pub(crate) fn memory_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = resident.and_then(|text| text.split_whitespace().next()?.parse().ok());
        number.unwrap_or_default()
    }

    /// How it ended by itself.
    pub(crate) async fn wait_for_end(&mut self) -> ExitStatus {
        let child = self.child.as_mut().expect("a running process");
        let status = eventually("the end of the process", async || child.try_wait().unwrap()).await;
        self.child = None;
        status
    }

    /// Another call of the program, with the same settings.
    pub(crate) fn call(&self, arguments: &[&str]) -> Command {
        let mut command = self.command();
        command.args(arguments);
        command
    }

    /// `einvoice verify`: whether every chain is whole, and what it says.
    pub(crate) async fn verify(&self) -> (bool, String) {
        let done = output_of(self.call(&["verify"])).await;
        (
            done.status.success(),
            String::from_utf8_lossy(&done.stdout).into_owned(),
        )
    }

    /// Bytes of memory that it has in use now.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most it ever had.
    pub(crate) fn memory_peak_bytes(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Counts those of these callers' ports with which it holds a connection.
    pub(crate) fn connections(&self, callers: &[u16]) -> usize {
        let established: HashSet<(u16, u16)> = fs::read_to_string("/proc/net/tcp")
            .unwrap()
            .lines()
            .filter_map(ends_of_established)
            .collect();
        callers
            .iter()
            .filter(|caller| established.contains(&(self.port, **caller)))
            .count()
    }

    fn memory(&self, name: &str) -> u64 {
        let id = self.child.as_ref().expect("a running process").id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.trim()
            .strip_suffix(" kB")
            .unwrap()
            .parse::<u64>()
            .unwrap()
            * 1_024
    }

    /// What it has printed and logged in all its lives.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// The key of a new integrator.
    pub(crate) fn new_integrator(&self) -> String {
        let arguments = [
            "integrator",
            "create",
            "--name",
            "Tests",
            "--email",
            "integrator@tests.example",
        ];
        let done = self.call(&arguments).output().unwrap();
        let made: Value = strict_json::from_untrusted(&done.stdout).expect("a new integrator");
        made["api_key"].as_str().unwrap().to_owned()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            if std::thread::panicking() {
                println!(
                    "--- the process on port {}\n{}",
                    self.port,
                    process_state::describe(child.id(), self.port)
                );
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            println!("--- {}\n{}", self.output.display(), tail(&self.output()));
        }
    }
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// The own port and the peer's in a line of the system's table of connections (proc(5)), if both ends still stand.
fn ends_of_established(line: &str) -> Option<(u16, u16)> {
    let mut fields = line.split_whitespace().skip(1);
    let mut port = || u16::from_str_radix(fields.next()?.rsplit_once(':')?.1, 16).ok();
    let ends = (port()?, port()?);
    (fields.next() == Some("01")).then_some(ends)
}

fn free_port() -> u16 {
    let start = u16::try_from(std::process::id() % u32::from(PORT_COUNT)).unwrap_or_default();
    for _ in 0..PORT_COUNT {
        let port = PORT_FIRST + (start + PORT_NEXT.fetch_add(1, Ordering::Relaxed)) % PORT_COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free")
}
