//! The grade of a receiver. `grade` has the result of each check and the score; `explanation` has the advice for the
//! receiver's programmer.

mod explanation;
mod grade;

pub use grade::{CheckResult, Grade, GradeCheck, GradeReport, grade_answers};
