//! The checks of the ports to listen on, and of the limit of open files.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;

use tokio::net::TcpSocket;

use crate::app::doctor::report::CheckResult;
use crate::app::server::{ListenerLimits, OPEN_FILES_TARGET};
use crate::config::Settings;
use crate::config::authority::AuthorityMode;

const OPEN_FILES: &str = "open-files";
/// The files in which Linux lists the TCP sockets of this machine.
const SOCKET_TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// The state of a listening socket in that list.
const LISTENING: &str = "0A";

/// Checks each port that the service will listen on.
pub(super) fn check_ports(settings: &Settings) -> Vec<CheckResult> {
    let is_sandbox = settings.authority.mode == AuthorityMode::Sandbox;
    let ports = [
        ("port-http", Some(settings.http.bind)),
        ("port-operators", settings.http.ops_bind),
        ("port-sandbox", is_sandbox.then_some(settings.sandbox.bind)),
    ];
    let ports = ports.into_iter();
    ports
        .filter_map(|(check, bind)| Some(check_port(check, bind?)))
        .collect()
}

fn check_port(check: &'static str, bind: SocketAddr) -> CheckResult {
    match try_to_bind(bind) {
        Ok(()) => CheckResult::ok(check, format!("{bind} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            judge_taken_port(check, bind, find_listener(bind.port()).as_ref())
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            CheckResult::fail(check, format!("this user may not listen on {bind}"))
                .advise("use a port above 1023, or grant CAP_NET_BIND_SERVICE")
        }
        Err(error) => CheckResult::fail(check, format!("cannot listen on {bind}: {error}"))
            .advise("set an address of this machine"),
    }
}

/// Binds the address as the service does, and releases it without listening.
fn try_to_bind(bind: SocketAddr) -> io::Result<()> {
    let socket = match bind {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(bind)
}

/// A process that listens on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PortOwner {
    name: String,
    process: u32,
}

/// Returns the result for a port that is in use. A running service on the port is only a warning, because that service
/// will be stopped before the new start.
fn judge_taken_port(
    check: &'static str,
    bind: SocketAddr,
    owner: Option<&PortOwner>,
) -> CheckResult {
    let Some(PortOwner { name, process }) = owner else {
        return CheckResult::fail(
            check,
            format!("{bind} is taken by a process of another user"),
        )
        .advise("`ss -ltnp` as root names it: stop it, or set another port");
    };
    let found = format!("{bind} is taken by {name}, process {process}");
    if name == env!("CARGO_PKG_NAME") {
        CheckResult::warn(check, found).advise("stop the running service before the start")
    } else {
        CheckResult::fail(check, found).advise("stop it, or set another port")
    }
}

/// Finds the process that listens on a port; `None` if the operating system does not show it to us.
fn find_listener(port: u16) -> Option<PortOwner> {
    let tables = SOCKET_TABLES.map(|table| fs::read_to_string(table).unwrap_or_default());
    let sockets: Vec<_> = tables
        .iter()
        .flat_map(|table| listening_sockets(table, port))
        .collect();
    let processes = fs::read_dir("/proc").ok()?;
    processes.filter_map(Result::ok).find_map(|entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        has_socket(&entry.path().join("fd"), &sockets).then(|| {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            PortOwner {
                name: name.trim().to_owned(),
                process,
            }
        })
    })
}

/// Returns the sockets in this table of the kernel that listen on a port, each as `socket:[…]`: the process that owns a
/// socket has a link with this target in `/proc/<pid>/fd`.
fn listening_sockets(table: &str, port: u16) -> Vec<String> {
    let local_port = format!(":{port:04X}");
    let sockets = table.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let is_listening_on_port =
            fields.get(1)?.ends_with(&local_port) && *fields.get(3)? == LISTENING;
        is_listening_on_port.then_some(format!("socket:[{}]", fields.get(9)?))
    });
    sockets.collect()
}

/// True if a process has one of these sockets among its open files.
fn has_socket(open_files: &Path, sockets: &[String]) -> bool {
    let Ok(open_files) = fs::read_dir(open_files) else {
        return false;
    };
    let links = open_files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    let mut names = links.filter_map(|link| Some(link.to_str()?.to_owned()));
    names.any(|name| sockets.contains(&name))
}

/// Checks that the process may open as many files as the settings ask for.
pub(super) fn check_open_files(settings: &Settings) -> CheckResult {
    match rlimit::Resource::NOFILE.get_hard() {
        Ok(allowed) => judge_open_files(settings, allowed),
        Err(error) => CheckResult::warn(OPEN_FILES, format!("the limit is not known: {error}")),
    }
}

/// Returns the result for the hard limit of open files, up to which the service raises its own limit.
fn judge_open_files(settings: &Settings, allowed: u64) -> CheckResult {
    let files = allowed.min(OPEN_FILES_TARGET);
    let limits = ListenerLimits::new(&settings.http, usize::try_from(files).unwrap_or(usize::MAX));
    let configured = settings.http.connections_max;
    let possible = limits.everybody.all_max;
    let found = format!("{files} files may be open, so {possible} connections of clients");
    if possible < configured {
        return CheckResult::warn(OPEN_FILES, format!("{found} instead of {configured}"))
            .advise("raise the limit (LimitNOFILE, ulimit -Hn), or lower http.connections_max");
    }
    CheckResult::ok(OPEN_FILES, found)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::app::doctor::report::Verdict;

    #[tokio::test]
    async fn a_taken_port_is_reported_with_its_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let bind = listener.local_addr().unwrap();
        let taken = check_port("port-http", bind);
        assert_ne!(taken.result, Verdict::Ok, "{taken}");
        let own_process = format!("process {}", std::process::id());
        assert!(taken.found.ends_with(&own_process), "{taken}");
        drop(listener);
        assert_eq!(check_port("port-http", bind).result, Verdict::Ok);
        assert_eq!(
            check_port("port-http", bind).result,
            Verdict::Ok,
            "left free"
        );
        let elsewhere = check_port("port-http", "192.0.2.1:80".parse().unwrap());
        assert_eq!(elsewhere.result, Verdict::Fail, "{elsewhere}");
    }

    #[test]
    fn a_service_that_runs_already_is_a_warning() {
        let judge = |name: &str| {
            let owner = PortOwner {
                name: name.to_owned(),
                process: 7,
            };
            let bind = "127.0.0.1:8080".parse().unwrap();
            judge_taken_port("port-http", bind, Some(&owner)).result
        };
        assert_eq!(judge("einvoice"), Verdict::Warn);
        assert_eq!(judge("nginx"), Verdict::Fail);
        let bind = "127.0.0.1:8080".parse().unwrap();
        assert_eq!(
            judge_taken_port("port-http", bind, None).result,
            Verdict::Fail
        );
    }

    #[test]
    fn only_listening_sockets_of_the_port_are_returned() {
        let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0
   1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0
   2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 13 1 0";
        assert_eq!(listening_sockets(table, 8_080), ["socket:[11]"]);
    }

    #[test]
    fn few_open_files_allow_few_connections() {
        let settings = Settings::load(None, std::iter::empty()).unwrap();
        let judge = |files| judge_open_files(&settings, files);
        assert_eq!(judge(1_048_576).result, Verdict::Ok);
        let few = judge(1_024);
        assert_eq!(few.result, Verdict::Warn);
        assert!(few.found.contains("768 connections"), "{few}");
    }
}
