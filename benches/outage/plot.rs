//! Plots predicted ends against the time at which they were predicted, as SVG. The benchmark draws the predictions of
//! the real service with it, and tests of the domain those of a simulated one.

use std::fmt::Write;
use std::ops::Range;

/// A prediction for one run and its real end, in seconds since the case began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prediction {
    pub(crate) made: f64,
    pub(crate) predicted: f64,
    pub(crate) earliest: f64,
    /// `None` if no latest end was promised.
    pub(crate) latest: Option<f64>,
    pub(crate) real: f64,
}

/// The data and the words of a plot.
pub(crate) struct Plot<'a> {
    pub(crate) predictions: &'a [Prediction],
    /// The time that is shaded, in seconds since the case began, and what happens during it.
    pub(crate) shaded: Range<f64>,
    pub(crate) shaded_because: &'a str,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 50.0;
const TOP: f64 = 20.0;
const RIGHT: f64 = 20.0;
/// The possible distances between two ticks of an axis, in seconds, and the minimum number of ticks.
const TICKS_S: [u32; 6] = [600, 300, 120, 60, 30, 10];
const TICKS_MIN: f64 = 4.0;
/// The maximum number of predictions that are drawn. More dots would only cover each other.
const DOTS_MAX: usize = 700;

/// The scales of the axes.
struct Axes {
    last: f64,
    highest: f64,
}

impl Axes {
    fn x(&self, seconds: f64) -> f64 {
        LEFT + seconds / self.last * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, seconds: f64) -> f64 {
        HEIGHT - BOTTOM - seconds.min(self.highest) / self.highest * (HEIGHT - BOTTOM - TOP)
    }
}

/// Draws each prediction as a line for its range, and as two dots for the predicted and the real end. Returns the
/// SVG.
pub(crate) fn draw(plot: &Plot<'_>) -> String {
    let furthest = |part: fn(&Prediction) -> f64, least: f64| {
        plot.predictions.iter().map(part).fold(least, f64::max)
    };
    let last = furthest(|one| one.made, plot.shaded.end);
    let axes = Axes {
        last,
        highest: furthest(|one| one.predicted.max(one.real), last),
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\
         <rect x=\"{:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{}\" fill=\"#f3f0ea\"/>",
        axes.x(plot.shaded.start),
        axes.x(plot.shaded.end) - axes.x(plot.shaded.start),
        HEIGHT - BOTTOM - TOP
    );
    draw_ticks(&mut svg, &axes);
    let step = plot.predictions.len().div_ceil(DOTS_MAX).max(1);
    let drawn = || plot.predictions.iter().step_by(step);
    for one in drawn() {
        let _ = write!(
            svg,
            "<path d=\"M{0:.1} {1:.1}V{2:.1}\" stroke=\"#c2571a\" stroke-opacity=\"0.25\"/>",
            axes.x(one.made),
            axes.y(one.earliest),
            axes.y(one.latest.unwrap_or(axes.highest))
        );
    }
    for (colour, end) in [
        ("#c2571a", (|one| one.predicted) as fn(&Prediction) -> f64),
        ("#1d4f91", |one| one.real),
    ] {
        for one in drawn() {
            let _ = write!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"1.8\" fill=\"{colour}\" fill-opacity=\"0.7\"/>",
                axes.x(one.made),
                axes.y(end(one))
            );
        }
    }
    let _ = writeln!(
        svg,
        "<g><text x=\"{0}\" y=\"40\" fill=\"#c2571a\">predicted end, with its range</text>\
         <text x=\"{0}\" y=\"58\" fill=\"#1d4f91\">real end</text>\
         <text x=\"{0}\" y=\"76\" fill=\"#777\">shaded: {3}</text>\
         <text x=\"{1}\" y=\"{2}\" text-anchor=\"middle\">when it was asked for</text></g></svg>",
        LEFT + 12.0,
        WIDTH / 2.0,
        HEIGHT - 10.0,
        plot.shaded_because
    );
    svg
}

fn draw_ticks(svg: &mut String, axes: &Axes) {
    let every = TICKS_S
        .into_iter()
        .find(|every| axes.highest / f64::from(*every) >= TICKS_MIN)
        .unwrap_or(10);
    let mut tick = 0;
    while f64::from(tick) <= axes.highest {
        let at = f64::from(tick);
        let label = format!("{}:{:02}", tick / 60, tick % 60);
        let _ = write!(
            svg,
            "<path d=\"M{LEFT} {0:.1}H{1:.1}\" stroke=\"#ddd\"/><text x=\"{2:.1}\" y=\"{3:.1}\" \
             text-anchor=\"end\">{label}</text>",
            axes.y(at),
            WIDTH - RIGHT,
            LEFT - 6.0,
            axes.y(at) + 4.0
        );
        if at <= axes.last {
            let below = HEIGHT - BOTTOM + 18.0;
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{below}\" text-anchor=\"middle\">{label}</text>",
                axes.x(at)
            );
        }
        tick += every;
    }
}
