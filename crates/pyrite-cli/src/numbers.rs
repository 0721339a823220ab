//! Numbers on the command line, checked as they are read.

/// A time in seconds, above zero.
pub fn seconds(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    if number > 0.0 && number < 1e9 { Ok(number) } else { Err("expected a number of seconds above 0".to_owned()) }
}

/// A probability with which something is right: better than a coin, and never certain.
pub fn confidence(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    let fits = number > 0.5 && number < 1.0;
    if fits { Ok(number) } else { Err("expected a number between 0.5 and 1, such as 0.99".to_owned()) }
}

/// The words of a command, at least one.
pub fn command(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("expected a command".to_owned()) } else { Ok(text.to_owned()) }
}
