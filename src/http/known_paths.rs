//! Finds the documented path that the caller of an unknown path probably meant.

use strsim::osa_distance;

use crate::http::listener::{Audience, Listener};

/// The maximum length of a path for which there is a guess, in bytes.
const PATH_BYTES_MAX: usize = 200;
/// The maximum number of segments of a path for which there is a guess.
const SEGMENTS_MAX: usize = 12;
/// The cost of a missing, additional or entirely different segment. A guess may cost at most this much in total.
const SEGMENT_COST: usize = 3;

/// The paths of the API document, with the people and programs that they are for.
pub(crate) struct KnownPaths(Vec<(Audience, &'static str)>);

impl KnownPaths {
    pub(crate) fn new(paths: impl Iterator<Item = (Audience, &'static str)>) -> Self {
        Self(paths.collect())
    }

    /// Returns the path of this listener that is nearest to `requested`. If several paths are equally near, returns the
    /// path with the fewest parameters. Returns `None` if no path is near, or if several are equally good.
    pub(crate) fn nearest(&self, requested: &str, listener: Listener) -> Option<&'static str> {
        let requested_segments: Vec<_> = segments(requested).collect();
        if requested.len() > PATH_BYTES_MAX || requested_segments.len() > SEGMENTS_MAX {
            return None;
        }
        let served = self.0.iter().filter(|path| listener.serves(path.0));
        let mut candidates: Vec<_> = served
            .filter_map(|(_, path)| {
                let known: Vec<_> = segments(path).collect();
                let cost = path_change_cost(&requested_segments, &known)
                    .filter(|cost| *cost <= SEGMENT_COST)?;
                let parameters = known.iter().filter(|segment| is_parameter(segment)).count();
                Some(((cost, parameters), *path))
            })
            .collect();
        candidates.sort_unstable();
        match candidates.as_slice() {
            [(first, _), (second, _), ..] if first == second => None,
            [(_, path), ..] => Some(path),
            [] => None,
        }
    }
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

fn is_parameter(segment: &str) -> bool {
    segment.starts_with('{')
}

/// Returns the cost of the changes that lead from one path to the other. Returns `None` if the paths differ by more
/// than one missing or additional segment.
fn path_change_cost(requested: &[&str], known: &[&str]) -> Option<usize> {
    if requested.len() == known.len() {
        return Some(segments_cost(requested, known));
    }
    let (short, long) = if requested.len() < known.len() {
        (requested, known)
    } else {
        (known, requested)
    };
    if long.len() - short.len() > 1 {
        return None;
    }
    let without_one = (0..long.len()).map(|left_out| {
        let rest = [&long[..left_out], &long[left_out + 1..]].concat();
        segments_cost(&rest, short)
    });
    without_one.min().map(|least| least + SEGMENT_COST)
}

fn segments_cost(requested: &[&str], known: &[&str]) -> usize {
    requested
        .iter()
        .zip(known)
        .map(|(requested, known)| segment_cost(requested, known))
        .sum()
}

/// Returns the number of changed letters, at most `SEGMENT_COST`; 0 for a parameter, which matches any segment.
fn segment_cost(requested: &str, known: &str) -> usize {
    if is_parameter(requested) || is_parameter(known) {
        return 0;
    }
    osa_distance(&requested.to_lowercase(), &known.to_lowercase()).min(SEGMENT_COST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(requested: &str, listener: Listener) -> Option<&'static str> {
        let paths = [
            (Audience::Everybody, "/health/live"),
            (Audience::Everybody, "/health/ready"),
            (Audience::Customers, "/v1/tax-payers/invoices"),
            (Audience::Customers, "/v1/tax-payers/invoices/{id}"),
            (Audience::Customers, "/v1/tax-payers/invoices/{id}/pdf"),
            (Audience::Customers, "/v1/app/invoices/submit"),
            (Audience::Operators, "/ops/incidents"),
        ];
        KnownPaths::new(paths.into_iter()).nearest(requested, listener)
    }

    #[test]
    fn the_nearest_path_is_the_one_that_was_meant() {
        for (requested, meant) in [
            ("/v1/taxpayers/invoices", Some("/v1/tax-payers/invoices")),
            ("/V1/tax-payers/invoice", Some("/v1/tax-payers/invoices")),
            ("/v1/tax-payers/invoices/", Some("/v1/tax-payers/invoices")),
            ("/tax-payers/invoices", Some("/v1/tax-payers/invoices")),
            (
                "/v1/taxpayers/invoices/12",
                Some("/v1/tax-payers/invoices/{id}"),
            ),
            (
                "/v1/tax-payers/invoices/12/pfd",
                Some("/v1/tax-payers/invoices/{id}/pdf"),
            ),
            ("/v1/app/invoice/submit", Some("/v1/app/invoices/submit")),
            ("/ops/incident", Some("/ops/incidents")),
            ("/health/alive", Some("/health/live")),
            ("/health/up", None),
            ("/wp-login.php", None),
            ("/", None),
            (&"/v1".repeat(20), None),
            (&format!("/{}", "a".repeat(300)), None),
        ] {
            assert_eq!(nearest(requested, Listener::Only), meant, "{requested}");
        }
    }

    #[test]
    fn a_guess_is_a_path_of_the_same_listener() {
        assert_eq!(nearest("/ops/incident", Listener::Public), None);
        assert_eq!(
            nearest("/ops/incident", Listener::Operators),
            Some("/ops/incidents")
        );
    }
}
