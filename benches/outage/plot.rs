//! The plot of predicted ends against the time at which they were predicted, as SVG.

use std::fmt::Write;

/// Seconds since the outage began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prediction {
    pub(crate) made: f64,
    pub(crate) predicted: f64,
    pub(crate) real: f64,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 50.0;
const TOP: f64 = 20.0;
const RIGHT: f64 = 20.0;
const TICK_S: u32 = 120;
/// More dots would only cover each other.
const DOTS_MAX: usize = 700;

/// Draws what was predicted as dots and what came as a second set of dots, over the time of the prediction.
pub(crate) fn draw(predictions: &[Prediction], outage: f64) -> String {
    let last = predictions
        .iter()
        .map(|one| one.made)
        .fold(outage, f64::max);
    let highest = predictions
        .iter()
        .map(|one| one.predicted.max(one.real))
        .fold(last, f64::max);
    let x = |seconds: f64| LEFT + seconds / last * (WIDTH - LEFT - RIGHT);
    let y = |seconds: f64| HEIGHT - BOTTOM - seconds / highest * (HEIGHT - BOTTOM - TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\
         <rect x=\"{}\" y=\"{TOP}\" width=\"{}\" height=\"{}\" fill=\"#f3f0ea\"/>",
        x(0.0),
        x(outage) - x(0.0),
        HEIGHT - BOTTOM - TOP
    );
    let mut tick = 0;
    while f64::from(tick) <= highest {
        let at = f64::from(tick);
        let seconds = tick / 60;
        let _ = write!(
            svg,
            "<path d=\"M{LEFT} {0:.1}H{1:.1}\" stroke=\"#ddd\"/><text x=\"{2:.1}\" y=\"{3:.1}\" \
             text-anchor=\"end\">{seconds} min</text>",
            y(at),
            WIDTH - RIGHT,
            LEFT - 6.0,
            y(at) + 4.0
        );
        if at <= last {
            let below = HEIGHT - BOTTOM + 18.0;
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{below}\" text-anchor=\"middle\">{seconds} min</text>",
                x(at)
            );
        }
        tick += TICK_S;
    }
    for (colour, end) in [
        ("#c2571a", (|one| one.predicted) as fn(&Prediction) -> f64),
        ("#1d4f91", |one| one.real),
    ] {
        for one in predictions
            .iter()
            .step_by(predictions.len().div_ceil(DOTS_MAX).max(1))
        {
            let _ = write!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"1.6\" fill=\"{colour}\" fill-opacity=\"0.6\"/>",
                x(one.made),
                y(end(one))
            );
        }
    }
    let _ = writeln!(
        svg,
        "<g><text x=\"{0}\" y=\"40\" fill=\"#c2571a\">predicted end</text>\
         <text x=\"{0}\" y=\"58\" fill=\"#1d4f91\">real end</text>\
         <text x=\"{0}\" y=\"76\" fill=\"#777\">shaded: the authority is out</text>\
         <text x=\"{1}\" y=\"{2}\" text-anchor=\"middle\">asked after the beginning of the outage</text></g></svg>",
        LEFT + 12.0,
        WIDTH / 2.0,
        HEIGHT - 10.0
    );
    svg
}
