//! The grade of a receiver, and the advice for the receiver's programmer.

mod explanation;
mod grade;

pub use grade::{CheckResult, Grade, GradeCheck, GradeReport, grade_answers};
