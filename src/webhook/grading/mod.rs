//! The grade of a receiver: a result for each check and a score (`grade`), and advice for its programmer
//! (`explanation`).

mod explanation;
mod grade;

pub use grade::{CheckResult, Grade, GradeCheck, GradeReport, grade_answers};
