//! A small chart as SVG that the server draws: values at equal intervals of time, as an area under a line.

use std::fmt::Write as _;

use crate::console::filters::duration_words;

/// The unit of a chart of durations in microseconds. Its values are shown in the unit that fits.
pub(crate) const MICROSECONDS: &str = "µs";

const WIDTH: u64 = 600;
const HEIGHT: u64 = 100;

/// The values of a chart in whole units, oldest first, with its title and its highest value in words.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) last: u64,
    pub(crate) highest: u64,
    values: Vec<u64>,
}

impl Chart {
    pub(crate) fn new(title: &'static str, unit: &'static str, values: Vec<u64>) -> Self {
        let last = values.last().copied().unwrap_or(0);
        let highest = values.iter().copied().max().unwrap_or(0);
        Self {
            title,
            unit,
            last,
            highest,
            values,
        }
    }

    /// Returns the last value with its unit.
    pub(crate) fn last_value_words(&self) -> String {
        self.value_words(self.last)
    }

    /// Returns the highest value with its unit.
    pub(crate) fn highest_value_words(&self) -> String {
        self.value_words(self.highest)
    }

    fn value_words(&self, value: u64) -> String {
        if self.unit == MICROSECONDS {
            duration_words(value)
        } else {
            format!("{value} {}", self.unit)
        }
    }

    /// Returns the line as the attribute `points` of a polyline.
    pub(crate) fn line_points(&self) -> String {
        let highest = self.highest.max(1);
        let steps = u64::try_from(self.values.len()).unwrap_or(u64::MAX).max(2) - 1;
        (0..)
            .zip(&self.values)
            .fold(String::new(), |mut points, (step, value)| {
                let x = step * WIDTH / steps;
                let y = HEIGHT - value * HEIGHT / highest;
                // Writing into a `String` cannot fail.
                let _ = write!(points, "{x},{y} ");
                points
            })
    }

    /// Returns the area under the line as the attribute `points` of a polygon.
    pub(crate) fn area_points(&self) -> String {
        format!("0,{HEIGHT} {}{WIDTH},{HEIGHT}", self.line_points())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_value_reaches_the_top() {
        let chart = Chart::new("Requests", "/s", vec![0, 5, 10]);
        assert_eq!(chart.line_points(), "0,100 300,50 600,0 ");
        assert_eq!(chart.area_points(), "0,100 0,100 300,50 600,0 600,100");
        assert_eq!((chart.last, chart.highest), (10, 10));
        assert_eq!(Chart::new("Requests", "/s", Vec::new()).line_points(), "");
    }
    #[test]
    fn values_are_written_with_their_unit_and_durations_as_people_say_them() {
        for (unit, values, last, highest) in [
            ("/s", vec![7, 12, 3], "3 /s", "12 /s"),
            (MICROSECONDS, vec![5_242_879, 340_999], "340 ms", "5.2 s"),
            (MICROSECONDS, Vec::new(), "< 1 ms", "< 1 ms"),
        ] {
            let chart = Chart::new("Requests", unit, values);
            assert_eq!(
                (chart.last_value_words(), chart.highest_value_words()),
                (last.to_owned(), highest.to_owned())
            );
        }
    }
}
