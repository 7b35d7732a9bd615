//! Metrics of the process as the operating system sees it, under the names that Prometheus gives them. They are read
//! from `/proc`, and absent on a system without it.

use std::fs;
use std::time::Duration;

use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// The unit in which Linux reports the times of processes: a hundredth of a second, whatever clock rate the kernel
/// uses.
const TICK_MS: u64 = 10;

/// The values that `/proc` shows for a process.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ProcessStats {
    cpu: Option<Duration>,
    /// The start of the process, as the time since 1970.
    started_at: Option<Duration>,
    pub(crate) resident_bytes: Option<u64>,
    threads: Option<u64>,
    pub(crate) open_files: Option<u64>,
    pub(crate) open_files_max: Option<u64>,
}

/// Registers the metrics of this process. The registry must have no prefix.
pub(super) fn register(registry: &mut Registry) {
    let stats = ProcessStats::read();
    if let Some(cpu) = stats.cpu {
        let help = "Time that the processors spent on the process";
        registry.register(
            "process_cpu_seconds",
            help,
            ConstCounter::new(cpu.as_secs_f64()),
        );
    }
    if let Some(started_at) = stats.started_at {
        let help = "Time of the start, in seconds since 1970";
        registry.register(
            "process_start_time_seconds",
            help,
            ConstGauge::new(started_at.as_secs_f64()),
        );
    }
    let numbers = [
        (
            "process_resident_memory_bytes",
            "Memory that the process occupies",
            stats.resident_bytes,
        ),
        ("process_threads", "Threads of the process", stats.threads),
        (
            "process_open_fds",
            "Open files and connections",
            stats.open_files,
        ),
        (
            "process_max_fds",
            "Files and connections that may be open",
            stats.open_files_max,
        ),
    ];
    for (name, help, number) in numbers {
        if let Some(number) = number.and_then(|number| i64::try_from(number).ok()) {
            registry.register(name, help, ConstGauge::new(number));
        }
    }
}

impl ProcessStats {
    pub(crate) fn read() -> Self {
        let open_files = fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
        Self {
            open_files: open_files.and_then(|count| u64::try_from(count).ok()),
            open_files_max: number_after_name(&read_file("/proc/self/limits"), "Max open files"),
            ..Self::parse(
                &read_file("/proc/self/stat"),
                &read_file("/proc/self/status"),
                &read_file("/proc/stat"),
            )
        }
    }

    fn parse(stat: &str, status: &str, system: &str) -> Self {
        // Field 2, the name of the program in parentheses, may contain spaces. The fields after it are numbered from 3
        // on.
        let fields = stat
            .rsplit_once(") ")
            .map(|(_, fields)| fields)
            .unwrap_or_default();
        let ticks = |number: usize| fields.split(' ').nth(number - 3)?.parse::<u64>().ok();
        let booted_at = number_after_name(system, "btime").map(Duration::from_secs);
        Self {
            cpu: ticks(14)
                .zip(ticks(15))
                .map(|(user, kernel)| ticks_to_duration(user) + ticks_to_duration(kernel)),
            started_at: booted_at
                .zip(ticks(22))
                .map(|(booted_at, ticks)| booted_at + ticks_to_duration(ticks)),
            resident_bytes: number_after_name(status, "VmRSS:").map(|kilobytes| kilobytes * 1_024),
            threads: number_after_name(status, "Threads:"),
            ..Self::default()
        }
    }
}

fn read_file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn ticks_to_duration(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(TICK_MS))
}

/// Returns the first number after a name at the beginning of a line.
fn number_after_name(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_linux_are_read() {
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 9 0 1000 5 6";
        let status = "Name:\teinvoice\nVmRSS:\t    2048 kB\nThreads:\t9\n";
        let found = ProcessStats::parse(stat, status, "cpu 1 2\nbtime 1700000000\n");
        let expected = ProcessStats {
            cpu: Some(Duration::from_secs(2)),
            started_at: Some(Duration::from_secs(1_700_000_010)),
            resident_bytes: Some(2_097_152),
            threads: Some(9),
            ..ProcessStats::default()
        };
        assert_eq!(found, expected);
        // A machine that has run for 500 days and more counts more ticks than 32 bits hold.
        let late = stat.replace(" 1000 ", " 4300000100 ");
        let found = ProcessStats::parse(&late, status, "btime 1700000000\n");
        assert_eq!(found.started_at, Some(Duration::from_secs(1_743_000_001)));
        let limits = "Max open files            1024                 524288               files\n";
        assert_eq!(number_after_name(limits, "Max open files"), Some(1_024));
    }

    #[test]
    fn a_system_without_these_files_has_no_such_metrics() {
        assert_eq!(ProcessStats::parse("", "", ""), ProcessStats::default());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_files_memory_and_a_start() {
        let stats = ProcessStats::read();
        assert!(stats.open_files.is_some_and(|files| files > 0), "{stats:?}");
        assert!(
            stats.resident_bytes.is_some_and(|bytes| bytes > 1_000_000),
            "{stats:?}"
        );
        assert!(
            stats
                .started_at
                .is_some_and(|at| at > Duration::from_secs(1_600_000_000)),
            "{stats:?}"
        );
        assert!(stats.open_files_max.is_some() && stats.threads.is_some() && stats.cpu.is_some());
    }
}
